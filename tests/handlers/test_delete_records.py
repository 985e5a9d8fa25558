"""DeleteRecords: the log start offset moves up, within bounds."""

from typing import Any

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from leafcuttr.wire.records import Record, encode_batch
from support.logs import append


def request(name: str, *offsets: tuple[int, int], timeout_ms: int = 1000) -> DeleteRecordsRequest:
    partitions = [DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in offsets]
    return DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=name, partitions=partitions)], timeout_ms=timeout_ms
    )


def fill(broker: Broker, name: str, records: int) -> None:
    log = broker.topics.by_name[name].partitions[0].log
    for _ in range(records):
        now = broker.clock.now_ms()
        append(log, encode_batch([Record(0, now, b"k", b"v")]), now)


@pytest.mark.parametrize("version", range(3))
async def test_every_version_moves_the_start(broker: Broker, send: Any, version: int) -> None:
    topic = await broker.topics.create("orders", 1, {})
    fill(broker, "orders", 5)
    answer = await send(request("orders", (0, 3)), version)
    (result,) = answer.topics[0].partitions
    assert (result.partition_index, result.low_watermark, result.error_code) == (0, 3, ErrorCode.NONE)
    assert topic.partitions[0].log.log_start_offset == 3


async def test_minus_one_is_all_of_it(broker: Broker, send: Any) -> None:
    await broker.topics.create("orders", 1, {})
    fill(broker, "orders", 5)
    answer = await send(request("orders", (0, -1), timeout_ms=0), 2)
    assert [part.low_watermark for part in answer.topics[0].partitions] == [5]


async def test_the_start_does_not_go_back(broker: Broker, send: Any) -> None:
    await broker.topics.create("orders", 1, {})
    fill(broker, "orders", 5)
    await send(request("orders", (0, 4)), 2)
    answer = await send(request("orders", (0, 2)), 2)
    assert [(part.low_watermark, part.error_code) for part in answer.topics[0].partitions] == [
        (4, ErrorCode.NONE)
    ]


@pytest.mark.parametrize(
    ("name", "index", "offset", "code"),
    [
        ("orders", 0, 6, ErrorCode.OFFSET_OUT_OF_RANGE),
        ("orders", 0, -2, ErrorCode.OFFSET_OUT_OF_RANGE),
        ("orders", 1, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("missing", 0, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("bad name", 0, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("__consumer_offsets", 0, 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("owned", 0, 0, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ("compacted", 0, 0, ErrorCode.POLICY_VIOLATION),
        ("offline", 0, 0, ErrorCode.KAFKA_STORAGE_ERROR),
    ],
)
async def test_refusals(
    broker: Broker, send: Any, name: str, index: int, offset: int, code: ErrorCode
) -> None:
    await broker.topics.create("orders", 1, {})
    await broker.topics.create("__consumer_offsets", 1, {})
    await broker.topics.create("owned", 1, {}, internal=True, owner="tables")
    await broker.topics.create("compacted", 1, {"cleanup.policy": "compact"})
    (await broker.topics.create("offline", 1, {})).partitions[0].log.offline = "damaged"
    fill(broker, "orders", 5)
    answer = await send(request(name, (index, offset)), 2)
    assert [
        (part.partition_index, part.low_watermark, part.error_code) for part in answer.topics[0].partitions
    ] == [(index, -1, code)]


async def test_a_topic_named_twice_is_answered_once(broker: Broker, send: Any) -> None:
    await broker.topics.create("orders", 2, {})
    twice = [
        DeleteRecordsTopic(
            name="orders", partitions=[DeleteRecordsPartition(partition_index=index, offset=0)]
        )
        for index in (0, 1)
    ]
    answer = await send(DeleteRecordsRequest(topics=twice, timeout_ms=1000), 2)
    assert [(topic.name, len(topic.partitions)) for topic in answer.topics] == [("orders", 2)]
