"""`max.connection.creation.rate`: how many connections may be accepted in a second."""

from collections.abc import Callable
from typing import Final

from leafcuttr.config.setting import INT_MAX

# How often the limit is read again while nothing may be accepted.
_RECHECK_S: Final = 1.0


class CreationRate:
    """A bucket that fills with `limit()` permits a second and holds those of one second. Limits may change meanwhile;
    INT_MAX is none.
    """

    def __init__(self, limit: Callable[[], int], now_s: Callable[[], float]) -> None:
        self._limit = limit
        self._now_s = now_s
        self._permits = float(limit())
        self._at_s = now_s()

    def wait_s(self) -> float:
        """How long until a connection may be accepted, in seconds; 0 if one may be now."""
        limit = self._limit()
        if limit == INT_MAX:
            self._permits = float(limit)
            return 0.0
        now_s = self._now_s()
        self._permits = min(self._permits + (now_s - self._at_s) * limit, float(limit))
        self._at_s = now_s
        if self._permits >= 1:
            return 0.0
        return min((1 - self._permits) / limit, _RECHECK_S) if limit else _RECHECK_S

    def took(self) -> None:
        """A connection has been accepted."""
        self._permits -= 1
