"""Requests that take long hold up their own connection only: batches of very many records, requests about very many
partitions. What is counted is how often others have their turn meanwhile, not how long anything takes."""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path

import pytest
import trio

from leafcuttr.errors import ErrorCode, InvalidRecord
from leafcuttr.log.append.preparation import LongWork
from leafcuttr.log.append.rules import Origin
from leafcuttr.log.log import Log
from leafcuttr.runtime.limiters import decode_limiter
from leafcuttr.state.broker import Broker
from leafcuttr.wire.compression import Codec, compress
from leafcuttr.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from leafcuttr.wire.records import Record, encode_batch, encode_records
from leafcuttr_sdk import TopicPartition
from support.logs import NOW, batch, make_log, patched
from support.peer import Peer, connect, produce_request

Serve = Callable[..., Awaitable[Broker]]
PRODUCE = 9
MANY = 300_000


def log_of(broker: Broker, topic: str, partition: int = 0) -> Log:
    return broker.logs.logs[TopicPartition(topic, partition)]


def bomb(records: int, *, key: bytes | None = b"") -> bytearray:
    """A batch of so many records, alike but for their offsets, in few bytes."""
    one = encode_batch([Record(0, NOW, key, b"")])
    out = bytearray(one[:61]) + body(records, key)
    for form, at, value in (">i", 8, len(out) - 12), (">h", 21, 4), (">i", 23, records - 1):
        struct.pack_into(form, out, at, value)
    return patched(out, ">i", 57, records)


@cache
def body(records: int, key: bytes | None) -> bytes:
    many = (Record(at, NOW, key, b"") for at in range(records))
    return bytes(compress(Codec.ZSTD, bytes(encode_records(many, base_offset=0, base_timestamp=NOW))))


async def asks_meanwhile(peer: Peer, done: trio.Event) -> int:
    """How many requests of another connection are answered until then."""
    count = 0
    while not done.is_set():
        await peer.ask(produce_request("neighbour", batch()), PRODUCE)
        count += 1
    return count


async def while_asking(broker: Broker, request: ProduceRequest) -> tuple[object, int]:
    """The answer to a request, and how many of a neighbour's requests were answered before it."""
    done, answers = trio.Event(), []
    async with await connect(broker) as peer, await connect(broker) as other:
        await other.ask(produce_request("neighbour", batch()), PRODUCE)

        async def ask() -> None:
            answers.append(await peer.ask(request, PRODUCE))
            done.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            count = await asks_meanwhile(other, done)
    return answers[0], count


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    "settings",
    [
        {"cleanup.policy": "compact"},
        {"message.timestamp.before.max.ms": str(1 << 61)},
        {"compression.type": "lz4", "max.message.bytes": "10000000"},
        {"lc.records.check": "full"},
        {"message.timestamp.type": "LogAppendTime", "cleanup.policy": "compact"},
    ],
    ids=lambda settings: next(iter(settings)),
)
async def test_a_batch_of_very_many_records_holds_up_nobody(serve: Serve, settings: dict[str, str]) -> None:
    broker = await serve()
    await broker.topics.create("t", 1, settings)
    await broker.topics.create("neighbour", 1, {})
    answer, count = await while_asking(broker, produce_request("t", bomb(MANY)))
    assert answer.responses[0].partition_responses[0].error_code == 0
    assert log_of(broker, "t").log_end_offset == MANY
    assert count > 2


@pytest.mark.long
async def test_keyless_records_are_found_off_the_loop_and_named(serve: Serve) -> None:
    broker = await serve()
    await broker.topics.create("t", 1, {"cleanup.policy": "compact"})
    await broker.topics.create("neighbour", 1, {})
    answer, count = await while_asking(broker, produce_request("t", bomb(MANY, key=None)))
    part = answer.responses[0].partition_responses[0]
    assert part.error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in part.record_errors[:2]] == [0, 1]
    assert log_of(broker, "t").log_end_offset == 0
    assert count > 2


