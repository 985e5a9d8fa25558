"""Clients that try to have more than their quota: with many connections at once, under many names, with odd ones."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from leafcuttr.state.broker import Broker
from leafcuttr.state.security.quota_entities import entity_of
from leafcuttr.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from leafcuttr.wire.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from support.logs import batch
from support.peer import Peer, connect, framed, produce_request, request_bytes, serves

Serve = Callable[..., Awaitable[Broker]]
PRODUCE = 9
RATE = 100_000.0
SIZE = 2000


@pytest.fixture
async def broker(serve: Serve, mock_clock: MockClock) -> Broker:
    broker = await serve()
    await broker.topics.create("t", 1, {})
    return broker


async def test_many_connections_of_one_client_get_no_more_than_one(
    broker: Broker, mock_clock: MockClock
) -> None:
    """They send as soon as they are read; what each says it has to wait is ignored."""
    count, seconds, answered = 60, 20, 0
    await broker.quotas.alter({entity_of({"client-id": "peer"}): {"producer_byte_rate": RATE}})
    request = produce_request("t", batch(1, size=SIZE))

    async def hammer(peer: Peer) -> None:
        nonlocal answered
        while True:
            await peer.ask(request, PRODUCE)
            answered += 1

    async with AsyncExitStack() as stack, trio.open_nursery() as nursery:
        peers = [await stack.enter_async_context(await connect(broker)) for _ in range(count)]
        for peer in peers:
            nursery.start_soon(hammer, peer)
        for _ in range(seconds * 4):
            await wait_all_tasks_blocked(0.001)
            mock_clock.jump(0.25)
        other = await stack.enter_async_context(await connect(broker))
        await other.stream.send_all(framed(request_bytes(request, PRODUCE, client_id=b"other")))
        await other.frame()
        assert await serves(other), "one that has no quota is not held back"
        nursery.cancel_scope.cancel()
    # A window at first, and what is under way on each connection.
    assert answered * SIZE <= RATE * (seconds + 1) + count * SIZE * 1.1
    assert answered * SIZE >= RATE * seconds * 0.9


async def test_names_that_a_client_makes_up_share_the_quota_of_its_user(
    broker: Broker, mock_clock: MockClock
) -> None:
    await broker.quotas.alter({entity_of({"user": "ANONYMOUS"}): {"producer_byte_rate": 1000.0}})
    request = produce_request("t", batch(1, size=SIZE))
    for number in range(5):
        async with await connect(broker) as peer:
            await peer.stream.send_all(framed(request_bytes(request, PRODUCE, client_id=b"c%d" % number)))
            await peer.frame()
    limits = broker.quotas.limits_of("ANONYMOUS", "c9")
    assert limits is not None and limits.producer is not None
    assert limits.producer.level(trio.current_time()) < -4 * SIZE


@pytest.mark.parametrize("name", ["a\0b", "a,b=c", "<default>", '{"user": null}', "ü\n", "x" * 30_000, "%00"])
async def test_odd_names_are_themselves(broker: Broker, mock_clock: MockClock, name: str) -> None:
    entry = RequestEntryData(
        entity=[EntityData(entity_type="user", entity_name=name)],
        ops=[OpData(key="producer_byte_rate", value=5.0, remove=False)],
    )
    component = ComponentData(entity_type="user", match_type=0, match=name)
    async with await connect(broker) as peer:
        altered = await peer.ask(AlterClientQuotasRequest(entries=[entry], validate_only=False), 1)
        assert altered.entries[0].error_code == 0
        found = await peer.ask(DescribeClientQuotasRequest(components=[component], strict=True), 1)
        assert [one.entity[0].entity_name for one in found.entries] == [name]
    assert broker.quotas.limits_of(name, None) is not None
    assert broker.quotas.limits_of("ANONYMOUS", "peer") is None
