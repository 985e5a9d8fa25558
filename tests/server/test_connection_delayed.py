"""Fetches that wait for records, on real connections: parked in the reactor, without a task that waits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from types import SimpleNamespace

import pytest
import trio
import trio.testing

from leafcuttr.handlers.fetch import DelayedFetch
from leafcuttr.log.log import Log, NotCached
from leafcuttr.server import connection as connections
from leafcuttr.server import listener
from leafcuttr.server.connection import Connection
from leafcuttr.server.receive import SMALL_FRAME
from leafcuttr.server.states import State
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from support.logs import batch
from support.peer import Peer, connect, fetch_request, framed, produce_request, request_bytes
from support.waiting import within

Serve = Callable[..., Awaitable[Broker]]
FETCH, PRODUCE = 12, 9


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Connection]:
    """All connections. However busy the machine is, a turn of theirs lasts."""
    monkeypatch.setattr(connections, "_TURN_S", 60.0)
    found: list[Connection] = []

    def make(*arguments: object) -> Connection:
        found.append(Connection(*arguments))  # type: ignore[arg-type]
        return found[-1]

    monkeypatch.setattr(listener, "Connection", make)
    return found


async def until(holds: Callable[[], bool]) -> None:
    with within(60, "it"):
        while not holds():
            await trio.testing.wait_all_tasks_blocked()
            await trio.sleep(0.001)


def log_of(broker: Broker) -> Log:
    return broker.topics.by_name["t"].partitions[0].log


def waiting(broker: Broker, count: int = 1) -> Callable[[], bool]:
    return lambda: len(log_of(broker).waiters) == len(broker.delayed_requests) == count


def high_watermark(answer: object) -> int:
    return int(answer.responses[0].partitions[0].high_watermark)  # type: ignore[attr-defined]


async def test_one_write_answers_all_that_wait(serve: Serve, made: list[Connection]) -> None:
    """More than a round takes; no task of a connection runs for it."""
    broker = await serve()
    await broker.topics.create("t", 1, {})
    poll, count = fetch_request("t", 0, max_wait_ms=60_000), 70
    peers = [await connect(broker) for _ in range(count)]
    for _ in range(2):
        numbers = [await peer.send(poll, FETCH) for peer in peers]
        await until(waiting(broker, count))
        assert {connection.state for connection in made} == {State.PARKED}
        handed_over = [connection._handed_over for connection in made]
        async with await connect(broker) as other:
            written = (
                (await other.ask(produce_request("t", batch()), PRODUCE)).responses[0].partition_responses[0]
            )
            for peer, number in zip(peers, numbers, strict=True):
                with within(60, "the answer"):
                    answer = await peer.answer_to(poll, FETCH, number)
                assert high_watermark(answer) == written.base_offset + 1
        assert [connection._handed_over for connection in made[:count]] == handed_over[:count]
        assert waiting(broker, 0)()
        poll = fetch_request("t", written.base_offset + 1, max_wait_ms=60_000)
        await until(lambda: made[-1].state is State.CLOSED)
        del made[count:]
    for peer in peers:
        await peer.stream.aclose()


async def test_what_does_not_suffice_is_waited_on(serve: Serve, made: list[Connection]) -> None:
    broker = await serve()
    await broker.topics.create("t", 1, {})
    one = batch()
    poll = FetchRequest(
        max_wait_ms=60_000,
        min_bytes=2 * len(one) + 1,
        topics=[
            FetchTopic(topic="t", partitions=[FetchPartition(fetch_offset=0, partition_max_bytes=1 << 20)])
        ],
    )
    async with await connect(broker) as peer, await connect(broker) as other:
        number = await peer.send(poll, FETCH)
        await until(waiting(broker))
        for _ in range(2):
            await other.ask(produce_request("t", one), PRODUCE)
            await trio.testing.wait_all_tasks_blocked()
            assert waiting(broker)() and made[0].state is State.PARKED
        await other.ask(produce_request("t", one), PRODUCE)
        with within(60, "the answer"):
            assert high_watermark(await peer.answer_to(poll, FETCH, number)) == 3
        assert waiting(broker, 0)() and made[0].state is State.READING


async def test_its_time_is_over(serve: Serve, made: list[Connection]) -> None:
    """With what there is, once and again."""
    broker = await serve()
    await broker.topics.create("t", 1, {})
    poll = fetch_request("t", 0, max_wait_ms=20)
    async with await connect(broker) as peer:
        for _ in range(3):
            began = trio.current_time()
            with within(60, "the answer"):
                assert high_watermark(await peer.ask(poll, FETCH)) == 0
            assert trio.current_time() - began >= 0.02
            assert waiting(broker, 0)() and made[0].state is State.READING
    assert made[0].wakes_at > trio.current_time() + 1e9


@pytest.mark.parametrize("sends_before", [False, True])
async def test_the_peer_goes(serve: Serve, made: list[Connection], sends_before: bool) -> None:
    """Nothing of the wait is left behind once the sweeper has seen it, however long it would last."""
    broker = await serve({"connections.max.idle.ms": "1000"})
    await broker.topics.create("t", 1, {})
    peer = await connect(broker)
    await peer.send(fetch_request("t", 0, max_wait_ms=2**31 - 1), FETCH)
    await until(waiting(broker))
    if sends_before:
        await peer.send(fetch_request("t", 0), FETCH)
        await until(lambda: made[0].state is State.WAITING)
    await peer.stream.aclose()
    await until(waiting(broker, 0))
    await until(lambda: made[0].state is State.CLOSED)
    assert made[0]._reactor._alarms._at == {}


async def test_the_connection_is_cut(serve: Serve, made: list[Connection]) -> None:
    broker = await serve()
    await broker.topics.create("t", 1, {})
    async with await connect(broker) as peer:
        await peer.send(fetch_request("t", 0, max_wait_ms=60_000), FETCH)
        await until(waiting(broker))
        made[0]._scope.cancel()
        assert await peer.closed() == b""
        assert waiting(broker, 0)()


@pytest.mark.parametrize("suffices", [True, False])
async def test_records_that_are_not_in_memory_are_the_tasks(
    serve: Serve, made: list[Connection], monkeypatch: pytest.MonkeyPatch, suffices: bool
) -> None:
    """They are read in by a worker; what then does not suffice is waited on."""
    broker = await serve()
    await broker.topics.create("t", 1, {})
    one = batch()
    poll = FetchRequest(
        max_wait_ms=60_000,
        min_bytes=1 if suffices else len(one) + 1,
        topics=[
            FetchTopic(topic="t", partitions=[FetchPartition(fetch_offset=0, partition_max_bytes=1 << 20)])
        ],
    )
    read, cold = Log.read, [True]

    def read_cold(log: Log, *arguments: int, **options: bool) -> object:
        if log.high_watermark and cold:
            cold.clear()
            raise NotCached(log.segments[-1].open_file(), 0, 1)
        return read(log, *arguments, **options)  # type: ignore[arg-type]

    async with await connect(broker) as peer, await connect(broker) as other:
        number = await peer.send(poll, FETCH)
        await until(waiting(broker))
        monkeypatch.setattr(Log, "read", read_cold)
        await other.ask(produce_request("t", one), PRODUCE)
        if not suffices:
            await until(lambda: not cold and made[0].state is State.WAITING)
            assert waiting(broker)()
            await other.ask(produce_request("t", one), PRODUCE)
        with within(60, "the answer"):
            assert high_watermark(await peer.answer_to(poll, FETCH, number)) == 2 - suffices
        assert not cold
        await until(partial(is_quiet, broker, made[0]))


def is_quiet(broker: Broker, connection: Connection) -> bool:
    return waiting(broker, 0)() and connection.state is State.READING


async def test_what_comes_between_the_look_and_the_wait(
    serve: Serve, made: list[Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another connection's write in the same round."""
    broker = await serve()
    await broker.topics.create("t", 1, {})
    when_notified = DelayedFetch.when_notified

    def notified_first(delayed: DelayedFetch, then: Callable[[], None]) -> None:
        delayed.notify()
        when_notified(delayed, then)

    monkeypatch.setattr(DelayedFetch, "when_notified", notified_first)
    looks: list[int] = []
    answer = DelayedFetch.answer

    def counted(delayed: DelayedFetch) -> object:
        looks.append(1)
        return answer(delayed) if len(looks) < 3 else (delayed.give_up(), answer(delayed))[1]

    monkeypatch.setattr(DelayedFetch, "answer", counted)
    async with await connect(broker) as peer:
        with within(60, "the answer"):
            assert high_watermark(await ask(peer)) == 0
    assert len(looks) == 3


