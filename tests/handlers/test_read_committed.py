"""What read_committed readers are told, and WriteTxnMarkers: handlers over the log's transactions."""

from typing import Any

import pytest
import trio
import trio.testing

from leafcuttr.errors import ErrorCode
from leafcuttr.handlers import fetch
from leafcuttr.handlers.context import RequestContext, context_of
from leafcuttr.log.log import Log
from leafcuttr.state.broker import Broker
from leafcuttr.wire.batch import parse
from leafcuttr.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from leafcuttr.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from leafcuttr.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from leafcuttr.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from leafcuttr.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from leafcuttr.wire.records import Record, encode_batch
from support.logs import append as append_to
from support.logs import append_marker

NOW = 1_700_000_000_000
Ask = Any


def append(
    log: Log, sequence: int, *, producer_id: int = 1, transactional: bool = True, count: int = 1
) -> int:
    records = [Record(i, NOW + log.log_end_offset + i, None, b"x" * 20) for i in range(count)]
    return append_to(
        log,
        encode_batch(
            records,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            transactional=transactional,
        ),
        now_ms=NOW,
    )


def end(log: Log, *, commit: bool, producer_id: int = 1) -> int:
    return append_marker(log, producer_id, 0, commit=commit, coordinator_epoch=0, now_ms=NOW)


def asking(offset: int, *, committed: bool = True, **fields: Any) -> FetchRequest:
    part = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    return FetchRequest(
        isolation_level=int(committed),
        max_bytes=1 << 20,
        min_bytes=1,
        topics=[FetchTopic(topic="t", partitions=[part])],
        **{"session_epoch": -1, **fields},
    )


async def fetched(broker: Broker, ask: FetchRequest, version: int = 12) -> Any:
    """The partition of the answer, None if it is left out."""
    response = fetch.handle(broker, context(version), ask)
    if not isinstance(response, FetchResponse):
        response = await response
    return response.responses[0].partitions[0] if response.responses else None


def context(version: int) -> RequestContext:
    from leafcuttr.config.listeners import Listener

    listener = Listener("PLAINTEXT", "127.0.0.1", 9092, "broker.test", 19092)
    found = context_of(listener, "127.0.0.1", 50_000, 1)
    found.api_version = version
    return found


def offsets(answer: Any) -> list[int]:
    if isinstance(answer.records, bytes):
        return []
    data, found, at = answer.records.read(), [], 0
    while at < len(data):
        header = parse(data, at)
        found += range(header.base_offset, header.next_offset)
        at += header.size
    return found


async def test_a_fetch_ends_at_the_last_stable_offset(broker: Broker) -> None:
    log = (await broker.topics.create("t", 1, {})).partitions[0].log
    append(log, 0, producer_id=5, transactional=False)
    append(log, 0, count=2)
    append(log, 1, producer_id=5, transactional=False)
    answer = await fetched(broker, asking(0))
    assert (offsets(answer), answer.last_stable_offset, answer.high_watermark) == ([0], 1, 4)
    assert not answer.aborted_transactions
    plain = await fetched(broker, asking(0, committed=False))
    assert (offsets(plain), plain.last_stable_offset, plain.aborted_transactions) == ([0, 1, 2, 3], 1, None)
    assert offsets(await fetched(broker, asking(1, max_wait_ms=0))) == []
    end(log, commit=False)
    answer = await fetched(broker, asking(0))
    assert (offsets(answer), answer.last_stable_offset) == ([0, 1, 2, 3, 4], 5)
    assert [(one.producer_id, one.first_offset) for one in answer.aborted_transactions] == [(1, 1)]
    assert (await fetched(broker, asking(4))).aborted_transactions[0].producer_id == 1
    assert (await fetched(broker, asking(5, max_wait_ms=0))).aborted_transactions == ()


async def test_a_waiting_fetch_is_woken_by_the_marker_alone(
    broker: Broker, autojump_clock: trio.testing.MockClock
) -> None:
    log = (await broker.topics.create("t", 1, {})).partitions[0].log
    append(log, 0)
    answers: list[Any] = []

    async def wait() -> None:
        answers.append(await fetched(broker, asking(0, max_wait_ms=20_000)))

    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.sleep(1)
        append(log, 1)
        await trio.sleep(1)
        assert not answers, "what is not decided does not count for min_bytes"
        end(log, commit=True)
    assert offsets(answers[0]) == [0, 1, 2]
    assert trio.current_time() - began == pytest.approx(2)


