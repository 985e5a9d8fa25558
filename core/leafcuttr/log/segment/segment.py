"""One segment of a log: a run of whole batches in `<base offset>.log`, with its two indexes.

`size` is what is published of the file: readers never look past it, and appends go exactly there. Nothing touches
the disk until it is needed; a segment known from a checkpoint is a few numbers. Which segment is the active one, and
what offsets mean beyond it, is the log's.

Kafka's rules for the indexes are kept, so that its tools report nothing: an entry in both for a batch
that begins more than `index.interval.bytes` after the last indexed one; a last time index entry when it is sealed.
Reading a file again is in `rebuild`, forcing it to disk in `sync`.
"""

import errno
import os
from collections.abc import Iterable, Iterator
from typing import Final

from leafcuttr.log.files.failed_sync import marked_on_failure, sync_descriptor
from leafcuttr.log.files.open_file import OpenFile
from leafcuttr.log.files.pool import FilePool
from leafcuttr.log.layout.suffixes import DELETED, SUFFIXES
from leafcuttr.log.segment.index import OffsetIndex, TimeIndex
from leafcuttr.log.segment.scan import SCAN_CHUNK, DamagedSegmentError, headers
from leafcuttr.log.segment.txn_index import TransactionIndex
from leafcuttr.wire.batch import HEADER_SIZE, BatchHeader

MAX_RELATIVE: Final = 0x7FFFFFFF  # offsets in an index are 4 bytes, relative to the base offset
LAST_BASE: Final = 2**63 - 1 - 2**32
"""No segment begins behind it: then each of its offsets, and the one after them, is a long."""
UNKNOWN: Final = -2  # a first timestamp that has not been read yet

AppendedBatch = tuple[int, int, int]
"""Bytes, last offset and max timestamp of one appended batch."""


def segment_name(base_offset: int) -> str:
    """The file name without suffix: 20 digits."""
    return f"{base_offset:020d}"


