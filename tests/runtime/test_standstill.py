"""A process that stood still reads first what peers have sent meanwhile."""

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from leafcuttr.runtime import standstill


@pytest.mark.parametrize(
    ("late_s", "waits_s"), [(0.0, 0.0), (1.0, 0.0), (1.5, 1.5), (5.0, 5.0), (3600.0, 5.0)]
)
async def test_how_long_it_waits(autojump_clock: MockClock, late_s: float, waits_s: float) -> None:
    began = trio.current_time()
    await standstill.wait_for_peers(late_s)
    assert trio.current_time() - began == pytest.approx(waits_s)


@pytest.mark.parametrize(("jump_s", "waits_s"), [(2.0, 0.0), (2.9, 0.0), (4.0, 2.0), (1000.0, 5.0)])
async def test_a_sleep_that_ended_too_late(mock_clock: MockClock, jump_s: float, waits_s: float) -> None:
    woken = trio.Event()

    async def sleep() -> None:
        await standstill.sleep(2.0)
        woken.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(sleep)
        await wait_all_tasks_blocked()
        mock_clock.jump(jump_s)
        await wait_all_tasks_blocked()
        if waits_s:
            assert not woken.is_set()
            mock_clock.jump(waits_s - 0.001)
            await wait_all_tasks_blocked()
            assert not woken.is_set()
            mock_clock.jump(0.002)
        await woken.wait()
