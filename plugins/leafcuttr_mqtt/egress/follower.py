"""The new records of Kafka topics, from where they were read to before: that is kept as the offsets of a group."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Final

import trio

from leafcuttr_mqtt.egress.filtering import Going, LeftOut, filtered
from leafcuttr_mqtt.egress.messages import Left, Way
from leafcuttr_mqtt.messages import Message
from leafcuttr_sdk.broker import EARLIEST, LATEST
from leafcuttr_sdk.errors import (
    BrokerError,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    OffsetOutOfRange,
    PluginError,
)
from leafcuttr_sdk.groups import CommittedOffset
from leafcuttr_sdk.records import StoredRecord
from leafcuttr_sdk.trouble import Complaints
from leafcuttr_sdk.types import TopicPartition

if TYPE_CHECKING:
    from leafcuttr_mqtt.egress.publication import Publisher
    from leafcuttr_sdk.broker import Broker
    from leafcuttr_sdk.filters import FilterChain

GROUP: Final = "leafcuttr-mqtt-egress"
MAX_BYTES: Final = 1024 * 1024
MAX_RECORDS: Final = 100
"""That are published in one step of the loop."""
COMMIT_S: Final = 0.5
"""How long a commit waits while there is more to publish."""
PAUSE_S: Final = 1.0
"""After an error."""
_LOADING_S: Final = 0.05
"""While the broker reads the offsets of groups, after its start."""


class WayCounts:
    """What is counted of one way down, since the service started."""

    def __init__(self) -> None:
        self.published = 0
        """Records that were published."""
        self.refused = 0
        """Records that were not, because a Kafka topic that a mapping leads to can never take them."""
        self.left: Final[Counter[Left]] = Counter()
        self.positions: dict[TopicPartition, int] = {}
        """Where it reads on; empty while it does not read."""
        self.trouble = ""
        """Why it does not go on for now."""

    def waits(self, reason: str) -> None:
        self.trouble = reason


class Egress:
    """All ways down."""

    def __init__(
        self, broker: "Broker", ways: Mapping[str, Way], publisher: "Publisher", filters: Sequence[str] = ()
    ) -> None:
        """`filters` are the names of record filters that all records pass first."""
        self._broker = broker
        self._filters = filters
        self._ways = ways
        self._publisher = publisher
        self._complain = Complaints(broker.logger)
        self._changed = trio.Event()
        self._waiting: dict[str, trio.CancelScope] = {}
        """For records, by Kafka topic."""
        self.counts: Final[Mapping[str, WayCounts]] = {kafka_topic: WayCounts() for kafka_topic in ways}
        """By Kafka topic."""

    def lag(self, kafka_topic: str) -> int:
        """Records that are not published yet. 0 while it is not known where to begin."""
        topic, positions = self._broker.topics.get(kafka_topic), self.counts[kafka_topic].positions
        if topic is None:
            return 0
        ends = (
            (TopicPartition(kafka_topic, each.partition), each.high_watermark) for each in topic.partitions
        )
        return sum(max(0, end - positions[each]) for each, end in ends if each in positions)

    async def run(self) -> None:
        """Until cancelled. What was published and not noted by then is published again by the next start."""
        end = self._broker.topics.on_change(self._on_change)
        try:
            async with trio.open_nursery() as nursery:
                for kafka_topic, way in self._ways.items():
                    nursery.start_soon(self._follow, kafka_topic, way)
        finally:
            end()

    def _on_change(self, kafka_topic: str) -> None:
        if kafka_topic in self._ways:
            self._changed.set()
            self._changed = trio.Event()
            waiting = self._waiting.get(kafka_topic)
            if waiting is not None:
                waiting.cancel()

    async def _follow(self, kafka_topic: str, way: Way) -> None:
        fresh = False
        while True:
            if not self._broker.topics.partition_count(kafka_topic):
                fresh = True  # whatever it has once it is there is new
                await self._changed.wait()
                continue
            chain = None
            try:
                positions = await self._begin(kafka_topic, fresh=fresh)
                if self._filters:
                    chain = await self._broker.record_filters(self._filters, kafka_topic)
                await self._read(kafka_topic, way, positions, chain)
            except OffsetOutOfRange:
                await self._skip_deleted(kafka_topic)
            except (CoordinatorLoadInProgress, CoordinatorNotAvailable):
                await trio.sleep(_LOADING_S)
            except BrokerError as error:
                self.counts[
                    kafka_topic
                ].trouble = f"its records cannot be read: {str(error) or error.code.name}"
                self._complain(
                    kafka_topic,
                    "records of %s cannot be published to MQTT for now: %s",
                    kafka_topic,
                    str(error) or error.code.name,
                )
                await trio.sleep(PAUSE_S)
            except PluginError as error:
                self.counts[kafka_topic].trouble = str(error)
                self._complain(
                    f"{kafka_topic} filters",
                    "records of %s cannot be published to MQTT for now: %s",
                    kafka_topic,
                    error,
                )
                await trio.sleep(PAUSE_S)
            finally:
                if chain is not None:
                    chain.close()

    async def _begin(self, kafka_topic: str, *, fresh: bool) -> dict[TopicPartition, int]:
        """Where to read on. A topic that was never read begins at its end, a partition that it has got since at its
        beginning; both are committed at once, so that the next start goes on from there."""
        partitions = self._partitions(kafka_topic)
        committed = self._broker.groups.committed(GROUP)
        positions = {each: committed[each].offset for each in partitions if each in committed}
        missing = [each for each in partitions if each not in positions]
        if missing:
            begin = EARLIEST if fresh or positions else LATEST
            found = await self._broker.offsets(dict.fromkeys(missing, begin))
            positions.update(found)
            await self._commit(found)
        return positions

    async def _read(
        self,
        kafka_topic: str,
        way: Way,
        positions: dict[TopicPartition, int],
        chain: "FilterChain | None",
    ) -> None:
        """Until the topic has other partitions than these."""
        broker, counts = self._broker, self.counts[kafka_topic]
        counts.positions, counts.trouble = positions, ""
        moved: dict[TopicPartition, int] = {}
        committed_at = trio.current_time()
        while len(positions) == broker.topics.partition_count(kafka_topic):
            latest = committed_at + COMMIT_S if moved else inf
            with trio.CancelScope(deadline=latest) as self._waiting[kafka_topic]:
                await broker.wait_for_records(positions, committed=True)
            if moved and trio.current_time() > latest:
                await self._commit(moved)
                moved, committed_at = {}, trio.current_time()
            if len(positions) != broker.topics.partition_count(kafka_topic):
                continue
            fetched = await broker.fetch(
                positions, max_bytes=MAX_BYTES, max_records=MAX_RECORDS, committed=True
            )
            messages = await self._messages(way, fetched.records, chain, counts)
            refused = await self._publisher.publish(messages, counts.waits)
            counts.refused += refused
            counts.published += len(messages) - refused
            counts.trouble = ""
            moved.update(
                {each: offset for each, offset in fetched.positions.items() if offset != positions[each]}
            )
            positions.update(moved)
            if len(fetched.records) < MAX_RECORDS:
                await self._commit(moved)
                moved, committed_at = {}, trio.current_time()
        await self._commit(moved)

    async def _messages(
        self, way: Way, records: Sequence[StoredRecord], chain: "FilterChain | None", counts: WayCounts
    ) -> list[Message]:
        """Those of the records that are published."""
        judged: Sequence[Going | LeftOut] = (
            [Going(one) for one in records] if chain is None else await filtered(chain, records, counts.waits)
        )
        now_ms = self._broker.clock.now_ms()
        messages: list[Message] = []
        for each in judged:
            if isinstance(each, LeftOut):
                self._leave(each.record, each.why, each.reason)
                continue
            found = way.message(each.record, now_ms, each.topic)
            if isinstance(found, Message):
                messages.append(found)
            else:
                self._leave(each.record, found)
        return messages

    async def _skip_deleted(self, kafka_topic: str) -> None:
        """Retention was quicker, or the topic was made anew: go on with what there is."""
        partitions = self._partitions(kafka_topic)
        committed = self._broker.groups.committed(GROUP)
        first = await self._broker.offsets(dict.fromkeys(partitions, EARLIEST))
        last = await self._broker.offsets(dict.fromkeys(partitions, LATEST))
        gone = {
            each: first[each]
            for each in partitions
            if each in committed and not first[each] <= committed[each].offset <= last[each]
        }
        self._complain(
            kafka_topic, "records of %s were deleted before they were published to MQTT", kafka_topic
        )
        await self._commit(gone)

    async def _commit(self, positions: Mapping[TopicPartition, int]) -> None:
        if positions:
            offsets = {each: CommittedOffset(offset) for each, offset in positions.items()}
            await self._broker.groups.commit(GROUP, offsets)

    def _partitions(self, kafka_topic: str) -> list[TopicPartition]:
        count = self._broker.topics.partition_count(kafka_topic)
        return [TopicPartition(kafka_topic, number) for number in range(count)]

    def _leave(self, record: StoredRecord, why: Left, reason: str = "") -> None:
        self.counts[record.topic].left[why] += 1
        if why in (Left.NO_FIELD, Left.NO_TOPIC, Left.SET_ASIDE):
            self._complain(
                f"{record.topic} {why.name}",
                "the record at offset %d of %s-%d is not published to MQTT: %s%s",
                record.offset,
                record.topic,
                record.partition,
                why.value,
                f" ({reason})" if reason else "",
                level=logging.WARNING,
            )
