"""The log of group state: the topic `__consumer_offsets`. What the records mean is in `records`.

With `group.coordinator.append.linger.ms` the records of many requests go out as one batch: fewer and larger writes for
an answer that comes later. Kept apart are those of transactions, whose batches carry their producer.
"""

from collections.abc import Sequence
from typing import Final

import trio

from leafcuttr.config.settings import Settings
from leafcuttr.errors import ErrorCode
from leafcuttr.state.internal_log import InternalLog, KeyValue, ProducerIdAndEpoch, WhenPublished
from leafcuttr.state.topic_names import CONSUMER_OFFSETS
from leafcuttr.state.topics import Topics
from leafcuttr.wire.compression import Codec
from leafcuttr.wire.primitives import ZERO_UUID
from leafcuttr_sdk import Clock

# What a client is answered when the log refuses. After NOT_COORDINATOR it finds the coordinator again and comes
# back.
_ANSWERS: Final = {
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.INVALID_PRODUCER_EPOCH: ErrorCode.INVALID_PRODUCER_EPOCH,
}

# What a record takes in a batch besides its key and value, at most.
_RECORD_OVERHEAD: Final = 32


class _Gathered:
    """What waits to be written to one partition: records, and the callback of each from which of them on."""

    def __init__(self) -> None:
        self.entries: list[KeyValue] = []
        self.then: list[tuple[int, WhenPublished]] = []
        self.size = 0


class OffsetsLog(InternalLog):
    """The topic `__consumer_offsets` as a store of keyed records."""

    def __init__(self, *, topics: Topics, settings: Settings, clock: Clock) -> None:
        super().__init__(
            CONSUMER_OFFSETS,
            partitions_setting="offsets.topic.num.partitions",
            load_setting="offsets.load.buffer.size",
            answers=_ANSWERS,
            topics=topics,
            settings=settings,
            clock=clock,
            codec=Codec(settings.int("offsets.topic.compression.codec")),
        )

        self._linger_s = settings.int("group.coordinator.append.linger.ms") / 1000
        self._gathered: dict[int, _Gathered] = {}

    def use(self, nursery: trio.Nursery | None) -> None:
        """As InternalLog; what is gathered when the nursery goes is written at once."""
        super().use(nursery)
        for partition in list(self._gathered):
            self._flush(partition)

    def write(
        self,
        partition: int,
        entries: Sequence[KeyValue],
        then: WhenPublished,
        *,
        producer: ProducerIdAndEpoch | None = None,
    ) -> None:
        """As InternalLog, but only after the linger if there is one."""
        if self._linger_s <= 0 or self._nursery is None:
            super().write(partition, entries, then, producer=producer)
            return
        gathered = self._gathered.get(partition)
        size = sum(len(key) + len(value or b"") + _RECORD_OVERHEAD for key, value in entries)
        if gathered is not None and (producer or gathered.size + size > self.largest_batch()):
            self._flush(partition)
            gathered = None
        if producer is not None:
            super().write(partition, entries, then, producer=producer)
            return
        if gathered is None:
            gathered = self._gathered[partition] = _Gathered()
            self._nursery.start_soon(self._linger, partition, gathered)
        gathered.then.append((len(gathered.entries), then))
        gathered.entries += entries
        gathered.size += size

    async def _linger(self, partition: int, gathered: _Gathered) -> None:
        await trio.sleep(self._linger_s)
        if self._gathered.get(partition) is gathered:
            self._flush(partition)

    def _flush(self, partition: int) -> None:
        gathered = self._gathered.pop(partition, None)
        if gathered is None:
            return

        def written(error: ErrorCode, base_offset: int) -> None:
            for number, then in gathered.then:
                then(error, base_offset if error else base_offset + number)

        super().write(partition, gathered.entries, written)

    def knows(self, name: str, topic_id: bytes) -> bool:
        """Whether what was committed for this topic is about a topic that exists."""
        return topic_id in self.ids(name)

    def ids(self, name: str) -> tuple[bytes, ...]:
        """The ids that a commit for this topic may carry; older commits have none."""
        topic = self._topics.by_name.get(name)
        return () if topic is None else (ZERO_UUID, topic.id)