async def test_a_session_leaves_out_a_partition_with_an_open_transaction(broker: Broker) -> None:
    log = (await broker.topics.create("t", 1, {})).partitions[0].log
    append(log, 0)
    opened = fetch.handle(broker, context(12), asking(0, session_epoch=0, max_wait_ms=0))
    assert isinstance(opened, FetchResponse)
    session = {"session_id": opened.session_id, "max_wait_ms": 0}
    assert offsets(opened.responses[0].partitions[0]) == []
    assert await fetched(broker, asking(0, session_epoch=1, **session)) is None
    append(log, 1)
    news = await fetched(broker, asking(0, session_epoch=2, **session))
    assert (news.high_watermark, news.last_stable_offset, offsets(news)) == (2, 0, [])
    end(log, commit=True)
    assert offsets(await fetched(broker, asking(0, session_epoch=3, **session))) == [0, 1, 2]


async def test_list_offsets(broker: Broker, ask: Ask) -> None:
    log = (await broker.topics.create("t", 1, {})).partitions[0].log
    append(log, 0, producer_id=5, transactional=False)
    append(log, 0)

    async def offset(timestamp: int, committed: int) -> int:
        part = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=committed,
            topics=[ListOffsetsTopic(name="t", partitions=[part])],
        )
        found: int = (await ask(request, 7)).topics[0].partitions[0].offset
        return found

    assert [await offset(-1, 0), await offset(-1, 1)] == [2, 1]
    assert [await offset(-2, 1), await offset(NOW, 1)] == [0, 0]
    assert await offset(NOW + 1, 0) == 1
    assert await offset(NOW + 1, 1) == -1, "what is not decided is not found"
    end(log, commit=True)
    assert [await offset(-1, 1), await offset(NOW + 1, 1)] == [3, 1]


async def test_write_txn_markers(broker: Broker, ask: Ask) -> None:
    log = (await broker.topics.create("t", 2, {})).partitions[0].log
    append(log, 0)
    described = DescribeProducersRequest(topics=[TopicRequest(name="t", partition_indexes=[0])])
    (producer,) = (await ask(described, 0)).topics[0].partitions[0].active_producers
    assert (producer.coordinator_epoch, producer.current_txn_start_offset) == (-1, 0)

    async def write(version: int = 1, **fields: Any) -> list[int]:
        topics = [
            WritableTxnMarkerTopic(name="t", partition_indexes=[0, 7]),
            WritableTxnMarkerTopic(name="gone", partition_indexes=[0]),
        ]
        marker = WritableTxnMarker(topics=topics, **{"producer_id": 1, "coordinator_epoch": 3, **fields})
        (result,) = (await ask(WriteTxnMarkersRequest(markers=[marker]), version)).markers
        assert result.producer_id == 1
        return [part.error_code for topic in result.topics for part in topic.partitions]

    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await write(2, transaction_version=2) == [ErrorCode.INVALID_PRODUCER_EPOCH, unknown, unknown]
    assert await write() == [0, unknown, unknown]
    assert await write(coordinator_epoch=2) == [ErrorCode.TRANSACTION_COORDINATOR_FENCED, unknown, unknown]
    (producer,) = (await ask(described, 0)).topics[0].partitions[0].active_producers
    assert (producer.coordinator_epoch, producer.current_txn_start_offset) == (3, -1)
    assert log.aborted_transactions(0, 9)[0].first_offset == 0


async def test_transactional_records_need_a_transactional_id(broker: Broker, ask: Ask) -> None:
    await broker.topics.create("t", 1, {})
    records = encode_batch(
        [Record(0, NOW, None, b"x")], producer_id=1, producer_epoch=0, base_sequence=0, transactional=True
    )
    parts = [PartitionProduceData(index=0, records=records)]
    request = ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="t", partition_data=parts)])
    answer = await ask(request, 9)
    code = answer.responses[0].partition_responses[0].error_code
    assert code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
