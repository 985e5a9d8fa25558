"""The committed offsets of one group, when they expire, and those that wait for their transaction to end. In memory
only; `records` knows their bytes."""

from collections.abc import Iterator
from typing import NamedTuple

from leafcuttr.wire.primitives import ZERO_UUID
from leafcuttr_sdk import TopicPartition

NO_EXPIRY = -1


class OffsetAndMetadata(NamedTuple):
    """What a group has said of one partition. Timestamps are ms since 1970.

    `expire_timestamp` is set for a commit of before v5 that named a retention of its own, else -1.
    `written_at` is the offset of its record in `__consumer_offsets`: of two commits the later one there
    counts.
    """

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp: int = -1
    expire_timestamp: int = NO_EXPIRY
    topic_id: bytes = ZERO_UUID
    written_at: int = -1

    def expired(self, now_ms: int, retention_ms: int, since_ms: int | None) -> bool:
        """Whether it is past its time at `now_ms`; the time counts from `since_ms`, None for the commit
        itself.
        """
        if self.expire_timestamp != NO_EXPIRY:
            return now_ms >= self.expire_timestamp
        return now_ms - (self.commit_timestamp if since_ms is None else since_ms) >= retention_ms


class GroupOffsets:
    """Offsets by topic and partition. `pending` are those in open transactions, by producer id: no client sees them
    until the commit marker is in the log (KIP-98)."""

    __slots__ = ("by_topic", "pending")

    def __init__(self) -> None:
        self.by_topic: dict[str, dict[int, OffsetAndMetadata]] = {}
        self.pending: dict[int, dict[TopicPartition, OffsetAndMetadata]] = {}

    def __bool__(self) -> bool:
        return bool(self.by_topic)

    def __iter__(self) -> Iterator[tuple[TopicPartition, OffsetAndMetadata]]:
        for topic, partitions in self.by_topic.items():
            for partition, committed in partitions.items():
                yield TopicPartition(topic, partition), committed

    def get(self, topic: str, partition: int) -> OffsetAndMetadata | None:
        partitions = self.by_topic.get(topic)
        return None if partitions is None else partitions.get(partition)

    def put(self, topic: str, partition: int, committed: OffsetAndMetadata) -> None:
        partitions = self.by_topic.setdefault(topic, {})
        known = partitions.get(partition)
        if known is None or known.written_at <= committed.written_at:
            partitions[partition] = committed

    def remove(self, topic: str, partition: int, written_at: int) -> None:
        """Forget a partition, unless it was committed anew after the tombstone at `written_at`."""
        for producer_id, offsets in list(self.pending.items()):
            waiting = offsets.get(TopicPartition(topic, partition))
            if waiting is not None and waiting.written_at <= written_at:
                self.unstage(producer_id, TopicPartition(topic, partition))
        partitions = self.by_topic.get(topic)
        if partitions is None or partition not in partitions:
            return
        if partitions[partition].written_at <= written_at:
            del partitions[partition]
            if not partitions:
                del self.by_topic[topic]

    def stage(self, producer_id: int, partition: TopicPartition, committed: OffsetAndMetadata) -> None:
        """Keep an offset until its transaction ends."""
        self.pending.setdefault(producer_id, {})[partition] = committed

    def unstage(self, producer_id: int, partition: TopicPartition) -> None:
        offsets = self.pending.get(producer_id)
        if offsets is not None:
            offsets.pop(partition, None)
            if not offsets:
                del self.pending[producer_id]

    def end(self, producer_id: int, *, commit: bool, marker_at: int) -> None:
        """The marker of this producer's transaction is in the log, at this offset."""
        for (topic, partition), committed in self.pending.pop(producer_id, {}).items():
            if commit:
                # An offset whose write has not been reported yet lies before the marker, like every other.
                known = committed if committed.written_at >= 0 else committed._replace(written_at=marker_at)
                self.put(topic, partition, known)

    def unstable(self) -> frozenset[TopicPartition]:
        """The partitions whose offset an open transaction may change."""
        if not self.pending:
            return frozenset()
        return frozenset(each for offsets in self.pending.values() for each in offsets)
