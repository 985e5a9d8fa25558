"""Long work in turns: others run in between, and many at once have shorter turns."""

from __future__ import annotations

from collections.abc import Generator

import pytest
import trio

from leafcuttr.runtime import pacing
from leafcuttr.runtime.pacing import Pace


class Monotonic:
    """Time that passes only while somebody works."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Monotonic:
    made = Monotonic()
    monkeypatch.setattr(pacing, "time", made)
    return made


async def longest_wait(clock: Monotonic, workers: int) -> float:
    """How long somebody else waits at most while so many work on something long."""
    done = 0

    async def work() -> None:
        nonlocal done
        async for _ in Pace().over(range(400)):
            clock.now += 0.0001
        done += 1

    longest = 0.0
    async with trio.open_nursery() as nursery:
        for _ in range(workers):
            nursery.start_soon(work)
        await trio.lowlevel.checkpoint()  # everybody's first turn: nobody knows of the others yet
        await trio.lowlevel.checkpoint()
        while done < workers:
            before = clock.now
            await trio.lowlevel.checkpoint()
            longest = max(longest, clock.now - before)
    return longest


async def test_many_at_once_have_shorter_turns(clock: Monotonic) -> None:
    # Two turns of each may lie between two of ours, because the order is another one each time.
    assert await longest_wait(clock, 1) <= pacing.TURN_S * 2.2
    assert await longest_wait(clock, 5) <= pacing.TURN_S * 4
    assert await longest_wait(clock, 20) <= pacing.TURN_S * 8


async def test_through_returns_what_the_steps_return(clock: Monotonic) -> None:
    def steps() -> Generator[None, None, str]:
        for _ in range(100):
            clock.now += 0.001
            yield
        return "done"

    assert await Pace().through(steps()) == "done"
