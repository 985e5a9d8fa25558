"""Produce: what is appended, what is refused for one partition, and that long requests go in turns."""

from collections.abc import Sequence
from typing import Any, cast

import pytest
import trio

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.state.topics import Topic
from leafcuttr.wire.batch import ATTRIBUTES_AT, CRC_AT, LENGTH_AT, LOG_OVERHEAD
from leafcuttr.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from leafcuttr.wire.records import Record, encode_batch
from leafcuttr_sdk.batches.checksum import crc32c
from support.logs import NOW, append, batch

NONE = ErrorCode.NONE
VERSIONS = range(3, 14)


async def produce(
    send: Any, batches: Sequence[bytes], version: int = 9, **more: Any
) -> list[tuple[ErrorCode, str | None]]:
    parts = [PartitionProduceData(index=at, records=one) for at, one in enumerate(batches)]
    data = [TopicProduceData(name="t", partition_data=parts)]
    answer = await send(ProduceRequest(**{"acks": -1, "topic_data": data, **more}), version)
    return [
        (ErrorCode(part.error_code), part.error_message) for part in answer.responses[0].partition_responses
    ]


async def produced(
    send: Any,
    topic: Topic,
    records: bytes | bytearray,
    version: int = 9,
    *,
    index: int = 0,
    acks: int = -1,
    **client: str,
) -> PartitionProduceResponse:
    """The answer for one batch."""
    data = TopicProduceData(
        name=topic.name,
        topic_id=topic.id,
        partition_data=[PartitionProduceData(index=index, records=memoryview(records))],
    )
    answer = await send(ProduceRequest(acks=acks, topic_data=[data]), version, **client)
    (found,) = answer.responses
    (part,) = found.partition_responses
    return cast(PartitionProduceResponse, part)


@pytest.mark.parametrize("sound", [True, False])
async def test_others_have_their_turn_while_very_many_records_are_stepped_over(
    broker: Broker, send: Any, sound: bool
) -> None:
    """20,000 records take milliseconds: not a hundred batches of them in one piece, whether they are taken or not."""
    topic = await broker.topics.create("t", 12, {})
    whole = encode_batch([Record(at, NOW, None, b"x" * (at % 2)) for at in range(9_000)])
    if not sound:
        whole += b"junk"
        whole[LENGTH_AT:LOG_OVERHEAD] = (len(whole) - LOG_OVERHEAD).to_bytes(4, "big")
        whole[CRC_AT:ATTRIBUTES_AT] = crc32c(memoryview(whole)[ATTRIBUTES_AT:]).to_bytes(4, "big")
    turns = 0
    begun, done = trio.Event(), trio.Event()

    async def others() -> None:
        nonlocal turns
        begun.set()
        while not done.is_set():
            turns += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(others)
        await begun.wait()
        turns = 0
        answers = await produce(send, [bytes(whole)] * 12)
        done.set()
    assert [code for code, _ in answers] == [NONE if sound else ErrorCode.INVALID_RECORD] * 12
    assert [part.log.log_end_offset for part in topic.partitions] == [9_000 if sound else 0] * 12
    assert turns >= 2


@pytest.mark.parametrize("version", VERSIONS)
async def test_every_version_appends(broker: Broker, send: Any, version: int) -> None:
    topic = await broker.topics.create("t", 2, {})
    log = topic.partitions[1].log
    append(log, batch(2))
    part = await produced(send, topic, batch(3), version, index=1)
    assert (part.error_code, part.index, part.base_offset) == (NONE, 1, 2)
    assert (part.log_append_time_ms, part.log_start_offset) == (-1, 0 if version >= 5 else -1)
    assert log.high_watermark == 5


@pytest.mark.parametrize("version", VERSIONS)
async def test_topics_and_partitions_that_do_not_exist(broker: Broker, send: Any, version: int) -> None:
    topic = await broker.topics.create("t", 1, {})
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for index in (1, -1):
        assert (await produced(send, topic, batch(), version, index=index)).error_code == missing
    await broker.topics.delete("t")
    part = await produced(send, topic, batch(), version)
    assert part.error_code == (ErrorCode.UNKNOWN_TOPIC_ID if version >= 13 else missing)


@pytest.mark.parametrize(
    ("client_id", "code"), [("x", ErrorCode.INVALID_TOPIC_EXCEPTION), ("__admin_client", NONE)]
)
async def test_internal_topics_are_for_tools_only(
    broker: Broker, send: Any, client_id: str, code: ErrorCode
) -> None:
    topic = await broker.topics.ensure("__consumer_offsets")
    part = await produced(send, topic, batch(key=b"k"), client_id=client_id)
    assert part.error_code == code
    assert topic.partitions[0].log.log_end_offset == (code == NONE)


@pytest.mark.parametrize("client_id", ["x", "__admin_client", "leafcuttr-plugin-own"])
@pytest.mark.parametrize("version", [3, 7, 12, 13])
async def test_a_topic_that_belongs_to_a_plugin(
    broker: Broker, send: Any, version: int, client_id: str
) -> None:
    topic = await broker.topics.create("state", 1, {}, internal=True, owner="own")
    part = await produced(send, topic, batch(), version, client_id=client_id)
    assert part.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert (part.base_offset, topic.partitions[0].log.log_end_offset) == (-1, 0)
    # A partition that it does not have is refused in the same way, and the broker's other topics are as before.
    part = await produced(send, topic, batch(), version, client_id=client_id, index=1)
    assert part.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    other = await broker.topics.create("other", 1, {})
    assert (await produced(send, other, batch(), version, client_id=client_id)).error_code == NONE


@pytest.mark.parametrize("acks", [2, -2])
async def test_acks_that_do_not_exist(broker: Broker, send: Any, acks: int) -> None:
    topic = await broker.topics.create("t", 1, {})
    assert (await produced(send, topic, batch(), acks=acks)).error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert topic.partitions[0].log.log_end_offset == 0


async def test_an_error_is_that_of_its_partition(broker: Broker, send: Any) -> None:
    topic = await broker.topics.create("t", 3, {})
    topic.partitions[1].log.take_offline("tried out")
    answers = await produce(send, [batch()] * 3)
    assert [code for code, _ in answers] == [NONE, ErrorCode.KAFKA_STORAGE_ERROR, NONE]
