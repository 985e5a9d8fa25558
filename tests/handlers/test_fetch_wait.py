"""A Fetch that waits hears of everything that comes after its first look, even before it begins to wait."""

from collections.abc import Awaitable
from typing import Any

import pytest
import trio
import trio.testing

from leafcuttr.config.listeners import Listener
from leafcuttr.errors import ErrorCode
from leafcuttr.handlers import fetch
from leafcuttr.handlers.context import context_of
from leafcuttr.log.log import Log, NotCached
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from leafcuttr.wire.records import Record, encode_batch
from support.logs import append as append_to

CONTEXT = context_of(Listener("PLAINTEXT", "127.0.0.1", 9092, "broker.test", 19092), "127.0.0.1", 50_000, 1)
CONTEXT.api_version = 12
MAX_WAIT_S = 20


async def waiting(broker: Broker) -> tuple[Log, Awaitable[FetchResponse]]:
    """An empty partition and a Fetch that has looked at it and has not begun to wait."""
    topic = await broker.topics.create("orders", 1, {})
    part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    requested = FetchRequest(
        max_wait_ms=MAX_WAIT_S * 1000,
        min_bytes=1,
        session_epoch=-1,
        topics=[FetchTopic(topic="orders", partitions=[part])],
    )
    answer = fetch.handle(broker, CONTEXT, requested)
    assert not isinstance(answer, FetchResponse)
    return topic.partitions[0].log, answer


def append(log: Log) -> None:
    append_to(log, encode_batch([Record(0, 1_700_000_000_000, None, b"news")]))


@pytest.mark.parametrize("before_the_wait", [True, False])
async def test_woken(broker: Broker, autojump_clock: trio.testing.MockClock, before_the_wait: bool) -> None:
    log, answer = await waiting(broker)
    began = trio.current_time()
    if before_the_wait:
        append(log)
        response = await answer
    else:
        async with trio.open_nursery() as nursery:

            async def later() -> None:
                await trio.sleep(1)
                append(log)

            nursery.start_soon(later)
            response = await answer
    assert response.responses[0].partitions[0].high_watermark == 1
    assert trio.current_time() - began < MAX_WAIT_S
    assert not log.waiters
    assert not broker.delayed_requests


async def test_the_wait_ends_after_max_wait_ms(
    broker: Broker, autojump_clock: trio.testing.MockClock
) -> None:
    log, answer = await waiting(broker)
    began = trio.current_time()
    response = await answer
    assert response.responses[0].partitions[0].high_watermark == 0
    assert trio.current_time() - began == pytest.approx(MAX_WAIT_S)
    assert not log.waiters


async def test_a_topic_that_goes_before_the_wait_begins_is_noticed(
    broker: Broker, autojump_clock: trio.testing.MockClock
) -> None:
    log, answer = await waiting(broker)
    began = trio.current_time()
    await broker.topics.delete("orders")
    response = await answer
    assert response.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert trio.current_time() - began < MAX_WAIT_S
    assert not log.waiters


async def test_a_log_start_that_moves_before_the_wait_begins_is_noticed(
    broker: Broker, autojump_clock: trio.testing.MockClock
) -> None:
    """The answer is that there is nothing at the offset any more."""
    topic = await broker.topics.create("orders", 1, {})
    log = topic.partitions[0].log
    append(log)
    part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    requested = FetchRequest(
        max_wait_ms=MAX_WAIT_S * 1000,
        min_bytes=1000,
        session_epoch=-1,
        topics=[FetchTopic(topic="orders", partitions=[part])],
    )
    answer = fetch.handle(broker, CONTEXT, requested)
    assert not isinstance(answer, FetchResponse)
    log.delete_records_before(1)
    began = trio.current_time()
    response = await answer
    assert response.responses[0].partitions[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert trio.current_time() - began < MAX_WAIT_S


async def test_a_stop_ends_the_wait(broker: Broker, autojump_clock: trio.testing.MockClock) -> None:
    log, answer = await waiting(broker)
    began = trio.current_time()
    async with trio.open_nursery() as nursery:

        async def stop() -> None:
            await trio.sleep(1)
            for poll in list(broker.delayed_requests):
                poll.give_up()

        nursery.start_soon(stop)
        response = await answer
    assert response.responses[0].partitions[0].high_watermark == 0
    assert trio.current_time() - began == pytest.approx(1)
    assert not log.waiters and not broker.delayed_requests


@pytest.mark.parametrize("comes_at", [5, 25])
async def test_a_look_that_comes_too_late(
    broker: Broker, autojump_clock: trio.testing.MockClock, comes_at: int
) -> None:
    """What had come before the time was over is in the answer; after it, the answer is what there was."""
    log, delayed = await waiting(broker)
    assert isinstance(delayed, fetch.DelayedFetch)
    await trio.sleep(comes_at)
    if comes_at < MAX_WAIT_S:
        append(log)
        await trio.sleep(MAX_WAIT_S)
    response = delayed.answer()
    assert response is not None
    part = response.responses[0].partitions[0]
    assert part.high_watermark == (comes_at < MAX_WAIT_S)
    assert bool(part.records) is (comes_at < MAX_WAIT_S)
    assert not log.waiters and not broker.delayed_requests


async def test_a_late_look_that_does_not_suffice_is_the_answer(
    broker: Broker, autojump_clock: trio.testing.MockClock
) -> None:
    log, delayed = await waiting(broker)
    assert isinstance(delayed, fetch.DelayedFetch)
    delayed.notify()
    await trio.sleep(MAX_WAIT_S)
    assert delayed.answer() is not None
    assert not log.waiters


async def test_what_comes_during_a_first_pass_that_needs_the_disk(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a partition that it is through with: nobody is notified, for nobody waits yet."""
    topic = await broker.topics.create("orders", 2, {})
    first, second = (partition.log for partition in topic.partitions)
    append(second)
    read, cold = Log.read, [1, 2]  # at the look that nobody waits for, and at the one of a task

    def read_cold(log: Log, *arguments: Any, **options: Any) -> Any:
        if log is second and cold:
            cold.pop()
            error = NotCached(log.segments[-1].open_file(), 0, 1)
            error.warm = lambda: trio.from_thread.run_sync(append, first)
            raise error
        return read(log, *arguments, **options)

    monkeypatch.setattr(Log, "read", read_cold)
    parts = [
        FetchPartition(partition=number, fetch_offset=number, partition_max_bytes=1000) for number in (0, 1)
    ]
    requested = FetchRequest(
        max_wait_ms=MAX_WAIT_S * 1000,
        min_bytes=1,
        session_epoch=-1,
        topics=[FetchTopic(topic="orders", partitions=parts)],
    )
    answer = fetch.handle(broker, CONTEXT, requested)
    assert not isinstance(answer, FetchResponse)
    with trio.fail_after(60):
        response = await answer
    assert [part.high_watermark for part in response.responses[0].partitions] == [1, 1]
    assert not cold and not first.waiters
