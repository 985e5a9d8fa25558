"""A range of a segment on its way out of the log: it is sent, or read, and shows neither a path nor a descriptor."""

import errno
import os

from leafcuttr.log.files.open_file import PROBE_STEP, OpenFile, warm


class FileRegion:
    """`length` bytes of a file at `position`, that can be sent from the file; holds its descriptor."""

    __slots__ = ("_file", "length", "position")

    def __init__(self, file: OpenFile, position: int, length: int) -> None:
        self._file = file
        self.position = position
        self.length = length

    def first(self, most: int) -> "FileRegion":
        """Its first bytes, at most so many."""
        return self if self.length <= most else FileRegion(self._file, self.position, most)

    def after(self, count: int) -> "FileRegion | None":
        """What follows its first `count` bytes; None if that is nothing."""
        if count == self.length:
            return None
        return FileRegion(self._file, self.position + count, self.length - count)

    def send_to(self, descriptor: int) -> int:
        """Send what a socket takes of it now; how many bytes, 0 if the file ends before the region. Raises
        BlockingIOError, OSError."""
        return os.sendfile(descriptor, self._file.fd, self.position, self.length)

    def is_cached(self) -> bool:
        """Whether sending would likely not wait for the disk: one byte is probed every 128 KiB and at the end."""
        fd, end = self._file.fd, self.position + self.length
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
            got = os.preadv(self._file.fd, [data], self.position, os.RWF_NOWAIT)
        except OSError:
            return None
        return data if got == self.length else None

    def warm(self) -> None:
        """Read the region into the page cache. Blocks: call it in a worker thread."""
        warm(self._file, self.position, self.length)

    def read(self) -> bytes:
        """The bytes themselves. Blocks."""
        return os.pread(self._file.fd, self.length, self.position)
