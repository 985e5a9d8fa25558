"""A cleaned segment takes the place of those it was made from: Kafka's protocol, and what a start makes of its halves.

1. `<base>.log.cleaned` and its indexes are complete and synced (`output`). A start removes them.
2. They are renamed to `.swap`, the folder is synced. From here on a start finishes what was begun, because the files
   named `.swap` are whole: the first half of an exchange that may have lost some of the old files already.
3. The old files are renamed to `.deleted`, then the `.swap` ones get their names, `.log` last, all in one step on the
   loop, in which the log gets its new segment. Readers of old files go on; these are removed after
   file.delete.delay.ms.

The new segment ends where the old ones did: its last batch stays, if need be without records. So a start knows from
the `.swap` file alone which segments it replaces.
"""

import logging
import os
import re
from pathlib import Path
from typing import Final

from leafcuttr.crashpoints import reach
from leafcuttr.log.files.failed_sync import sync_directory
from leafcuttr.log.files.pending_delete import PendingDelete
from leafcuttr.log.files.pool import FilePool
from leafcuttr.log.layout.folders import segments_in
from leafcuttr.log.layout.suffixes import CLEANED, SUFFIXES, SWAP
from leafcuttr.log.log import Log
from leafcuttr.log.segment.segment import Segment, segment_name

_FILES: Final = (".index", ".timeindex", ".txnindex", ".log")  # the log last: it alone makes a segment
_SWAP_FILE: Final = re.compile(r"([0-9]{20})(\.log|\.index|\.timeindex|\.txnindex)\.swap")

_log = logging.getLogger(__name__)


def announce(directory: str, base: int) -> None:
    """Step 2. Blocks: worker thread. Raises OSError."""
    stem = f"{directory}/{segment_name(base)}"
    for suffix in _FILES:
        if os.path.exists(f"{stem}{suffix}{CLEANED}"):  # noqa: PTH110
            os.rename(f"{stem}{suffix}{CLEANED}", f"{stem}{suffix}{SWAP}")  # noqa: PTH104
    sync_directory(directory)
    reach("compaction.swap-announced")


def exchange(log: Log, old: list[Segment], new: Segment) -> None:
    """Step 3: on the loop, synchronously. `old` are segments of the log, one behind the other. Raises OSError; then
    the log is offline, and the next start finishes the exchange."""
    at = log.segments.index(old[0])
    try:
        paths = [path for segment in old for path in segment.mark_deleted(keep_snapshot=segment is old[0])]
        reach("compaction.old-renamed")
        take_names(log.directory_name, new.base_offset)
    except OSError as error:
        log.take_offline(f"Exchanging segments in {log.directory_name} failed: {error.strerror or error}")
        raise
    log.segments[at : at + len(old)] = [new]
    log.cursors = None
    log.aborts.forget()
    log.rewrites += 1
    log.pending_deletes.append(PendingDelete(paths, log.elapsed_ms + log.config.file_delete_delay_ms))
    reach("compaction.exchanged")


def take_names(directory: str, base: int) -> None:
    """Give the `.swap` files of a segment their names. Raises OSError."""
    stem = f"{directory}/{segment_name(base)}"
    for suffix in _FILES:
        if os.path.exists(f"{stem}{suffix}{SWAP}"):  # noqa: PTH110
            os.rename(f"{stem}{suffix}{SWAP}", f"{stem}{suffix}")  # noqa: PTH104


def withdraw(directory: str, base: int, stage: str) -> None:
    """Remove files of a segment that is not wanted any more: `.cleaned` or `.swap` ones. Raises OSError."""
    for suffix in reversed(_FILES):
        Path(f"{directory}/{segment_name(base)}{suffix}{stage}").unlink(missing_ok=True)


def finish_exchanges(folder: Path) -> bool:
    """At start: remove `.cleaned` files, finish exchanges that were announced; whether there were any.

    Raises OSError, and DamagedSegmentError for a `.swap` file that is not sound; then nothing has changed.
    """
    names = os.listdir(folder)  # noqa: PTH208
    found = {match[1] for match in map(_SWAP_FILE.fullmatch, names) if match}
    for stem in sorted(found):
        if f"{stem}.log{SWAP}" not in names:
            # The log comes last in step 2: this is its beginning. These indexes are not those of the log that is there.
            withdraw(str(folder), int(stem), SWAP)
            continue
        _remove_replaced(folder, int(stem), _end_of(folder, int(stem)))
        take_names(str(folder), int(stem))
        _log.info("%s: the exchange of segment %d is finished", folder, int(stem))
    for name in names:
        if name.endswith(CLEANED):
            (folder / name).unlink(missing_ok=True)
    if found:
        sync_directory(folder)
    return bool(found)


def _end_of(folder: Path, base: int) -> int:
    """The offset after the last batch of a `.swap` file."""
    path = f"{folder}/{segment_name(base)}.log{SWAP}"
    segment = Segment(str(folder), base, pool=FilePool(2), size=os.stat(path).st_size, suffix=SWAP)  # noqa: PTH116
    end = base
    try:
        for _, header in segment.scan():
            end = header.next_offset
    finally:
        segment.close()
    return end


def _remove_replaced(folder: Path, base: int, end: int) -> None:
    for old in segments_in(folder):
        if base < old < end:
            for suffix in SUFFIXES:
                (folder / f"{segment_name(old)}{suffix}").unlink(missing_ok=True)
