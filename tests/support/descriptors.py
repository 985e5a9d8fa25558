"""Processes that may open no more files: a broker's, and this one."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.broker_process import BrokerProcess


@contextmanager
def limited(broker: BrokerProcess, spare: int) -> Iterator[None]:
    """The process may have `spare` descriptors more than it has."""
    pid = broker.process.pid
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    numbers = {int(path.name) for path in Path(f"/proc/{pid}/fd").iterdir()}
    limit = next(n for n in range(1 << 20) if n - len([each for each in numbers if each < n]) == spare)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (max(limit, max(numbers) + 1), hard))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def none_left(spare: int = 0) -> Iterator[list[int]]:
    """This process may open `spare` files more; what is yielded are descriptors that keep the others from it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken: list[int] = []
    try:
        highest = max(int(path.name) for path in Path("/proc/self/fd").iterdir())
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 8, hard))
        while True:
            try:
                taken.append(os.dup(0))
            except OSError as error:
                assert error.errno == errno.EMFILE
                break
        for _ in range(spare):
            os.close(taken.pop())
        yield taken
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in taken:
            os.close(descriptor)
