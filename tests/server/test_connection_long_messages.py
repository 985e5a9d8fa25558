"""Requests and answers of very many elements go in turns: in order, and nobody waits for the whole of one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio

from leafcuttr.runtime import pacing
from leafcuttr.runtime.pacing import Pace
from leafcuttr.server.routes import FEW_ELEMENTS
from leafcuttr.state.broker import Broker
from leafcuttr.wire.codec import decode
from leafcuttr.wire.emit import PER_STEP
from leafcuttr.wire.messages.find_coordinator import FindCoordinatorRequest
from leafcuttr.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from leafcuttr.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from support.logs import batch
from support.peer import connect, framed, metadata_request, produce_request, request_bytes, serves

Serve = Callable[..., Awaitable[Broker]]
METADATA, PRODUCE = 12, 9
MANY = 4 * FEW_ELEMENTS


def about_many() -> MetadataRequest:
    topics = [MetadataRequestTopic(name=f"n{number}") for number in range(MANY)]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=False)


def to_many(topic: str) -> ProduceRequest:
    """One good batch, and partitions that do not exist."""
    good = PartitionProduceData(index=0, records=memoryview(batch(3)))
    none = [PartitionProduceData(index=index, records=memoryview(b"")) for index in range(1, MANY)]
    data = TopicProduceData(name=topic, partition_data=[good, *none])
    return ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[data])


async def test_their_answers_are_in_order_with_those_of_others(serve: Serve) -> None:
    broker = await serve()
    await broker.topics.create("t", 1, {})
    small = produce_request("t", batch(2))
    requests = [
        (small, PRODUCE),
        (about_many(), METADATA),
        (small, PRODUCE),
        (to_many("t"), PRODUCE),
        (small, PRODUCE),
        (to_many("t"), PRODUCE),
        (about_many(), METADATA),
        (metadata_request("t"), METADATA),
    ]
    offsets = []
    async with await connect(broker) as peer:
        sent = [
            framed(request_bytes(request, version, correlation_id=number))
            for number, (request, version) in enumerate(requests)
        ]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.stream.send_all, b"".join(sent))
            for number, (request, version) in enumerate(requests):
                answer = await peer.answer_to(request, version, number)
                if isinstance(answer, ProduceResponse):
                    offsets.append(answer.responses[0].partition_responses[0].base_offset)
                    if request is not small:
                        assert len(answer.responses[0].partition_responses) == MANY
                elif number < len(requests) - 1:
                    assert isinstance(answer, MetadataResponse)
                    assert len(answer.topics or ()) == MANY
        assert offsets == [0, 2, 4, 7, 9]
        assert await serves(peer)


async def test_one_that_cannot_be_read_ends_its_connection_after_the_answers_before_it(serve: Serve) -> None:
    broker = await serve()
    await broker.topics.create("t", 1, {})
    for request, version in ((about_many(), METADATA), (to_many("t"), PRODUCE)):
        async with await connect(broker) as peer:
            good = request_bytes(produce_request("t", batch(2)), PRODUCE, correlation_id=1)
            await peer.stream.send_all(framed(good) + framed(request_bytes(request, version)[:-5]))
            answers = await peer.closed()
            size = int.from_bytes(answers[:4], "big")
            answer = decode(ProduceResponse, PRODUCE, answers[9 : 4 + size])
            assert answer.responses[0].partition_responses[0].error_code == 0
            assert len(answers) == 4 + size
    async with await connect(broker) as peer:
        assert await serves(peer)


@pytest.mark.parametrize("kind", ["request", "produce"])
async def test_others_have_their_turn_while_one_is_read_and_answered(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    broker = await serve()
    await broker.topics.create("t", 1, {})
    monkeypatch.setattr(pacing, "TURN_S", 0.0)
    request, version = (about_many(), METADATA) if kind == "request" else (to_many("t"), PRODUCE)
    stops = 0
    plain = Pace.turn

    async def counted(self: Pace) -> None:
        nonlocal stops
        stops += 1
        await plain(self)

    monkeypatch.setattr(Pace, "turn", counted)
    async with await connect(broker) as peer:
        await peer.ask(request, version)
    # Read in steps and written in steps; a handler's own turns come on top.
    assert stops >= 2 * (MANY // PER_STEP)


async def test_others_have_their_turn_between_requests_that_came_together(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where each of them is handled by the connection's task, without a wait."""
    broker = await serve()
    request, version, count = FindCoordinatorRequest(key="g", key_type=0), 1, 300
    together = b"".join(
        framed(request_bytes(request, version, correlation_id=number)) for number in range(count)
    )
    turns = 0
    plain = Pace.give_way

    async def counted() -> None:
        nonlocal turns
        turns += 1
        await plain()

    async with await connect(broker) as peer:
        await peer.ask(request, version)  # makes the topic of groups
        monkeypatch.setattr(pacing, "TURN_S", 0.0)
        monkeypatch.setattr(Pace, "give_way", counted)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.stream.send_all, together)
            for number in range(count):
                await peer.answer_to(request, version, number)
    assert turns > count / 2
