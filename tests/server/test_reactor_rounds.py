"""What the reactor has each connection do, and when: with connections that only note it.

Their descriptors are real sockets in a real epoll set. The reactor's time is the test's: it goes on where a connection
receives, and nowhere else.
"""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from itertools import groupby, pairwise
from math import inf
from types import SimpleNamespace
from typing import Any

import pytest
import trio
import trio.testing

from leafcuttr.handlers.produce import Turn
from leafcuttr.log.append.pending_write import DONE, PendingWrite
from leafcuttr.metrics.counts import Times
from leafcuttr.runtime.writers import Writers
from leafcuttr.server import reactor as reactors
from leafcuttr.server.queue import RequestQueue
from leafcuttr.server.reactor import Reactor, _serve
from leafcuttr.server.states import State
from support.logs import HandClock
from support.waiting import within

A_ROUND = ["stage", "answer", "finish_round"]


class Written:
    """The log of a repeated Produce: each write is over at once."""

    def write(self) -> PendingWrite:
        return DONE


class Noting:
    """A connection that notes in `noted` what it has to do. `takes` is what each `receive` takes from its socket."""

    takes = 1024
    buffered = 0
    repeats = False  # what arrives is the same Produce again
    repeat_is_all = True  # which is answered in one step
    produce_rounds = 0  # how often it comes to another Produce

    def __init__(self, name: str, noted: list[tuple[str, str]], time: Time | None = None) -> None:
        self.name, self._noted, self._time = name, noted, time
        self.near, self.far = socket.socketpair()
        self.near.setblocking(False)
        self.descriptor = self.near.fileno()
        self.produce_turn = Turn()
        self.repeated: Any = SimpleNamespace(count=3, log=Written(), written=lambda write: None)
        self.state = State.READING
        self.wakes_at = inf

    def close(self) -> None:
        self.near.close()
        self.far.close()

    def note(self, what: str) -> None:
        self._noted.append((self.name, what))

    def receive(self, now_ms: int) -> bool:
        self.note("receive")
        if self._time is not None:
            self._time.now += self._time.a_receive
        with suppress(BlockingIOError):
            self.near.recv(self.takes)
        return self.repeats

    def receive_later(self) -> None:
        self.note("receive_later")

    def answer_repeat(self, since: float) -> bool:
        self.note("answer_repeat")
        return self.repeat_is_all

    def stage(self) -> None:
        self.note("stage")

    def answer(self) -> bool:
        self.note("answer")
        self.produce_rounds -= 1
        return self.produce_rounds >= 0

    def finish_round(self) -> None:
        self.note("finish_round")

    def hand_over(self) -> None:
        self.note("hand_over")

    def unpark(self) -> None:
        self.note("unpark")
        self.state = State.READING

    def fail_unwritten(self, error: Exception) -> None:
        self.note(f"fail_unwritten: {error}")


class Time:
    """The time of the reactor: `now` in seconds."""

    a_receive = 0.0

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def noted() -> list[tuple[str, str]]:
    return []


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    found = Time()
    monkeypatch.setattr(reactors, "time", found)
    return found


Make = Callable[..., list[Noting]]


@pytest.fixture
def make(noted: list[tuple[str, str]], time: Time) -> Iterator[Make]:
    made: list[Noting] = []

    def connections(count: int, kind: type[Noting] = Noting) -> list[Noting]:
        found = [kind(str(len(made) + number), noted, time) for number in range(count)]
        made.extend(found)
        return found

    yield connections
    for each in made:
        each.close()


def of(noted: list[tuple[str, str]], connection: Noting) -> list[str]:
    return [what for name, what in noted if name == connection.name]


def rounds(noted: list[tuple[str, str]]) -> list[list[str]]:
    """The names of those that received, by round."""
    found: list[list[str]] = []
    before = ""
    for name, what in noted:
        if what == "receive":
            if before != "receive":
                found.append([])
            found[-1].append(name)
        before = what
    return found


# One round


