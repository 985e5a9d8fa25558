"""What is due at a time: wills that wait for their delay, sessions that expire. By client identifier, one for each.

What is taken away, or replaced, stays in the heap until its time, without effect.
"""

import heapq
from typing import Final, Generic, TypeVar

T = TypeVar("T")
_MOST_STALE: Final = 10_000


class Deadlines(Generic[T]):
    def __init__(self) -> None:
        self._heap: list[tuple[int, int, str]] = []
        self._current: dict[str, tuple[int, T]] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._current)

    def __contains__(self, key: str) -> bool:
        return key in self._current

    def add(self, key: str, value: T, due_ms: int) -> None:
        """A later one for the same key replaces it."""
        self._count += 1
        self._current[key] = (self._count, value)
        heapq.heappush(self._heap, (due_ms, self._count, key))
        if len(self._heap) > 2 * len(self._current) + _MOST_STALE:
            self._heap = [each for each in self._heap if self._is_current(each)]
            heapq.heapify(self._heap)

    def take(self, key: str) -> T | None:
        """What there is for the key, which is not due any more."""
        found = self._current.pop(key, None)
        return None if found is None else found[1]

    def due(self, now_ms: int) -> list[tuple[str, T]]:
        """Take those whose time has come, the earliest first."""
        found: list[tuple[str, T]] = []
        while self._heap and self._heap[0][0] <= now_ms:
            entry = heapq.heappop(self._heap)
            if self._is_current(entry):
                found.append((entry[2], self._current.pop(entry[2])[1]))
        return found

    def _is_current(self, entry: tuple[int, int, str]) -> bool:
        current = self._current.get(entry[2])
        return current is not None and current[0] == entry[1]
