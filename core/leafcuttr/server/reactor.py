"""One task for the data path of all connections: what need not wait never costs a task switch.

Theory of operation
===================

A connection that has nothing to do is in this epoll set, and its own task sleeps (`states`: READING). The reactor's
task sleeps until some of them have bytes, then serves those together in a round:

1. Each receives once, into its own buffer.
2. Each stages the Produce requests that come next in its buffer, up to another request.
3. What all of them have staged is written, with one call for each log.
4. Each answers what was written and handles the other requests, up to the next Produce. Those that have come to one go
   back to 2.
5. Each sends its answers. One in which something has to wait (a rebalance, the disk, a peer that does not read) leaves
   the set, and its task is woken, which brings it back when it has caught up.

A connection that has sent the same Produce again as before (`repeated_produce`) is written and answered between 1 and
2, in one step each, and has nothing to do in the rest of the round.

Two waits park the connection instead: it stays in the set, and is answered in a round that begins when the wait is
over. Only if more arrives before that does its task take over. The one wait is for a worker that writes (topic sync
mode), whose report comes through the same epoll set. The other is a delayed answer, a fetch that waits for records:
most of these are notified in a round in which records were written, and answered in the next one.

Nothing between 1 and 5 awaits. So that others have their turn too, a round takes a bounded number of connections, and
the loop gets its checkpoint after some milliseconds of rounds at most.
"""

import itertools
import os
import select
import time
import weakref
from collections.abc import Callable, Sequence
from math import inf
from typing import Final, Protocol

import trio

from leafcuttr.handlers import produce
from leafcuttr.metrics.counts import Times
from leafcuttr.runtime.writers import Writers
from leafcuttr.server.alarms import Alarms
from leafcuttr.server.queue import RequestQueue
from leafcuttr.server.repeated_produce import RepeatedProduce, write_repeated
from leafcuttr.server.states import State
from leafcuttr_sdk import Clock

_PARKED: Final = State.PARKED
_AT_ONCE: Final = 32
# Fewer than of those that have sent something: hundreds may wait for one record, and the client that sends the next one
# is not to wait until all of them have it.
_AWAKENED_AT_ONCE: Final = 4
_BUDGET_S: Final = 0.002
# How long a write that is under way is waited for without the loop, once in a turn: a quick disk takes a third of it,
# and the way through the loop as long again. A disk that took longer is not waited for again for a while.
_PATIENCE_S: Final = 0.001
_SLOW_FOR_S: Final = 1.0
# The alarms are checked so often at most: an answer whose time is over may come so much late.
_TICK_S: Final = 0.005


class Served(Protocol):
    """What the reactor needs of a connection. None of these raises or waits."""

    @property
    def produce_turn(self) -> produce.Turn: ...

    @property
    def repeated(self) -> RepeatedProduce: ...

    @property
    def state(self) -> State: ...

    @property
    def wakes_at(self) -> float:
        """When it is to be checked, in trio's time, if it is parked still; inf if only what it waits for ends that."""
        ...

    @property
    def descriptor(self) -> int:
        """Of its transport."""
        ...

    @property
    def buffered(self) -> int:
        """What its transport has received that the descriptor does not show."""
        ...

    @property
    def measured(self) -> "Served":
        """The same connection so that its time is measured."""
        ...

    def receive(self, now_ms: int) -> bool:
        """Take what has arrived, once. Whether it began with the same Produce again, which is staged now."""
        ...

    def receive_later(self) -> None:
        """Take what has arrived in the next round, also what only its transport knows of."""

    def answer_repeat(self, since: float) -> bool:
        """Send the answer to that, or park; False if the rest of the round has something to do for it. It arrived not
        before `since`."""
        ...

    def stage(self) -> None:
        """Stage the Produce requests that come next."""

    def answer(self) -> bool:
        """Answer what was written and handle what comes next up to a Produce; whether there is more to do here."""
        ...

    def finish_round(self) -> None:
        """Send the answers; park the connection or hand it to its task if it has to wait."""

    def hand_over(self) -> None:
        """Leave the reactor to the connection's task."""

    def unpark(self) -> None:
        """What it waits for has come, or its time is over: it may be answered."""

    def fail_unwritten(self, error: Exception) -> None:
        """End the connection, without an answer to what it has staged, because of an error in the write of that."""


class Measuring(Protocol):
    """Measures the time of connections (`throttle`)."""

    def measured(self, connections: Sequence[Served]) -> Sequence[Served]:
        """The same connections, for one round."""
        ...

    def write(self, connections: Sequence[Served]) -> None:
        """Write what they have staged."""
        ...


