"""Which of two tasks serves a connection, and for how long: the reactor's, or its own."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import trio
import trio.testing

from leafcuttr.handlers.produce import Turn
from leafcuttr.log.files.region import FileRegion
from leafcuttr.log.log import Log
from leafcuttr.server import connection as connections
from leafcuttr.server import listener
from leafcuttr.server.connection import CloseConnection, Connection
from leafcuttr.server.outbox import Outbox
from leafcuttr.server.receive import SMALL_FRAME
from leafcuttr.server.routes import Route
from leafcuttr.server.states import Event, State, after
from leafcuttr.server.transport import PlainTransport
from leafcuttr.state.broker import Broker
from leafcuttr.wire.api import ApiKey
from leafcuttr.wire.errors import ManyElements
from leafcuttr.wire.messages.api_versions import ApiVersionsRequest
from support.live_broker import LiveBroker, live_broker
from support.logs import batch
from support.peer import (
    Peer,
    connect,
    fetch_request,
    framed,
    produce_request,
    request_bytes,
)
from support.transports import BytesOnly
from support.waiting import until, within
from support.wire_client import WireClient

Serve = Callable[..., Awaitable[Broker]]
SYNC = {"lc.log.sync.always": "true"}
PRODUCE, FETCH, VERSIONS = 9, 12, 2


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Connection]:
    """All connections, in order."""
    found: list[Connection] = []

    def make(*arguments: object) -> Connection:
        found.append(Connection(*arguments))  # type: ignore[arg-type]
        return found[-1]

    monkeypatch.setattr(listener, "Connection", make)
    return found


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[Event]:
    """What happens to any connection, in order."""
    found: list[Event] = []

    def noted(state: State, event: Event) -> State:
        found.append(event)
        return after(state, event)

    monkeypatch.setattr(connections, "after", noted)
    return found


class Time:
    """That of all connections, in seconds; each look at it takes `a_look`."""

    def __init__(self) -> None:
        self.now, self.a_look = 1000.0, 0.0

    def __call__(self) -> float:
        self.now += self.a_look
        return self.now


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    found = Time()
    monkeypatch.setattr(connections, "perf_counter", found)
    return found


@pytest.fixture
def live(tmp_path: Path, made: list[Connection]) -> Iterator[LiveBroker]:
    with live_broker(tmp_path) as found:
        found.run(partial(found.broker.topics.create, "t", 1, SYNC))
        yield found


async def quiet() -> None:
    """The broker has done all that it does by itself."""
    with within(60, "the broker to have done all"):
        await trio.testing.wait_all_tasks_blocked(0.01)


# Turns


async def test_a_turn_over_which_others_have_theirs(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, time: Time
) -> None:
    """Requests that have arrived together are not all staged at once if that takes long."""
    broker = await serve()
    await broker.topics.create("t", 1, {})
    noted: list[str] = []
    for kind in (Turn.stage, Log.write):

        def note(self: object, *arguments: object, call: Callable[..., object] = kind) -> object:
            noted.append(call.__name__)
            return call(self, *arguments)

        monkeypatch.setattr(Turn if kind is Turn.stage else Log, kind.__name__, note)
    request = produce_request("t", batch())
    async with await connect(broker) as peer:
        time.a_look = 0.0015
        await peer.stream.send_all(
            b"".join(framed(request_bytes(request, PRODUCE, correlation_id=number)) for number in range(10))
        )
        with within(60, "the answers"):
            for number in range(10):
                await peer.answer_to(request, PRODUCE, number)
    assert noted.count("stage") == 10
    runs = [len(run.split()) for run in " ".join(noted).split("write")]
    assert max(runs) <= 2, "of 1.5 ms each, where a turn is 2"


def test_what_arrived_with_what_is_written_has_a_turn_of_its_own(
    live: LiveBroker, events: list[Event], time: Time
) -> None:
    """However long the write took, the reactor goes on with what is behind it."""
    produce, behind = produce_request("t", batch()), ApiVersionsRequest()
    with WireClient(live.address) as client:
        log = live.log("t")
        with live.writers_held():
            client.socket.sendall(
                framed(request_bytes(produce, PRODUCE)) + framed(request_bytes(behind, VERSIONS))
            )
            until(lambda: live.call(lambda: log.next_offset) == 1, "the record to be staged")
            time.now += 60
        client.take(produce, PRODUCE)
        client.take(behind, VERSIONS)
        assert live.call(lambda: [event for event in events if event is not Event.CAUGHT_UP]) == [
            Event.PARK,
            Event.AWAKE,
        ]


# Answers


async def test_long_answers_are_sent_by_the_connections_task(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, events: list[Event]
) -> None:
    """The reactor sends what is short, and does not even try more."""
    tried: list[int] = []
    flush_now = Outbox.flush_now

    def noted(outbox: Outbox) -> bool:
        tried.append(outbox.size)
        return flush_now(outbox)

    monkeypatch.setattr(Outbox, "flush_now", noted)
    monkeypatch.setattr(connections, "_TURN_S", 60.0)  # however busy the machine is
    request = ApiVersionsRequest()
    async with await connect(await serve()) as peer:
        with within(60, "the answers"):
            await peer.ask(request, VERSIONS)
            (answer,) = tried
            monkeypatch.setattr(connections, "_OUTBOX_LIMIT", 2 * answer)
            await quiet()
            events.clear()
            sent = [framed(request_bytes(request, VERSIONS, correlation_id=number)) for number in range(8)]
            await peer.stream.send_all(b"".join(sent))
            await quiet()
            assert tried == [answer]
            assert events == [Event.HAND_OVER, Event.CAUGHT_UP]
            for number in range(8):
                await peer.answer_to(request, VERSIONS, number)


@pytest.mark.parametrize("poll", [False, True], ids=["arrived", "awakened"])
async def test_one_request_is_answered_whatever_others_of_the_round_have_taken(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, events: list[Event], poll: bool
) -> None:
    """By the reactor; only what comes behind it is the task's."""
    broker = await serve()
    await broker.topics.create("t", 1, {})
    request = ApiVersionsRequest()
    async with await connect(broker) as peer, await connect(broker) as other:
        with within(60, "the answers"):
            for each in (peer, other):
                await each.ask(request, VERSIONS)
            await quiet()
            monkeypatch.setattr(connections, "_TURN_S", -1.0)
            if poll:
                number = await peer.send(fetch_request("t", 0, max_wait_ms=60_000), FETCH)
                await quiet()
                events.clear()
                await other.ask(produce_request("t", batch()), PRODUCE)
                await peer.answer_to(fetch_request("t", 0), FETCH, number)
                assert events.count(Event.AWAKE) == 1
            else:
                events.clear()
                await peer.ask(request, VERSIONS)
                assert events == []
            await quiet()
            events.clear()
            sent = [framed(request_bytes(request, VERSIONS, correlation_id=number)) for number in range(3)]
            await peer.stream.send_all(b"".join(sent))
            for number in range(3):
                await peer.answer_to(request, VERSIONS, number)
            await quiet()
            # The task lets others have their turn once or more, as the clock has it.
            waits = len(events) // 2 - 1
            assert events == [Event.HAND_OVER, *(Event.WAIT, Event.RESUME) * waits, Event.CAUGHT_UP]
            assert waits


