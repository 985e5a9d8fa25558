"""The files of one cleaned segment: `<base>.log.cleaned`, its indexes beside it, synced before the broker gets their
names.

A group of one segment of which nothing is removed needs no files; so nothing is written before `begin`, which takes
over what came before as it is. Index entries follow the rules of `leafcuttr.log.segment.segment`.
"""

import os
import struct
from collections.abc import Sequence
from typing import Final

from leafcuttr.log.cleaner.compaction.pages import Throttle, forget_pages, start_writeback
from leafcuttr.log.layout.suffixes import CLEANED
from leafcuttr.log.segment.txn_index import AbortedTransaction

_INDEX = struct.Struct(">ii")
_TIME_INDEX = struct.Struct(">qi")
_TRANSACTION = struct.Struct(">hqqqq")
_WRITE_AT: Final = 1024 * 1024
_MOST_PIECES: Final = 512
_WRITEBACK: Final = 8 * 1024 * 1024


class Output:
    """See the module's docstring. Raises OSError."""

    def __init__(self, stem: str, base_offset: int, index_interval: int, throttle: Throttle) -> None:
        self.size = 0
        self.largest_timestamp = self.largest_timestamp_offset = -1
        self.begun = False
        self._stem = stem
        self._base = base_offset
        self._interval = index_interval
        self._throttle = throttle
        self._fd = -1
        self._pieces: list[bytes | memoryview] = []
        self._pending = 0
        self._written = self._started = self._forgotten = 0
        self._since = 0
        self._index = bytearray()
        self._times = bytearray()
        self._last_time = (-1, -1)

    def begin(self, source: int, length: int) -> None:
        """Make the file; the first `length` bytes are those of the descriptor `source`."""
        self.begun = True
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        self._fd = os.open(f"{self._stem}.log{CLEANED}", flags, 0o644)
        while self._written < length:
            step = min(_WRITEBACK, length - self._written)
            copied = os.copy_file_range(source, self._fd, step, self._written, self._written)
            if not copied:
                raise OSError(f"{self._stem}.log has become shorter")
            self._note(copied)
        os.lseek(self._fd, length, os.SEEK_SET)

    def batch(self, size: int, last_offset: int, max_timestamp: int) -> None:
        """Count a batch that comes next; its bytes follow by `write`."""
        if max_timestamp > self.largest_timestamp:
            self.largest_timestamp, self.largest_timestamp_offset = max_timestamp, last_offset
        if self._since > self._interval:
            self._index += _INDEX.pack(last_offset - self._base, self.size)
            self._add_time()
            self._since = 0
        self.size += size
        self._since += size

    def write(self, data: bytes | memoryview) -> None:
        """Whole batches."""
        self._pieces.append(data)
        self._pending += len(data)
        if self._pending >= _WRITE_AT or len(self._pieces) >= _MOST_PIECES:
            self.flush()

    def flush(self) -> None:
        """Write what has gathered."""
        pieces, left = self._pieces, self._pending
        self._pieces, self._pending = [], 0
        if left:
            written = os.writev(self._fd, pieces)
            if written < left:
                rest = memoryview(b"".join(pieces))[written:]
                while rest:
                    rest = rest[os.write(self._fd, rest) :]
            self._note(left)

    def finish(
        self, transactions: Sequence[AbortedTransaction], *, with_transactions: bool, mtime: float
    ) -> None:
        """Complete and sync all files. The time of the last write is that of the data, by which retention counts
        where records have no timestamps."""
        self.flush()
        if self.largest_timestamp >= 0:
            self._add_time()
        beside = {".index": self._index, ".timeindex": self._times}
        if with_transactions or transactions:
            beside[".txnindex"] = bytearray().join(_TRANSACTION.pack(0, *each) for each in transactions)
        for suffix, content in beside.items():
            _write_synced(f"{self._stem}{suffix}{CLEANED}", content)
        os.utime(self._fd, (mtime, mtime))
        start_writeback(self._fd, self._started, 0, wait=True)
        os.fsync(self._fd)
        forget_pages(self._fd, 0, 0)

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def discard(self) -> None:
        """Remove what has been made."""
        self.close()
        for suffix in (".log", ".index", ".timeindex", ".txnindex"):
            try:
                os.unlink(f"{self._stem}{suffix}{CLEANED}")  # noqa: PTH108
            except FileNotFoundError:
                continue

    def _add_time(self) -> None:
        entry = self.largest_timestamp, self.largest_timestamp_offset - self._base
        if entry[0] > self._last_time[0] and self.largest_timestamp_offset >= 0:
            self._times += _TIME_INDEX.pack(*entry)
            self._last_time = entry

    def _note(self, written: int) -> None:
        self._written += written
        if self._written - self._started >= _WRITEBACK:
            start_writeback(self._fd, self._started, self._written - self._started)
            # What was started before the last is on the disk by now, or soon: waiting for it bounds the dirty pages.
            if self._started > self._forgotten:
                start_writeback(self._fd, self._forgotten, self._started - self._forgotten, wait=True)
                forget_pages(self._fd, self._forgotten, self._started - self._forgotten)
                self._forgotten = self._started
            self._started = self._written
        self._throttle.spend(written)


def _write_synced(path: str, content: bytes | bytearray) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(fd, rest) :]
        os.fsync(fd)
    finally:
        os.close(fd)