class Reactor:
    """The set of connections that wait for their peers. `times` are those of Produce requests."""

    def __init__(self, clock: Clock, queue: RequestQueue, writers: Writers, times: Times) -> None:
        self._clock = clock
        self._queue = queue
        self._writers = writers
        self._times = times
        self._epoll = select.epoll()
        self._watched: dict[int, Served] = {}
        # Those whose transport has bytes that epoll does not know of. While there are any, `_always_readable` is in the
        # epoll set, so that the loop does not sleep.
        self._buffered: dict[int, Served] = {}
        self._always_readable = os.eventfd(1, os.EFD_CLOEXEC)
        weakref.finalize(self, os.close, self._always_readable)
        self._keeps_awake = False
        # Parked ones, to be answered in the next round: those whose write is over, and those with a delayed answer.
        self._written: list[Served] = []
        self._awakened: list[Served] = []
        self._serves = False
        self._sleeps = False
        self._alarms = Alarms()
        self._alarm = trio.CancelScope()
        self._earliest_alarm = -inf
        self.measuring: Measuring | None = None

    def add(self, connection: Served) -> None:
        """Serve this connection from now on."""
        self._watched[connection.descriptor] = connection
        self._epoll.register(connection.descriptor, select.EPOLLIN)
        if connection.buffered:
            self.look_again(connection)

    def remove(self, connection: Served) -> None:
        """Leave it to its task, or to its end. Removing it twice is harmless."""
        if self._watched.pop(connection.descriptor, None) is not None:
            self._epoll.unregister(connection.descriptor)
            self._buffered.pop(connection.descriptor, None)
            self._alarms.forget(connection.descriptor)

    def look_again(self, connection: Served) -> None:
        """Serve this one in the next round too, whatever epoll says: its transport has something buffered."""
        self._buffered[connection.descriptor] = connection
        self._keep_awake()

    def _keep_awake(self) -> None:
        if not self._keeps_awake:
            self._epoll.register(self._always_readable, select.EPOLLIN)
            self._keeps_awake = True

    def _take_buffered(self, most: int, arrived: list[Served]) -> list[Served]:
        """Those to be served again, and not among the `arrived`, in order of their coming."""
        if not self._buffered:
            if self._keeps_awake:
                self._epoll.unregister(self._always_readable)
                self._keeps_awake = False
            return []
        for connection in arrived:
            self._buffered.pop(connection.descriptor, None)
        found = list(itertools.islice(self._buffered.values(), most))
        for connection in found:
            del self._buffered[connection.descriptor]
        return found

    def _take_parked(self, most: int) -> list[Served]:
        """All whose write is over, and so many of the others."""
        written, self._written = self._written, []
        awakened, self._awakened = self._awakened[:most], self._awakened[most:]
        return written + awakened

    def written(self, connection: Served) -> None:
        """A worker has written what a parked connection has staged. It is answered in the next round; by its task while
        there are none."""
        self._awake(connection, self._written)

    def awake(self, connection: Served) -> None:
        """The same of a parked connection whose delayed answer may be there."""
        self._awake(connection, self._awakened)

    def _awake(self, connection: Served, parked: list[Served]) -> None:
        if not self._serves:
            connection.hand_over()
            return
        parked.append(connection)
        if self._sleeps:
            self._keep_awake()

    def awake_at(self, connection: Served) -> None:
        """The same at its time, if it is parked still."""
        self._alarms.set(connection.descriptor, connection.wakes_at)
        if connection.wakes_at < self._alarm.deadline:
            self._alarm.deadline = max(connection.wakes_at, self._earliest_alarm)

    async def run(self) -> None:
        """Serve until cancelled."""
        self._epoll.register(self._writers.fileno(), select.EPOLLIN)
        self._writers.watched(True)
        self._serves = True
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._run_alarms)
                await self._run()
        finally:
            self._serves = False
            self._writers.watched(False)

    async def _run_alarms(self) -> None:
        while True:
            with trio.CancelScope(deadline=max(self._alarms.next, self._earliest_alarm)) as self._alarm:
                await trio.sleep_forever()
            now = trio.current_time()
            self._earliest_alarm = now + _TICK_S
            for descriptor in self._alarms.due(now):
                connection = self._watched[descriptor]
                if connection.wakes_at > now:  # that wait is over, and there may be another one
                    if connection.wakes_at < inf:
                        self._alarms.set(descriptor, connection.wakes_at)
                elif connection.state is _PARKED:
                    self.awake(connection)

    async def _run(self) -> None:
        poll, watched, now_ms, queue = self._epoll.poll, self._watched, self._clock.now_ms, self._queue
        # When this turn of the loop began, when the round does, and from when on a worker may be waited for.
        began = since = patient_at = 0.0
        patient = False
        while True:
            if queue.free <= 0:
                # Too many requests wait for their turn: no more are received until one has begun. Those that are parked
                # have begun: the workers' reports are heard meanwhile, by a task of `Writers`, and tasks answer.
                self._writers.watched(False)
                self._serves = False
                for connection in self._take_parked(len(self._awakened)):
                    if connection.state is _PARKED:
                        connection.hand_over()
                await queue.freed()
                self._serves = True
                self._writers.watched(True)
                began = since = time.perf_counter()
            most = min(_AT_ONCE, queue.free)
            ready = poll(0, most)
            idle = not (ready or self._written or self._awakened)
            if idle and patient and self._writers.busy:
                # Nothing to do but a write that is under way: its end is likely to come before the loop would be back.
                patient = False
                ready = poll(_PATIENCE_S, most)
                since = time.perf_counter()
                idle = not ready
                if idle:
                    patient_at = since + _SLOW_FOR_S
            if idle:
                # Nothing to do at all: sleep. All that can wake a connection makes the epoll set readable.
                self._sleeps = True
                await trio.lowlevel.wait_readable(self._epoll.fileno())
                self._sleeps = False
                began = since = time.perf_counter()
                patient = began >= patient_at
                continue
            arrived = [watched[fd] for fd, _ in ready if fd in watched]
            if len(arrived) != len(ready):
                # Not a connection's: workers have reported, or transports have something buffered; look at both.
                self._writers.complete()
                arrived += self._take_buffered(most - len(arrived), arrived)
            # A round with many that have sent something takes long: then as many others are answered.
            parked = self._take_parked(max(_AWAKENED_AT_ONCE, len(arrived)))
            repeated = self._round(arrived, now_ms(), since, parked)
            now = time.perf_counter()
            if repeated:
                self._times.add(now - since, repeated)
            since = now
            if now - began > _BUDGET_S:
                # More may be ready, but the other tasks of the loop have waited long enough.
                await trio.lowlevel.checkpoint()
                began = since = time.perf_counter()
                patient = began >= patient_at

    def serve(self, connection: Served) -> None:
        """Serve this one now, outside the rounds."""
        since = time.perf_counter()
        repeated = self._round((connection,), self._clock.now_ms(), since)
        if repeated:
            self._times.add(time.perf_counter() - since, repeated)

    def _round(
        self, arrived: Sequence[Served], now_ms: int, since: float, parked: Sequence[Served] = ()
    ) -> int:
        measuring = self.measuring
        if measuring is None:
            return _serve(arrived, now_ms, since, parked)
        arrived, parked = measuring.measured(arrived), measuring.measured(parked)
        return _serve(arrived, now_ms, since, parked, measuring.write)


