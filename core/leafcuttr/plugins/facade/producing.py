"""Produce and append, for plugins: records become batches, batches go into the log with those of other callers.

A record that can never be stored (larger than the topic allows, a time that it does not allow, no key where it is
compacted, a header that has no UTF-8) is refused by itself; the others of its call are stored. Encoding goes on in
short turns.

Longer than other modules because the steps of one call, which `produce_batch`, a producer and a transaction go through
in ways of their own, stand beside the rules for its records.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from leafcuttr.errors import (
    BrokerError,
    InvalidRecord,
    InvalidTimestamp,
    InvalidTopic,
    MessageTooLarge,
    StorageError,
    UnknownTopicOrPartition,
)
from leafcuttr.log.append.rules import LARGE, LONG_MAX, Origin
from leafcuttr.log.append.staged import Staged
from leafcuttr.log.appender import AppendCall, AppendRequest, AppendResult
from leafcuttr.log.log import Log
from leafcuttr.plugins.facade.topics import ensured
from leafcuttr.runtime.pacing import Pace
from leafcuttr.state import topic_names
from leafcuttr.state.broker import Broker
from leafcuttr.state.topic_owners import check_owner
from leafcuttr.state.topics import Topic
from leafcuttr.wire.batch import ATTRIBUTES_AT, TRANSACTIONAL
from leafcuttr_sdk import Appended, NewBatch, Produced, Record, TopicPartition
from leafcuttr_sdk.batches.builder import BatchBuilder, NewRecord
from leafcuttr_sdk.batches.partitioner import Sticky, partition_of

if TYPE_CHECKING:
    from leafcuttr.plugins.facade.acting.rights import Rights

_SLICE: Final = 200
"""Records that are encoded between two readings of the clock: a tenth of a millisecond."""
_AT_ONCE: Final = 50
"""Batches that are made and staged in one step of the loop: half a millisecond."""
NOT_ALONE: Final = "refused because of other records of its batch"

Write = Callable[[Sequence[AppendRequest]], Awaitable[Sequence[AppendResult]]]
"""Appends batches: a result for each, in their order."""


class Producing:
    """The writing part of the facade."""

    def __init__(self, core: Broker, plugin: str | None = None) -> None:
        self._core = core
        self._plugin = plugin
        self._write: Write = core.appender.append
        self._write_lent: Write = partial(core.appender.append, lent=True)
        self._in_transaction = False
        self.rights: Rights | None = None
        self._sticky: dict[bytes, Sticky] = {}  # by the topic's id
        core.topics.on_deleted.append(self._topic_deleted)

    def in_transaction(self, write: Write, write_lent: Write) -> "Producing":
        """The same for a transaction, whose batches go to these. What is `lent` are the bytes of `append`."""
        part = copy(self)
        part._write, part._write_lent, part._in_transaction = write, write_lent, True
        return part

    def acting_for(self, rights: "Rights") -> "Producing":
        """The same for a client, who may do what these say."""
        part = copy(self)
        part.rights = rights
        return part

    async def produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        *,
        headers: tuple[tuple[str, bytes | None], ...] = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> Produced:
        """See `leafcuttr_sdk.Broker.produce`."""
        record = Record(value, key, headers, timestamp)
        (answer,) = await self.produce_batch(topic, (record,), partitions=(partition,))
        if isinstance(answer, BrokerError):
            raise answer
        return answer

    async def produce_batch(
        self, topic: str, records: Sequence[Record], *, partitions: Sequence[int | None] | None = None
    ) -> list[Produced | BrokerError]:
        """See `leafcuttr_sdk.Broker.produce_batch`."""
        if partitions is not None and len(partitions) != len(records):
            raise ValueError(f"{len(partitions)} partitions for {len(records)} records")
        found = self.existing(topic) or await self.ensured(topic)
        batches = self.batches(found, records, partitions)
        await self.write((batches,))
        return batches.answers()

    def existing(self, topic: str) -> Topic | None:
        """The topic to produce to, if it exists. Raises InvalidTopic, TopicAuthorizationFailed."""
        if topic in topic_names.INTERNAL:
            raise InvalidTopic(f"Topic '{topic}' is the broker's own: nobody else writes to it.")
        if self.rights is not None:
            self.rights.need_to_write(topic)
        found = self._core.topics.by_name.get(topic)
        if found is not None:
            check_owner(found, self._plugin)
        return found

    async def ensured(self, topic: str) -> Topic:
        """The same, created if need be. Raises UnknownTopicOrPartition, InvalidTopic, TopicAuthorizationFailed,
        StorageError."""
        if self.rights is not None and topic not in self._core.topics.by_name:
            self.rights.need_to_create(topic)
        found = await ensured(self._core, topic)
        check_owner(found, self._plugin)
        return found

    def batches(
        self, topic: Topic, records: Sequence[Record], partitions: Sequence[int | None] | None
    ) -> "RecordBatches":
        """These records, to be written."""
        return RecordBatches(topic, self._sticky_of(topic), self._core.clock.now_ms(), records, partitions)

    async def write(self, groups: "Sequence[RecordBatches]") -> None:
        """Encode the records and append them, in short turns; then each of the groups has its answers."""
        pace = Pace()
        for batches in groups:
            while batches.taken < batches.count:
                if batches.taken or batches is not groups[0]:
                    await pace.turn()
                batches.take(min(batches.taken + _SLICE, batches.count))
        requested: list[AppendRequest] = []
        for batches in groups:
            for each in batches.made:
                await pace.turn()
                builder = each.builder
                whole = (
                    builder.finish()
                    if builder.size <= LARGE
                    else await trio.to_thread.run_sync(builder.finish)
                )
                requested.append(AppendRequest(each.log, whole, Origin.ENCODER))
        self._count(requested)
        await self._answer(groups, await self._write(requested))

    def begin(self, groups: "Sequence[RecordBatches]") -> AppendCall | None:
        """The same in one step, for few records. The call is to be given to `complete` if it is not done, and else to
        `answer_at_once`. None if they are too many batches for one step: then `write` goes on."""
        for batches in groups:
            batches.take(batches.count)
        made = [each for batches in groups for each in batches.made]
        if len(made) > _AT_ONCE:
            return None
        requested = [AppendRequest(each.log, each.builder.finish(), Origin.ENCODER) for each in made]
        self._count(requested)
        return self._core.appender.begin(requested)

    def begin_one(self, topic: Topic, record: Record) -> "tuple[_Made, AppendCall] | None":
        """`begin` for one record at less cost. None, and nothing has happened, where a rule of the topic might refuse
        it, or filters change it."""
        value, key, headers, timestamp = record
        config, partitions = topic.config, topic.partitions
        if timestamp is not None or partitions[0].log.chain is not None:
            return None
        if key is not None:
            partition = partition_of(key, len(partitions))
        elif config.compact:
            return None
        else:
            partition = self._sticky_of(topic).take(0 if value is None else len(value), _Online(topic))
        made = _Made(partition, partitions[partition].log, config.max_message_bytes)
        if made.log.offline is not None:
            return None
        now_ms = self._core.clock.now_ms()
        try:
            if not made.builder.extend_records(((value, key, headers, now_ms),)):
                return None
        except UnicodeEncodeError:
            return None
        made.numbers.append(0)
        made.timestamps.append(now_ms)
        request = AppendRequest(made.log, made.builder.finish(), Origin.ENCODER)
        self._count((request,))
        return made, self._core.appender.begin((request,))

    def batches_of_one(self, topic: Topic, records: Sequence[Record], made: "_Made") -> "RecordBatches":
        """The batches that `begin_one` has begun, for `complete` and `answer_at_once`."""
        batches = self.batches(topic, records, None)
        batches.made.append(made)
        batches.taken = 1
        return batches

    async def complete(self, groups: "Sequence[RecordBatches]", call: AppendCall) -> None:
        """Wait for a call that was begun."""
        await self._answer(groups, await self._core.appender.complete(call))

    def answer_at_once(self, groups: "Sequence[RecordBatches]", call: AppendCall) -> None:
        """Of a call that was begun and is done."""
        outcomes = iter(call.results)
        for batches in groups:
            for each, outcome in zip(batches.made, outcomes, strict=False):
                batches.answer(each, self._said(batches.topic, outcome), 0, len(each.numbers))

    async def _answer(self, groups: "Sequence[RecordBatches]", results: Sequence[AppendResult]) -> None:
        pace, outcomes = Pace(), iter(results)
        for batches in groups:
            for each, outcome in zip(batches.made, outcomes, strict=False):
                said = self._said(batches.topic, outcome)
                for start in range(0, len(each.numbers), _SLICE):
                    await pace.turn()
                    batches.answer(each, said, start, start + _SLICE)

    def _topic_deleted(self, topic: Topic) -> None:
        self._sticky.pop(topic.id, None)

    def _sticky_of(self, topic: Topic) -> Sticky:
        sticky = self._sticky.get(topic.id)
        if sticky is None:
            sticky = self._sticky[topic.id] = Sticky()
        return sticky

    async def append(self, batches: Sequence[NewBatch]) -> list[Appended | BrokerError]:
        """See `leafcuttr_sdk.Broker.append`."""
        answers: list[Appended | BrokerError | None] = [None] * len(batches)
        requested: list[AppendRequest] = []
        places: list[tuple[int, Topic]] = []
        for number, (partition, batch) in enumerate(batches):
            try:
                found, log = self._writable(partition)
                if (
                    len(batch) > ATTRIBUTES_AT + 1
                    and batch[ATTRIBUTES_AT + 1] & TRANSACTIONAL
                    and not self._in_transaction
                ):
                    raise InvalidRecord(
                        f"A transactional batch for {partition} outside of a transaction: see Broker.transaction."
                    )
            except BrokerError as error:
                answers[number] = error.with_traceback(None)
            else:
                requested.append(AppendRequest(log, batch, Origin.CLIENT))
                places.append((number, found))
        self._count(requested)
        outcomes = await self._write_lent(requested)
        for (number, found), outcome in zip(places, outcomes, strict=True):
            answers[number] = (
                Appended._make(outcome) if isinstance(outcome, Staged) else self._told(found, outcome)
            )
        return [answer for answer in answers if answer is not None]

    def _count(self, requested: Sequence[AppendRequest]) -> None:
        """Of the client's quota."""
        if self.rights is not None:
            self.rights.produced(sum(len(each.batch) for each in requested))

    def _writable(self, partition: TopicPartition) -> tuple[Topic, Log]:
        if partition.topic in topic_names.INTERNAL:
            raise InvalidTopic(f"Topic '{partition.topic}' is the broker's own: nobody else writes to it.")
        if self.rights is not None:
            self.rights.need_to_write(partition.topic)
        found = self._core.topics.partition(partition)
        check_owner(found.topic, self._plugin)
        return found.topic, found.log

    def _said(self, topic: Topic, outcome: AppendResult) -> AppendResult:
        return outcome if isinstance(outcome, Staged) else self._told(topic, outcome)

    def _told(self, topic: Topic, error: BrokerError) -> BrokerError:
        """The log of a topic that was deleted meanwhile says that it is offline."""
        if isinstance(error, StorageError) and self._core.topics.by_id.get(topic.id) is None:
            return UnknownTopicOrPartition(f"Topic '{topic.name}' was deleted.")
        return error


