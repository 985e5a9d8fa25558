"""Clients above a quota: their answers leave at once, and then nothing of them is read for as long as these say."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from leafcuttr.metrics.counts import Counts
from leafcuttr.server.states import State
from leafcuttr.server.throttle import ConnectionThrottle, Pause
from leafcuttr.state.broker import Broker
from leafcuttr.state.security.buckets import Bucket
from leafcuttr.state.security.limits import ClientLimits
from leafcuttr.state.security.quota_entities import (
    CONSUMER_BYTE_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    entity_of,
)
from leafcuttr.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from leafcuttr_sdk._stopwatch import Stopwatch
from support.logs import batch
from support.peer import Peer, connect, fetch_request, metadata_request, produce_request, serves

Serve = Callable[..., Awaitable[Broker]]
PRODUCE, FETCH, METADATA = 9, 12, 12
PEER = {"client-id": "peer"}
"""The client id of `Peer`."""


class Asked:
    """A request that has been sent, and its answer once it is there."""

    def __init__(self, peer: Peer, request: Any, version: int) -> None:
        self.peer, self.request, self.version = peer, request, version
        self.answer: Any = None

    async def run(self) -> None:
        self.answer = await self.peer.ask(self.request, self.version)


async def limit(broker: Broker, parts: Mapping[str, str | None] = PEER, **quotas: float | None) -> None:
    await broker.quotas.alter({entity_of(dict(parts)): quotas})


@pytest.fixture
async def broker(serve: Serve, mock_clock: MockClock) -> Broker:
    """Its time stands still but for what the test lets pass."""
    broker = await serve()
    await broker.topics.create("t", 2, {})
    return broker


async def settle() -> None:
    await wait_all_tasks_blocked(0.01)


async def test_a_producer_above_its_quota_is_told_and_not_read_for_so_long(
    broker: Broker, mock_clock: MockClock
) -> None:
    await limit(broker, producer_byte_rate=1000.0)
    async with await connect(broker) as peer, trio.open_nursery() as nursery:
        request = produce_request("t", batch(1, size=5000))
        answer = await peer.ask(request, PRODUCE)
        assert answer.responses[0].partition_responses[0].error_code == 0
        # 1000 bytes are there at first; the size is that of the request, not only of its records.
        assert 4000 < answer.throttle_time_ms < 4300
        assert broker.counts.throttled[PRODUCER_BYTE_RATE].count == 1
        after = Asked(peer, ApiVersionsRequest(), 0)
        nursery.start_soon(after.run)
        await settle()
        assert broker.counts.paused == 1
        mock_clock.jump(answer.throttle_time_ms / 1000 - 0.01)
        await settle()
        assert after.answer is None
        mock_clock.jump(0.01)
        await settle()
        assert after.answer is not None
        assert broker.counts.paused == 0


async def test_requests_that_have_arrived_behind_it_wait_as_well(
    broker: Broker, mock_clock: MockClock
) -> None:
    await limit(broker, producer_byte_rate=1000.0)
    async with await connect(broker) as peer, await connect(broker) as other, trio.open_nursery() as nursery:
        produce, after = produce_request("t", batch(1, size=3000)), metadata_request("t")
        numbers = [await peer.send(produce, PRODUCE), await peer.send(after, METADATA)]
        answer = await peer.answer_to(produce, PRODUCE, numbers[0])
        assert answer.throttle_time_ms > 2000
        answered = trio.Event()

        async def read() -> None:
            await peer.answer_to(after, METADATA, numbers[1])
            answered.set()

        nursery.start_soon(read)
        await settle()
        assert not answered.is_set()
        mock_clock.jump(10)
        await answered.wait()
        assert await serves(other), "the other is not held back by what this one has used"


async def test_all_connections_of_a_client_share_its_quota(broker: Broker, mock_clock: MockClock) -> None:
    await limit(broker, producer_byte_rate=1000.0)
    request = produce_request("t", batch(1, size=1000))
    async with await connect(broker) as one, await connect(broker) as other:
        first = await one.ask(request, PRODUCE)
        second = await other.ask(request, PRODUCE)
        assert second.throttle_time_ms > first.throttle_time_ms + 1000


async def test_a_producer_that_wants_no_answer_is_held_back_too(
    broker: Broker, mock_clock: MockClock
) -> None:
    await limit(broker, producer_byte_rate=1000.0)
    async with await connect(broker) as peer, trio.open_nursery() as nursery:
        await peer.send(produce_request("t", batch(1, size=2000), acks=0), PRODUCE)
        after = Asked(peer, ApiVersionsRequest(), 0)
        nursery.start_soon(after.run)
        await settle()
        assert after.answer is None
        assert broker.counts.paused == 1
        mock_clock.jump(1.2)
        await settle()
        assert after.answer is not None


async def test_what_is_sent_again_and_again_is_counted_as_well(broker: Broker, mock_clock: MockClock) -> None:
    """`repeated_produce` has learned the request before there is a quota, and must not take it any more."""
    request = produce_request("t", batch(1, size=100))
    async with await connect(broker) as peer:
        for _ in range(10):
            assert (await peer.ask(request, PRODUCE)).throttle_time_ms == 0
        (connection,) = [one for one in _connections(broker) if one.repeated._learned is not None]
        await limit(broker, producer_byte_rate=300.0)
        waits = [(await peer.ask(request, PRODUCE)).throttle_time_ms for _ in range(2)]
        assert waits[0] == 0 < waits[1]
        assert connection.repeated._learned is None
        await limit(broker, producer_byte_rate=None)
        for _ in range(80):
            assert (await peer.ask(request, PRODUCE)).throttle_time_ms == 0
        assert connection.repeated._learned is not None


async def test_what_is_learned_before_a_quota_is_published_is_not_taken_after(
    broker: Broker, mock_clock: MockClock
) -> None:
    """A change is on the disk, and counted, a moment before it holds."""
    request = produce_request("t", batch(1, size=100))
    async with await connect(broker) as peer:
        for _ in range(10):
            await peer.ask(request, PRODUCE)
        broker.quotas._publish({entity_of(dict(PEER)): {PRODUCER_BYTE_RATE: 100.0}})
        assert (await peer.ask(request, PRODUCE)).throttle_time_ms > 0


async def test_a_fetch_above_its_quota_is_empty(broker: Broker, mock_clock: MockClock) -> None:
    await limit(broker, consumer_byte_rate=1000.0)
    async with await connect(broker) as peer, await connect(broker) as producer:
        await producer.ask(produce_request("t", batch(1, size=3000)), PRODUCE)
        request = fetch_request("t", 0)
        first = await peer.ask(request, FETCH)
        assert len(first.responses[0].partitions[0].records) > 3000, "the first batch, whatever its size"
        assert first.throttle_time_ms == 0
        second = await peer.ask(request, FETCH)
        assert not second.responses
        # What was owed, and a tenth of a second's rate.
        assert 2100 < second.throttle_time_ms < 2400
        assert broker.counts.throttled[CONSUMER_BYTE_RATE].count == 1
        mock_clock.jump(second.throttle_time_ms / 1000)
        third = await peer.ask(request, FETCH)
        assert third.responses and third.throttle_time_ms == 0


async def test_a_consumer_gets_no_more_than_is_left(broker: Broker, mock_clock: MockClock) -> None:
    """And does not wait for `min_bytes` that never come."""
    await limit(broker, consumer_byte_rate=2000.0)
    async with await connect(broker) as peer, await connect(broker) as producer:
        for _ in range(20):
            await producer.ask(produce_request("t", batch(1, size=500)), PRODUCE)
        request = replace(fetch_request("t", 0, max_wait_ms=60_000), min_bytes=8000)
        answer = await peer.ask(request, FETCH)
        assert 0 < len(answer.responses[0].partitions[0].records) <= 2000


async def test_the_first_fetch_of_a_session_that_is_held_back_opens_none(
    broker: Broker, mock_clock: MockClock
) -> None:
    """Clients take an empty answer to a full fetch for one without a session (KIP-227)."""
    await limit(broker, consumer_byte_rate=1000.0)
    limits = broker.quotas.limits_of("ANONYMOUS", "peer")
    assert limits is not None and limits.consumer is not None
    limits.consumer.take(2000, trio.current_time())
    request = replace(fetch_request("t", 0), session_epoch=0)
    async with await connect(broker) as peer:
        answer = await peer.ask(request, FETCH)
        assert answer.session_id == 0 and not answer.responses
        assert answer.throttle_time_ms == 1100
        assert not len(broker.fetch_sessions)
        mock_clock.jump(2)
        assert (await peer.ask(request, FETCH)).session_id


async def test_a_delayed_fetch_is_empty_if_others_have_used_up_the_quota(
    broker: Broker, mock_clock: MockClock
) -> None:
    await limit(broker, consumer_byte_rate=1000.0)
    limits = broker.quotas.limits_of("ANONYMOUS", "peer")
    assert limits is not None and limits.consumer is not None
    async with (
        await connect(broker) as peer,
        await connect(broker) as producer,
        trio.open_nursery() as nursery,
    ):
        waiting = Asked(peer, fetch_request("t", 0, max_wait_ms=60_000), FETCH)
        nursery.start_soon(waiting.run)
        await settle()
        limits.consumer.take(5000, trio.current_time())
        await producer.ask(produce_request("t", batch()), PRODUCE)
        await settle()
        assert waiting.answer.throttle_time_ms == 4100
        assert not waiting.answer.responses
        assert not broker.delayed_requests


async def test_one_that_is_held_back_keeps_no_memory_from_others(serve: Serve, mock_clock: MockClock) -> None:
    """Of its large request, which has been answered."""
    broker = await serve({"queued.max.request.bytes": "100000"})
    await broker.topics.create("t", 1, {})
    await limit(broker, producer_byte_rate=10.0)
    async with await connect(broker) as peer, await connect(broker) as other:
        for each in (peer, other):
            answer = await each.ask(produce_request("t", batch(1, size=90_000)), PRODUCE)
            assert answer.throttle_time_ms > 0
        await settle()
        (one, _) = _connections(broker)
        assert broker.counts.paused == 2
        assert one._memory.used == 0


async def test_another_quota_holds_at_once(broker: Broker, mock_clock: MockClock) -> None:
    """For a client that is held back as well: it waits for nothing that it would not have to wait for now."""
    await limit(broker, producer_byte_rate=10.0)
    async with await connect(broker) as peer, trio.open_nursery() as nursery:
        answer = await peer.ask(produce_request("t", batch(1, size=5000)), PRODUCE)
        assert answer.throttle_time_ms > 400_000
        after = Asked(peer, produce_request("t", batch(1, size=100)), PRODUCE)
        nursery.start_soon(after.run)
        await settle()
        assert after.answer is None
        await limit(broker, producer_byte_rate=None)
        await settle()
        assert after.answer.throttle_time_ms == 0
        assert broker.counts.paused == 0


async def test_a_quota_of_another_client_is_no_matter(broker: Broker, mock_clock: MockClock) -> None:
    await limit(broker, {"client-id": "other"}, producer_byte_rate=1.0)
    async with await connect(broker) as peer:
        for _ in range(5):
            assert (await peer.ask(produce_request("t", batch(1, size=100)), PRODUCE)).throttle_time_ms == 0
        (connection,) = _connections(broker)
        assert connection.context.limits is None
        assert connection.repeated._learned is not None


async def test_the_user_of_a_connection_without_a_login(broker: Broker, mock_clock: MockClock) -> None:
    await limit(broker, {"user": "ANONYMOUS"}, producer_byte_rate=100.0)
    async with await connect(broker) as peer:
        answer = await peer.ask(produce_request("t", batch(1, size=500)), PRODUCE)
        assert answer.throttle_time_ms > 4000


async def test_a_client_that_says_no_id_has_the_quota_of_its_user(
    broker: Broker, mock_clock: MockClock
) -> None:
    await limit(broker, {"user": None}, producer_byte_rate=100.0)
    async with await connect(broker) as peer:
        from support.peer import framed, request_bytes

        request = produce_request("t", batch(1, size=500))
        await peer.stream.send_all(framed(request_bytes(request, PRODUCE, client_id=None)))
        await peer.frame()
        await settle()
        assert broker.counts.paused == 1


async def test_a_stop_does_not_wait_for_clients_that_are_held_back(
    serve: Serve, mock_clock: MockClock
) -> None:
    stop, ended = trio.Event(), trio.Event()
    broker = await serve(stop=stop, ended=ended)
    await broker.topics.create("t", 1, {})
    await limit(broker, producer_byte_rate=10.0)
    async with await connect(broker) as peer:
        await peer.ask(produce_request("t", batch(1, size=5000)), PRODUCE)
        await settle()
        assert broker.counts.paused == 1
        stop.set()
        assert await peer.closed() == b""
        await ended.wait()


async def test_a_client_that_is_held_back_is_ended_with_its_user(
    broker: Broker, mock_clock: MockClock
) -> None:
    await limit(broker, producer_byte_rate=10.0)
    async with await connect(broker) as peer:
        await peer.ask(produce_request("t", batch(1, size=5000)), PRODUCE)
        await settle()
        (connection,) = _connections(broker)
        assert connection.state is State.WAITING
        connection.stop()
        assert await peer.closed() == b""


async def test_the_time_of_the_loop(broker: Broker, mock_clock: MockClock) -> None:
    """Each request takes some of it; the first that finds nothing left is told, and no wait is longer than a window."""
    await limit(broker, request_percentage=1e-7)
    async with await connect(broker) as peer:
        for request, version in (
            (metadata_request("t"), METADATA),
            (produce_request("t", batch()), PRODUCE),
            (fetch_request("t", 0), FETCH),
            (ApiVersionsRequest(), 3),
        ):
            answer = await peer.ask(request, version)
            assert answer.throttle_time_ms == 1000, request
            await settle()
            assert broker.counts.paused == 1
            mock_clock.jump(1)
        assert broker.counts.throttled[REQUEST_PERCENTAGE].count >= 3
        await limit(broker, request_percentage=None)
        assert (await peer.ask(metadata_request("t"), METADATA)).throttle_time_ms == 0


async def test_the_rounds_are_measured_only_where_there_is_a_quota_of_them(
    broker: Broker, mock_clock: MockClock
) -> None:
    async with await connect(broker) as peer:
        await serves(peer)
        (connection,) = _connections(broker)
        reactor = connection._reactor
        assert reactor.measuring is None
        await limit(broker, producer_byte_rate=1e6)
        assert reactor.measuring is None
        await limit(broker, request_percentage=50.0)
        assert reactor.measuring is not None
        await limit(broker, request_percentage=None)
        assert reactor.measuring is None


async def test_the_time_that_the_loop_spends_is_what_is_counted(
    broker: Broker, mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a handler that works for 50 ms and waits in between: in the reactor, and in the connection's own task."""
    from leafcuttr.handlers import list_groups, metadata

    def busy(seconds: float) -> None:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            pass

    async def works_and_waits(*_: object) -> Any:
        from leafcuttr.wire.messages.list_groups import ListGroupsResponse

        busy(0.02)
        await trio.to_thread.run_sync(time.sleep, 0.2)
        busy(0.03)
        return ListGroupsResponse()

    monkeypatch.setattr("leafcuttr.server.routes._routes", {})
    monkeypatch.setattr(list_groups, "handle", works_and_waits)
    monkeypatch.setattr(metadata, "handle", metadata.handle)
    await limit(broker, request_percentage=100.0)
    limits = broker.quotas.limits_of("ANONYMOUS", "peer")
    assert limits is not None and limits.request is not None
    from leafcuttr.wire.messages.list_groups import ListGroupsRequest

    async with await connect(broker) as peer:
        await peer.ask(ListGroupsRequest(), 4)
        spent = 1 - limits.request.level(trio.current_time())
        assert 0.05 <= spent < 0.2, "the work and not the wait"