async def ask(peer: Peer) -> object:
    return await peer.ask(fetch_request("t", 0, max_wait_ms=60_000), FETCH)


async def test_a_look_that_fails_ends_the_connection_at_once(
    serve: Serve, made: list[Connection], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broker = await serve()
    await broker.topics.create("t", 1, {})

    def fail(delayed: DelayedFetch) -> object:
        raise KeyError("an error that nobody thought of")

    async with await connect(broker) as peer, await connect(broker) as other:
        await peer.send(fetch_request("t", 0, max_wait_ms=2**31 - 1), FETCH)
        await until(waiting(broker))
        monkeypatch.setattr(DelayedFetch, "answer", fail)
        await other.ask(produce_request("t", batch()), PRODUCE)
        with within(60, "the end"):
            assert await peer.closed() == b""
        assert waiting(broker, 0)()
    assert "an error that nobody thought of" in caplog.text


def long_request(max_wait_ms: int) -> FetchRequest:
    """Above what is counted against `queued.max.request.bytes`."""
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        topics=[
            FetchTopic(topic="t", partitions=[FetchPartition(fetch_offset=0, partition_max_bytes=1 << 20)])
        ],
        rack_id="r" * 3 * SMALL_FRAME,
    )


async def test_a_wait_holds_no_memory_for_requests(serve: Serve, made: list[Connection]) -> None:
    """Of `queued.max.request.bytes`: the request is read. What is behind it is counted."""
    broker = await serve({"queued.max.request.bytes": "100000"})
    await broker.topics.create("t", 1, {})
    poll = long_request(60_000)
    async with await connect(broker) as peer, await connect(broker) as other:
        number = await peer.send(poll, FETCH)
        await until(waiting(broker))
        assert made[0].state is State.PARKED
        assert not made[0]._memory.holds(made[0])
        await other.ask(produce_request("t", batch()), PRODUCE)
        with within(60, "the answers"):
            await peer.answer_to(poll, FETCH, number)
            assert high_watermark(await peer.ask(poll, FETCH)) == 1


async def test_garbage_behind_a_fetch_that_waits(serve: Serve, made: list[Connection]) -> None:
    """The fetch is answered first."""
    broker = await serve({"queued.max.request.bytes": "100000"})
    await broker.topics.create("t", 1, {})
    poll = long_request(50)
    async with await connect(broker) as peer:
        with within(60, "the answer and the end"):
            await peer.stream.send_all(framed(request_bytes(poll, FETCH, correlation_id=7)) + b"\xff" * 100)
            await peer.answer_to(poll, FETCH, 7)
            assert await peer.closed() == b""
    assert waiting(broker, 0)()


async def test_what_an_ended_connection_has_buffered_is_not_served(
    serve: Serve, made: list[Connection]
) -> None:
    broker = await serve()
    async with await connect(broker) as peer:
        await until(lambda: bool(made) and made[0].state is State.READING)
        await peer.stream.aclose()
        await until(lambda: made[0].state is State.CLOSED)
    connection = made[0]
    connection._transport = SimpleNamespace(buffered=10)  # type: ignore[assignment]
    connection.receive_later()
    assert connection._reactor._buffered == {}
