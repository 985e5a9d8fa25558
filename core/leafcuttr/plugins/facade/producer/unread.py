"""Failures of records whose receipts were dropped unread: counted by topic and error, a line a minute at most for each.

A receipt may be dropped anywhere, also where the garbage collector runs in another thread: there a failure is only
noted. It is counted on the loop, in its next turn.
"""

import logging
import time
from collections import deque
from math import inf
from typing import Final

import trio

from leafcuttr.errors import BrokerError

_QUIET_S: Final = 60.0
_MOST: Final = 100
_OTHERS: Final = "other topics"


class _Counted:
    """Failures of one kind."""

    __slots__ = ("latest", "said_at", "unsaid")

    def __init__(self) -> None:
        self.unsaid = 0
        self.said_at = -inf
        self.latest: BrokerError | None = None


class UnreadFailures:
    """Those of one plugin."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._noted: deque[tuple[str, BrokerError]] = deque()
        self._counted: dict[tuple[str, str], _Counted] = {}
        self._users = 0
        self._token: trio.lowlevel.TrioToken | None = None

    def opened(self) -> None:
        """A producer begins to count here."""
        self._users += 1
        self._token = trio.lowlevel.current_trio_token()

    def closed(self) -> None:
        """It is closed: after the last one nothing stays uncounted in the log."""
        self._users -= 1
        if not self._users:
            self._report()

    def count(self, topic: str, error: BrokerError) -> None:
        """A record was not stored, and nobody knows. Any thread, at any point."""
        self._noted.append((topic, error))
        if self._token is not None:
            try:
                self._token.run_sync_soon(self._report, idempotent=True)
            except trio.RunFinishedError:
                self._report()

    def _report(self) -> None:
        while self._noted:
            topic, error = self._noted.popleft()
            self._add(topic, error)
        now = time.monotonic()
        for (topic, _), counted in self._counted.items():
            if counted.unsaid and (now - counted.said_at >= _QUIET_S or not self._users):
                self._say(topic, counted)
                counted.said_at = now

    def _add(self, topic: str, error: BrokerError) -> None:
        key = topic, type(error).__name__
        counted = self._counted.get(key)
        if counted is None:
            # Names of topics may be a client's: there may be any number of them.
            key = key if len(self._counted) < _MOST else (_OTHERS, key[1])
            counted = self._counted.setdefault(key, _Counted())
        counted.unsaid += 1
        counted.latest = error

    def _say(self, topic: str, counted: _Counted) -> None:
        count, counted.unsaid = counted.unsaid, 0
        error, counted.latest = counted.latest, None
        self._logger.warning(
            "%d record%s for %s %s not stored, and nobody has read why: %s: %s",
            count,
            "" if count == 1 else "s",
            topic if topic == _OTHERS else f"topic '{topic}'",
            "was" if count == 1 else "were",
            type(error).__name__,
            error,
        )
