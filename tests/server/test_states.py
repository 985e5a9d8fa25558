"""The table of a connection's life: every pair of state and event, and what holds for every sequence of events.

The last tests watch real connections: they take the moves that they should, and together all that the table has for
events that a peer can cause.
"""

from __future__ import annotations

import itertools
import select
import socket
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr.runtime.transitions import TransitionError
from leafcuttr.server import connection as connections
from leafcuttr.server import listener
from leafcuttr.server.connection import Connection
from leafcuttr.server.states import ENDED, TRANSITIONS, WAITS, WATCHED, Event, State, after
from leafcuttr.state.broker import Broker
from support.live_broker import LiveBroker, live_broker
from support.logs import batch
from support.peer import (
    connect,
    fetch_request,
    framed,
    metadata_request,
    produce_request,
    request_bytes,
    serves,
)
from support.transports import Buffering
from support.waiting import until, within
from support.wire_client import WireClient

Serve = Callable[..., Awaitable[Broker]]

S, E = State, Event
# Written once more, by event, so that a slip in the table is one here too or is seen.
MOVES = {
    E.HAND_OVER: {S.READING: S.WORKING, S.PARKED: S.WORKING},
    E.PARK: {S.READING: S.PARKED},
    E.AWAKE: {S.PARKED: S.READING},
    E.WAIT: {
        S.WORKING: S.WAITING,
        S.DRAINING: S.DRAINING_WAITING,
        S.CLOSING: S.CLOSING_WAITING,
    },
    E.RESUME: {
        S.WAITING: S.WORKING,
        S.DRAINING_WAITING: S.DRAINING,
        S.CLOSING_WAITING: S.CLOSING,
    },
    E.CAUGHT_UP: {S.WORKING: S.READING, S.DRAINING: S.CLOSED, S.CLOSING: S.CLOSED},
    E.STOP: {
        S.READING: S.DRAINING,
        S.PARKED: S.DRAINING,
        S.WORKING: S.DRAINING,
        S.WAITING: S.DRAINING_WAITING,
        S.DRAINING: S.DRAINING,
        S.DRAINING_WAITING: S.DRAINING_WAITING,
        S.CLOSING: S.CLOSING,
        S.CLOSING_WAITING: S.CLOSING_WAITING,
        S.CLOSED: S.CLOSED,
    },
    E.END: {
        S.READING: S.CLOSING,
        S.PARKED: S.CLOSING,
        S.WORKING: S.CLOSING,
        S.WAITING: S.CLOSING_WAITING,
        S.DRAINING: S.CLOSING,
        S.DRAINING_WAITING: S.CLOSING_WAITING,
        S.CLOSING: S.CLOSING,
        S.CLOSING_WAITING: S.CLOSING_WAITING,
        S.CLOSED: S.CLOSED,
    },
    E.CLOSE: dict.fromkeys(S, S.CLOSED),
}


@pytest.mark.parametrize(("state", "event"), [*itertools.product(State, Event)])
def test_every_pair(state: State, event: Event) -> None:
    expected = MOVES[event].get(state)
    if expected is None:
        with pytest.raises(TransitionError, match=f"that is {state.value}: {event.value}"):
            after(state, event)
    else:
        assert after(state, event) is expected


def test_the_sets_of_states() -> None:
    assert {state for state in S if E.HAND_OVER in TRANSITIONS[state]} == WATCHED
    assert {state for state in S if {E.RESUME, E.AWAKE} & TRANSITIONS[state].keys()} == WAITS
    assert {state for state in S if TRANSITIONS[state][E.END] is state} == ENDED


PHASES = {S.DRAINING: 1, S.DRAINING_WAITING: 1, S.CLOSING: 2, S.CLOSING_WAITING: 2, S.CLOSED: 3}
OWN = {E.HAND_OVER, E.PARK, E.AWAKE, E.WAIT, E.RESUME, E.CAUGHT_UP}


