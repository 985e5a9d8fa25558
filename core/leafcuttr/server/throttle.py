"""Holding back a client that is above a quota (KIP-219): its answers leave at once and say for how long, and so long
nothing of its connection is read.

A connection has a `ConnectionThrottle` only while a quota holds for its client. The time of the event loop is measured
only while any client has a quota of it: in the reactor's rounds by `LoopShares`, in the tasks of connections by
`stopwatch`. What a client has used up is counted when it is answered; its answers themselves, once they are made, count
for the next request. This module is imported when the first quota is set.
"""

import inspect
from collections.abc import Awaitable, Generator, Sequence
from dataclasses import replace
from math import ceil
from time import perf_counter
from typing import Any, Final

import trio

from leafcuttr.handlers import produce
from leafcuttr.metrics.counts import Counts
from leafcuttr.server.reactor import Served
from leafcuttr.server.repeated_produce import RepeatedProduce
from leafcuttr.server.states import State
from leafcuttr.state.security.buckets import Bucket
from leafcuttr.state.security.limits import ClientLimits
from leafcuttr.state.security.quota_entities import PRODUCER_BYTE_RATE, REQUEST_PERCENTAGE
from leafcuttr.wire.api import ApiKey
from leafcuttr_sdk._stopwatch import Stopwatch

_FETCH: Final = int(ApiKey.FETCH)
_Answers = Sequence[tuple[int, Any, Any]]
"""Correlation id, route, response."""


class Pause:
    """So long nothing is read of a connection; then what it was to await next, if anything, is awaited."""

    def __init__(self, until_s: float, then: Awaitable[Any] | None, counts: Counts) -> None:
        self._until_s = until_s
        self._then = then
        self._counts = counts
        self._over = trio.Event()

    def end(self) -> None:
        """It is over, whatever time is left."""
        self._over.set()

    def close(self) -> None:
        """It is not awaited any more."""
        if inspect.iscoroutine(self._then):
            self._then.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._wait().__await__()

    async def _wait(self) -> Any:
        self._counts.paused += 1
        try:
            with trio.move_on_at(self._until_s):
                await self._over.wait()
        finally:
            self._counts.paused -= 1
        then, self._then = self._then, None
        return None if then is None else await then


class ConnectionThrottle:
    """What one connection has used of the quotas of its client, and not yet been charged for."""

    __slots__ = ("_counts", "_produced", "limits", "stopwatch")

    def __init__(self, limits: ClientLimits, stopwatch: Stopwatch, counts: Counts) -> None:
        self.limits = limits
        self.stopwatch = stopwatch
        self._counts = counts
        self._produced = 0

    def staged(self, size: int) -> None:
        """A Produce request of so many bytes."""
        self._produced += size

    def sent(self, key: int, size: int) -> None:
        """An answer of so many bytes."""
        if key == _FETCH:
            self.limits.consumed(size, trio.current_time())

    def charge(self, answers: _Answers) -> tuple[_Answers, float]:
        """The same answers, which say how long the client has to wait, and how long that is, in seconds. Handlers may
        have set that already, for the quotas that are theirs."""
        limits, now_s = self.limits, trio.current_time()
        wait_s = self._take(limits.producer, PRODUCER_BYTE_RATE, self._produced, now_s)
        self._produced = 0
        if limits.request is not None:
            spent_s = self.stopwatch.take()
            wait_s = max(wait_s, self._take(limits.request, REQUEST_PERCENTAGE, spent_s, now_s))
        own_ms = ceil(wait_s * 1000)
        longest_ms = own_ms
        told: list[tuple[int, Any, Any]] = []
        for correlation_id, found, response in answers:
            said_ms = getattr(response, "throttle_time_ms", None)
            if said_ms is not None:
                longest_ms = max(longest_ms, said_ms)
                if said_ms < own_ms:
                    response = replace(response, throttle_time_ms=own_ms)
            told.append((correlation_id, found, response))
        return told, longest_ms / 1000

    def _take(self, bucket: Bucket | None, quota: str, amount: float, now_s: float) -> float:
        if bucket is None or not amount:
            return 0.0
        bucket.take(amount, now_s)
        wait_s = bucket.wait_s(now_s)
        if wait_s:
            self._counts.throttled[quota].add(wait_s)
        return wait_s


class LoopShares:
    """Measures the connections of a round. Who their clients are is known only once their requests have been read."""

    def measured(self, connections: Sequence[Served]) -> Sequence[Served]:
        """The same, so that each of their steps is measured."""
        return [connection.measured for connection in connections]

    def write(self, connections: Sequence[Served]) -> None:
        """Write what they have staged. Each has its share of the time, for one write may be that of several."""
        turns = [connection.produce_turn for connection in connections]
        writing = [connection for connection, turn in zip(connections, turns, strict=True) if turn]
        began = perf_counter()
        try:
            produce.write_staged(turns)
        finally:
            share_s = (perf_counter() - began) / max(len(writing), 1)
            for connection in writing:
                if isinstance(connection, MeasuredConnection):
                    connection.stopwatch.add(share_s)


class MeasuredConnection:
    """A connection in one round, each step of it measured."""

    __slots__ = ("_connection", "stopwatch")

    def __init__(self, connection: Served, stopwatch: Stopwatch) -> None:
        self._connection = connection
        self.stopwatch = stopwatch

    @property
    def produce_turn(self) -> produce.Turn:
        return self._connection.produce_turn

    @property
    def repeated(self) -> RepeatedProduce:
        return self._connection.repeated

    @property
    def state(self) -> State:
        return self._connection.state

    @property
    def wakes_at(self) -> float:
        return self._connection.wakes_at

    @property
    def descriptor(self) -> int:
        return self._connection.descriptor

    @property
    def buffered(self) -> int:
        return self._connection.buffered

    @property
    def measured(self) -> Served:
        return self

    def receive(self, now_ms: int) -> bool:
        self.stopwatch.start()
        try:
            return self._connection.receive(now_ms)
        finally:
            self.stopwatch.stop()

    def receive_later(self) -> None:
        self._connection.receive_later()

    def answer_repeat(self, since: float) -> bool:
        return self._connection.answer_repeat(since)

    def stage(self) -> None:
        self.stopwatch.start()
        try:
            self._connection.stage()
        finally:
            self.stopwatch.stop()

    def answer(self) -> bool:
        self.stopwatch.start()
        try:
            return self._connection.answer()
        finally:
            self.stopwatch.stop()

    def finish_round(self) -> None:
        self.stopwatch.start()
        try:
            self._connection.finish_round()
        finally:
            self.stopwatch.stop()

    def hand_over(self) -> None:
        self._connection.hand_over()

    def unpark(self) -> None:
        self._connection.unpark()

    def fail_unwritten(self, error: Exception) -> None:
        self._connection.fail_unwritten(error)
