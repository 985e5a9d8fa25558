"""The limits of worker threads are those of one loop."""

from __future__ import annotations

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from leafcuttr.runtime.limiters import DECODERS, OVERDUE, PATIENCE_S, decode_limiter, filter_limiter


def test_two_loops_share_no_limit() -> None:
    """What one loop of a process has borrowed is not another's to give back."""

    async def limiters() -> list[trio.CapacityLimiter]:
        assert decode_limiter() is decode_limiter()
        return [decode_limiter(), await filter_limiter()]

    assert len({*map(id, found := trio.run(limiters) + trio.run(limiters))}) == len(found) == 4


async def test_filters_that_hang_hold_up_others_for_a_moment_only(autojump_clock: MockClock) -> None:
    limiter = await filter_limiter()
    for each in range(DECODERS):
        limiter.acquire_on_behalf_of_nowait(each)
    began = trio.current_time()
    other = await filter_limiter()
    assert trio.current_time() - began == PATIENCE_S
    assert (other is not limiter, other.total_tokens) == (True, OVERDUE)
    assert await filter_limiter() is other


async def test_one_that_ends_makes_place_for_the_next(autojump_clock: MockClock) -> None:
    limiter = await filter_limiter()
    for each in range(DECODERS):
        limiter.acquire_on_behalf_of_nowait(each)
    found: list[trio.CapacityLimiter] = []

    async def wait() -> None:
        found.append(await filter_limiter())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        limiter.release_on_behalf_of(0)
    assert found == [limiter]
    assert limiter.available_tokens == 1
