"""A pool of worker processes without a broker."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from leafcuttr.plugins.worker_processes.pool import WorkerPool

Run = Callable[..., Awaitable[Any]]
MB = 1024 * 1024


@pytest.fixture
async def pool() -> AsyncIterator[WorkerPool]:
    async with trio.open_nursery() as nursery:
        pool = WorkerPool(nursery)
        yield pool
        nursery.cancel_scope.cancel()
    assert pool.pids == []


@pytest.fixture
def run(pool: WorkerPool) -> Run:
    """Run a function in the pool, with limits that it does not reach."""
    return partial(run_in, pool)


async def run_in(
    pool: WorkerPool,
    function: Callable[..., Any],
    *arguments: object,
    deadline_s: float = 600,
    memory_bytes: int = 256 * MB,
) -> Any:
    return await pool.run("sample", function, arguments, deadline_s=deadline_s, memory_bytes=memory_bytes)


def is_gone(pid: int) -> bool:
    """The process has ended; whether it has been waited for is its parent's business."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True