def test_more_from_one_that_is_parked_is_its_tasks(make: Make, noted: list[tuple[str, str]]) -> None:
    """Nothing of it is received, and others are served."""
    parked, other = make(2)
    parked.state = State.PARKED
    _serve([parked, other], 0, 0.0)
    assert of(noted, parked) == ["hand_over"]
    assert of(noted, other) == ["receive", *A_ROUND]


def test_what_is_written_is_answered_before_more_is_received(
    make: Make, noted: list[tuple[str, str]]
) -> None:
    """Whatever has arrived meanwhile is for the next round, of which the connection is told."""
    (connection,) = make(1)
    connection.state, connection.repeat_is_all = State.PARKED, False
    _serve([connection], 0, 0.0, [connection])
    assert of(noted, connection) == ["unpark", "answer_repeat", "receive_later", *A_ROUND]


def test_what_is_written_and_answered_in_one_step_lets_more_be_received(
    make: Make, noted: list[tuple[str, str]]
) -> None:
    (connection,) = make(1)
    connection.state = State.PARKED
    _serve([connection], 0, 0.0, [connection])
    assert of(noted, connection) == ["unpark", "answer_repeat", "receive", *A_ROUND]


@pytest.mark.parametrize("state", sorted(set(State) - {State.PARKED}, key=str))
def test_one_that_has_left_since_its_write_ended_is_its_tasks(
    make: Make, noted: list[tuple[str, str]], state: State
) -> None:
    (connection,) = make(1)
    connection.state = state
    _serve([], 0, 0.0, [connection])
    assert noted == []


def test_repeated_requests_are_over_in_one_step(make: Make, noted: list[tuple[str, str]]) -> None:
    """Those that are not go the way of the others; only those that are answered are counted."""
    answered, left, parked, failed = make(4)
    for each in (answered, left, parked, failed):
        each.repeats = True
    left.repeat_is_all = failed.repeat_is_all = False

    def park(since: float) -> bool:
        parked.note("answer_repeat")
        parked.state = State.PARKED
        return True

    parked.answer_repeat = park
    # Its turn answers the failure: the first of what `Turn` has is where it keeps answers.
    failed.produce_turn._answers.append((1, None, 0, []))
    assert _serve([answered, left, parked, failed], 0, 0.0) == 6
    assert of(noted, answered) == of(noted, parked) == ["receive", "answer_repeat"]
    assert of(noted, left) == of(noted, failed) == ["receive", "answer_repeat", *A_ROUND]


def test_repeated_requests_that_are_not_known_to_be_written(make: Make, noted: list[tuple[str, str]]) -> None:
    """None of that write is answered, and the rest of the round goes on."""
    first, second, other = make(3)
    first.repeats = second.repeats = True

    class Failing(Written):
        def write(self) -> PendingWrite:
            raise RuntimeError("not written")

    first.repeated.log = second.repeated.log = Failing()
    assert _serve([first, other, second], 0, 0.0) == 0
    assert of(noted, first) == of(noted, second) == ["receive", "fail_unwritten: not written"]
    assert of(noted, other) == ["receive", *A_ROUND]


def test_a_round_lasts_as_long_as_one_comes_to_another_produce(
    make: Make, noted: list[tuple[str, str]]
) -> None:
    """What all have staged is written together, then all answer; answers are sent at the end."""
    once, thrice = make(2)
    thrice.produce_rounds = 2
    _serve([once, thrice], 0, 0.0)
    assert noted[2:] == [
        ("0", "stage"),
        ("1", "stage"),
        ("0", "answer"),
        ("1", "answer"),
        ("1", "stage"),
        ("1", "answer"),
        ("1", "stage"),
        ("1", "answer"),
        ("0", "finish_round"),
        ("1", "finish_round"),
    ]


# Round after round


class FewWriters(Writers):
    """With nothing to write: `busy` is the test's."""

    busy = False


def reactor_of(free: int, times: Times | None = None) -> Reactor:
    return Reactor(HandClock(), RequestQueue(free), FewWriters(), times or Times())


