"""A process whose time of day can be set while it runs; its monotonic clock goes on. Preloads a library of ours.

The kernel knows nothing of it: the times of files stay the machine's. (A time namespace moves the other clocks.)
"""

from __future__ import annotations

import mmap
import shutil
import subprocess
from pathlib import Path

import pytest

_SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *ahead;
static int (*real)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("WALL_CLOCK_AHEAD");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        void *at = mmap(0, 8, PROT_READ, MAP_SHARED, fd, 0);
        close(fd);
        if (at != MAP_FAILED) ahead = at;
    }
}

int clock_gettime(clockid_t clock, struct timespec *out) {
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, out);
    if (!result && ahead && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) out->tv_sec += *ahead;
    return result;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone) {
    struct timespec now;
    int result = clock_gettime(CLOCK_REALTIME, &now);
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return result;
}

time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
"""


class WallClock:
    """Start a process with `environ`; `ahead` sets its clock, in seconds before or behind the machine's."""

    def __init__(self, folder: Path) -> None:
        compiler = shutil.which("cc")
        if compiler is None:
            pytest.skip("cc is not here: nothing can set the clock of one process")
        source, library, state = folder / "clock.c", folder / "clock.so", folder / "clock.ahead"
        source.write_text(_SOURCE)
        made = subprocess.run(
            [compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"],
            capture_output=True,
            text=True,
        )
        if made.returncode:
            pytest.skip(f"cc makes no library here: {made.stderr.strip()[-200:]}")
        state.write_bytes(bytes(mmap.PAGESIZE))
        with state.open("r+b") as file:
            self._ahead = mmap.mmap(file.fileno(), 8)
        self.environ = {"LD_PRELOAD": str(library), "WALL_CLOCK_AHEAD": str(state)}

    def ahead(self, seconds: int) -> None:
        self._ahead[:8] = seconds.to_bytes(8, "little", signed=True)
