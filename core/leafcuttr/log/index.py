"""The two sparse indexes of a segment, in Kafka's formats: offsets to positions, timestamps to offsets.

    .index      relative offset i32 | position i32     offset: the last of the batch that begins at position
    .timeindex  timestamp i64 | relative offset i32    timestamp: the largest up to that offset, which is the
                                                       last offset of the batch that holds it

Both ascend in both columns. Entries of the active segment gather in memory and are written in bulk by `flush`
(soft checkpoint, roll, close), so an append costs no system call here. An index is a cache of the log file:
recovery rebuilds what is missing.

All methods run on one thread; `may_block` False raises NotCached rather than wait for the disk.
"""

import os
import struct
from typing import Any, ClassVar

from leafcuttr.log.files import FilePool, OpenFile

_RUN = 512  # entries read at once when a search has come that near


class SparseIndex:
    """An ascending sequence of fixed-size entries: those on disk, then those still pending."""

    __slots__ = ("_on_disk", "_pending", "_pool", "file", "path")
    ENTRY: ClassVar[struct.Struct]

    def __init__(self, path: str, pool: FilePool, *, on_disk: int = -1) -> None:
        self.path = path
        self.file: OpenFile | None = None
        self._pool = pool
        self._on_disk = on_disk
        self._pending: bytearray | None = None

    def __len__(self) -> int:
        return self.on_disk + (len(self._pending) // self.ENTRY.size if self._pending else 0)

    @property
    def on_disk(self) -> int:
        """Whole entries in the file."""
        if self._on_disk < 0:
            try:
                self._on_disk = os.stat(self.path).st_size // self.ENTRY.size  # noqa: PTH116 - no Path object per partition
            except FileNotFoundError:
                self._on_disk = 0
        return self._on_disk

    def create(self) -> None:
        """Make the empty file; it must not exist. Raises OSError."""
        self._pool.open(self, self.path, create=True)
        self._on_disk = 0

    def entry(self, number: int, *, may_block: bool = True) -> tuple[Any, ...]:
        """The entry of that number, 0 the oldest."""
        size = self.ENTRY.size
        if number >= self.on_disk:
            assert self._pending is not None
            return self.ENTRY.unpack_from(self._pending, (number - self.on_disk) * size)
        data = self._pool.open(self, self.path).pread(size, number * size, may_block=may_block)
        return self.ENTRY.unpack(data)

    def last(self, *, may_block: bool = True) -> tuple[Any, ...] | None:
        count = len(self)
        return self.entry(count - 1, may_block=may_block) if count else None

    def entries(self) -> list[tuple[Any, ...]]:
        """All of them (tests, tools, sanity checks)."""
        return [self.entry(number) for number in range(len(self))]

    def count_at_most(self, column: int, value: int, *, may_block: bool = True) -> int:
        """How many entries have a `column` of at most `value` (a bisect over disk and memory)."""
        low, high = 0, len(self)
        size, unpack = self.ENTRY.size, self.ENTRY.unpack_from
        while low < high:
            if high - low <= _RUN and high <= self.on_disk:
                run = self._pool.open(self, self.path).pread(
                    (high - low) * size, low * size, may_block=may_block
                )
                start = low
                high = min(high, low + len(run) // size)
                while low < high:
                    middle = (low + high) // 2
                    if unpack(run, (middle - start) * size)[column] <= value:
                        low = middle + 1
                    else:
                        high = middle
                return low
            middle = (low + high) // 2
            if self.entry(middle, may_block=may_block)[column] <= value:
                low = middle + 1
            else:
                high = middle
        return low

    def _append(self, first: int, second: int) -> None:
        if self._pending is None:
            self._pending = bytearray()
        self._pending += self.ENTRY.pack(first, second)

    def flush(self) -> None:
        """Write what is pending. Raises OSError; then everything is pending still."""
        pending = self._pending
        if not pending:
            return
        file = self._pool.open(self, self.path)
        at = self.on_disk * self.ENTRY.size
        written = 0
        while written < len(pending):
            written += os.pwrite(file.fd, memoryview(pending)[written:], at + written)
        self._on_disk += len(pending) // self.ENTRY.size
        self._pending = None

    def truncate(self, count: int) -> None:
        """Keep the first `count` entries. Raises OSError."""
        if count < self.on_disk:
            os.ftruncate(self._pool.open(self, self.path).fd, count * self.ENTRY.size)
            self._on_disk = count
            self._pending = None
        elif self._pending is not None:
            del self._pending[(count - self.on_disk) * self.ENTRY.size :]

    def sync(self) -> None:
        """Force the file to disk. Blocks: worker thread."""
        os.fdatasync(self._pool.open(self, self.path).fd)

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
        count = self.count_at_most(0, relative_offset, may_block=may_block)
        return int(self.entry(count - 1, may_block=may_block)[1]) if count else 0

    def boundary_at_most(self, position: int, *, may_block: bool = True) -> int:
        """The largest indexed beginning of a batch that is at most `position`; 0 if none is."""
        count = self.count_at_most(1, position, may_block=may_block)
        return int(self.entry(count - 1, may_block=may_block)[1]) if count else 0


class TimeIndex(SparseIndex):
    """(largest timestamp so far, relative offset of the last record of the batch that holds it)."""

    __slots__ = ()
    ENTRY = struct.Struct(">qi")

    def maybe_append(self, timestamp: int, relative_offset: int) -> None:
        """Append if both columns stay ascending and the timestamp grows; otherwise the entry adds nothing."""
        last = self.last()
        if timestamp >= 0 and (last is None or (timestamp > last[0] and relative_offset >= last[1])):
            self._append(timestamp, relative_offset)

    def offset_before(self, timestamp: int, *, may_block: bool = True) -> int:
        """Relative offset at or before the first batch that can hold a record of `timestamp` or later."""
        count = self.count_at_most(0, timestamp - 1, may_block=may_block)
        return int(self.entry(count - 1, may_block=may_block)[1]) if count else 0
