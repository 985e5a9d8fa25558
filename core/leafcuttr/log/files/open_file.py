"""One open file.

A descriptor lives as long as its `OpenFile` is referenced: by the owner (a segment, an index), by every region that is
being sent, and by each system call that uses it: the number alone may be closed, and be another file's, when another
thread opens one before the call is made. That is CPython's reference counting and nothing else, so there is no release
to forget.
"""

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final, Protocol

PROBE_STEP: Final = 128 * 1024  # the kernel's usual read-ahead: one page of it stands for all
WARM_STEP: Final = 1024 * 1024
_BLOCK: Final = 4096
# What is reserved is an eighth of what the file holds, within these: what a log of few records wastes is little.
_RESERVE_SHARE: Final = 3
_LEAST_RESERVE: Final = 8 * _BLOCK
_MOST_RESERVE: Final = 2 * 1024 * 1024


class NotCached(Exception):
    """The bytes are not in the page cache, and the caller would not block. `warm()` (in a worker
    thread) reads them in; then try again."""

    def __init__(self, file: "OpenFile", position: int, length: int) -> None:
        super().__init__(f"{file.path} at {position}: {length} bytes are not in the page cache")
        self.warm: Callable[[], None] = partial(warm, file, position, max(length, PROBE_STEP))


class OpenFile:
    """One descriptor, closed with its last reference. Never shared between processes."""

    __slots__ = ("_of_pool", "_reserved", "fd", "owner", "path", "read_only", "synced", "used")

    def __init__(self, path: str, flags: int, owner: "FileOwner", *, of_pool: set[int] | None = None) -> None:
        """`of_pool` has the descriptor as long as it is open."""
        self.fd = -1
        self._of_pool = of_pool
        self.path = path
        self.owner = owner
        self.used = True
        self.synced = bool(flags & os.O_DSYNC)  # a write returns when it is on the disk
        self.read_only = not flags & os.O_RDWR  # the file system is, or has been
        self._reserved = 0
        self.fd = os.open(path, flags | os.O_CLOEXEC, 0o644)
        if of_pool is not None:
            of_pool.add(self.fd)

    def reserve(self, end: int) -> None:
        """Have the file reach some way beyond `end`. A synced write that makes its file longer waits for the file
        system's journal as well, which takes the disk half as long again. That it cannot be had is no harm."""
        if end > self._reserved:
            self._reserved = os.fstat(self.fd).st_size
        if end > self._reserved:
            more = min(max(end >> _RESERVE_SHARE, _LEAST_RESERVE), _MOST_RESERVE)
            self._reserved = (end + more) & -_BLOCK
            with suppress(OSError):
                os.posix_fallocate(self.fd, end, self._reserved - end)

    def drop_reserve(self) -> None:
        """The file has been cut: what was reserved is gone."""
        self._reserved = 0

    def __del__(self) -> None:
        if self.fd >= 0:
            if self._of_pool is not None:
                self._of_pool.discard(self.fd)  # before another thread opens a file and gets the number
            os.close(self.fd)

    def pread(self, length: int, position: int, *, may_block: bool) -> bytes:
        """Up to `length` bytes, fewer only at the end of the file. Raises NotCached if `may_block` is False
        and the kernel would have to go to the disk; OSError."""
        if may_block:
            return os.pread(self.fd, length, position)
        buffer = bytearray(length)
        view = memoryview(buffer)
        done = 0
        while done < length:
            try:
                got = os.preadv(self.fd, [view[done:]], position + done, os.RWF_NOWAIT)
            except BlockingIOError:
                raise NotCached(self, position + done, length - done) from None
            except OSError as error:
                if error.errno != errno.EOPNOTSUPP:
                    raise
                return os.pread(self.fd, length, position)
            if not got:
                break
            done += got
        return bytes(view[:done])


class FileOwner(Protocol):
    """Keeps an OpenFile between uses; `file` becomes None when the pool takes it away."""

    file: OpenFile | None


def warm(file: OpenFile, position: int, length: int) -> None:
    """Read a range of the file into the page cache. Blocks: call it in a worker thread."""
    buffer = bytearray(min(WARM_STEP, max(length, 1)))
    at, end = position, position + length
    while at < end:
        got = os.preadv(file.fd, [buffer], at)
        if not got:
            return
        at += got