class SomeLooks:
    """An epoll set that is looked at a hundred times at most."""

    def __init__(self, epoll: Any) -> None:
        self._epoll, self._left = epoll, 100

    def poll(self, seconds: float, most: int) -> list[tuple[int, int]]:
        self._left -= 1
        assert self._left, "it never sleeps"
        found: list[tuple[int, int]] = self._epoll.poll(seconds, most)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._epoll, name)


@asynccontextmanager
async def running(reactor: Reactor) -> AsyncIterator[None]:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(reactor.run)
        yield
        nursery.cancel_scope.cancel()


async def until_it_sleeps(reactor: Reactor) -> None:
    """Have it run until nothing is left to do, which has to be soon."""
    reactor._epoll = SomeLooks(reactor._epoll)
    async with running(reactor):
        with within(60, "the reactor to sleep"):
            await trio.testing.wait_all_tasks_blocked()


@pytest.mark.parametrize(
    ("free", "readable", "buffered", "expected"),
    [
        (500, 40, 0, [32, 8]),
        (4, 6, 0, [4, 2]),
        (1, 3, 0, [1, 1, 1]),
        (500, 0, 40, [32, 8]),
        (4, 0, 6, [4, 2]),
        (4, 3, 4, [4, 3]),
        (500, 31, 5, [32, 4]),
    ],
)
async def test_how_many_are_served_in_a_round(
    make: Make, noted: list[tuple[str, str]], free: int, readable: int, buffered: int, expected: list[int]
) -> None:
    """32 at most, and no more than may be received; those whose transport has something buffered count as well."""
    reactor = reactor_of(free)
    for connection in make(readable):
        connection.far.send(b"x")
        reactor.add(connection)
    for connection in make(buffered):
        reactor.add(connection)
        reactor.look_again(connection)
    await until_it_sleeps(reactor)
    found = rounds(noted)
    assert [len(each) for each in found] == expected
    assert sorted(int(name) for each in found for name in each) == list(range(readable + buffered))


async def test_one_that_is_readable_and_has_something_buffered_is_served_once(
    make: Make, noted: list[tuple[str, str]]
) -> None:
    reactor = reactor_of(500)
    (connection,) = make(1)
    connection.far.send(b"x")
    reactor.add(connection)
    reactor.look_again(connection)
    await until_it_sleeps(reactor)
    assert of(noted, connection) == ["receive", *A_ROUND]


async def test_what_is_buffered_is_served_in_order_of_its_coming(
    make: Make, noted: list[tuple[str, str]]
) -> None:
    """Also what was buffered before the connection came to the reactor."""
    reactor = reactor_of(1)
    first, second, third = make(3)
    third.buffered = 1
    reactor.add(first)
    reactor.add(second)
    reactor.look_again(second)
    reactor.add(third)
    reactor.look_again(first)
    await until_it_sleeps(reactor)
    assert rounds(noted) == [["1"], ["2"], ["0"]]


async def test_one_that_has_left_is_not_served(make: Make, noted: list[tuple[str, str]]) -> None:
    reactor = reactor_of(500)
    left, buffered, other = make(3)
    for each in (left, buffered, other):
        each.far.send(b"x")
        reactor.add(each)
    reactor.look_again(buffered)
    for each in (left, buffered, left, buffered):  # twice is harmless
        reactor.remove(each)
    await until_it_sleeps(reactor)
    assert rounds(noted) == [["2"]]


async def test_others_have_their_turn_after_two_milliseconds(
    make: Make, noted: list[tuple[str, str]], time: Time
) -> None:
    """However much more there is to do: not later, and no sooner."""
    reactor, seen = reactor_of(500), [0]
    (connection,) = make(1)
    connection.takes, time.a_receive = 1, 0.0015
    connection.far.send(bytes(20))
    reactor.add(connection)

    async def others() -> None:
        while seen[-1] < 20:
            await trio.lowlevel.checkpoint()
            seen.append(len(rounds(noted)))

    async with running(reactor), trio.open_nursery() as nursery:
        nursery.start_soon(others)
    # Which task is the first of two that can run is trio's choice, so the reactor may have two turns between.
    assert {after - before for before, after in pairwise(seen)} <= {0, 2, 4}


