"""Whether a write into the page cache would stall: when the kernel begins to make writers wait for the disk.

A buffered write returns at once until dirty pages pass a point (half way between the background and the hard
threshold); from there on the kernel puts the writing thread to sleep. No flag makes such a write fail instead
(RWF_NOWAIT is refused for buffered writes by ext4), so the counters in /proc/vmstat are read, rarely, and a write
that did take long counts for some seconds. It is a guess about the machine: one instance serves all logs.

A write also takes long if the thread is ready to run and gets no processor: other processes have it, or the control
group has used up its quota. A worker thread would not get one either, so that time does not count. The kernel adds it
up for each thread (run delay), and what it has grown by since it was last read is the most that a write can have lost
that way. It is read together with /proc/vmstat, not for each write. If it explains a long write, then for some
seconds it is read at most a millisecond before each write, so that a disk that is slow besides is told apart.
"""

import math
import os
from collections.abc import Callable
from time import monotonic
from typing import Final

SAMPLE_BYTES: Final = 1024 * 1024
SAMPLE_S: Final = 0.1
IDLE_SAMPLE_S: Final = 1.0
CLOSE_SAMPLE_S: Final = 0.001
SLOW_WRITE_S: Final = 0.02
SLOW_FOR_S: Final = 3.0
_MARGIN: Final = 0.9


def run_delay_s() -> float:
    """For how long the calling thread has been ready to run without a processor, since it began; 0 if the kernel does
    not tell."""
    try:
        fd = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return int(os.read(fd, 128).split()[1]) / 1e9
        finally:
            os.close(fd)
    except (OSError, ValueError, IndexError):
        return 0.0


class WritePressure:
    """Call `stalls` before a write on the loop and `wrote` after it, both in the thread that writes."""

    __slots__ = (
        "_close_until",
        "_delay_s",
        "_next_sample",
        "_next_vmstat",
        "_path",
        "_pressed",
        "_run_delay_s",
        "_slow_until",
        "_time",
        "_unsampled",
    )

    def __init__(
        self,
        path: str = "/proc/vmstat",
        time: Callable[[], float] = monotonic,
        run_delay: Callable[[], float] = run_delay_s,
    ) -> None:
        self._path = path
        self._time = time
        self._run_delay_s = run_delay
        self._delay_s = math.inf  # until it is read for the first time, nothing is explained by it
        self._unsampled = 0
        self._next_sample = self._next_vmstat = 0.0
        self._slow_until = 0.0
        self._close_until = 0.0
        self._pressed = False

    def stalls(self, size: int) -> bool:
        """Whether writing `size` bytes now would likely wait for the disk."""
        self._unsampled += size
        now = self._time()
        if now >= self._next_sample and (
            self._unsampled >= SAMPLE_BYTES or now >= self._next_sample + IDLE_SAMPLE_S
        ):
            self._sample(now)
        return self._pressed or now < self._slow_until

    def wrote(self, seconds: float) -> None:
        """A write on the loop took this long."""
        if seconds > SLOW_WRITE_S:
            before, self._delay_s = self._delay_s, self._run_delay_s()
            now = self._time()
            if seconds - (self._delay_s - before) > SLOW_WRITE_S:
                self._slow_until = now + SLOW_FOR_S
            else:
                self._close_until = now + SLOW_FOR_S
                self._sample_within(CLOSE_SAMPLE_S, now)

    def _sample(self, now: float) -> None:
        self._delay_s = self._run_delay_s()
        if now >= self._next_vmstat:
            self._read_vmstat()
            self._next_vmstat = now + SAMPLE_S
        if now < self._close_until:
            self._sample_within(CLOSE_SAMPLE_S, now)
        else:
            self._unsampled = 0
            self._next_sample = now + SAMPLE_S

    def _sample_within(self, seconds: float, now: float) -> None:
        """Sample before the first write after that time, however few bytes it has."""
        self._unsampled = SAMPLE_BYTES
        self._next_sample = now + seconds

    def _read_vmstat(self) -> None:
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
