"""Whether a write into the page cache would stall: when the kernel begins to make writers wait for the disk.

A buffered write returns at once until dirty pages pass a point (half way between the background and the hard
threshold); from there on the kernel puts the writing thread to sleep. No flag makes such a write fail instead
(RWF_NOWAIT is refused for buffered writes by ext4), so the counters in /proc/vmstat are read, rarely, and a write
that did take long counts for some seconds. It is a guess about the machine: one instance serves all logs.
"""

import os
from collections.abc import Callable
from time import monotonic
from typing import Final

SAMPLE_BYTES: Final = 1024 * 1024
SAMPLE_S: Final = 0.1
IDLE_SAMPLE_S: Final = 1.0
SLOW_WRITE_S: Final = 0.02
SLOW_FOR_S: Final = 3.0
_MARGIN: Final = 0.9


class WritePressure:
    """Ask `stalls` before a write on the loop; tell `wrote` how long one took."""

    __slots__ = ("_next_sample", "_path", "_pressed", "_slow_until", "_time", "_unsampled")

    def __init__(self, path: str = "/proc/vmstat", time: Callable[[], float] = monotonic) -> None:
        self._path = path
        self._time = time
        self._unsampled = 0
        self._next_sample = 0.0
        self._slow_until = 0.0
        self._pressed = False

    def stalls(self, size: int) -> bool:
        """Whether writing `size` bytes now would likely wait for the disk."""
        self._unsampled += size
        now = self._time()
        if now >= self._next_sample and (
            self._unsampled >= SAMPLE_BYTES or now >= self._next_sample + IDLE_SAMPLE_S
        ):
            self._sample()
            self._unsampled = 0
            self._next_sample = now + SAMPLE_S
        return self._pressed or now < self._slow_until

    def wrote(self, seconds: float) -> None:
        """A write on the loop took this long."""
        if seconds > SLOW_WRITE_S:
            self._slow_until = self._time() + SLOW_FOR_S

    def _sample(self) -> None:
        dirty = limit = background = 0
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                lines = os.read(fd, 65536).splitlines()
            finally:
                os.close(fd)
            for line in lines:
                if line.startswith((b"nr_dirty", b"nr_writeback ")):
                    name, value = line.split()
                    if name == b"nr_dirty_threshold":
                        limit = int(value)
                    elif name == b"nr_dirty_background_threshold":
                        background = int(value)
                    elif name in (b"nr_dirty", b"nr_writeback"):
                        dirty += int(value)
        except (OSError, ValueError):
            limit = 0  # not Linux's own file: only slow writes tell then
        self._pressed = bool(limit) and dirty > (limit + background) / 2 * _MARGIN
