"""The monotonic time of a broker is that of its loop, in every thread."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from leafcuttr.runtime.clock import SystemClock


async def test_other_threads_have_the_time_of_the_loop() -> None:
    clock = SystemClock()
    before = clock.monotonic()
    there = await trio.to_thread.run_sync(clock.monotonic)
    assert before <= there <= clock.monotonic()


async def test_a_clock_of_a_test_moves_it(autojump_clock: trio.testing.MockClock) -> None:
    clock = SystemClock()
    before = clock.monotonic()
    await trio.sleep(1000)
    assert (await trio.to_thread.run_sync(clock.monotonic)) - before >= 1000


def test_one_that_no_loop_has_made() -> None:
    clock = SystemClock()
    with pytest.raises(RuntimeError, match="async context"):
        clock.monotonic()

    async def ask() -> float:
        return clock.monotonic()

    assert trio.run(ask) > 0
