"""A cache of what was found for recent topics, bounded by what it takes. Clients choose topics: neither many of them
nor long ones make it grow."""

from typing import Final, Generic, TypeVar

V = TypeVar("V")

ENTRY_BYTES: Final = 150
"""About what an entry takes beside its topic and its value."""


class TopicCache(Generic[V]):
    """Values by topic in two generations. The older one is dropped when the younger one is full, so that what is asked
    for again and again stays; no entry needs a time or a place in a list. `recent` is for reading where a call would
    cost too much."""

    def __init__(self, max_bytes: int = 8 * 1024 * 1024) -> None:
        self.recent: dict[str, V] = {}
        self._older: dict[str, V] = {}
        self._sizes: dict[str, int] = {}
        """Of those in `recent`."""
        self._older_sizes: dict[str, int] = {}
        self._size = 0
        self._half = max_bytes // 2

    def __len__(self) -> int:
        return len(self.recent) + len(self._older)

    def get(self, topic: str) -> V | None:
        found = self.recent.get(topic)
        if found is None:
            found = self._older.pop(topic, None)
            if found is not None:
                self._add(topic, found, self._older_sizes.pop(topic))
        return found

    def put(self, topic: str, value: V, size: int = 0) -> None:
        """Keep a value of about `size` bytes, if it is small enough to be kept."""
        self.discard(topic)
        size += ENTRY_BYTES + 2 * len(topic)
        if size <= self._half:
            self._add(topic, value, size)

    def discard(self, topic: str) -> None:
        if self.recent.pop(topic, None) is not None:
            self._size -= self._sizes.pop(topic)
        elif self._older.pop(topic, None) is not None:
            del self._older_sizes[topic]

    def clear(self) -> None:
        if self._size or self._older:
            self.recent, self._sizes, self._size = {}, {}, 0
            self._older, self._older_sizes = {}, {}

    def _add(self, topic: str, value: V, size: int) -> None:
        if self._size + size > self._half:
            self._older, self._older_sizes = self.recent, self._sizes
            self.recent, self._sizes, self._size = {}, {}, 0
        self.recent[topic] = value
        self._sizes[topic] = size
        self._size += size