async def test_requests_that_repeat_others_are_timed(make: Make, time: Time) -> None:
    """Each takes as long as its round, whatever rounds were before it in the same turn."""
    times = Times()
    reactor = reactor_of(1, times)
    for connection in make(2):
        connection.repeats = True
        connection.far.send(b"x")
        reactor.add(connection)
    time.a_receive = 0.0005
    await until_it_sleeps(reactor)
    assert times.count == 6
    assert times.seconds == pytest.approx(6 * 0.0005)


def test_one_that_is_served_outside_the_rounds_is_timed(make: Make, time: Time) -> None:
    times = Times()
    reactor = reactor_of(500, times)
    repeating, other = make(2)
    repeating.repeats = True
    time.a_receive = 0.0005
    reactor.serve(other)
    assert times.count == 0
    reactor.serve(repeating)
    assert (times.count, times.seconds) == (3, pytest.approx(3 * 0.0005))


# A write that is under way


class Waits:
    """An epoll set that notes for how long it is waited on, and does not wait: `meanwhile` happens instead."""

    def __init__(self, epoll: Any, time: Time) -> None:
        self._epoll, self._time = epoll, time
        self.noted: list[float] = []
        self.meanwhile: list[Callable[[], object]] = []

    def poll(self, seconds: float, most: int) -> list[tuple[int, int]]:
        if seconds:
            self.noted.append(seconds)
            if self.meanwhile:
                self.meanwhile.pop()()
            else:
                self._time.now += seconds
        found: list[tuple[int, int]] = self._epoll.poll(0, most)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._epoll, name)


async def test_a_write_under_way_is_waited_for_without_the_loop_once_in_a_turn(
    make: Make, time: Time
) -> None:
    """A millisecond, unless the disk has needed longer within the last second."""
    writers = FewWriters()
    reactor = Reactor(HandClock(), RequestQueue(500), writers, Times())
    waits = Waits(reactor._epoll, time)
    reactor._epoll = waits
    (connection,) = make(1)
    reactor.add(connection)

    async def a_turn() -> int:
        """How often it was waited for, until the reactor slept."""
        before = len(waits.noted)
        connection.far.send(b"x")
        with within(60, "the reactor to sleep"):
            await trio.testing.wait_all_tasks_blocked()
        return len(waits.noted) - before

    async with running(reactor):
        for _ in range(2):
            assert await a_turn() == 0, "nothing is being written"
        writers.busy = True
        waits.meanwhile = [lambda: connection.far.send(b"x")]
        assert await a_turn() == 1, "what came meanwhile is served, and nothing is waited for again"
        assert await a_turn() == 1, "the disk was quick, and is waited for; now it is slow"
        assert await a_turn() == 0, "a slow disk is not waited for again"
        time.now += 0.9
        assert await a_turn() == 0
        time.now += 0.2
        assert await a_turn() == 1, "but after a second"
    assert waits.noted == [0.001] * 3


# The reports of workers


class NotingWriters(Writers):
    """Notes who hears of the workers, and when; `reports` are what comes with the next that are heard."""

    def __init__(self, noted: list[tuple[str, str]]) -> None:
        super().__init__()
        self._noted = noted
        self.by_reactor: list[bool] = []
        self.reports: list[Callable[[], object]] = []

    def watched(self, by_reactor: bool) -> None:
        self.by_reactor.append(by_reactor)
        super().watched(by_reactor)

    def complete(self) -> None:
        self._noted.append(("workers", "complete"))
        super().complete()
        while self.reports:
            self.reports.pop()()


async def test_workers_are_heard_by_the_reactor_while_it_receives(noted: list[tuple[str, str]]) -> None:
    """Not while too many requests wait for their turn, and not after its end."""
    writers, queue = NotingWriters(noted), RequestQueue(1)
    async with running(Reactor(HandClock(), queue, writers, Times())):
        await trio.testing.wait_all_tasks_blocked()
        assert writers.by_reactor == [True]
        with queue.waiting():
            os.eventfd_write(writers.fileno(), 1)  # so that the reactor looks at its queue
            await trio.testing.wait_all_tasks_blocked()
            assert writers.by_reactor == [True, False]
        await trio.testing.wait_all_tasks_blocked()
        assert writers.by_reactor == [True, False, True]
    assert writers.by_reactor == [True, False, True, False]


