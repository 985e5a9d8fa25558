"""One task for the data path of all connections: what need not wait never costs a task switch.

A connection that has nothing to do lies in this epoll set, and its own task sleeps. The reactor's task sleeps until
some of them have bytes, then serves those together in rounds: every connection stages the Produce requests that are
next, what all of them have staged is written with one call for each log, then the other requests are handled up to
the next Produce. A connection that has to wait (a long poll, a rebalance, the disk, a peer that does not read) is
taken out of the set and handed to its task, which brings it back when it is done. A connection that has sent nothing
but the same Produce again (`server.repeated_produce`) is written and answered before the others, in one step each.

So that others have their turn too, a look at the set takes a bounded number of connections, and the loop gets its
checkpoint after some milliseconds of work at most. Nothing in here awaits between staging and writing.

What is written by a worker thread (topic sync mode) parks the connection: it stays in the set, and is answered from
here when the worker is done. Only if it sends more meanwhile does its task take over.
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
from leafcuttr_sdk import Clock

_AT_ONCE: Final = 32
_BUDGET_S: Final = 0.002
# How long a write that is under way is waited for here, once in a turn: a quick disk takes a third of it, and the way
# through the loop as long again. A disk that took longer is not waited for again for a while.
_PATIENCE_S: Final = 0.001
_SLOW_FOR_S: Final = 1.0


class Served(Protocol):
    """What the reactor needs of a connection. None of these raises or waits."""

    produce_turn: produce.Turn
    repeated: RepeatedProduce
    parked: bool
    """Nothing is done for it until what it has staged is written by a worker."""

    @property
    def descriptor(self) -> int:
        """Of its transport."""
        ...

    @property
    def buffered(self) -> int:
        """What its transport has received that the descriptor does not show."""
        ...

    def receive(self, now_ms: int) -> bool:
        """Take what has arrived, once. Whether it was nothing but the same Produce again, which is staged now."""
        ...

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

    def fail(self, error: Exception) -> None:
        """End the connection because of an error."""


class Reactor:
    """The set of connections that wait for their peers. `times` are those of Produce requests."""

    def __init__(self, clock: Clock, queue: RequestQueue, writers: Writers, times: Times) -> None:
        self._clock = clock
        self._queue = queue
        self._writers = writers
        self._times = times
        self._epoll = select.epoll()
        self._resting: dict[int, Served] = {}
        # Those whose transport has bytes that epoll does not know of. While there are any, `_always_readable` is in the
        # epoll set, so that the loop does not sleep.
        self._buffered: dict[int, Served] = {}
        self._always_readable = os.eventfd(1, os.EFD_CLOEXEC)
        weakref.finalize(self, os.close, self._always_readable)
        self._keeps_awake = False
        self._landed: list[Served] = []
        self._lands = False

    def add(self, connection: Served) -> None:
        """Serve this connection from now on."""
        self._resting[connection.descriptor] = connection
        self._epoll.register(connection.descriptor, select.EPOLLIN)
        if connection.buffered:
            self.look_again(connection)

    def remove(self, connection: Served) -> None:
        """Leave it to its task, or to its end. Removing it twice is harmless."""
        if self._resting.pop(connection.descriptor, None) is not None:
            self._epoll.unregister(connection.descriptor)
            self._buffered.pop(connection.descriptor, None)

    def look_again(self, connection: Served) -> None:
        """Serve this one in the next round too, whatever epoll says: its transport has something buffered."""
        self._buffered[connection.descriptor] = connection
        if not self._keeps_awake:
            self._epoll.register(self._always_readable, select.EPOLLIN)
            self._keeps_awake = True

    def _take_buffered(self, most: int, arrived: list[Served]) -> list[Served]:
        """Those to be looked at again, and not among the `arrived`, in order of their coming."""
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

    def landed(self, connection: Served) -> None:
        """What a parked connection has staged is written. It is answered in the round that begins now; by its task if
        somebody else has called `land`."""
        if self._lands:
            self._landed.append(connection)
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
        poll, resting, now_ms, queue = self._epoll.poll, self._resting, self._clock.now_ms, self._queue
        began = since = patient_at = 0.0
        patient = False
        while True:
            if queue.room <= 0:
                # What is written has begun, and waits for none of those in the queue.
                self._writers.watched(False)
                await queue.freed()
                self._writers.watched(True)
                began = since = time.perf_counter()
            most = min(_AT_ONCE, queue.room)
            ready = poll(0, most)
            if not ready and patient and self._writers.busy:
                patient = False
                ready = poll(_PATIENCE_S, most)
                since = time.perf_counter()
                if not ready:
                    patient_at = since + _SLOW_FOR_S
            if not ready:
                await trio.lowlevel.wait_readable(self._epoll.fileno())
                began = since = time.perf_counter()
                patient = began >= patient_at
                continue
            arrived = [resting[fd] for fd, _ in ready if fd in resting]
            if len(arrived) != len(ready):
                self._lands = True
                self._writers.land()
                self._lands = False
                arrived += self._take_buffered(most - len(arrived), arrived)
            landed, self._landed = self._landed, []
            repeated = _serve(arrived, now_ms(), since, landed)
            now = time.perf_counter()
            if repeated:
                self._times.add(now - since, repeated)
            since = now
            if now - began > _BUDGET_S:
                await trio.lowlevel.checkpoint()
                began = since = time.perf_counter()
                patient = began >= patient_at

    def serve(self, connection: Served) -> None:
        """Serve this one now, outside the rounds."""
        since = time.perf_counter()
        if _serve((connection,), self._clock.now_ms(), since):
            self._times.add(time.perf_counter() - since)


def _serve(arrived: Sequence[Served], now_ms: int, since: float, landed: Sequence[Served] = ()) -> int:
    """One round; how many of the repeated requests that have arrived, not before `since`, were answered in it."""
    repeated = 0
    repeating: list[Served] = []
    others: list[Served] = []
    for connection in landed:
        if connection.parked:
            connection.unpark()
            if not connection.answer_repeat(since):
                others.append(connection)
    unanswered = set(others)
    for connection in arrived:
        if connection.parked:
            connection.hand_over()
        elif connection not in unanswered:  # else it is seen again when it is answered
            (repeating if connection.receive(now_ms) else others).append(connection)
    if repeating:
        write_repeated(repeating)
        repeated = len(repeating)
        for connection in repeating:
            if not connection.answer_repeat(since):
                others.append(connection)
            repeated -= connection.parked or bool(connection.produce_turn)
    active: Sequence[Served] = others
    while active:
        for connection in active:
            connection.stage()
        try:
            produce.write_staged([connection.produce_turn for connection in active])
        except Exception as error:
            for connection in active:
                connection.fail(error)
        active = [connection for connection in active if connection.answer()]
    for connection in others:
        connection.finish_round()
    return repeated
