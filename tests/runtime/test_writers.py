"""Threads that write for logs: results come back on the loop, a bounded number at once, in order."""

import gc
import os
import threading
import weakref
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from leafcuttr.runtime.writers import Writers
from support.waiting import eventually


class Results:
    """What jobs have given back, in order."""

    def __init__(self) -> None:
        self.found: list[Any] = []
        self.threads: list[int] = []

    def take(self, result: Any, error: BaseException | None) -> None:
        self.found.append(result if error is None else error)
        self.threads.append(threading.get_ident())

    async def until(self, count: int) -> None:
        await eventually(lambda: len(self.found) >= count, "the results", pause=0.001)


async def test_results_and_errors_come_back_on_the_loop() -> None:
    writers, results = Writers(), Results()
    refused = OSError("no space left on device")

    def fail() -> None:
        raise refused

    writers.start(threading.get_ident, (), results.take)
    await results.until(1)
    assert results.found[0] != threading.get_ident()
    writers.start(fail, (), results.take)
    await results.until(2)
    assert results.found[1] is refused
    assert results.threads == [threading.get_ident()] * 2


async def test_a_callback_may_begin_the_next_job() -> None:
    writers, results = Writers(), Results()

    def again(result: int, error: BaseException | None) -> None:
        results.take(result, error)
        if result < 5:
            writers.start(int, (result + 1,), again)

    writers.start(int, (0,), again)
    await results.until(6)
    assert results.found == [0, 1, 2, 3, 4, 5]


async def test_a_callback_may_fail(caplog: pytest.LogCaptureFixture) -> None:
    writers, results = Writers(), Results()

    def broken(result: int, error: BaseException | None) -> None:
        raise ValueError("a bug")

    writers.start(int, (0,), broken)
    writers.start(int, (1,), results.take)
    await results.until(1)
    # The two were worked on side by side: either may have come back first.
    await eventually(lambda: "the callback of a write failed" in caplog.messages, "the failed callback")


async def test_no_more_than_the_limit_at_once() -> None:
    writers, results = Writers(), Results()
    free, lock = threading.Semaphore(0), threading.Lock()
    busy = most = 0

    def work(number: int) -> int:
        nonlocal busy, most
        with lock:
            busy += 1
            most = max(most, busy)
        assert free.acquire(timeout=60)
        with lock:
            busy -= 1
        return number

    writers.limit(2)
    for number in range(6):
        writers.start(work, (number,), results.take)
    for count in range(1, 7):
        free.release()
        await results.until(count)
    assert (most, sorted(results.found)) == (2, [0, 1, 2, 3, 4, 5])


async def test_with_a_limit_of_0_jobs_wait() -> None:
    writers, results = Writers(), Results()
    writers.limit(0)
    for number in range(3):
        writers.start(int, (number,), results.take)
    await wait_all_tasks_blocked()
    assert results.found == []
    writers.limit(1)
    await results.until(3)
    assert results.found == [0, 1, 2]


async def test_a_loop_that_watches_the_descriptor_calls_back_itself() -> None:
    writers, results = Writers(), Results()
    writers.watched(True)
    writers.start(int, (7,), results.take)
    with trio.fail_after(60):
        await trio.lowlevel.wait_readable(writers.fileno())
    await wait_all_tasks_blocked()
    assert results.found == []
    writers.complete()
    assert results.found == [7]
    writers.complete()  # nothing is done


async def test_the_descriptor_stays_open_until_the_last_job_is_done() -> None:
    writers, begun, end = Writers(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        assert end.wait(60)

    writers.watched(True)
    writers.start(work, (), lambda *_: None)
    descriptor, alive = writers.fileno(), weakref.ref(writers)
    assert await trio.to_thread.run_sync(partial(begun.wait, 60))
    del writers
    gc.collect()
    os.fstat(descriptor)
    end.set()

    def is_gone() -> bool:
        gc.collect()
        return alive() is None

    await eventually(is_gone, "the end of the writers", pause=0.001)