def _write(connections: Sequence[Served]) -> None:
    produce.write_staged([connection.produce_turn for connection in connections])


def _serve(
    arrived: Sequence[Served],
    now_ms: int,
    since: float,
    parked: Sequence[Served] = (),
    write: Callable[[Sequence[Served]], None] = _write,
) -> int:
    """One round; how many of the repeated requests that have arrived, not before `since`, were answered in it."""
    repeated = 0
    repeating: list[Served] = []
    others: list[Served] = []
    # Those that were parked go first: what has arrived behind such a request is answered behind it. One that has left
    # since is answered by its task.
    for connection in parked:
        if connection.state is _PARKED:
            connection.unpark()
            if not connection.answer_repeat(since):
                others.append(connection)
    unanswered = set(others)
    for connection in arrived:
        if connection.state is _PARKED:
            # It sends more while a worker writes for it: nothing of that may be staged before the answer.
            connection.hand_over()
        elif connection not in unanswered:
            (repeating if connection.receive(now_ms) else others).append(connection)
        else:  # what it has staged is answered below first
            connection.receive_later()
    if repeating:
        try:
            write_repeated(repeating)
        except Exception as error:
            for connection in repeating:
                connection.fail_unwritten(error)
            repeating = []
        for connection in repeating:
            count = connection.repeated.count
            # Answered; or parked; or its write failed, its peer does not read, or it has sent something else behind
            # that: those go the way of the others.
            if not connection.answer_repeat(since):
                others.append(connection)
            if connection.state is not _PARKED and not connection.produce_turn:
                repeated += count
    active: Sequence[Served] = others
    while active:
        for connection in active:
            connection.stage()
        try:
            write(active)
        except Exception as error:
            # Not a failed write, which is an answer: what has been written of these is not known.
            for connection in active:
                connection.fail_unwritten(error)
        # As long as a connection has come to another Produce, its turn lasts and nothing in it has to wait.
        active = [connection for connection in active if connection.answer()]
    for connection in others:
        connection.finish_round()
    return repeated
