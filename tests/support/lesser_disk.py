"""A process that meets a file system of fewer abilities below one folder: no locks, no O_DSYNC, no sendfile and so on.

What network and FAT file systems refuse, a preloaded library of ours refuses in their words: no kernel has them all.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

_SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name) static __typeof__(&name) real; if (!real) *(void **)&real = dlsym(RTLD_NEXT, #name)

static int without(const char *ability) {
    const char *all = getenv("LESSER_DISK");
    return all && strstr(all, ability) != NULL;
}

static int below_path(const char *path) { return path && strstr(path, ".leafcuttr-doctor-") != NULL; }

static int below(int fd) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return below_path(path);
}

static int refuse(int error) { errno = error; return -1; }

static int lock(int (*real)(int, int, ...), int fd, int command, void *argument) {
    if ((command == F_SETLK || command == F_SETLKW) && without("locks") && below(fd)) return refuse(ENOLCK);
    return real(fd, command, argument);
}

int fcntl(int fd, int command, ...) {
    REAL(fcntl);
    va_list rest; va_start(rest, command); void *argument = va_arg(rest, void *); va_end(rest);
    return lock(real, fd, command, argument);
}

int fcntl64(int fd, int command, ...) {
    REAL(fcntl64);
    va_list rest; va_start(rest, command); void *argument = va_arg(rest, void *); va_end(rest);
    return lock(real, fd, command, argument);
}

static int open_mode(const char *path, int flags, int *refused) {
    *refused = (flags & O_DSYNC) && without("dsync") && below_path(path);
    return 0;
}

int open(const char *path, int flags, ...) {
    REAL(open);
    int refused; open_mode(path, flags, &refused);
    va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest);
    return refused ? refuse(EINVAL) : real(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    REAL(open64);
    int refused; open_mode(path, flags, &refused);
    va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest);
    return refused ? refuse(EINVAL) : real(path, flags, mode);
}

int fsync(int fd) {
    REAL(fsync);
    struct stat about;
    if (without("fsync") && below(fd) && !fstat(fd, &about) && S_ISDIR(about.st_mode)) return refuse(EINVAL);
    return real(fd);
}

int rename(const char *old, const char *new) {
    REAL(rename);
    return without("rename") && below_path(new) && !access(new, F_OK) ? refuse(EEXIST) : real(old, new);
}

ssize_t sendfile(int out, int in, off_t *at, size_t count) {
    REAL(sendfile);
    return without("sendfile") && below(in) ? refuse(EINVAL) : real(out, in, at, count);
}

ssize_t sendfile64(int out, int in, off64_t *at, size_t count) {
    REAL(sendfile64);
    return without("sendfile") && below(in) ? refuse(EINVAL) : real(out, in, at, count);
}

ssize_t preadv2(int fd, const struct iovec *to, int count, off_t at, int flags) {
    REAL(preadv2);
    return without("nowait") && flags && below(fd) ? refuse(EOPNOTSUPP) : real(fd, to, count, at, flags);
}

ssize_t preadv64v2(int fd, const struct iovec *to, int count, off64_t at, int flags) {
    REAL(preadv64v2);
    return without("nowait") && flags && below(fd) ? refuse(EOPNOTSUPP) : real(fd, to, count, at, flags);
}

void *mmap(void *wanted, size_t size, int protection, int flags, int fd, off_t at) {
    REAL(mmap);
    if (fd >= 0 && (flags & MAP_SHARED) && without("shared") && below(fd)) { errno = ENODEV; return MAP_FAILED; }
    return real(wanted, size, protection, flags, fd, at);
}

void *mmap64(void *wanted, size_t size, int protection, int flags, int fd, off64_t at) {
    REAL(mmap64);
    if (fd >= 0 && (flags & MAP_SHARED) && without("shared") && below(fd)) { errno = ENODEV; return MAP_FAILED; }
    return real(wanted, size, protection, flags, fd, at);
}

int mkdir(const char *path, mode_t mode) {
    REAL(mkdir);
    const char *name = strrchr(path, '/');
    if (name && strlen(name) > 143 && without("names") && below_path(path)) return refuse(ENAMETOOLONG);
    return real(path, mode);
}

int stat(const char *restrict path, struct stat *restrict out) {
    REAL(stat);
    size_t size = strlen(path);
    if (size > 5 && size < PATH_MAX && without("case") && below_path(path) && !strcmp(path + size - 5, "/CASE")) {
        char lower[PATH_MAX];
        memcpy(lower, path, size - 4);
        strcpy(lower + size - 4, "case");
        return real(lower, out);
    }
    return real(path, out);
}

int stat64(const char *restrict path, struct stat64 *restrict out) {
    return stat(path, (struct stat *)out);
}
"""


def lesser_disk(folder: Path, lacking: str) -> dict[str, str]:
    """The environment of a process that meets it. `lacking` is words of: locks dsync fsync rename sendfile nowait
    shared names case. Skips where it cannot be built."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("cc is not here: no file system can be made lesser")
    source, library = folder / "lesser.c", folder / "lesser.so"
    source.write_text(_SOURCE)
    made = subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-w", "-o", library, source, "-ldl"],
        capture_output=True,
        text=True,
    )
    if made.returncode:
        pytest.skip(f"cc makes no library here: {made.stderr.strip()[-300:]}")
    return {"LD_PRELOAD": str(library), "LESSER_DISK": lacking}
