"""Open files: a bounded set of descriptors, and regions of files on their way to a socket.

A descriptor lives as long as somebody holds its `OpenFile`: the owner (a segment, an index), every region being
sent, and whoever uses it for a system call: the number alone may be closed, and be another file's, when another
thread opens one before the call is made. The pool bounds how many owners hold one; an evicted descriptor closes when
its last region goes. That is CPython's reference counting and nothing else, so there is no release to forget.

What is in the files is not known here.
"""

import errno
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol, TypeVar

from leafcuttr.runtime.descriptors import DescriptorGuard

T = TypeVar("T")

PROBE_STEP: Final = 128 * 1024  # the kernel's usual read-ahead: a page every so often tells of its neighbours
WARM_STEP: Final = 1024 * 1024
_BLOCK: Final = 4096
# Room is an eighth of what the file holds, within these: what a log of few records wastes is little.
_ROOM_SHARE: Final = 3
_LEAST_ROOM: Final = 8 * _BLOCK
_MOST_ROOM: Final = 2 * 1024 * 1024


class NotCached(Exception):
    """What was asked for is not in the page cache, and the caller would not block. `warm()` (in a worker
    thread) reads it in; then ask again."""

    def __init__(self, file: "OpenFile", position: int, length: int) -> None:
        super().__init__(f"{file.path} at {position}: {length} bytes are not in the page cache")
        self.warm: Callable[[], None] = FileRegion(file, position, max(length, PROBE_STEP)).warm


class OpenFile:
    """One descriptor, closed when the last reference goes. Never shared between processes."""

    __slots__ = ("_room", "fd", "owner", "path", "read_only", "synced", "used")

    def __init__(self, path: str, flags: int, owner: "FileOwner") -> None:
        self.fd = -1
        self.path = path
        self.owner = owner
        self.used = True
        self.synced = bool(flags & os.O_DSYNC)  # a write returns when it is on the disk
        self.read_only = not flags & os.O_RDWR  # the file system is, or has been
        self._room = 0
        self.fd = os.open(path, flags | os.O_CLOEXEC, 0o644)

    def make_room(self, end: int) -> None:
        """Have the file reach some way beyond `end`. A synced write that makes its file longer waits for the file
        system's journal as well, which takes the disk half as long again. That it cannot be had is no harm."""
        if end > self._room:
            self._room = os.fstat(self.fd).st_size
        if end > self._room:
            room = min(max(end >> _ROOM_SHARE, _LEAST_ROOM), _MOST_ROOM)
            self._room = (end + room) & -_BLOCK
            with suppress(OSError):
                os.posix_fallocate(self.fd, end, self._room - end)

    def no_room(self) -> None:
        """The file has been cut."""
        self._room = 0

    def __del__(self) -> None:
        if self.fd >= 0:
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
    """Whoever keeps an OpenFile between uses; `file` becomes None when the pool takes it away."""

    file: OpenFile | None


class FilePool:
    """At most `limit` descriptors kept open for their owners; the least recently used goes first. The guard of
    descriptors may ask for one before that.

    Recency is one flag a file (second chance), so that using an open file costs an assignment. Thread-safe.
    """

    __slots__ = ("_descriptors", "_files", "_lock", "limit")

    def __init__(self, limit: int = 512, descriptors: DescriptorGuard | None = None) -> None:
        self.limit = limit
        self._descriptors = DescriptorGuard() if descriptors is None else descriptors
        self._descriptors.add(self.let_one_go)
        self._files: dict[int, OpenFile] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._files)

    def open(
        self,
        owner: FileOwner,
        path: str,
        *,
        create: bool = False,
        synced: bool = False,
        writing: bool = False,
    ) -> OpenFile:
        """The owner's file, opened if need be. With `create` the file must not exist; `synced` opens it with O_DSYNC.
        Where the file system is read-only, and unless it is for `writing`, the caller gets one that can be read only,
        and that nobody keeps. Raises OSError."""
        file = owner.file
        if file is not None:
            file.used = True
            return file
        flags = os.O_RDWR | (os.O_CREAT | os.O_EXCL if create else 0) | (os.O_DSYNC if synced else 0)
        file = self._opened(path, flags, owner, may_only_read=not (create or writing))
        if file.read_only:
            return file
        with self._lock:
            first = owner.file
            if first is not None and not create:
                return first  # another thread has been faster
            self._files[id(file)] = file
            owner.file = file
            while len(self._files) > max(self.limit, 1):
                self._evict_one(file)
        return file

    def _opened(self, path: str, flags: int, owner: FileOwner, *, may_only_read: bool) -> OpenFile:
        try:
            return self.opening(lambda: OpenFile(path, flags, owner))
        except OSError as error:
            if error.errno == errno.EROFS and may_only_read:
                return self.opening(lambda: OpenFile(path, flags & ~os.O_RDWR, owner))
            raise

    def opening(self, opens: Callable[[], T]) -> T:
        """Do what opens a file that no owner keeps, if need be with one less in the pool. Raises OSError."""
        return self._descriptors.opening(opens)

    def let_one_go(self) -> bool:
        """Give up a descriptor that its owner can have again. False if there is none."""
        with self._lock:
            if not self._files:
                return False
            self._evict_one(None)
            return True

    def _evict_one(self, keep: OpenFile | None) -> None:
        while True:
            key, file = next(iter(self._files.items()))
            del self._files[key]
            if file.used or file is keep:
                file.used = False
                self._files[key] = file
            else:
                if file.owner.file is file:
                    file.owner.file = None
                return

    def close(self, owner: FileOwner) -> None:
        """Let go of the owner's file; regions being sent keep it open."""
        with self._lock:
            file, owner.file = owner.file, None
            if file is not None:
                self._files.pop(id(file), None)


class FileRegion:
    """`length` bytes of a file at `position`, that can be sent from the file; holds its descriptor."""

    __slots__ = ("file", "length", "position")

    def __init__(self, file: OpenFile, position: int, length: int) -> None:
        self.file = file
        self.position = position
        self.length = length

    @property
    def fd(self) -> int:
        return self.file.fd

    def is_cached(self) -> bool:
        """Whether sending would likely not wait for the disk: one byte is probed every 128 KiB and at the end."""
        fd, end = self.file.fd, self.position + self.length
        probe = [bytearray(1)]
        at = self.position
        try:
            while at < end:
                os.preadv(fd, probe, at, os.RWF_NOWAIT)
                at += PROBE_STEP
            if self.length:
                os.preadv(fd, probe, end - 1, os.RWF_NOWAIT)
        except BlockingIOError:
            return False
        except OSError as error:
            return error.errno == errno.EOPNOTSUPP
        return True

    def read_cached(self) -> bytearray | None:
        """The bytes themselves if they are in the page cache, else None. Never waits for the disk."""
        data = bytearray(self.length)
        try:
            got = os.preadv(self.file.fd, [data], self.position, os.RWF_NOWAIT)
        except OSError:
            return None
        return data if got == self.length else None

    def warm(self) -> None:
        """Read the region into the page cache. Blocks: call it in a worker thread."""
        buffer = bytearray(min(WARM_STEP, max(self.length, 1)))
        at, end = self.position, self.position + self.length
        while at < end:
            got = os.preadv(self.file.fd, [buffer], at)
            if not got:
                return
            at += got

    def read(self) -> bytes:
        """The bytes themselves (for TLS, tests, and readers in this process)."""
        return os.pread(self.file.fd, self.length, self.position)
