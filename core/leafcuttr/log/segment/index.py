"""The two sparse indexes of a segment, in Kafka's formats: offsets to positions, timestamps to offsets.

    .index      relative offset i32 | position i32     offset: the last of the batch that begins at position
    .timeindex  timestamp i64 | relative offset i32    timestamp: the largest up to that offset, which is the
                                                       last offset of the batch that holds it

Both ascend in both columns. Entries of the active segment gather in memory and are written in bulk by `flush`
(soft checkpoint, roll, close), so an append costs no system call here. An index is a cache of the log file:
recovery rebuilds what is missing.

`may_block` False raises NotCached rather than wait for the disk.
"""

import os
import struct
from collections.abc import Iterable
from typing import Any, ClassVar

from leafcuttr.log.files.failed_sync import sync_descriptor
from leafcuttr.log.files.open_file import OpenFile
from leafcuttr.log.files.pool import FilePool

_RUN = 512  # entries read at once when a search has come that near


class SparseIndex:
    """An ascending sequence of fixed-size entries: those on disk, then those still pending.

    Lookups may run in another thread than the one that appends and flushes: what is on disk and what is pending
    change places in one assignment.
    """

    __slots__ = ("_known", "_pool", "file", "path")
    ENTRY: ClassVar[struct.Struct]

    def __init__(self, path: str, pool: FilePool) -> None:
        self.path = path
        self.file: OpenFile | None = None
        self._pool = pool
        self._known: tuple[int, bytearray] | None = None

    def _entries_known(self) -> tuple[int, bytearray]:
        """(whole entries in the file, the pending ones)."""
        known = self._known
        if known is None:
            try:
                on_disk = os.stat(self.path).st_size // self.ENTRY.size  # noqa: PTH116 - no Path for each of 10,000
            except FileNotFoundError:
                on_disk = 0
            known = self._known = on_disk, bytearray()
        return known

    def __len__(self) -> int:
        on_disk, pending = self._entries_known()
        return on_disk + len(pending) // self.ENTRY.size

    def create(self) -> None:
        """Make the empty file; it must not exist. Raises OSError."""
        self._pool.open(self, self.path, create=True)
        self._known = 0, bytearray()

    def _entry(self, number: int, known: tuple[int, bytearray], may_block: bool) -> tuple[Any, ...]:
        size, (on_disk, pending) = self.ENTRY.size, known
        if number >= on_disk:
            return self.ENTRY.unpack_from(pending, (number - on_disk) * size)
        data = self._pool.open(self, self.path).pread(size, number * size, may_block=may_block)
        return self.ENTRY.unpack(data)

    def last(self, *, may_block: bool = True) -> tuple[Any, ...] | None:
        known = on_disk, pending = self._entries_known()
        count = on_disk + len(pending) // self.ENTRY.size
        return self._entry(count - 1, known, may_block) if count else None

    def entries(self) -> list[tuple[Any, ...]]:
        """All of them (tests, tools, sanity checks)."""
        known = self._entries_known()
        return [self._entry(number, known, True) for number in range(len(self))]

    def search(
        self, column: int, value: int, *, may_block: bool = True
    ) -> tuple[int, tuple[Any, ...] | None]:
        """How many entries have a `column` of at most `value`, and the last of these (a bisect)."""
        known = on_disk, pending = self._entries_known()
        size, unpack = self.ENTRY.size, self.ENTRY.unpack_from
        low, high = 0, on_disk + len(pending) // size
        found = None
        while low < high:
            if high - low <= _RUN and high <= on_disk:
                run = self._pool.open(self, self.path).pread(
                    (high - low) * size, low * size, may_block=may_block
                )
                start, high = low, low + len(run) // size
                while low < high:
                    middle = (low + high) // 2
                    entry = unpack(run, (middle - start) * size)
                    if entry[column] <= value:
                        low, found = middle + 1, entry
                    else:
                        high = middle
                break
            middle = (low + high) // 2
            entry = self._entry(middle, known, may_block)
            if entry[column] <= value:
                low, found = middle + 1, entry
            else:
                high = middle
        return low, found

    def _append(self, first: int, second: int) -> None:
        pending = self._entries_known()[1]
        pending += self.ENTRY.pack(first, second)

    def flush(self) -> None:
        """Write what is pending. Raises OSError; then everything is pending still."""
        on_disk, pending = self._entries_known()
        if not pending:
            return
        file = self._pool.open(self, self.path, writing=True)
        data, at = bytes(pending), on_disk * self.ENTRY.size
        written = 0
        while written < len(data):
            written += os.pwrite(file.fd, data[written:], at + written)
        self._known = on_disk + len(data) // self.ENTRY.size, pending[len(data) :]

    def truncate(self, count: int) -> None:
        """Keep the first `count` entries. Raises OSError."""
        on_disk, pending = self._entries_known()
        if count < on_disk:
            file = self._pool.open(self, self.path, writing=True)
            os.ftruncate(file.fd, count * self.ENTRY.size)
            self._known = count, bytearray()
        else:
            self._known = on_disk, pending[: (count - on_disk) * self.ENTRY.size]

    def sync(self) -> None:
        """Force the file to disk. Blocks: worker thread. Raises SyncFailedError, OSError."""
        file = self._pool.open(self, self.path)
        sync_descriptor(file.fd, self.path)

    def close(self) -> None:
        self._pool.close(self)


class OffsetIndex(SparseIndex):
    """(relative offset of a batch's last record, position of the batch)."""

    __slots__ = ()
    ENTRY = struct.Struct(">ii")

    def append(self, relative_offset: int, position: int) -> None:
        self._append(relative_offset, position)

    def position_for(self, relative_offset: int, *, may_block: bool = True) -> int:
        """A position at or before the batch that holds the offset: where a scan for it begins."""
        entry = self.search(0, relative_offset, may_block=may_block)[1]
        return int(entry[1]) if entry is not None else 0

    def boundary_at_most(self, position: int, *, may_block: bool = True) -> int:
        """The largest indexed beginning of a batch that is at most `position`; 0 if none is."""
        entry = self.search(1, position, may_block=may_block)[1]
        return int(entry[1]) if entry is not None else 0


class TimeIndex(SparseIndex):
    """(largest timestamp so far, relative offset of the last record of the batch that holds it)."""

    __slots__ = ()
    ENTRY = struct.Struct(">qi")

    def maybe_append(self, timestamp: int, relative_offset: int) -> None:
        """Append if both columns stay ascending and the timestamp grows; otherwise the entry adds nothing."""
        self.append_rising(((timestamp, relative_offset),))

    def append_rising(self, entries: Iterable[tuple[int, int]]) -> None:
        """`maybe_append` for several. Raises OSError if the last entry cannot be read; then none is appended."""
        last = self.last()
        for timestamp, relative_offset in entries:
            if timestamp >= 0 and (last is None or (timestamp > last[0] and relative_offset >= last[1])):
                self._append(timestamp, relative_offset)
                last = timestamp, relative_offset

    def offset_before(self, timestamp: int, *, may_block: bool = True) -> int:
        """Relative offset at or before the first batch that can hold a record of `timestamp` or later."""
        entry = self.search(0, timestamp - 1, may_block=may_block)[1]
        return int(entry[1]) if entry is not None else 0
