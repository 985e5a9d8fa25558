"""Reading and writing large files no faster than the limit, and without filling the page cache.

What has been read for the last time and what has been written leaves the page cache, and written pages go to the disk
as they come (sync_file_range, which waits for no journal), so that neither pushes out what others read, nor is there a
gigabyte of dirty pages for the next sync to wait for. Where the platform lacks a call, it is left out.
"""

import ctypes
import os
import time
from functools import lru_cache
from typing import Final

_WRITE: Final = 2  # SYNC_FILE_RANGE_WRITE
_WAIT_WRITE_WAIT: Final = 7
_LONGEST_SLEEP_S: Final = 0.25


class Throttle:
    """At most `rate` bytes a second, over times of about a second; 0 is no limit. May be changed at any time."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self._ahead = 0.0  # seconds that what was spent has taken less than it should have
        self._at = time.monotonic()

    def spend(self, size: int) -> None:
        """Wait as long as `size` more bytes have to take."""
        now = time.monotonic()
        self._ahead = max(self._ahead - (now - self._at), 0.0)
        self._at = now
        if self.rate > 0:
            self._ahead += size / self.rate
            # In short sleeps, so that a new rate is felt.
            while self.rate > 0 and self._ahead > _LONGEST_SLEEP_S / 10:
                nap = min(self._ahead, _LONGEST_SLEEP_S)
                time.sleep(nap)
                self._ahead -= nap
                self._at = time.monotonic()


@lru_cache(maxsize=1)
def _sync_file_range() -> "ctypes._NamedFuncPointer | None":
    try:
        call = ctypes.CDLL(None, use_errno=True).sync_file_range
    except (OSError, AttributeError):
        return None
    call.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
    return call


def start_writeback(fd: int, position: int, length: int, *, wait: bool = False) -> None:
    """Have dirty pages written; with `wait`, wait for them."""
    call = _sync_file_range()
    if call is not None:
        call(fd, position, length, _WAIT_WRITE_WAIT if wait else _WRITE)


def forget_pages(fd: int, position: int, length: int) -> None:
    """Let the page cache drop a range."""
    os.posix_fadvise(fd, position, length, os.POSIX_FADV_DONTNEED)


def lower_priority() -> None:
    """Give this process the lowest priority for processors and disk."""
    os.nice(10)
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    number = {"x86_64": 251, "aarch64": 30}.get(os.uname().machine)
    if number is not None:
        idle = 3 << 13
        ctypes.CDLL(None).syscall(number, 1, 0, idle)  # ioprio_set of this process
