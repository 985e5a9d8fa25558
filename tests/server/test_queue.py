"""`queued.max.requests`: how many requests may wait for their turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from leafcuttr.runtime import pacing
from leafcuttr.runtime.pacing import Pace
from leafcuttr.server import listener
from leafcuttr.server.queue import RequestQueue
from leafcuttr.server.routes import FEW_ELEMENTS, Route
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.api_versions import ApiVersionsRequest
from support.peer import connect, framed, metadata_request, produce_request, request_bytes, serves

Serve = Callable[..., Awaitable[Broker]]


async def test_the_reactor_waits_until_one_has_begun() -> None:
    queue = RequestQueue(2)
    assert queue.free == 2
    await queue.freed()
    first, second = queue.waiting(), queue.waiting()
    first.__enter__()
    await queue.freed()
    second.__enter__()
    assert queue.free == 0
    freed = trio.Event()

    async def wait() -> None:
        await queue.freed()
        freed.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        assert not freed.is_set()
        with queue.waiting():  # those that were received before the limit was reached
            assert queue.free == -1
        await wait_all_tasks_blocked()
        assert not freed.is_set()
        first.__exit__(None, None, None)
        await wait_all_tasks_blocked()
        assert freed.is_set()
    second.__exit__(None, None, None)
    assert queue.free == 2


def many_partitions() -> Any:
    """A Produce of too many partitions to be read at once, none of which exists."""
    request = produce_request("none", b"")
    return type(request)(acks=-1, timeout_ms=1000, topic_data=list(request.topic_data) * 2 * FEW_ELEMENTS)


@pytest.mark.parametrize(
    ("request_", "version", "count"),
    [
        (ApiVersionsRequest(), 2, 20),
        (metadata_request(*["none"] * 2 * FEW_ELEMENTS), 12, 1),
        (many_partitions(), 9, 1),
    ],
    ids=["behind others", "long", "long produce"],
)
async def test_what_waits_for_its_turn_is_counted(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, request_: Any, version: int, count: int
) -> None:
    """One request of each connection, until it begins."""
    queues: list[RequestQueue] = []

    def make_queue(limit: int) -> RequestQueue:
        queues.append(RequestQueue(limit))
        return queues[-1]

    monkeypatch.setattr(listener, "RequestQueue", make_queue)
    seen: set[int] = set()
    give_way, read_in_turns = Pace.give_way, Route.read_in_turns
    read: list[int] = []

    async def noted_read(route: Route, *arguments: Any) -> Any:
        read.append(queues[0].free)
        return await read_in_turns(route, *arguments)

    async def noted() -> None:
        seen.add(queues[0].free)
        await give_way()

    broker = await serve({"queued.max.requests": "5"})
    async with await connect(broker) as peer:
        assert await serves(peer)
        monkeypatch.setattr(pacing, "TURN_S", 0.0)
        monkeypatch.setattr("leafcuttr.server.connection._TURN_S", 0.0)
        monkeypatch.setattr(Pace, "give_way", noted)
        monkeypatch.setattr(Route, "read_in_turns", noted_read)
        sent = [framed(request_bytes(request_, version, correlation_id=number)) for number in range(count)]
        await peer.stream.send_all(b"".join(sent))
        for number in range(count):
            assert (await peer.frame())[:4] == number.to_bytes(4, "big")
    assert 4 in seen
    assert min(seen) == 4
    assert read == [4] * (count == 1)
    assert queues[0].free == 5
