"""The committed offsets of one group, and when they expire. In memory only; `records` knows their bytes."""

from collections.abc import Iterator
from typing import NamedTuple

from leafcuttr.wire.primitives import ZERO_UUID
from leafcuttr_sdk import TopicPartition

NO_EXPIRY = -1


class CommittedOffset(NamedTuple):
    """What a group has said of one partition. Timestamps are ms since 1970.

    `expire_timestamp` is set for a commit of before v5 that asked for a retention of its own, else -1.
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
    """Offsets by topic and partition."""

    __slots__ = ("by_topic",)

    def __init__(self) -> None:
        self.by_topic: dict[str, dict[int, CommittedOffset]] = {}

    def __bool__(self) -> bool:
        return bool(self.by_topic)

    def __iter__(self) -> Iterator[tuple[TopicPartition, CommittedOffset]]:
        for topic, partitions in self.by_topic.items():
            for partition, committed in partitions.items():
                yield TopicPartition(topic, partition), committed

    def get(self, topic: str, partition: int) -> CommittedOffset | None:
        partitions = self.by_topic.get(topic)
        return None if partitions is None else partitions.get(partition)

    def put(self, topic: str, partition: int, committed: CommittedOffset) -> None:
        partitions = self.by_topic.setdefault(topic, {})
        known = partitions.get(partition)
        if known is None or known.written_at <= committed.written_at:
            partitions[partition] = committed

    def remove(self, topic: str, partition: int, written_at: int) -> None:
        """Forget a partition, unless it was committed anew after the tombstone at `written_at`."""
        partitions = self.by_topic.get(topic)
        if partitions is None or partition not in partitions:
            return
        if partitions[partition].written_at <= written_at:
            del partitions[partition]
            if not partitions:
                del self.by_topic[topic]
