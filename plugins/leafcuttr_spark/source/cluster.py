"""What the source needs to know of a cluster: which partitions a subscription has, and where they begin and end."""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from leafcuttr_sdk.blocking_peers import BlockingPeer
from leafcuttr_sdk.broker import EARLIEST, LATEST
from leafcuttr_sdk.types import TopicPartition
from leafcuttr_spark.options import OptionError
from leafcuttr_spark.source.offsets import id_text
from leafcuttr_spark.source.options import Subscription


class Subscribed(NamedTuple):
    """The partitions of a subscription as they are now."""

    partitions: tuple[TopicPartition, ...]
    topic_ids: Mapping[str, str]
    missing: tuple[str, ...]
    """Topics, and partitions, that the subscription names and the cluster does not have."""


class ClusterView:
    """A cluster as one query reads it. Raises BrokerError as `BlockingPeer`."""

    def __init__(self, peer: BlockingPeer, *, committed: bool) -> None:
        self._peer = peer
        self._committed = committed

    def subscribed(self, subscription: Subscription) -> Subscribed:
        """In the order of their names and numbers."""
        named = subscription.topics or tuple({one.topic for one in subscription.partitions})
        topics = self._peer.topics(None if subscription.pattern is not None else named)
        if subscription.pattern is not None:
            pattern = re.compile(subscription.pattern)
            topics = {
                name: topic
                for name, topic in topics.items()
                if pattern.fullmatch(name) and not topic.internal
            }
        there = {
            TopicPartition(name, number)
            for name, topic in topics.items()
            for number in range(topic.partitions)
        }
        if subscription.partitions:
            missing = [str(one) for one in subscription.partitions if one not in there]
            there &= set(subscription.partitions)
        else:
            missing = [name for name in named if name not in topics]
        ids = {
            name: found for name, topic in topics.items() if (found := id_text(topic.topic_id)) is not None
        }
        return Subscribed(tuple(sorted(there)), ids, tuple(sorted(missing)))

    def required(self, subscription: Subscription) -> Subscribed:
        """Raises OptionError where something is missing."""
        found = self.subscribed(subscription)
        if found.missing:
            raise OptionError(f"{self._peer.name} does not have {', '.join(found.missing)}")
        return found

    def begins(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset that is still there. Partitions that do not exist are left out."""
        return self._offsets(dict.fromkeys(partitions, EARLIEST))

    def ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset behind the last record that can be read, which is the last stable one for committed records."""
        return self._offsets(dict.fromkeys(partitions, LATEST))

    def at_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """The first record of each time or later; the end, as of `ends`, where there is none."""
        return self._offsets(times)

    def _offsets(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        return self._peer.offsets(times, committed=self._committed) if times else {}