class _Online:
    """The partitions of a topic that take records, as they are when they are gone through."""

    __slots__ = ("_topic",)

    def __init__(self, topic: Topic) -> None:
        self._topic = topic

    def __iter__(self) -> Iterator[int]:
        return (each.index for each in self._topic.partitions if each.log.offline is None)


class _Made:
    """One batch in the making. `numbers` are its records' places in the call, `timestamps` theirs."""

    __slots__ = ("builder", "log", "numbers", "partition", "timestamps")

    def __init__(self, partition: int, log: Log, max_bytes: int) -> None:
        self.partition = partition
        self.log = log
        self.builder = BatchBuilder(max_bytes)
        self.numbers: list[int] = []
        self.timestamps: list[int] = []

    def produced(self, topic: str, outcome: Staged, index: int) -> Produced:
        """What became of one of its records."""
        appended = outcome.log_append_time
        timestamp = self.timestamps[index] if appended < 0 else appended
        return Produced(topic, self.partition, outcome.base_offset + index, timestamp)


class RecordBatches:
    """The batches that the records of one call become; `made` in the order in which they are appended."""

    def __init__(
        self,
        topic: Topic,
        sticky: Sticky,
        now_ms: int,
        records: Sequence[Record],
        partitions: Sequence[int | None] | None,
    ) -> None:
        self.topic = topic
        self.count = len(records)
        self.taken = 0
        self._sticky = sticky
        self._now_ms = now_ms
        self._records = records
        self._partitions = partitions
        self._partition_count = len(topic.partitions)
        config = topic.config
        self._limit = config.max_message_bytes
        # Filters may give a record another time, or a key: then both are checked behind them, with the whole batch.
        chain = topic.partitions[0].log.chain
        checked_here = chain is None or not chain.has_filters
        self._wants_key = config.compact and checked_here
        self._earliest, self._latest = 0, LONG_MAX
        if checked_here and not config.log_append_time:
            self._earliest = max(now_ms - config.message_timestamp_before_max_ms, 0)
            self._latest = min(now_ms + config.message_timestamp_after_max_ms, LONG_MAX)
        self._last: dict[int, _Made] = {}
        self._answers: list[Produced | BrokerError | None] = [None] * len(records)
        self.made: list[_Made] = []

    def answers(self) -> list[Produced | BrokerError]:
        return [answer for answer in self._answers if answer is not None]

    def take(self, end: int) -> None:
        """Choose the partitions of the records from those that were `taken` to this one, and encode them."""
        start, self.taken = self.taken, end
        now_ms, count, partitions, topic, records = (
            self._now_ms, self._partition_count, self._partitions, self.topic, self._records,
        )  # fmt: skip
        earliest, latest = self._earliest, self._latest
        self._leave_offline()
        sticky, usable = self._sticky, _Online(topic)
        chosen: dict[int, tuple[list[int], list[NewRecord]]] = {}
        for number in range(start, end):
            value, key, headers, timestamp = records[number]
            if timestamp is None:
                timestamp = now_ms
            elif not earliest <= timestamp <= latest:
                self._answers[number] = InvalidTimestamp(
                    f"Timestamp {timestamp} is out of range. The timestamp should be within [{earliest}, {latest}]."
                )
                continue
            if key is None and self._wants_key:
                self._answers[number] = InvalidRecord(
                    f"Topic '{topic.name}' is compacted: a record without a key cannot be stored in it."
                )
                continue
            partition = None if partitions is None else partitions[number]
            if partition is None:
                if key is not None:
                    partition = partition_of(key, count)
                else:
                    partition = sticky.take(0 if value is None else len(value), usable)
            elif not 0 <= partition < count:
                self._answers[number] = UnknownTopicOrPartition(
                    f"Topic '{topic.name}' has {count} partition(s), there is no partition {partition}."
                )
                continue
            these = chosen.get(partition)
            if these is None:
                these = chosen[partition] = ([], [])
            these[0].append(number)
            these[1].append((value, key, headers, timestamp))
        for partition, (numbers, rows) in chosen.items():
            self._add(partition, numbers, rows)
        if end == self.count:
            # Where all records of a partition were refused.
            self.made = [made for made in self.made if made.numbers]

    def _leave_offline(self) -> None:
        """Records without a key go to another partition if theirs is offline."""
        at = self._sticky.partition
        if at >= 0 and self.topic.partitions[at].log.offline is not None:
            self._sticky.leave()

    def _add(self, partition: int, numbers: list[int], rows: list[NewRecord]) -> None:
        made = self._last.get(partition) or self._begin(partition)
        try:
            fits = made.builder.extend_records(rows)
        except UnicodeEncodeError:
            fits = False
        if fits:
            made.numbers += numbers
            made.timestamps += [row[3] for row in rows]
        elif len(rows) > 1:
            middle = len(rows) // 2
            self._add(partition, numbers[:middle], rows[:middle])
            self._add(partition, numbers[middle:], rows[middle:])
        else:
            self._add_alone(partition, made, numbers[0], rows[0])

    def _add_alone(self, partition: int, made: _Made, number: int, row: NewRecord) -> None:
        """One that does not fit into this batch, or into any."""
        try:
            if made.builder.count:
                made = self._begin(partition)
            if made.builder.extend_records((row,)):
                made.numbers.append(number)
                made.timestamps.append(row[3])
                return
            self._answers[number] = MessageTooLarge(
                f"The record is larger than max.message.bytes of topic '{self.topic.name}' allows, "
                f"{self._limit} bytes."
            )
        except UnicodeEncodeError as error:
            self._answers[number] = InvalidRecord(f"The name of a header cannot be written in UTF-8: {error}")

    def _begin(self, partition: int) -> _Made:
        last = self._last.get(partition)
        if last is not None and not last.builder.count:
            return last
        made = self._last[partition] = _Made(partition, self.topic.partitions[partition].log, self._limit)
        self.made.append(made)
        return made

    def answer(self, made: _Made, outcome: Staged | BrokerError, start: int, end: int) -> None:
        """What became of the records of one of the batches, from the one at `start` on."""
        answers, numbers = self._answers, made.numbers[start:end]
        if isinstance(outcome, Staged):
            name, partition, offset = self.topic.name, made.partition, outcome.base_offset + start
            appended = outcome.log_append_time
            for number, timestamp in zip(numbers, made.timestamps[start:end], strict=True):
                answers[number] = Produced(name, partition, offset, timestamp if appended < 0 else appended)
                offset += 1
        elif outcome.record_errors:
            reasons = {index: reason for index, reason in outcome.record_errors if start <= index < end}
            kind = InvalidTimestamp if isinstance(outcome, InvalidTimestamp) else InvalidRecord
            for index, number in enumerate(numbers, start):
                if index in reasons:
                    answers[number] = kind(reasons[index] or "refused")
                else:
                    answers[number] = InvalidRecord(NOT_ALONE)
        else:
            for number in numbers:
                answers[number] = outcome
