"""How fast a flow goes: bytes in a second, and pauses after errors, which grow and are never the same for two flows."""

import random
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from leafcuttr_sdk.types import Clock

FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 10.0
_JITTER: Final = 0.2


class Backoff:
    """Pauses between attempts: each twice as long as the last, give or take a fifth, up to ten seconds."""

    def __init__(self, first_s: float = FIRST_PAUSE_S, longest_s: float = LONGEST_PAUSE_S) -> None:
        self._first_s = self._next_s = first_s
        self._longest_s = longest_s

    def next_s(self) -> float:
        """How long to wait before the next attempt."""
        pause, self._next_s = self._next_s, min(self._next_s * 2, self._longest_s)
        return pause * random.uniform(1 - _JITTER, 1 + _JITTER)

    def reset(self) -> None:
        """After an attempt that went well."""
        self._next_s = self._first_s


class Throttle:
    """At most so many bytes in a second, with a burst of at most one second's; None: without a limit."""

    def __init__(self, bytes_s: float | None, clock: "Clock") -> None:
        self._bytes_s = bytes_s
        self._clock = clock
        self._left = bytes_s or 0.0
        self._at = clock.monotonic()

    def pause_s(self, size: int) -> float:
        """How long to wait before the next bytes are read, now that these were."""
        if self._bytes_s is None:
            return 0.0
        now = self._clock.monotonic()
        self._left = min(self._left + (now - self._at) * self._bytes_s, self._bytes_s) - size
        self._at = now
        return max(-self._left / self._bytes_s, 0.0)
