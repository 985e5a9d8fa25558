"""The tests' `autojump_clock` (`support.patient_clock`): time stands still while a thread works."""

from __future__ import annotations

import threading
import time

import pytest
import trio
from trio.testing import MockClock

from leafcuttr.runtime.writers import Writers
from support import patient_clock


def at_work() -> None:
    time.sleep(0.2)  # real time that the clock must not jump over


async def test_time_goes_on_at_once_without_a_thread(autojump_clock: MockClock) -> None:
    began = time.monotonic()
    await trio.sleep(1000)
    assert trio.current_time() == pytest.approx(1000)
    assert time.monotonic() - began < 60


async def test_a_thread_holds_the_time(autojump_clock: MockClock) -> None:
    with trio.fail_after(0.001):
        await trio.to_thread.run_sync(at_work)


async def test_a_writer_holds_the_time(autojump_clock: MockClock) -> None:
    done = trio.Event()
    writers = Writers()
    writers.start(at_work, (), lambda result, error: done.set())
    with trio.fail_after(0.001):
        await done.wait()


async def test_one_that_is_blocked_holds_it_for_a_while(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patient_clock, "HELD_S", 0.1)
    is_over = threading.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.to_thread.run_sync, is_over.wait)
        await trio.sleep(1000)
        await trio.sleep(1000)
        is_over.set()