async def test_workers_are_heard_in_the_round_of_others_that_have_sent_something(
    make: Make, noted: list[tuple[str, str]]
) -> None:
    """What has been written is answered in that round, before anything is received."""
    writers = NotingWriters(noted)
    reactor = Reactor(HandClock(), RequestQueue(500), writers, Times())
    parked, other = make(2)
    parked.state = State.PARKED
    for each in (parked, other):
        reactor.add(each)
    other.far.send(b"x")
    writers.reports.append(lambda: reactor.written(parked))
    os.eventfd_write(writers.fileno(), 1)
    await until_it_sleeps(reactor)
    assert noted[:3] == [("workers", "complete"), ("0", "unpark"), ("0", "answer_repeat")]
    assert of(noted, other) == ["receive", *A_ROUND]
    reactor.awake(parked)
    assert noted[-1] == ("0", "hand_over"), "the reactor no longer hears of them"


# Those that are awakened


async def test_one_that_is_awakened_while_the_reactor_sleeps(
    make: Make, noted: list[tuple[str, str]]
) -> None:
    """By another task. The reactor sleeps on afterwards."""
    reactor = reactor_of(500)
    reactor._epoll = SomeLooks(reactor._epoll)
    (parked,) = make(1)
    parked.state = State.PARKED
    reactor.add(parked)
    async with running(reactor):
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(3):
            parked.state = State.PARKED
            reactor.awake(parked)
            await trio.testing.wait_all_tasks_blocked()
    assert of(noted, parked) == ["unpark", "answer_repeat"] * 3


async def test_those_that_a_round_awakens_are_looked_at_in_the_next(
    make: Make, noted: list[tuple[str, str]]
) -> None:
    """Also if nothing arrives; a bounded number in each."""
    reactor = reactor_of(500)
    (writer,) = make(1)
    waiting = make(100)

    def write() -> None:
        for each in waiting:
            reactor.awake(each)

    writer.finish_round = write  # type: ignore[method-assign]
    for each in (writer, *waiting):
        reactor.add(each)
    for each in waiting:
        each.state, each.repeat_is_all = State.PARKED, False
    writer.far.send(b"x")
    await until_it_sleeps(reactor)
    answered = [name for name, what in noted if what == "answer" and name != writer.name]
    assert answered == [each.name for each in waiting]
    counts = [
        len(list(group)) for what, group in groupby(what for _, what in noted) if what == "finish_round"
    ]
    assert counts == [4] * 25


async def test_what_is_written_does_not_wait_for_those_that_it_awakens(
    make: Make, noted: list[tuple[str, str]]
) -> None:
    """A worker has written for many: each of them is answered in the round of its report."""
    writers = NotingWriters(noted)
    reactor = Reactor(HandClock(), RequestQueue(500), writers, Times())
    waiting, producers = make(50), make(40)
    for each in (*waiting, *producers):
        each.state, each.repeat_is_all = State.PARKED, False
        reactor.add(each)

    def report() -> None:
        for each in waiting:
            reactor.awake(each)
        for each in producers:
            reactor.written(each)

    writers.reports.append(report)
    os.eventfd_write(writers.fileno(), 1)
    await until_it_sleeps(reactor)
    unparked = [name for name, what in noted if what == "unpark"]
    assert unparked[:44] == [each.name for each in (*producers, *waiting[:4])]
    assert sorted(unparked[44:]) == sorted(each.name for each in waiting[4:])