async def test_the_share_of_a_write_is_counted(
    broker: Broker, mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    from leafcuttr.handlers import produce

    write_staged = produce.write_staged

    def slow(turns: Any) -> None:
        turns = list(turns)
        if any(turns):
            end = time.perf_counter() + 0.05
            while time.perf_counter() < end:
                pass
        write_staged(turns)

    monkeypatch.setattr(produce, "write_staged", slow)
    await limit(broker, request_percentage=100.0)
    limits = broker.quotas.limits_of("ANONYMOUS", "peer")
    assert limits is not None and limits.request is not None
    async with await connect(broker) as peer:
        await peer.ask(produce_request("t", batch()), PRODUCE)
        assert 1 - limits.request.level(trio.current_time()) >= 0.05


def _connections(broker: Broker) -> Any:
    (call,) = [one for one in broker.quotas._callbacks if one.__name__ == "_quotas_changed"]
    return call.__self__.all  # type: ignore[attr-defined]


# Without a connection


async def test_what_was_to_be_awaited_comes_after_the_pause(autojump_clock: MockClock) -> None:
    async def then() -> float:
        return trio.current_time()

    began = trio.current_time()
    assert await Pause(began + 7, then(), Counts()) == began + 7
    assert await Pause(began + 9, None, Counts()) is None
    assert trio.current_time() == began + 9


async def test_what_is_not_awaited_any_more_is_closed() -> None:
    async def then() -> None:
        raise AssertionError

    pause = Pause(trio.current_time() + 7, then(), Counts())
    pause.close()  # or there would be a warning that it was never awaited


async def test_the_longest_wait_counts() -> None:
    """A handler may have said one already, and some answers have no place for it."""
    bucket = Bucket(rate=1, most=1, level=0, now_s=trio.current_time())
    throttle = ConnectionThrottle(ClientLimits(producer=bucket), Stopwatch(), Counts())
    throttle.staged(2)
    said = [
        (1, None, ApiVersionsResponse(throttle_time_ms=5000)),
        (2, None, ApiVersionsResponse(throttle_time_ms=0)),
        (3, None, object()),
    ]
    answers, hold_s = throttle.charge(said)
    assert [getattr(answer, "throttle_time_ms", None) for _, _, answer in answers] == [5000, 2000, None]
    assert hold_s == 5
    assert throttle.charge([])[1] == 0, "it has been charged"
