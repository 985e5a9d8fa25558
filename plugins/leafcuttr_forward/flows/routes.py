"""Where records of one topic of the source go: the target's topic, its partitions, and how large its batches may be.

Pure. `topics` makes a `Route` from what the two clusters have.
"""

from typing import Final, NamedTuple

from leafcuttr_sdk.batches import partition_of

DEFAULT_LIMIT: Final = 1_048_588
"""Kafka's default of `max.message.bytes`."""


class Route(NamedTuple):
    """From one topic of the source."""

    topic: str
    """On the target."""
    partitions: int
    """How many it has there."""
    limit: int = DEFAULT_LIMIT
    """The largest batch, in bytes, that is made for it."""
    fixed: int | None = None
    """The partition that takes everything."""
    by_key: bool = False
    """Whether keys decide; otherwise the number of the source's partition does."""

    def partition(self, source: int) -> int | None:
        """The partition of the target for everything of this one of the source; None where keys decide."""
        if self.fixed is not None:
            return self.fixed
        if self.by_key:
            return None
        return source if source < self.partitions else source % self.partitions

    def partition_for(self, source: int, key: bytes | memoryview | None) -> int:
        """The partition of the target for one record."""
        whole = self.partition(source)
        if whole is not None:
            return whole
        if key is None:
            return source % self.partitions
        return partition_of(bytes(key), self.partitions)
