"""`queued.max.request.bytes`: which frames wait, and that none waits for ever."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from leafcuttr.server import listener
from leafcuttr.server.connection import Connection
from leafcuttr.server.memory import RequestMemory
from leafcuttr.server.states import State
from leafcuttr.state.broker import Broker
from support.logs import batch
from support.peer import connect, framed, produce_request, request_bytes, serves

Serve = Callable[..., Awaitable[Broker]]


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


@pytest.mark.setting("queued.max.request.bytes")
async def test_the_memory_of_large_requests_is_bounded(serve: Serve) -> None:
    """While one large frame is on its way the next waits; small ones go on."""
    broker = await serve({"queued.max.request.bytes": "10000"})
    async with (
        await connect(broker) as first,
        await connect(broker) as second,
        await connect(broker) as small,
    ):
        await first.stream.send_all((50_000).to_bytes(4, "big") + bytes(5000))
        assert await serves(small)
        await second.stream.send_all((50_000).to_bytes(4, "big") + bytes(5000))
        assert await serves(small)
        with trio.move_on_after(0.2) as patience, suppress(trio.BrokenResourceError):
            await second.stream.send_all(bytes(50 << 20))
        assert patience.cancelled_caught, "nobody reads it"
        assert await serves(small)
        await first.stream.aclose()
        assert await second.closed() == b"", "now it is read, and is no request"


async def test_a_large_frame_behind_a_repeated_one_waits_as_well(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The repeated one is answered; nothing more of the large one is received. What that has reserved is given back as
    soon as it is answered."""
    made: list[Connection] = []

    def make(*arguments: object) -> Connection:
        made.append(Connection(*arguments))  # type: ignore[arg-type]
        return made[-1]

    monkeypatch.setattr(listener, "Connection", make)
    broker = await serve({"queued.max.request.bytes": "10000"})
    await broker.topics.create("t", 1, {})
    request = produce_request("t", batch())
    async with await connect(broker) as peer:
        for _ in range(3):
            await peer.ask(request, 9)
        (connection,), memory = made, made[0]._memory
        assert memory.try_reserve("another", 10_000)
        large = framed(request_bytes(produce_request("t", batch(size=50_000)), 9, correlation_id=5))
        await peer.stream.send_all(framed(request_bytes(request, 9, correlation_id=4)) + large[:4])
        await peer.answer_to(request, 9, 4)
        await wait_all_tasks_blocked(0.01)
        assert connection.state is State.WAITING
        memory.release("another")
        await wait_all_tasks_blocked(0.01)
        assert connection.state is State.READING
        assert memory.holds(connection)
        await peer.stream.send_all(large[4:])
        await peer.answer_to(request, 9, 5)
        await wait_all_tasks_blocked(0.01)
        assert not memory.holds(connection)