async def test_the_rest_of_an_answer_to_a_repeated_request_leaves_by_itself(serve: Serve) -> None:
    """Nothing else has to arrive first."""

    class TakesLittle(BytesOnly):
        most_sent = 40

    broker = await serve(make_transport=TakesLittle)
    await broker.topics.create("t", 1, {})
    request = produce_request("t", batch())
    async with await connect(broker) as peer:
        for number in range(1, 13):
            await peer.send(request, PRODUCE)
            await quiet()
            assert answered_now(peer, number)


async def test_an_answer_from_a_file_leaves_before_another_request_is_begun(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds a descriptor, which a peer that sends requests and reads nothing may have one of, not hundreds."""

    class TakesNothing(PlainTransport):
        def __init__(self, sock: socket.socket) -> None:
            super().__init__(sock)
            self.send = self.refuse

        def refuse(self, data: object) -> int:
            raise BlockingIOError

        def send_file(self, region: object) -> int:
            raise BlockingIOError

        async def wait_writable(self) -> None:
            await trio.sleep_forever()

    kinds = iter((PlainTransport, TakesNothing, PlainTransport))

    def make(sock: socket.socket) -> PlainTransport:
        return next(kinds)(sock)

    monkeypatch.setattr(connections, "_TURN_S", 60.0)
    broker = await serve(make_transport=make)
    await broker.topics.create("t", 1, {})
    counted = broker.counts.answered[ApiKey.FETCH]
    async with await connect(broker) as peer:
        await peer.ask(produce_request("t", batch(size=20_000)), PRODUCE)
        async with await connect(broker) as deaf:
            fetch = framed(request_bytes(fetch_request("t", 0), FETCH))
            await deaf.stream.send_all(fetch * 5)
            await quiet()
            assert counted.count == 1
        async with await connect(broker) as other:
            numbers = [await other.send(fetch_request("t", 0), FETCH) for _ in range(5)]
            for number in numbers:
                answer = await other.answer_to(fetch_request("t", 0), FETCH, number)
                assert len(answer.responses[0].partitions[0].records) > 20_000
        assert counted.count == 6


def answered_now(peer: Peer, number: int) -> bool:
    """Whether the whole answer has come, without waiting for it."""
    frame = peer.stream.socket._sock.recv(65536, socket.MSG_DONTWAIT)
    return frame[:8] == (len(frame) - 4).to_bytes(4, "big") + number.to_bytes(4, "big")


async def test_nothing_is_begun_behind_an_answer_that_cannot_be_sent(serve: Serve) -> None:
    """The peer has gone: what is behind the repeated request is not written."""

    class Fails(PlainTransport):
        gone = False

        def __init__(self, sock: socket.socket) -> None:
            super().__init__(sock)
            send = self.send
            self.send = lambda data: self.fail() if Fails.gone else send(data)

        def fail(self) -> int:
            raise BrokenPipeError

    broker = await serve(make_transport=Fails)
    await broker.topics.create("t", 1, {})
    log = broker.topics.by_name["t"].partitions[0].log
    async with await connect(broker) as peer:
        for _ in range(3):
            await peer.ask(produce_request("t", batch()), PRODUCE)
        Fails.gone = True
        other = produce_request("t", batch(), acks=1)  # is not what was learned
        await peer.stream.send_all(
            framed(request_bytes(produce_request("t", batch()), PRODUCE))
            + framed(request_bytes(other, PRODUCE))
        )
        assert await peer.closed() == b""
    assert log.next_offset == 4


async def test_an_answer_that_is_too_long_to_be_written_at_once_keeps_its_place(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of those that were written together is answered once, in order."""
    frame = Route.frame

    def too_long(route: Route, correlation_id: int, response: object) -> object:
        if correlation_id in (2, 4):
            raise ManyElements
        return frame(route, correlation_id, response)

    monkeypatch.setattr(Route, "frame", too_long)
    broker = await serve()
    await broker.topics.create("t", 1, {})
    request = produce_request("t", batch())
    async with await connect(broker) as peer:
        frames = [framed(request_bytes(request, PRODUCE, correlation_id=number)) for number in range(6)]
        await peer.stream.send_all(b"".join(frames))
        for number in range(6):
            answer = await peer.answer_to(request, PRODUCE, number)
            assert answer.responses[0].partition_responses[0].base_offset == number
        await quiet()
        assert broker.counts.answered[ApiKey.PRODUCE].count == 6


async def test_what_is_answered_by_the_reactor_is_not_answered_by_the_task_too(serve: Serve) -> None:
    """Repeated requests that a worker has written, and then one that has to wait."""
    broker = await serve()
    await broker.topics.create("t", 1, SYNC)
    async with await connect(broker) as peer:
        for number in range(5):
            answer = await peer.ask(produce_request("t", batch()), PRODUCE)
            assert answer.responses[0].partition_responses[0].base_offset == number
        await peer.ask(fetch_request("t", 5, max_wait_ms=1), FETCH)
        await peer.ask(produce_request("t", batch()), PRODUCE)
        await peer.ask(ApiVersionsRequest(), VERSIONS)
    assert broker.counts.answered[ApiKey.PRODUCE].count == 6


async def test_requests_behind_an_answer_that_was_refused_once_are_handled(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The transport takes it when it is tried again, in the same round: nothing else makes the connection go on."""

    class RefusesFirst(PlainTransport):
        tried = 0

        def send_file(self, region: FileRegion) -> int:
            self.tried += 1
            if self.tried % 2:
                raise BlockingIOError
            return super().send_file(region)

    monkeypatch.setattr(connections, "_TURN_S", 60.0)
    broker = await serve(make_transport=RefusesFirst)
    await broker.topics.create("t", 1, {})
    async with await connect(broker) as peer:
        await peer.ask(produce_request("t", batch(size=20_000)), PRODUCE)
        await peer.stream.send_all(framed(request_bytes(fetch_request("t", 0), FETCH)) * 5)
        await quiet()
        assert broker.counts.answered[ApiKey.FETCH].count == 5
        for _ in range(5):
            await peer.answer_to(fetch_request("t", 0), FETCH, 1)


# What the sweeper of idle connections does


async def test_the_buffer_of_a_connection_whose_task_works_is_left_alone(
    serve: Serve, made: list[Connection]
) -> None:
    """A request at hand is in it."""
    broker = await serve()
    await broker.topics.create("t", 1, {})
    async with await connect(broker) as peer, await connect(broker) as other:
        await peer.ask(produce_request("t", batch(size=10 * SMALL_FRAME)), PRODUCE)
        poll = fetch_request("t", 1, max_wait_ms=60_000)
        number = await peer.send(poll, FETCH)
        await quiet()
        await peer.send(ApiVersionsRequest(), VERSIONS)
        await quiet()
        (connection,) = [each for each in made if each.state is State.WAITING]
        size = connection.buffer.capacity
        connection.shrink_buffer()
        assert connection.buffer.capacity == size > 10 * SMALL_FRAME
        await other.ask(produce_request("t", batch()), PRODUCE)
        await peer.answer_to(poll, FETCH, number)
        await quiet()
        assert connection.state is State.READING
        connection.shrink_buffer()
        assert connection.buffer.capacity == SMALL_FRAME


@pytest.mark.parametrize("fails", [False, True])
def test_a_connection_does_not_end_before_what_it_has_staged_is_written(
    live: LiveBroker,
    made: list[Connection],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    fails: bool,
) -> None:
    """It is parked, its peer has gone, and the sweeper notices it before the reactor does. A wait that raises is an
    error of the broker's own, and affects nobody else."""
    closed: list[Connection] = []
    close, written = Connection.close, Turn.written
    monkeypatch.setattr(Connection, "close", lambda self: closed.append(self) or close(self))

    async def raise_then(turn: Turn) -> None:
        await written(turn)
        raise RuntimeError("an error that nobody thought of")

    if fails:
        monkeypatch.setattr(Turn, "written", raise_then)
    client, log = WireClient(live.address), live.log("t")
    with live.writers_held():
        client.send_produce("t", batch())
        until(lambda: live.call(lambda: log.next_offset) == 1, "the record to be staged")
        (connection,) = made
        until(lambda: live.call(lambda: connection.state) is State.PARKED, "it to be parked")

        def leave() -> None:
            """On the loop, which looks at nothing meanwhile."""
            client.socket.close()
            until(lambda: connection._transport.peer_gone, "the end of the stream")
            connection.end_if_abandoned()

        live.call(leave)
        live.run(trio.testing.wait_all_tasks_blocked)
        assert connection.state is State.CLOSED
        assert closed == []
    until(lambda: closed == [connection], "its end")
    assert live.call(lambda: log.high_watermark) == 1
    monkeypatch.setattr(Turn, "written", written)
    with WireClient(live.address) as other:
        assert other.produce("t", batch()).base_offset == 1


def test_a_write_that_ends_after_the_task_has_taken_over_is_the_tasks(
    live: LiveBroker, made: list[Connection]
) -> None:
    """Whether the reactor hears of it, or looks at nothing just now."""
    log, behind = live.log("t"), ApiVersionsRequest()
    with WireClient(live.address) as client:
        with live.writers_held():
            client.send_produce("t", batch())
            until(lambda: live.call(lambda: log.next_offset) == 1, "the record to be staged")
            client.send(behind, VERSIONS)
            (connection,) = made
            until(lambda: live.call(lambda: connection.state) is State.WAITING, "its task")
            live.call(connection._written)
            assert live.call(lambda: connection.state) is State.WAITING
        client.take(produce_request("t", batch()), 11)
        client.take(behind, VERSIONS)


async def test_a_connection_fails_once(serve: Serve, made: list[Connection]) -> None:
    """What goes wrong in one that has ended is neither counted nor logged."""
    broker = await serve()
    async with await connect(broker) as peer:
        await quiet()
        for _ in range(3):
            made[0].fail(CloseConnection("a bad request"))
        assert await peer.closed() == b""
    assert broker.counts.malformed == 1


async def test_what_the_sweeper_and_the_handlers_learn_of_a_request(
    serve: Serve, made: list[Connection]
) -> None:
    """That something has arrived, and the client id of this request, not of the first."""
    async with await connect(await serve()) as peer:
        for number, client_id in enumerate((b"one", b"one", b"two", None, b"one"), 1):
            body = request_bytes(ApiVersionsRequest(), VERSIONS, correlation_id=number, client_id=client_id)
            await peer.stream.send_all(framed(body))
            await peer.answer_to(ApiVersionsRequest(), VERSIONS, number)
            (connection,) = made
            name = None if client_id is None else client_id.decode()
            assert connection._context.client.client_id == name
            assert connection.arrivals == number