async def test_requests_behind_long_work_keep_their_order(serve: Serve) -> None:
    broker = await serve()
    await broker.topics.create("t", 1, {"cleanup.policy": "compact"})
    async with await connect(broker) as peer:
        small = produce_request("t", batch(2, key=b"k"))
        requests = [small, produce_request("t", bomb(5000)), small, produce_request("t", batch()), small]
        ids = [await peer.send(request, PRODUCE) for request in requests]
        answers = [
            await peer.answer_to(request, PRODUCE, number)
            for request, number in zip(requests, ids, strict=True)
        ]
    parts = [answer.responses[0].partition_responses[0] for answer in answers]
    assert [part.base_offset for part in parts] == [0, 2, 5002, -1, 5004]
    assert parts[3].error_code == ErrorCode.INVALID_RECORD


@pytest.mark.long
async def test_a_request_about_many_partitions_holds_up_nobody(serve: Serve) -> None:
    broker = await serve()
    await broker.topics.create("t", 700, {})
    await broker.topics.create("neighbour", 1, {})
    parts = [PartitionProduceData(index=index, records=memoryview(batch())) for index in range(701)]
    compacted = TopicProduceData(name="nowhere", partition_data=parts[:500])
    topics = [TopicProduceData(name="t", partition_data=parts), compacted]
    answer, count = await while_asking(broker, ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics))
    codes = [[part.error_code for part in topic.partition_responses] for topic in answer.responses]
    unknown = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert codes == [[0] * 700 + [unknown], [unknown] * 500]
    assert [part.index for part in answer.responses[0].partition_responses] == list(range(701))
    assert all(log_of(broker, "t", index).log_end_offset == 1 for index in range(700))
    assert count > 2


async def test_a_topic_deleted_while_its_batch_is_checked_gets_nothing(serve: Serve) -> None:
    broker = await serve()
    await broker.topics.create("t", 1, {"cleanup.policy": "compact"})
    before = log_of(broker, "t")
    async with await connect(broker) as peer:
        request = produce_request("t", bomb(MANY))
        number = await peer.send(request, PRODUCE)
        with trio.fail_after(120):
            while not decode_limiter().borrowed_tokens:
                await trio.lowlevel.checkpoint()
        await broker.topics.delete("t")
        await broker.topics.create("t", 1, {"cleanup.policy": "compact"})
        answer = await peer.answer_to(request, PRODUCE, number)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert before.next_offset == log_of(broker, "t").next_offset == 0


def test_a_count_that_the_records_cannot_hold_is_refused_without_a_walk(tmp_path: Path) -> None:
    log = make_log(tmp_path, cleanup_policy=("compact",))
    claims = patched(patched(bomb(100), ">i", 57, 1 << 30), ">i", 23, (1 << 30) - 1)
    with pytest.raises(LongWork) as long:
        log.stage(memoryview(claims), Origin.CLIENT, now_ms=NOW)
    with pytest.raises(InvalidRecord, match="cannot hold"):
        long.value.work.do()


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_what_decompresses_to_much_is_not_decompressed_on_the_loop(tmp_path: Path, codec: Codec) -> None:
    log = make_log(tmp_path, cleanup_policy=("compact",))
    data = encode_batch([Record(0, NOW, b"k", bytes(1 << 20))], codec=codec)
    with pytest.raises(LongWork) as long:
        log.stage(memoryview(data), Origin.CLIENT, now_ms=NOW)
    assert log.next_offset == 0
    assert (
        log.stage(memoryview(data), Origin.CLIENT, now_ms=NOW, prepared=long.value.work.do()).base_offset == 0
    )


async def test_no_client_writes_to_an_internal_topic(serve: Serve) -> None:
    broker = await serve()
    await broker.topics.ensure("__consumer_offsets")
    async with await connect(broker) as peer:
        answer = await peer.ask(produce_request("__consumer_offsets", batch(key=b"k")), PRODUCE)
    part = answer.responses[0].partition_responses[0]
    assert (part.error_code, part.base_offset) == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)
    assert log_of(broker, "__consumer_offsets").log_end_offset == 0
