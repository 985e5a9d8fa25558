"""Fetch with read_committed: what ends at the last stable offset, and which transactions were aborted."""

from typing import Any

import pytest
import trio
import trio.testing

from leafcuttr.handlers import fetch
from leafcuttr.handlers.context import RequestContext, context_of
from leafcuttr.log.log import Log
from leafcuttr.state.broker import Broker
from leafcuttr.wire.batch import parse
from leafcuttr.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from leafcuttr.wire.records import Record, encode_batch
from support.logs import append as append_to
from support.logs import append_marker

NOW = 1_700_000_000_000


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


async def fetched(broker: Broker, send: FetchRequest, version: int = 12) -> Any:
    """The partition of the answer, None if it is left out."""
    response = fetch.handle(broker, context(version), send)
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
