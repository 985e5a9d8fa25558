"""Positions of groups at the source, as positions at the target: which checkpoints are due, and what is committed of
them. No I/O. Source: MirrorCheckpointTask of org.apache.kafka.connect.mirror.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from leafcuttr_forward.mm2.records import Checkpoint
from leafcuttr_sdk.groups import CommittedOffset
from leafcuttr_sdk.types import TopicPartition

if TYPE_CHECKING:
    from leafcuttr_forward.mm2.plan import FlowPlan
    from leafcuttr_forward.mm2.syncs import SyncStore


class Checkpoints:
    """The last checkpoint of each group and partition of one flow."""

    def __init__(self, flow: "FlowPlan", syncs: "SyncStore") -> None:
        self._flow: Final = flow
        self._syncs: Final = syncs
        self._last: dict[str, dict[TopicPartition, Checkpoint]] = {}

    def loaded(self, checkpoint: Checkpoint) -> None:
        """One that was written before."""
        self._last.setdefault(checkpoint.group, {})[checkpoint.partition] = checkpoint

    def due(self, group: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> list[Checkpoint]:
        """Those that are news for a group with these positions at the source."""
        found = [self._checkpoint(group, partition, offset) for partition, offset in offsets.items()]
        return [each for each in found if each is not None and self._is_news(each)]

    def written(self, checkpoint: Checkpoint) -> None:
        self.loaded(checkpoint)

    def groups(self) -> list[str]:
        """Those that have checkpoints."""
        return list(self._last)

    def to_commit(
        self, group: str, there: Mapping[TopicPartition, CommittedOffset]
    ) -> dict[TopicPartition, CommittedOffset]:
        """What a group that is at `there` of the target is behind."""
        return {
            partition: CommittedOffset(each.downstream, each.metadata)
            for partition, each in self._last.get(group, {}).items()
            if partition not in there or there[partition].offset < each.downstream
        }

    def is_relevant(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> bool:
        """Whether a group with these positions reads a topic that is copied."""
        return any(self._flow.topics.fit(partition.topic) for partition in offsets)

    def _checkpoint(
        self, group: str, partition: TopicPartition, committed: CommittedOffset
    ) -> Checkpoint | None:
        if committed.offset < 0 or not self._flow.topics.fit(partition.topic):
            return None
        downstream = self._syncs.translate(partition, committed.offset)
        if downstream is None:
            return None
        there = TopicPartition(self._renamed(partition.topic), partition.partition)
        return Checkpoint(group, there, committed.offset, downstream, committed.metadata or "")

    def _renamed(self, topic: str) -> str:
        """A topic that came from the target is called there as it was."""
        policy = self._flow.policy
        if policy.source_of(topic) == self._flow.target:
            return policy.original(topic)
        return policy.remote(topic)

    def _is_news(self, checkpoint: Checkpoint) -> bool:
        """A group may go back; translated positions that only became less exact do not."""
        last = self._last.get(checkpoint.group, {}).get(checkpoint.partition)
        return last is None or checkpoint.upstream < last.upstream or checkpoint.downstream > last.downstream
