"""When the sessions of clients that have logged in end: at their time (KIP-368), or because what a client has shown
does not hold any more.

At its time a session allows nothing but another log-in, as in Kafka: a client that uses it no more than to wait need
not log in again. A connection whose password or token has gone ends after the request at hand, and at once if that
takes longer than `_GRACE_S`.
"""

from collections import Counter
from math import inf
from typing import Final, Protocol

import trio

from leafcuttr.server.alarms import Alarms
from leafcuttr_sdk import Clock

_GRACE_S: Final = 0.5
_LOOK_S: Final = 1.0
"""How long the clock of the broker may be moved without being noticed."""


class WithSession(Protocol):
    """A connection whose client has logged in."""

    descriptor: int

    @property
    def listener(self) -> str: ...

    @property
    def session_ends(self) -> float | None:
        """By the monotonic clock; None: never."""
        ...

    def end_session(self) -> None:
        """Allow nothing but another log-in."""
        ...

    def stop(self) -> None: ...

    def abort(self) -> None: ...


class Sessions:
    """Those of all connections. `run` ends them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._alarms = Alarms()
        self._by_key: dict[int, WithSession] = {}
        self._withdrawn: dict[WithSession, float] = {}
        """When each is aborted, the first first, in trio's time."""
        self._sooner = trio.Event()
        self.begun: Final[Counter[str]] = Counter()
        self.begun_again: Final[Counter[str]] = Counter()
        self.failed_again: Final[Counter[str]] = Counter()
        self.used_after_the_end: Final[Counter[str]] = Counter()
        """How often each was, by listener."""

    def begin(self, connection: WithSession) -> None:
        """A client has logged in."""
        self.begun[connection.listener] += 1
        self._watch(connection)

    def begin_again(self, connection: WithSession) -> None:
        """A client that was in has logged in again."""
        self.begun_again[connection.listener] += 1
        self._watch(connection)

    def withdraw(self, connection: WithSession) -> None:
        """What the client has shown does not hold any more."""
        if connection not in self._withdrawn:
            connection.stop()
            self._withdrawn[connection] = trio.current_time() + _GRACE_S
            self._sooner.set()

    def forget(self, connection: WithSession) -> None:
        """It has ended. Harmless for one that has no session."""
        self._withdrawn.pop(connection, None)
        if self._by_key.pop(connection.descriptor, None) is not None:
            self._alarms.forget(connection.descriptor)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self._sooner = trio.Event()
            self._end_due()
            with trio.move_on_after(max(self._wait_s(), 0)):
                await self._sooner.wait()

    def _watch(self, connection: WithSession) -> None:
        ends = connection.session_ends
        if ends is None:
            return
        self._by_key[connection.descriptor] = connection
        if ends < self._alarms.next:
            self._sooner.set()
        self._alarms.set(connection.descriptor, ends)

    def _wait_s(self) -> float:
        aborts = next(iter(self._withdrawn.values()), inf)
        until_end = self._alarms.next - self._clock.monotonic()
        return min(aborts - trio.current_time(), until_end if until_end == inf else min(until_end, _LOOK_S))

    def _end_due(self) -> None:
        trio_now, now = trio.current_time(), self._clock.monotonic()
        for connection, at in list(self._withdrawn.items()):
            if at <= trio_now:
                connection.abort()
                self.forget(connection)
        for key in self._alarms.due(now):
            connection = self._by_key[key]
            ends = connection.session_ends
            if ends is not None and ends <= now:
                connection.end_session()
            elif ends is not None:
                self._alarms.set(key, ends)
