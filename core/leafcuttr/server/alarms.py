"""Times at which something is to be checked again: one for each key, the earliest that was set.

A connection that waits for half a second, is answered at once and waits again sets its alarm a thousand times a second.
So the time that stands is kept as long as it is not later: a caller that is called too early sets it again. The task
that sleeps until then is the reactor's.
"""

import heapq
from collections.abc import Iterator
from math import inf
from typing import Final

_SPARE: Final = 100
"""So many times without a key are kept, beside as many as there are with one."""


class Alarms:
    """Times by descriptor."""

    __slots__ = ("_at", "_heap")

    def __init__(self) -> None:
        self._at: dict[int, float] = {}
        self._heap: list[tuple[float, int]] = []

    @property
    def next(self) -> float:
        """Not later than the earliest; inf if there is none."""
        return self._heap[0][0] if self._heap else inf

    def set(self, key: int, at: float) -> None:
        """Call it at this time at the latest."""
        if at < self._at.get(key, inf):
            self._at[key] = at
            heapq.heappush(self._heap, (at, key))
            if len(self._heap) > 2 * len(self._at) + _SPARE:
                self._heap = [(at, key) for key, at in self._at.items()]
                heapq.heapify(self._heap)

    def forget(self, key: int) -> None:
        """Do not call it. Harmless for one that has no time."""
        self._at.pop(key, None)

    def due(self, now: float) -> Iterator[int]:
        """Those whose time has come, in order. They have no time any more."""
        while self._heap and self._heap[0][0] <= now:
            at, key = heapq.heappop(self._heap)
            if self._at.get(key) == at:
                del self._at[key]
                yield key