class Segment:
    """See the module's docstring. One thread, but for what is said to be callable in a worker."""

    __slots__ = (
        "_first_timestamp",
        "_index",
        "_since_index",
        "_suffix",
        "_time_index",
        "_txn_index",
        "_unsealed",
        "base_offset",
        "created_ms",
        "directory",
        "file",
        "largest_timestamp",
        "largest_timestamp_offset",
        "name_synced",
        "pool",
        "size",
        "sync_writes",
        "txn_name_synced",
    )

    def __init__(
        self,
        directory: str,
        base_offset: int,
        *,
        pool: FilePool,
        size: int,
        largest_timestamp: int = -1,
        created_ms: int = 0,
        suffix: str = "",
    ) -> None:
        self.directory = directory
        self._suffix = suffix
        self.base_offset = base_offset
        self.size = size
        self.largest_timestamp = largest_timestamp
        self.largest_timestamp_offset = -1  # -1: not known, found from the index or by a scan
        self.created_ms = created_ms
        self.file: OpenFile | None = None
        self.pool = pool
        self._first_timestamp = UNKNOWN
        self._index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._txn_index: TransactionIndex | None = None
        self.txn_name_synced = False
        self._since_index = 0
        self.name_synced = False  # by this process
        self.sync_writes = False
        self._unsealed = False

    @classmethod
    def create(
        cls,
        directory: str,
        base_offset: int,
        *,
        pool: FilePool,
        preallocate: int = 0,
        created_ms: int = 0,
        sync_writes: bool = False,
    ) -> "Segment":
        """Make the empty files, which must not exist (callable in a worker). Raises OSError."""
        segment = cls(directory, base_offset, pool=pool, size=0, created_ms=created_ms)
        try:
            segment._first_timestamp = -1
            # The .log file comes last: it alone makes a segment, so that a crash leaves none without its indexes.
            segment.index.create()
            segment.time_index.create()
            segment.sync_writes = sync_writes
            file = pool.open(segment, segment.path(".log"), create=True, synced=sync_writes)
            if preallocate:
                os.posix_fallocate(file.fd, 0, preallocate)
                segment._unsealed = True
        except OSError:
            segment.close()  # else the pool would keep the space of the removed files
            raise
        return segment

    @classmethod
    def open(cls, directory: str, base_offset: int, *, pool: FilePool) -> "Segment":
        """The segment of files on disk, its size that of the file, its largest timestamp that of the time index
        (recovery knows better where that index may be behind). Raises OSError."""
        segment = cls(directory, base_offset, pool=pool, size=0)
        segment.size = os.stat(segment.path(".log")).st_size  # noqa: PTH116 - a str path is kept, 10,000 times
        last = segment.time_index.last()
        if last is not None:
            segment.largest_timestamp = int(last[0])
            segment.largest_timestamp_offset = base_offset + int(last[1])
        return segment

    def path(self, suffix: str) -> str:
        return f"{self.directory}/{self.base_offset:020d}{suffix}{self._suffix}"

    def open_file(self) -> OpenFile:
        """The open .log file. Raises OSError, and DamagedSegmentError if less is in it than was written."""
        file = self.file
        if file is not None:
            file.used = True
            return file
        file = self.pool.open(self, self.path(".log"), synced=self.sync_writes)
        while file.path != self.path(".log"):
            # Renamed between the two calls, in another thread: another segment may have the name by now.
            self.pool.close(self)
            file = self.pool.open(self, self.path(".log"), synced=self.sync_writes)
        there = os.fstat(file.fd).st_size
        if there < self.size:
            raise DamagedSegmentError(file.path, there, f"the file ends here, {self.size} bytes were written")
        return file

    def open_for_writing(self, *, sync_writes: bool) -> OpenFile:
        """`open_file`, opened anew where its writes have (not) to return before the disk has them."""
        file = self.open_file()
        if file.read_only:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), file.path)
        while file.synced is not sync_writes:
            # Again if another thread, that wanted to read, has opened it meanwhile as it was before.
            self.sync_writes = sync_writes
            self.pool.close(self)
            file = self.open_file()
        return file

    @property
    def index(self) -> OffsetIndex:
        if self._index is None:
            self._index = OffsetIndex(self.path(".index"), self.pool)
        return self._index

    @property
    def time_index(self) -> TimeIndex:
        if self._time_index is None:
            self._time_index = TimeIndex(self.path(".timeindex"), self.pool)
        return self._time_index

    @property
    def txn_index(self) -> TransactionIndex:
        """The transactions that markers in this segment abort. Nearly always it has no entry, and no file."""
        if self._txn_index is None:
            self._txn_index = TransactionIndex(self.path(".txnindex"), self.pool)
        return self._txn_index

    def has_aborted(self, on_disk: bool | None = None) -> bool:
        """Whether the transaction index has an entry. `on_disk`: whether its file is there, if that is known. Callable
        in a worker. Raises OSError."""
        index = self._txn_index
        if index is not None:
            return len(index) > 0
        if on_disk is not None:
            return on_disk
        return os.path.exists(self.path(".txnindex"))  # noqa: PTH110 - a str path, for each of many

    def index_is_full(self, max_bytes: int) -> bool:
        """Whether an index has no space left within segment.index.bytes, by Kafka's count."""
        if self.size < (max_bytes // 12 - 1) * HEADER_SIZE:
            return False  # even with an entry for every batch
        return len(self.index) >= max_bytes // 8 or len(self.time_index) >= max_bytes // 12 - 1

    def first_timestamp(self, *, may_block: bool = True) -> int:
        """The max timestamp of the first batch, by which segment.ms counts; -1 if empty or without."""
        if self._first_timestamp == UNKNOWN:
            self._first_timestamp = -1
            for _, header in headers(self.open_file(), 0, self.size, may_block=may_block):
                self._first_timestamp = header.max_timestamp
                break
        return self._first_timestamp

    def extend(self, batches: Iterable[AppendedBatch], index_interval: int) -> None:
        """Publish batches that have been written behind `size`: indexes, timestamps, and `size` itself.
        Raises OSError if the end of the time index has to be read and cannot be; then nothing has changed."""
        position, since, base = self.size, self._since_index, self.base_offset
        largest, largest_offset, first = (
            self.largest_timestamp,
            self.largest_timestamp_offset,
            self._first_timestamp,
        )
        entries: list[tuple[int, int]] = []
        times: list[tuple[int, int]] = []
        for size, last_offset, max_timestamp in batches:
            if max_timestamp > largest:
                largest, largest_offset = max_timestamp, last_offset
            if not position:
                first = max_timestamp
            if since > index_interval:
                entries.append((last_offset - base, position))
                if largest_offset >= 0:
                    times.append((largest, largest_offset - base))
                since = 0
            position += size
            since += size
        if entries:
            # What needs the disk comes first: if it fails, nothing has changed, and the write can be undone.
            index, time_index = self.index, self.time_index
            len(index)
            time_index.append_rising(times)
            for relative_offset, at in entries:
                index.append(relative_offset, at)
        self.largest_timestamp, self.largest_timestamp_offset, self._first_timestamp = (
            largest,
            largest_offset,
            first,
        )
        self.size, self._since_index = position, since
        self._unsealed = True

    def offset_of_largest_timestamp(self, *, may_block: bool = True) -> int:
        """Last offset of the batch with the largest timestamp; -1 if there is none."""
        if self.largest_timestamp < 0 or self.largest_timestamp_offset >= 0:
            return self.largest_timestamp_offset
        last = self.time_index.last(may_block=may_block)
        start = 0
        if last is not None:
            if last[0] == self.largest_timestamp:
                self.largest_timestamp_offset = self.base_offset + int(last[1])
                return self.largest_timestamp_offset
            start = self.index.position_for(int(last[1]), may_block=may_block)
        for _, header in headers(self.open_file(), start, self.size, chunk=SCAN_CHUNK, may_block=may_block):
            if header.max_timestamp == self.largest_timestamp:
                self.largest_timestamp_offset = header.last_offset
                break
        return self.largest_timestamp_offset

    def scan(
        self, from_position: int = 0, *, end: int | None = None, check_crc: bool = False, least: int = -1
    ) -> Iterator[tuple[int, BatchHeader]]:
        """(position, header) of each batch from a position where one begins. Raises DamagedSegmentError, OSError."""
        return headers(
            self.open_file(),
            from_position,
            self.size if end is None else end,
            chunk=SCAN_CHUNK,
            check_crc=check_crc,
            least=least,
        )

    def find(self, offset: int, *, may_block: bool = True) -> tuple[int, BatchHeader] | None:
        """Position and header of the first batch whose last offset is at least `offset`; None if all are before."""
        start = self.index.position_for(offset - self.base_offset, may_block=may_block) if self.size else 0
        for position, header in headers(self.open_file(), start, self.size, may_block=may_block):
            if header.base_offset + header.last_offset_delta >= offset:
                return position, header
        return None

    def truncate(self, position: int) -> None:
        """Cut the file, and what the indexes say, at a batch boundary. Raises OSError."""
        file = self.open_file()
        os.ftruncate(file.fd, position)
        self.size = position
        self.truncate_indexes(position)

    def truncate_indexes(self, position: int) -> None:
        """Drop the entries of batches from `position` on. Raises OSError."""
        index, times = self.index, self.time_index
        if not position:
            index.truncate(0)
            times.truncate(0)
            self._since_index = 0
            return
        kept, last = index.search(1, position - 1)
        index.truncate(kept)
        times.truncate(times.search(1, int(last[0]))[0] if last is not None else 0)
        self._since_index = 0

    def flush_indexes(self) -> None:
        """Write pending index entries. Raises OSError."""
        if self._index is not None:
            self._index.flush()
        if self._time_index is not None:
            self._time_index.flush()
        if self._txn_index is not None:
            self._txn_index.flush()

    @property
    def unsealed(self) -> bool:
        """Whether there is something for `seal` to do."""
        return self._unsealed

    def seal(self) -> None:
        """No more appends (roll), or none for now (close): the last time index entry, no unused preallocation.
        Raises OSError."""
        if not self._unsealed:
            return
        offset = self.offset_of_largest_timestamp()
        if offset >= 0:
            self.time_index.maybe_append(self.largest_timestamp, offset - self.base_offset)
        self.flush_indexes()
        file = self.open_file()
        if os.fstat(file.fd).st_size > self.size:
            os.ftruncate(file.fd, self.size)
            if self.sync_writes:
                # Zeros that came back with the power would end a recovery before the segment that comes next.
                with marked_on_failure(self.directory):
                    sync_descriptor(file.fd, file.path)
        self._unsealed = False

    def close(self) -> None:
        """Close the files."""
        self.pool.close(self)
        for index in (self._index, self._time_index, self._txn_index):
            if index is not None:
                index.close()

    def move_to(self, directory: str) -> None:
        """The folder has another name now."""
        self.directory = directory
        self.name_synced = False
        self.txn_name_synced = False
        self._index = self._time_index = self._txn_index = None

    def mark_deleted(self, *, keep_snapshot: bool = False) -> list[str]:
        """Rename the files so that a start does not take them for data; returns the new paths. Open files
        stay readable; a new segment may have the old names. Raises OSError."""
        self.close()
        renamed, suffix = [], self._suffix
        for kind in SUFFIXES:
            if keep_snapshot and kind == ".snapshot":
                continue
            path = self.path(kind)
            try:
                os.rename(path, path + DELETED)  # noqa: PTH104
            except FileNotFoundError:
                continue
            renamed.append(path + DELETED)
        self._suffix = suffix + DELETED
        for index in (self._index, self._time_index, self._txn_index):
            if index is not None:
                index.path += DELETED
        return renamed