async def test_a_round_with_many_that_have_sent_something_answers_as_many_others(
    make: Make, noted: list[tuple[str, str]]
) -> None:
    reactor = reactor_of(500)
    waiting, others = make(40), make(20)
    for each in waiting:
        each.state, each.repeat_is_all = State.PARKED, False
    for each in (*waiting, *others):
        reactor.add(each)
    for each in others:
        each.far.send(b"x")
    reactor._awakened = list(waiting)
    await until_it_sleeps(reactor)
    first = noted.index((others[0].name, "receive"))
    assert [name for name, what in noted[:first] if what == "unpark"] == [each.name for each in waiting[:20]]


async def test_one_is_looked_at_when_its_time_has_come(
    make: Make, noted: list[tuple[str, str]], autojump_clock: trio.testing.MockClock
) -> None:
    """If it is parked still, and waits for that time still."""
    reactor = reactor_of(500)
    waiting, later, gone, written = make(4)
    began = trio.current_time()
    for each in (waiting, later, gone, written):
        each.state = State.PARKED
        each.wakes_at = began + 1
        reactor.add(each)
        reactor.awake_at(each)
    later.wakes_at = began + 3  # answered, and it waits once more
    reactor.awake_at(later)
    gone.state = State.READING
    written.wakes_at = inf  # parked for something else
    async with running(reactor):
        await trio.sleep(0.9)
        assert noted == []
        await trio.sleep(0.2)
        assert noted == [(waiting.name, "unpark"), (waiting.name, "answer_repeat")]
        await trio.sleep(1.8)
        assert of(noted, later) == []
        await trio.sleep(0.2)
        assert of(noted, later) == ["unpark", "answer_repeat"]
        # Earlier than all that are set.
        for at in (50.0, 1.0):
            waiting.state, waiting.wakes_at = State.PARKED, trio.current_time() + at
            reactor.awake_at(waiting)
        await trio.sleep(1.1)
        assert of(noted, waiting) == ["unpark", "answer_repeat"] * 2
        # Of one that has left nothing is kept.
        later.state, later.wakes_at = State.PARKED, trio.current_time() + 1
        reactor.awake_at(later)
        reactor.remove(later)
        await trio.sleep(100)
    assert of(noted, later) == ["unpark", "answer_repeat"]


async def test_with_a_full_queue_their_tasks_take_them(make: Make, noted: list[tuple[str, str]]) -> None:
    """Those that were awakened just before, and those that are meanwhile."""
    queue = RequestQueue(1)
    reactor = Reactor(HandClock(), queue, FewWriters(), Times())
    before, meanwhile, other = make(3)
    for each in (before, meanwhile):
        each.state = State.PARKED
    for each in (before, meanwhile, other):
        reactor.add(each)
    waiting = queue.waiting()

    def fill() -> None:
        waiting.__enter__()
        reactor.awake(before)

    other.finish_round = fill  # type: ignore[method-assign]
    other.far.send(b"x")
    async with running(reactor):
        await trio.testing.wait_all_tasks_blocked()
        assert of(noted, before) == ["hand_over"]
        reactor.awake(meanwhile)
        assert of(noted, meanwhile) == ["hand_over"]
        waiting.__exit__(None, None, None)


async def test_alarms_have_a_pause_between_them(
    make: Make, noted: list[tuple[str, str]], autojump_clock: trio.testing.MockClock
) -> None:
    """Whatever is asked for."""
    reactor = reactor_of(500)
    (waiting,) = make(1)
    reactor.add(waiting)
    times: list[float] = []
    async with running(reactor):
        for _ in range(5):
            waiting.state, waiting.wakes_at = State.PARKED, trio.current_time() + 0.0001
            reactor.awake_at(waiting)
            while waiting.state is State.PARKED:
                await trio.sleep(0.0001)
            times.append(trio.current_time())
    assert min(after - before for before, after in pairwise(times)) >= 0.0049


def test_what_others_hear_of_workers_is_for_the_connections_task(
    make: Make, noted: list[tuple[str, str]]
) -> None:
    """No round begins by itself in which it would be answered."""
    reactor = reactor_of(500)
    (parked,) = make(1)
    parked.state = State.PARKED
    reactor.awake(parked)
    assert of(noted, parked) == ["hand_over"]
