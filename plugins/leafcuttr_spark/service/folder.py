"""Which pipelines a folder has: names of files, and digests of what they have. Nothing is parsed: that is done by the
process of the pipeline, whose memory is bounded.
"""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

SUFFIXES: Final = (".yaml", ".yml")
MOST: Final = 100
"""Pipelines of one broker."""
LARGEST: Final = 1 << 20
"""Bytes of a file."""

_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,100}")
_LONGEST: Final = 120
"""Characters of a name that is none."""


class Found(NamedTuple):
    """One file."""

    path: Path
    digest: str
    """Of what it has; empty where it cannot be run."""
    trouble: str = ""
    """Why it cannot, in one line."""


class FolderError(Exception):
    """The folder cannot be read. The message is one line."""


def scan(folder: Path) -> dict[str, Found]:
    """The files by the names of their pipelines, in order. Blocks. Raises FolderError."""
    try:
        paths = sorted(
            path
            for path in folder.iterdir()
            if path.suffix in SUFFIXES and not path.name.startswith(".") and not path.is_dir()
        )
    except OSError as error:
        raise FolderError(f"{folder} cannot be read: {error.strerror or error}") from None
    found: dict[str, Found] = {}
    for path in paths[: 2 * MOST]:
        if not _NAME.fullmatch(path.stem):
            name = ascii(path.name)[:_LONGEST]
            found[name] = Found(
                path, "", "its name has to be of letters, digits, '.', '_' and '-', 100 at most"
            )
        elif path.stem in found:
            found[path.name] = Found(path, "", f"{found[path.stem].path.name} is a pipeline of that name")
        elif len(found) >= MOST:
            found[path.stem] = Found(path, "", f"a broker runs {MOST} at most")
        else:
            found[path.stem] = _look(path)
    return found


def _look(path: Path) -> Found:
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        return Found(path, "", f"{path} cannot be read: {error.strerror or error}")
    if len(data) > LARGEST:
        return Found(path, "", f"{path} has more than {LARGEST} bytes")
    return Found(path, hashlib.sha256(data).hexdigest())


def settled(before: Mapping[str, Found], now: Mapping[str, Found]) -> dict[str, Found]:
    """What two scans in turn have found in the same way: a file that is being written is left for the next one. One
    that is gone is gone at once."""
    return {name: found for name, found in now.items() if before.get(name) == found}