@given(st.lists(st.sampled_from(Event)))
def test_every_sequence(events: list[Event]) -> None:
    """What the table does not allow is refused and changes nothing; what it allows keeps the invariants."""
    state, waiting, stopped, ended, closed = S.WORKING, False, False, False, False
    for event in events:
        before = state
        try:
            state = after(state, event)
        except TransitionError:
            assert event in OWN, "what comes from outside is allowed at any time"
            continue
        stopped |= event is E.STOP
        ended |= event is E.END
        closed |= event is E.CLOSE or (event is E.CAUGHT_UP and (stopped or ended))
        waiting = {E.WAIT: True, E.RESUME: False, E.PARK: True, E.AWAKE: False}.get(event, waiting)
        if before in WATCHED and state not in WATCHED:
            waiting = False  # a parked connection's task has to say so itself
        # It never goes back: not to the reactor once it stops, not to requests once it has ended.
        assert PHASES.get(state, 0) >= PHASES.get(before, 0)
        assert not (state in WATCHED and (stopped or ended))
        assert (state in ENDED) == (ended or closed)
        assert (state is S.CLOSED) == closed
        # While it is waited for, only the end of the wait, or the task's, ends the waiting.
        assert (state in WAITS) == (waiting and not closed)


@given(st.lists(st.sampled_from(Event)))
def test_every_state_leads_to_the_end(events: list[Event]) -> None:
    """By the task's own events alone, once it is told to stop: resume, and have caught up."""
    state = S.WORKING
    for event in events:
        if event in TRANSITIONS[state]:
            state = after(state, event)
    state = after(state, E.STOP)
    if state in WAITS:
        state = after(state, E.RESUME)
    if state is not S.CLOSED:
        state = after(state, E.CAUGHT_UP)
    assert state is S.CLOSED


# Real connections


@pytest.fixture
def moves(monkeypatch: pytest.MonkeyPatch) -> list[tuple[State, Event, State]]:
    """Every move of every connection, as it happens. A turn lasts, however busy the machine is: its end is a move."""
    monkeypatch.setattr(connections, "_TURN_S", 60.0)
    found: list[tuple[State, Event, State]] = []

    def noted(state: State, event: Event) -> State:
        found.append((state, event, after(state, event)))
        return found[-1][2]

    monkeypatch.setattr(connections, "after", noted)
    return found


def states(moves: list[tuple[State, Event, State]]) -> list[State]:
    return [state for _, _, state in moves]


GIVEN_TO_REACTOR = [S.READING]
CLOSED_BY_PEER = [S.CLOSING, S.CLOSED, S.CLOSED]


async def test_a_quick_request_moves_nothing(serve: Serve, moves: list[tuple[State, Event, State]]) -> None:
    async with await connect(await serve()) as peer:
        for _ in range(3):
            assert await serves(peer)
    await trio.testing.wait_all_tasks_blocked(0.01)
    assert states(moves) == GIVEN_TO_REACTOR + CLOSED_BY_PEER


async def test_a_long_poll(serve: Serve, moves: list[tuple[State, Event, State]]) -> None:
    broker = await serve()
    await broker.topics.create("t", 1, {})
    async with await connect(broker) as peer:
        with within(60, "the answer"):
            await peer.ask(fetch_request("t", 0, max_wait_ms=50), 12)
            assert await serves(peer)
    await trio.testing.wait_all_tasks_blocked(0.01)
    assert states(moves) == [*GIVEN_TO_REACTOR, S.PARKED, S.READING, *CLOSED_BY_PEER]


