"""Where each partition is read on: as the group has committed, as the reset policy says, or as the caller has sought.

A position belongs to a topic's id, not its name: one that is deleted and made anew is begun anew. No function waits.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from leafcuttr.errors import OffsetOutOfRange, StorageError
from leafcuttr.log.log import Log
from leafcuttr.plugins.facade.consumer.options import ConsumerOptions
from leafcuttr.state.broker import Broker
from leafcuttr_sdk import TopicPartition

_UNKNOWN: Final = -1


class _Place(NamedTuple):
    topic_id: bytes
    offset: int


_NOWHERE: Final = _Place(b"", _UNKNOWN)


class Positions:
    """The assigned partitions, in the order in which they are to be read, and where."""

    def __init__(self, broker: Broker, options: ConsumerOptions) -> None:
        self._broker = broker
        self._options = options
        self._places: dict[TopicPartition, _Place] = {}

    def __contains__(self, partition: TopicPartition) -> bool:
        return partition in self._places

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        return frozenset(self._places)

    def assign(self, partitions: Iterable[TopicPartition], *, keep: bool = False) -> None:
        """These and no others; with `keep`, where they were if they were there."""
        before = self._places if keep else {}
        self._places = {each: before.get(each, _NOWHERE) for each in dict.fromkeys(partitions)}

    def get(self, partition: TopicPartition) -> int | None:
        """Raises ValueError for a partition that is not assigned."""
        place = self._places.get(partition)
        if place is None:
            raise ValueError(f"{partition} is not assigned to this consumer.")
        return None if place.offset < 0 else place.offset

    def known(self) -> dict[TopicPartition, int]:
        """All that are known."""
        return {each: place.offset for each, place in self._places.items() if place.offset >= 0}

    def set(self, partition: TopicPartition, offset: int) -> None:
        """Raises ValueError for a partition that is not assigned."""
        self.get(partition)
        topic = self._broker.topics.by_name.get(partition.topic)
        self._places[partition] = _Place(topic.id if topic else b"", offset)

    def moved(self, partition: TopicPartition, offset: int) -> None:
        """Some of it has been handed out: it is the others' turn."""
        place = self._places.pop(partition, None)
        if place is not None:
            self._places[partition] = place._replace(offset=offset)

    def seek(self, partition: TopicPartition, *, beginning: bool) -> None:
        """To one end of the log. Raises ValueError, UnknownTopicOrPartition, StorageError."""
        self.get(partition)
        self.set(partition, self._end(self._log(partition), beginning=beginning))

    def resolve(self) -> tuple[dict[TopicPartition, int], bool]:
        """Where to read on in each partition that can be read now; and whether some position may be had later, once a
        transaction has ended. Raises OffsetOutOfRange where the policy is `none`, StorageError if all are offline, and
        CoordinatorLoadInProgress."""
        ready: dict[TopicPartition, int] = {}
        offline: StorageError | None = None
        undecided: frozenset[TopicPartition] | None = None
        waits = False
        for partition, place in list(self._places.items()):
            topic = self._broker.topics.by_name.get(partition.topic)
            if topic is None or not 0 <= partition.partition < len(topic.partitions):
                continue
            log = topic.partitions[partition.partition].log
            if log.offline is not None:
                offline = StorageError(f"{partition} is offline: {log.offline}")
                continue
            offset = place.offset if place.topic_id in (topic.id, b"") else _UNKNOWN
            if offset < 0:
                if undecided is None:
                    undecided = self._undecided()
                if partition in undecided:
                    waits = True
                    continue
                offset = self._first(partition, log)
            elif not log.log_start_offset <= offset <= log.log_end_offset:
                offset = self._after_the_policy(
                    log, f"Offset {offset} of {partition} is not in the log any more, or not yet"
                )
            self._places[partition] = _Place(topic.id, offset)
            ready[partition] = offset
        if not ready and offline is not None:
            raise offline
        return ready, waits

    def _undecided(self) -> frozenset[TopicPartition]:
        """KIP-447: what an open transaction is about to commit is neither believed nor passed over."""
        return (
            self._broker.groups.offsets.unstable(self._options.group) if self._options.group else frozenset()
        )

    def _first(self, partition: TopicPartition, log: Log) -> int:
        committed = None
        if self._options.group:
            offsets = self._broker.groups.offsets.fetch(self._options.group).get(partition.topic, {})
            committed = offsets.get(partition.partition)
        if committed is not None and log.log_start_offset <= committed.offset <= log.log_end_offset:
            return committed.offset
        what = "there is none" if committed is None else "is out of the log's range"
        return self._after_the_policy(
            log,
            f"Group {self._options.group!r} should go on at its committed offset of {partition}: {what}",
        )

    def _after_the_policy(self, log: Log, why: str) -> int:
        if self._options.auto_offset_reset == "none":
            raise OffsetOutOfRange(f"{why}, and auto_offset_reset is none.")
        return self._end(log, beginning=self._options.auto_offset_reset == "earliest")

    def _end(self, log: Log, *, beginning: bool) -> int:
        if beginning:
            return log.log_start_offset
        return log.last_stable_offset if self._options.committed else log.high_watermark

    def _log(self, partition: TopicPartition) -> Log:
        log = self._broker.topics.partition(partition).log
        if log.offline is not None:
            raise StorageError(f"{partition} is offline: {log.offline}")
        return log
