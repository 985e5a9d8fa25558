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
5. Each sends its answers. One in which something has to wait (a long poll, a rebalance, the disk, a peer that does not
   read) leaves the set, and its task is woken, which brings it back when it has caught up.

A connection that has sent the same Produce again as before (`repeated_produce`) is written and answered between 1 and
2, in one step each, and has nothing to do in the rest of the round.

What is written by a worker (topic sync mode) parks the connection: it stays in the set, and the worker's report, which
comes through the same epoll set, begins a round in which it is answered. Only if more arrives before that does its task
take over.

Nothing between 1 and 5 awaits. So that others have their turn too, a round takes a bounded number of connections, and
the loop gets its checkpoint after some milliseconds of rounds at most.
"""

import itertools
import os
import select
import time
import weakref
from collections.abc import Sequence
from typing import Final, Protocol

import trio

from leafcuttr.handlers import produce
from leafcuttr.metrics.counts import Times
from leafcuttr.runtime.writers import Writers
from leafcuttr.server.queue import RequestQueue
from leafcuttr.server.repeated_produce import RepeatedProduce, write_repeated
from leafcuttr.server.states import State
from leafcuttr_sdk import Clock

_PARKED: Final = State.PARKED
_AT_ONCE: Final = 32
_BUDGET_S: Final = 0.002
# How long a write that is under way is waited for without the loop, once in a turn: a quick disk takes a third of it,
# and the way through the loop as long again. A disk that took longer is not waited for again for a while.
_PATIENCE_S: Final = 0.001
_SLOW_FOR_S: Final = 1.0


class Served(Protocol):
    """What the reactor needs of a connection. None of these raises or waits."""

    produce_turn: produce.Turn
    repeated: RepeatedProduce
    state: State

    @property
    def descriptor(self) -> int:
        """Of its transport."""
        ...

    @property
    def buffered(self) -> int:
        """What its transport has received that the descriptor does not show."""
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
        """What it has staged is written: it can be answered."""

    def fail_unwritten(self, error: Exception) -> None:
        """End the connection, without an answer to what it has staged, because of an error in the write of that."""


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
        self._written: list[Served] = []
        self._hears_workers = False

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

    def look_again(self, connection: Served) -> None:
        """Serve this one in the next round too, whatever epoll says: its transport has something buffered."""
        self._buffered[connection.descriptor] = connection
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

    def written(self, connection: Served) -> None:
        """What a parked connection has staged is written. It is answered in the round that begins now; by its task if
        the reactor is not the one that hears of the workers."""
        if self._hears_workers:
            self._written.append(connection)
        else:
            connection.hand_over()

    async def run(self) -> None:
        """Serve until cancelled."""
        self._epoll.register(self._writers.fileno(), select.EPOLLIN)
        self._writers.watched(True)
        try:
            await self._run()
        finally:
            self._writers.watched(False)

    async def _run(self) -> None:
        poll, watched, now_ms, queue = self._epoll.poll, self._watched, self._clock.now_ms, self._queue
        # When this turn of the loop began, when the round does, and from when on a worker may be waited for.
        began = since = patient_at = 0.0
        patient = False
        while True:
            if queue.free <= 0:
                # Too many requests wait for their turn: no more are received until one has begun. What is written has
                # begun, so the workers' reports are heard meanwhile, by a task of `Writers`.
                self._writers.watched(False)
                await queue.freed()
                self._writers.watched(True)
                began = since = time.perf_counter()
            most = min(_AT_ONCE, queue.free)
            ready = poll(0, most)
            if not ready and patient and self._writers.busy:
                # Nothing to do but a write that is under way: its end is likely to come before the loop would be back.
                patient = False
                ready = poll(_PATIENCE_S, most)
                since = time.perf_counter()
                if not ready:
                    patient_at = since + _SLOW_FOR_S
            if not ready:
                # Nothing to do at all: sleep. All that can wake a connection makes the epoll set readable.
                await trio.lowlevel.wait_readable(self._epoll.fileno())
                began = since = time.perf_counter()
                patient = began >= patient_at
                continue
            arrived = [watched[fd] for fd, _ in ready if fd in watched]
            if len(arrived) != len(ready):
                # Not a connection's: workers have reported, or transports have something buffered; look at both.
                self._hears_workers = True
                self._writers.complete()
                self._hears_workers = False
                arrived += self._take_buffered(most - len(arrived), arrived)
            written, self._written = self._written, []
            repeated = _serve(arrived, now_ms(), since, written)
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
        repeated = _serve((connection,), self._clock.now_ms(), since)
        if repeated:
            self._times.add(time.perf_counter() - since, repeated)


def _serve(arrived: Sequence[Served], now_ms: int, since: float, written: Sequence[Served] = ()) -> int:
    """One round; how many of the repeated requests that have arrived, not before `since`, were answered in it."""
    repeated = 0
    repeating: list[Served] = []
    others: list[Served] = []
    # Those whose worker is done go first: what has arrived behind such a request is answered behind it. One that has
    # left since it was told is answered by its task.
    for connection in written:
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
            produce.write_staged([connection.produce_turn for connection in active])
        except Exception as error:
            # Not a failed write, which is an answer: what has been written of these is not known.
            for connection in active:
                connection.fail_unwritten(error)
        # As long as a connection has come to another Produce, its turn lasts and nothing in it has to wait.
        active = [connection for connection in active if connection.answer()]
    for connection in others:
        connection.finish_round()
    return repeated
