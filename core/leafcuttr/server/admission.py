"""What a step that comes before a connection is served has whatever it is: a few at a time, each within its time, ended
when the broker stops; what is wrong with one is a line, and counted.

The steps themselves are `handshakes` and `login.logins`.
"""

import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import trio

from leafcuttr.runtime.complaints import Complaints

_AT_ONCE: Final = 2
"""In worker threads. More would not be quicker where there are two processors."""
LONGEST_S: Final = 60.0
"""For a step of a peer that is not late itself, and of a broker that has many to admit."""


class Admission:
    """One step, for all connections of a broker."""

    def __init__(self, logger: logging.Logger, at_most_s: float) -> None:
        self.failed: Final[Counter[str]] = Counter()
        """By listener."""
        self.limiter: Final = trio.CapacityLimiter(_AT_ONCE)
        self._at_most_s = at_most_s
        self._complain = Complaints(logger)
        self._under_way: set[trio.CancelScope] = set()

    @contextmanager
    def in_time(self) -> Iterator[trio.CancelScope]:
        """A block that is cancelled when its time is over, or the broker stops."""
        with trio.move_on_after(self._at_most_s) as scope:
            self._under_way.add(scope)
            try:
                yield scope
            finally:
                self._under_way.discard(scope)

    def stop(self) -> None:
        """The broker stops: end those that are under way."""
        for scope in self._under_way:
            scope.cancel()

    def refuse(self, listener: str, peer: str, why: str, *, of: str = "") -> None:
        """Count a connection that is to be closed, and say why: once a minute for one reason, listener and `of`."""
        self.failed[listener] += 1
        self._complain(
            f"{listener} {of} {why}",
            "closing the connection from %s on %s: %s",
            peer,
            listener,
            why,
            level=logging.WARNING,
        )


def is_late(scope: trio.CancelScope) -> bool:
    """Whether the time was over. False: the block came to its end, or the broker stops."""
    return scope.cancelled_caught and trio.current_time() >= scope.deadline