async def test_more_arrives_during_a_long_poll(serve: Serve, moves: list[tuple[State, Event, State]]) -> None:
    """Its own task waits on, so that all of it is answered in order."""
    broker = await serve()
    await broker.topics.create("t", 1, {})
    poll, behind = fetch_request("t", 0, max_wait_ms=60_000), metadata_request("t")
    async with await connect(broker) as peer, await connect(broker) as other:
        with within(60, "the answers"):
            first = await peer.send(poll, 12)
            while not broker.delayed_requests:
                await trio.testing.wait_all_tasks_blocked()
            second = await peer.send(behind, 12)
            while S.WAITING not in states(moves):
                await trio.testing.wait_all_tasks_blocked()
            await other.ask(produce_request("t", batch()), 9)
            answer = await peer.answer_to(poll, 12, first)
            assert answer.responses[0].partitions[0].high_watermark == 1
            await peer.answer_to(behind, 12, second)
    ways = [move for move in states(moves) if move not in (S.CLOSING, S.CLOSED)]
    # What follows is mixed with the moves of the other one.
    assert ways[:6] == [*2 * GIVEN_TO_REACTOR, S.PARKED, S.WORKING, S.WAITING, S.WORKING]


async def test_a_stop_during_a_long_poll(serve: Serve, moves: list[tuple[State, Event, State]]) -> None:
    """The request at hand is answered, then the connection ends."""
    stop, ended = trio.Event(), trio.Event()
    broker = await serve(stop=stop, ended=ended)
    await broker.topics.create("t", 1, {})
    poll = fetch_request("t", 0, max_wait_ms=60_000)
    async with await connect(broker) as peer:
        with within(60, "the end"):
            await peer.send(poll, 12)
            while not broker.delayed_requests:
                await trio.testing.wait_all_tasks_blocked()
            stop.set()
            await peer.answer_to(poll, 12, 1)
            assert await peer.closed() == b""
            await ended.wait()
    assert states(moves) == [
        *GIVEN_TO_REACTOR,
        S.PARKED,
        S.DRAINING,
        S.DRAINING_WAITING,
        S.DRAINING,
        S.CLOSED,
        S.CLOSED,
    ]


async def test_a_request_that_cannot_be_read(serve: Serve, moves: list[tuple[State, Event, State]]) -> None:
    """The answer to the request before it leaves first."""
    async with await connect(await serve()) as peer:
        await peer.stream.send_all(framed(request_bytes(metadata_request("t"), 12)) + b"\xff" * 8)
        await peer.answer_to(metadata_request("t"), 12, 1)
        assert await peer.closed() == b""
    await trio.testing.wait_all_tasks_blocked(0.01)
    assert S.CLOSING in states(moves)
    assert states(moves)[-2:] == [S.CLOSED, S.CLOSED]


@pytest.fixture
def live(
    tmp_path: Path, moves: list[tuple[State, Event, State]], monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[LiveBroker, list[Connection]]]:
    """A broker in topic sync mode on transports that hand out one small Produce at a time, and its connections."""
    made: list[Connection] = []

    def make(*arguments: object) -> Connection:
        made.append(Connection(*arguments))  # type: ignore[arg-type]
        return made[-1]

    class OneRequestEach(Buffering):
        most_received = len(produce_frame())

    monkeypatch.setattr(listener, "Connection", make)
    with live_broker(tmp_path, make_transport=OneRequestEach) as found:
        found.run(partial(found.broker.topics.create, "t", 1, {"lc.log.sync.always": "true"}))
        yield found, made


def produce_frame() -> bytes:
    return framed(request_bytes(produce_request("t", batch()), 9))


def answers(sock: socket.socket, count: int) -> None:
    """Read so many answers, which have to come."""
    data = b""
    while count:
        while len(data) >= 4 and len(data) >= 4 + int.from_bytes(data[:4], "big"):
            data = data[4 + int.from_bytes(data[:4], "big") :]
            count -= 1
        if count:
            more = sock.recv(65536)
            assert more, "closed"
            data += more


def test_a_write_by_a_worker_parks(
    live: tuple[LiveBroker, list[Connection]], moves: list[tuple[State, Event, State]]
) -> None:
    broker, _ = live
    with WireClient(broker.address) as client:
        client.socket.sendall(produce_frame())
        answers(client.socket, 1)
    assert states(moves)[:3] == [*GIVEN_TO_REACTOR, S.PARKED, S.READING]


