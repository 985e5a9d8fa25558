"""Which topics and groups have series of their own: the bound on what a scrape can come to.

A topic gets its name when it is first seen, if its partitions fit below `lc.metrics.max.partitions`, and keeps it: a
series that moved in and out of the sum of the others would look like traffic. The others are summed under `(other)`;
what one of them has counted stays in that sum when it is deleted.
"""

from typing import Final

from leafcuttr.config.settings import Settings
from leafcuttr.log.log import Log
from leafcuttr.state.topics import Topic, Topics
from leafcuttr_sdk.metrics import LONGEST_LABEL, OTHER

LONGEST_GROUP: Final = LONGEST_LABEL  # ids may have 32 KiB


class Traffic:
    """What went in and out of a topic since the start, in records and bytes."""

    __slots__ = ("bytes_in", "bytes_out", "records_in", "records_out")

    def __init__(self) -> None:
        self.records_in = self.bytes_in = self.records_out = self.bytes_out = 0

    def add(self, other: "Log | Traffic") -> None:
        self.records_in += other.records_in
        self.bytes_in += other.bytes_in
        self.records_out += other.records_out
        self.bytes_out += other.bytes_out


class TopicNames:
    """The topics that are named, and what the others have counted that are deleted."""

    def __init__(self, topics: Topics, settings: Settings) -> None:
        self._most = settings.int("lc.metrics.max.partitions")
        self._named: dict[bytes, int] = {}  # partitions that were counted for it
        self._others: set[bytes] = set()
        self._taken = 0
        self.deleted = Traffic()
        topics.on_deleted.append(self._forget)

    @property
    def others(self) -> int:
        """How many topics have no name."""
        return len(self._others)

    def named(self, topic: Topic) -> bool:
        if topic.id in self._named:
            return True
        if topic.id in self._others:
            return False
        count = len(topic.partitions)
        if self._taken + count > self._most:
            self._others.add(topic.id)
            return False
        self._named[topic.id] = count
        self._taken += count
        return True

    def _forget(self, topic: Topic) -> None:
        self._taken -= self._named.pop(topic.id, 0)
        if topic.id in self._others:
            self._others.discard(topic.id)
            for partition in topic.partitions:
                self.deleted.add(partition.log)


def nameable(group_id: str) -> bool:
    """Whether a group may stand under its own id."""
    return group_id != OTHER and len(group_id) <= LONGEST_GROUP
