"""Open files: a bounded set of descriptors.

The pool bounds how many owners hold an `OpenFile`; an evicted descriptor closes with its last reference, which may be
that of an answer to a slow peer. `let_go` counts those, for `handlers.fetch` to bound. What is in the files does not
matter here.
"""

import errno
import os
import threading
from collections.abc import Callable
from typing import TypeVar

from leafcuttr.log.files.open_file import FileOwner, OpenFile
from leafcuttr.runtime.descriptors import DescriptorGuard

T = TypeVar("T")


class FilePool:
    """At most `limit` descriptors kept open for their owners; the least recently used is closed first. The guard of
    descriptors may have one closed before that.

    Recency is one flag a file (second chance), so that using an open file costs an assignment. Thread-safe.
    """

    __slots__ = ("_descriptors", "_files", "_lock", "_open", "limit")

    def __init__(self, limit: int = 512, descriptors: DescriptorGuard | None = None) -> None:
        self.limit = limit
        self._descriptors = DescriptorGuard() if descriptors is None else descriptors
        self._descriptors.add(self.release_one)
        self._files: dict[int, OpenFile] = {}
        self._lock = threading.Lock()
        self._open: set[int] = set()

    def __len__(self) -> int:
        return len(self._files)

    @property
    def let_go(self) -> int:
        """How many descriptors are open still that the pool does not keep any more."""
        return len(self._open) - len(self._files)

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
        and that the pool does not keep. Raises OSError."""
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
            return self.opening(lambda: OpenFile(path, flags, owner, of_pool=self._open))
        except OSError as error:
            if error.errno == errno.EROFS and may_only_read:
                return self.opening(lambda: OpenFile(path, flags & ~os.O_RDWR, owner, of_pool=self._open))
            raise

    def opening(self, opens: Callable[[], T]) -> T:
        """Do what opens a file that no owner keeps, if need be with one less in the pool. Raises OSError."""
        return self._descriptors.opening(opens)

    def release_one(self) -> bool:
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
        """Close the owner's file; regions being sent keep it open."""
        with self._lock:
            file, owner.file = owner.file, None
            if file is not None:
                self._files.pop(id(file), None)
