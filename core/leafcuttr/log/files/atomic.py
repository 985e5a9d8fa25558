"""Replacing a small file so that a crash at any moment leaves the old one or the new one, whole.

The new content is written beside the file, under `<name>.tmp` as Kafka names it, and renamed over it. With
`sync` it also survives the loss of power: the content is synced before the rename, the folder after it.
"""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from leafcuttr import crashpoints
from leafcuttr.log.files.failed_sync import sync_directory

TEMPORARY: Final = ".tmp"


def replace_file(
    path: Path, content: bytes | Iterable[bytes], *, sync: bool = True, points: str = ""
) -> None:
    """Put `content` (whole, or in pieces) in the place of `path`.

    `points` names the pair of crash points to pass, `<points>.written` and `<points>.renamed`. Raises
    OSError; the old file is then still there. A sync that fails is not repeated on that file: the next call
    writes a new one.
    """
    beside = path.with_name(path.name + TEMPORARY)
    pieces = (content,) if isinstance(content, bytes) else content
    try:
        with beside.open("wb", buffering=1 << 20) as file:
            for piece in pieces:
                file.write(piece)
            if sync:
                file.flush()
                os.fsync(file.fileno())
    except OSError:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise
    if points:
        crashpoints.reach(f"{points}.written")
    beside.rename(path)
    if points:
        crashpoints.reach(f"{points}.renamed")
    if sync:
        sync_directory(path.parent)
