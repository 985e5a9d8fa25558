"""The time that the loop spends on what is measured, without what it waits for."""

from __future__ import annotations

import time

import pytest
import trio

from leafcuttr_sdk._stopwatch import ChargingStopwatch, Stopwatch


async def test_a_stopwatch_measures_the_steps_of_a_task() -> None:
    stopwatch = Stopwatch()

    async def work() -> str:
        assert stopwatch.take() >= 0
        await trio.to_thread.run_sync(time.sleep, 0.1)
        with pytest.raises(KeyError):
            await trio.to_thread.run_sync({}.__getitem__, "missing")
        return "done"

    assert await stopwatch.measured(work()) == "done"
    assert 0 < stopwatch.take() < 0.1
    assert stopwatch.take() == 0


async def test_each_step_is_charged_as_soon_as_it_is_over() -> None:
    charged: list[float] = []

    async def work() -> str:
        assert not charged
        await trio.lowlevel.checkpoint()
        assert len(charged) == 1
        await trio.lowlevel.checkpoint()
        assert len(charged) == 2
        return "done"

    stopwatch = ChargingStopwatch(charged.append)
    assert await stopwatch.measured(work()) == "done"
    assert len(charged) == 3
    assert min(charged) > 0
    assert stopwatch.take() == 0


async def test_work_that_is_measured_is_cancelled_as_any_other() -> None:
    stopwatch, cancelled = Stopwatch(), False

    async def work() -> None:
        nonlocal cancelled
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            cancelled = True
            raise

    with trio.CancelScope() as scope:
        scope.cancel()
        await stopwatch.measured(work())
    assert scope.cancelled_caught and cancelled


def test_a_stopwatch_that_runs_tells_what_was_spent_so_far() -> None:
    stopwatch = Stopwatch()
    stopwatch.start()
    time.sleep(0.01)
    assert stopwatch.take() >= 0.01
    stopwatch.stop()
    assert stopwatch.take() < 0.01
    stopwatch.add(5)
    assert stopwatch.take() == 5