@pytest.mark.parametrize("before", [0, 5], ids=["first", "repeated"])
def test_what_is_buffered_while_it_is_parked_is_served(
    live: tuple[LiveBroker, list[Connection]], moves: list[tuple[State, Event, State]], before: int
) -> None:
    """The worker reports before the reactor looks again: the next request is in the transport only."""
    broker, made = live
    writers = broker.broker.runtime.writers
    with WireClient(broker.address) as client:
        for _ in range(before):
            client.socket.sendall(produce_frame())
            answers(client.socket, 1)

        until(lambda: bool(made) and made[0].state is S.READING, "the connection")

        def send_and_write() -> None:
            """On the loop, which looks at nothing meanwhile."""
            client.socket.sendall(produce_frame() * 2)
            made[0]._reactor.serve(made[0])
            assert made[0].state is S.PARKED
            assert made[0].buffered
            assert select.select([writers.fileno()], [], [], 60)[0]

        broker.call(send_and_write)
        answers(client.socket, 2)
    assert E.HAND_OVER not in [event for _, event, _ in moves]


def test_more_arrives_while_it_is_parked(
    live: tuple[LiveBroker, list[Connection]], moves: list[tuple[State, Event, State]]
) -> None:
    broker, _ = live
    with WireClient(broker.address) as client:
        with broker.writers_held():
            client.socket.sendall(produce_frame() * 2)
            until(lambda: S.WAITING in states(moves), "its task")
        answers(client.socket, 2)
    assert states(moves)[:4] == [*GIVEN_TO_REACTOR, S.PARKED, S.WORKING, S.WAITING]


def test_what_has_arrived_at_a_stop_is_answered(live: tuple[LiveBroker, list[Connection]]) -> None:
    """Also what the reactor has not looked at yet."""
    broker, made = live
    with WireClient(broker.address) as client:
        until(lambda: bool(made) and made[0].state is S.READING, "the connection")

        def send_and_stop() -> None:
            client.socket.sendall(produce_frame())
            made[0].stop()

        broker.call(send_and_stop)
        answers(client.socket, 1)
        assert client.socket.recv(1) == b""


async def test_what_is_being_written_when_the_stream_turns_bad(serve: Serve) -> None:
    """It cannot park any more: its task waits for the worker, answers, and closes."""
    broker = await serve()
    await broker.topics.create("t", 1, {"lc.log.sync.always": "true"})
    request = produce_request("t", batch())
    async with await connect(broker) as peer, await connect(broker) as other:
        with within(60, "the answer"):
            await peer.stream.send_all(framed(request_bytes(request, 9)) + framed(b"short"))
            answer = await peer.answer_to(request, 9, 1)
            assert answer.responses[0].partition_responses[0].error_code == 0
            assert await peer.closed() == b""
            assert await serves(other), "nobody else notices"


@pytest.mark.parametrize(
    ("behind", "version"),
    [(produce_request("t", batch()), 9), (metadata_request("t"), 12)],
    ids=["produce", "other"],
)
@pytest.mark.parametrize("bad", [framed(b"short"), b"\xff" * 4, framed(b"\x7f\xff\0\0\0\0\0\1\xff\xff")])
async def test_nothing_behind_a_request_that_cannot_be_read_is_begun(
    serve: Serve, bad: bytes, behind: object, version: int
) -> None:
    """And the log has one line about it, and the metrics one."""
    broker = await serve()
    await broker.topics.create("t", 1, {})
    request = produce_request("t", batch())
    async with await connect(broker) as peer:
        with within(60, "the end"):
            await peer.stream.send_all(
                framed(request_bytes(request, 9)) + bad + framed(request_bytes(behind, version))
            )
            await peer.answer_to(request, 9, 1)
            assert await peer.closed() == b""
    log = broker.topics.by_name["t"].partitions[0].log
    assert (log.next_offset, broker.counts.malformed) == (1, 1)
