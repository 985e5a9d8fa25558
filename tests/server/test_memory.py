"""`queued.max.request.bytes`: who waits, and that nobody waits for ever."""

import trio
from trio.testing import wait_all_tasks_blocked

from leafcuttr.server.memory import RequestMemory


async def test_no_limit_counts_nothing() -> None:
    memory = RequestMemory(-1)
    await memory.reserve("a", 1 << 40)
    assert not memory.holds("a")


async def test_a_frame_waits_while_the_limit_is_reached() -> None:
    memory = RequestMemory(100)
    await memory.reserve("a", 90)
    await memory.reserve("b", 50)  # something was left, so it may pass the limit
    got: list[str] = []

    async def third() -> None:
        await memory.reserve("c", 1)
        got.append("c")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(third)
        await wait_all_tasks_blocked()
        assert got == []
        memory.release("b")
        await wait_all_tasks_blocked()
        assert got == ["c"]


async def test_reserving_and_releasing_twice_changes_nothing() -> None:
    memory = RequestMemory(100)
    await memory.reserve("a", 60)
    await memory.reserve("a", 60)
    memory.release("a")
    memory.release("a")
    await memory.reserve("b", 99)
    assert memory.holds("b")
