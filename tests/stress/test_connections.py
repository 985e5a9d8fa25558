"""What is staged is written, and answered if anybody still listens, however its connection goes on."""

from __future__ import annotations

import math
import socket
import struct
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
import trio

from leafcuttr.errors import ErrorCode
from leafcuttr.log.append import commit
from leafcuttr.log.append.preparation import Prepared
from leafcuttr.log.append.rules import Origin
from leafcuttr.log.append.staged import Staged
from leafcuttr.log.log import Log
from leafcuttr.server import connection
from leafcuttr.state.broker import Broker
from leafcuttr.wire.codec import decode
from leafcuttr.wire.messages.produce import ProduceResponse
from leafcuttr_sdk import TopicPartition
from support.logs import append_and_wait, batch
from support.peer import connect, fetch_request, framed, metadata_request, produce_request, request_bytes

Serve = Callable[..., Awaitable[Broker]]
PRODUCE = 9


async def until(condition: Callable[[], object]) -> None:
    """Let the broker go on until something holds."""
    with trio.fail_after(120):
        while not condition():
            await trio.lowlevel.checkpoint()


def log_of(broker: Broker, topic: str) -> Log:
    return broker.logs.logs[TopicPartition(topic, 0)]


def broken_produce() -> bytes:
    """A Produce request whose body ends too early."""
    return request_bytes(produce_request("t", batch()), PRODUCE, correlation_id=9)[:-30]


async def behind_a_long_poll(broker: Broker, *frames: bytes) -> bytes:
    """Send requests that the connection's own task finds when its long poll is over; what is answered to them."""
    async with await connect(broker) as peer, await connect(broker) as other:
        await peer.ask(metadata_request("t", "bell"), 12)
        poll = fetch_request("bell", 0, max_wait_ms=60_000)
        whole = framed(request_bytes(poll, 12, correlation_id=1))
        await peer.stream.send_all(whole + b"".join(map(framed, frames)))
        await until(lambda: broker.delayed_requests)
        await other.ask(produce_request("bell", batch()), 9)
        await peer.frame()
        return await peer.closed()


def offsets_in(answers: bytes) -> list[int]:
    found, at = [], 0
    while at < len(answers):
        size = int.from_bytes(answers[at : at + 4], "big")
        answer = decode(ProduceResponse, PRODUCE, answers[at + 9 : at + 4 + size])
        found.append(answer.responses[0].partition_responses[0].base_offset)
        at += 4 + size
    return found


async def test_a_malformed_request_does_not_take_back_what_came_before_it(serve: Serve) -> None:
    broker = await serve()
    good = request_bytes(produce_request("t", batch(3)), PRODUCE, correlation_id=2)
    answers = await behind_a_long_poll(broker, good, broken_produce())
    assert log_of(broker, "t").log_end_offset == 3
    assert not log_of(broker, "t").busy
    assert offsets_in(answers) == [0]


async def test_an_unknown_request_does_not_take_back_the_answers_before_it(serve: Serve) -> None:
    broker = await serve()
    good = request_bytes(produce_request("t", batch(3)), PRODUCE, correlation_id=2)
    unknown = struct.pack(">hhi", 999, 0, 3) + b"\xff\xff"
    answers = await behind_a_long_poll(broker, good, unknown)
    assert offsets_in(answers) == [0]
    assert log_of(broker, "t").log_end_offset == 3


async def test_what_is_staged_is_written_though_its_client_goes_without_reading(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer to a fetch is stuck in a full socket when a Produce behind it has to wait for a worker."""
    # Once its turn is over the connection sends the answer first, and would not come to the Produce.
    monkeypatch.setattr(connection, "_TURN_S", math.inf)
    broker = await serve({"socket.send.buffer.bytes": "4096"})
    await broker.topics.create("large", 1, {})
    await broker.topics.create("t", 1, {"flush.messages": "1"})
    await append_and_wait(log_of(broker, "large"), batch(size=250_000), broker.clock.now_ms())
    log = log_of(broker, "t")
    async with await connect(broker) as other:  # what both need is imported at their first use
        await other.ask(produce_request("large", batch()), PRODUCE)
        await other.ask(fetch_request("large", 1), 12)
    async with await connect(broker) as peer:
        peer.stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        fetch = request_bytes(fetch_request("large", 0, max_bytes=255_000), 12)
        produce = request_bytes(produce_request("t", batch(3), acks=0), PRODUCE)
        await peer.stream.send_all(framed(fetch) + framed(produce))
        await until(lambda: log.next_offset == 3)
    await until(lambda: not log.busy)
    assert log.log_end_offset == 3


async def test_a_write_that_fails_of_something_nobody_thought_of_is_not_acknowledged(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = await serve()
    await broker.topics.create("t", 1, {})
    log = log_of(broker, "t")

    def broken(*_: object) -> None:
        raise ValueError("a bug")

    async with await connect(broker) as peer:
        monkeypatch.setattr(commit, "publish", broken)
        answer = await peer.ask(produce_request("t", batch(3)), PRODUCE)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
        monkeypatch.undo()
        answer = await peer.ask(produce_request("t", batch(3)), PRODUCE)
        assert answer.responses[0].partition_responses[0].base_offset == 0
    assert log.log_end_offset == 3


async def test_a_check_that_fails_of_something_nobody_thought_of_fails_its_partition_only(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = await serve()
    await broker.topics.create("t", 1, {})
    await broker.topics.create("u", 1, {})
    request = produce_request("t", batch(3))
    request = replace(request, topic_data=[*request.topic_data, *produce_request("u", batch(2)).topic_data])
    stage = Log.stage

    def broken(
        log: Log, data: memoryview, origin: Origin, *, now_ms: int, prepared: Prepared | None = None
    ) -> Staged:
        if log.topic_partition.topic == "u":
            raise ValueError("a bug")
        return stage(log, data, origin, now_ms=now_ms)

    monkeypatch.setattr(Log, "stage", broken)
    async with await connect(broker) as peer:
        answer = await peer.ask(request, PRODUCE)
    codes = [topic.partition_responses[0].error_code for topic in answer.responses]
    assert codes == [0, ErrorCode.UNKNOWN_SERVER_ERROR]
    assert (log_of(broker, "t").log_end_offset, log_of(broker, "u").log_end_offset) == (3, 0)
