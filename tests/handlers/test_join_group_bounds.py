"""What is kept by a name or an address of a peer's choice is bounded, with real sockets where that matters."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.state.groups.idle import MOST_IDLE
from leafcuttr.wire.messages.list_groups import ListGroupsRequest
from support.groups import join_request
from support.peer import connect

Serve = Callable[..., Awaitable[Broker]]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("version", "code"), [(9, ErrorCode.MEMBER_ID_REQUIRED), (3, ErrorCode.NONE)])
async def test_clients_that_join_and_never_come_back(serve: Serve, version: int, code: ErrorCode) -> None:
    broker = await serve({"group.min.session.timeout.ms": "1", "offsets.topic.num.partitions": "2"})
    count = MOST_IDLE + 500
    requests = [
        join_request(f"g{number}", session_timeout_ms=1, rebalance_timeout_ms=1) for number in range(count)
    ]
    async with await connect(broker) as peer:
        await peer.ask(requests[0], version)  # which makes the topic
        async with trio.open_nursery() as nursery:

            @nursery.start_soon
            async def send() -> None:
                for request in requests[1:]:
                    await peer.send(request, version)

            for number, request in enumerate(requests[1:], 2):
                assert (await peer.answer_to(request, version, number)).error_code == code
    async with await connect(broker) as peer:
        with trio.fail_after(60):
            while len((await peer.ask(ListGroupsRequest(), 5)).groups) > MOST_IDLE:
                pass
        listed = (await peer.ask(ListGroupsRequest(), 5)).groups
        assert {group.group_state for group in listed} == {"Empty"}
        if version == 9:
            assert len(listed) == MOST_IDLE
