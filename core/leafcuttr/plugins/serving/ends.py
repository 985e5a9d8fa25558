"""How connections of one listener end: counted, and for each way at most one line a minute, which has the number.

The first of a kind is a line at once. Those of the next minute are counted, and are in the line after it. What a
handler raises is only counted here: its lines are as for every part of a plugin (`runtime.plugin_parts.Failures`).
"""

import logging
from collections import deque
from enum import Enum
from typing import Final, NamedTuple

import trio

from leafcuttr.state.plugged import ServedCounts

QUIET_S: Final = 60.0


class ConnectionEnd(Enum):
    """A way to end that is worth a line: what is counted, what is said, and how loud. Of two that are counted no
    connection has ended: one that was refused had none, and a pause is between them."""

    RESET = ("reset", "a connection broke", logging.INFO)
    IDLE = ("idle", "a connection was idle for too long", logging.INFO)
    SLOW = ("slow", "a client took too long to take what was sent to it", logging.WARNING)
    HANDSHAKE = ("handshake", "a handshake took too long", logging.WARNING)
    TLS = ("tls", "a TLS handshake failed", logging.WARNING)
    REFUSED = ("refused", "a connection was refused", logging.WARNING)
    PAUSE = ("pause", "it accepts no connection for a moment", logging.WARNING)
    CUT = ("cut", "a connection was cut because its handler had not ended", logging.WARNING)
    FAILED = ("failed", "", logging.ERROR)

    def __init__(self, label: str, words: str, level: int) -> None:
        self.label = label
        self.words = words
        self.level = level


class _Since(NamedTuple):
    """Since the last line of a kind: its time, and what came after it."""

    at: float
    more: int = 0
    last: str = ""


class Ends:
    """`name` is of whom the lines are. `counts` gets one number for each way that has occurred."""

    def __init__(self, logger: logging.Logger, name: str, counts: ServedCounts) -> None:
        self.failures: Final[deque[str]] = deque(maxlen=10)
        self._counts = counts.ends
        self._logger = logger
        self._name = name
        self._since: dict[ConnectionEnd, _Since] = {}

    def add(self, end: ConnectionEnd, peer: object, why: str = "") -> None:
        """One connection has ended so."""
        self._counts[end.label] += 1
        if not end.words:
            return
        said = f"{end.words}{': ' if why else ''}{why} ({peer}"
        now = trio.current_time()
        since = self._since.get(end)
        if since is not None and (since.more or now - since.at < QUIET_S):
            self._since[end] = _Since(since.at, since.more + 1, said)
            return
        self._since[end] = _Since(now)
        self._logger.log(end.level, "%s: %s)", self._name, said)

    @property
    def pending(self) -> bool:
        """Whether something was counted that no line has said."""
        return any(since.more for since in self._since.values())

    def flush(self, *, all_of_it: bool = False) -> None:
        """Say what was counted a minute ago, or `all_of_it`."""
        now = trio.current_time()
        for end, (at, more, last) in self._since.items():
            if more and (all_of_it or now - at >= QUIET_S):
                others = f", and {more - 1} more in {now - at:.0f} s" if more > 1 else ""
                self._logger.log(end.level, "%s: %s%s)", self._name, last, others)
                self._since[end] = _Since(now)
