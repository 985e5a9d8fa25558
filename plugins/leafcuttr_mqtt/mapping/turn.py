"""The messages that are stored together in one turn of the loop.

    turn = writer.begin()
    for message in messages:
        turn.add(message, writer.targets(message.topic))
    while turn.pending:
        await turn.advance()
        turn.settle(await broker.append(turn.batches()))
    turn.failures       # what is not stored, by the number that `add` returned

One `append` may have batches of others beside them. It takes more than one round only where a topic was missing,
records were refused (those beside them are written again), or a partition has more than one batch: each round has one
of it, so that what is written again is not overtaken. Messages of a partition stay in their order if one turn is
settled before the next is begun.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from leafcuttr_mqtt.mapping.batches import Batch, PartitionRecords
from leafcuttr_mqtt.mapping.outcomes import CONCERNS_ONE, MAX_SPLITS, Failure, Outcomes, Refusal
from leafcuttr_mqtt.mapping.records import has_others, letter_headers, other_headers, with_number, with_others
from leafcuttr_mqtt.mapping.targets import KafkaTopic, Prepared, Target
from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.packets.types import ReasonCode
from leafcuttr_sdk.batches.builder import EncodedHeaders
from leafcuttr_sdk.errors import BrokerError, ErrorCode, StorageError
from leafcuttr_sdk.records import Appended, NewBatch
from leafcuttr_sdk.types import TopicPartition

if TYPE_CHECKING:
    from leafcuttr_mqtt.mapping.contracts import KafkaTopics


class Turn(Outcomes):
    """Messages that are stored together. A number, in the order of `add`, stands for each."""

    def __init__(self, writer: "KafkaTopics") -> None:
        super().__init__()
        self._writer = writer
        self._messages: list[Message] = []
        self._numbers: dict[int, int] = {}
        """Message numbers of those that have one."""
        self._partitions: dict[int, PartitionRecords] = {}
        """By place."""
        self._absent: dict[str, list[int]] = {}
        """What waits for a Kafka topic to be created."""
        self._waiting: dict[int, list[Batch]] = {}
        """By place, what is to be written in later rounds."""
        self._sent: list[Batch] = []
        self._splits = 0

    @property
    def pending(self) -> bool:
        """Whether there is something to write."""
        return bool(self._partitions or self._absent or self._waiting)

    def add(self, message: Message, targets: Sequence[Target], number: int | None = None) -> int:
        """Store a message in all of these. `number` is that of a message whose record has to be recognised later."""
        index = len(self._messages)
        self._messages.append(message)
        if number is not None:
            self._numbers[index] = number
        publisher = (message.client_id, message.qos, message.retain)
        for target in targets:
            prepared = target.prepared.get(publisher)
            if (
                prepared is None
                or prepared.place < 0
                or number is not None
                or message.user_properties
                or message.expires_ms is not None
                or message.content_type is not None
                or message.response_topic is not None
                or message.correlation_data is not None
                or message.payload_format is not None
                or message.via
            ):
                self._place(index, target)
                continue
            partition = self._partitions.get(prepared.place)
            if partition is None:
                partition = self._open(prepared.kafka, prepared.partition)
            partition.indexes.append(index)
            partition.records.append((message.payload, prepared.key, prepared.headers, message.arrived_ms))
        return index

    def again(self, message: Message, failure: Failure, number: int | None = None) -> int:
        """Store a message of an earlier turn in the Kafka topics that did not take it then."""
        index = self.add(message, (), number)
        self._take_over(index, failure)
        for kafka_topic in failure.missing:
            self._place_in(index, kafka_topic)
        return index

    def dead_letter(self, index: int) -> None:
        """Store a message that was refused among the dead letters. It is no failure then, but for Kafka topics that it
        is missing in, and unless the dead letters do not take it either."""
        self._begin_letter(index)
        self._place(index, self._writer.letter_target(self._messages[index].topic))

    async def advance(self) -> None:
        """Create the Kafka topics that there are not, as `auto.create.topics.enable` allows it. Without any it does not
        wait."""
        while self._absent:
            kafka_topic, indexes = self._absent.popitem()
            try:
                await self._writer.create(kafka_topic)
            except BrokerError as error:
                self._not_created(kafka_topic, indexes, error)
            else:
                for index in indexes:
                    self._place_in(index, kafka_topic, created=True)

    def batches(self) -> list[NewBatch]:
        """What is to be appended now; `settle` takes the answers."""
        sent: list[Batch] = []
        waiting, self._waiting = self._waiting, {}
        partitions, self._partitions = self._partitions, {}
        for place, partition in partitions.items():
            made = partition.batches(self._too_large)
            if len(made) == 1 and place not in waiting:
                sent += made
            elif made:
                waiting.setdefault(place, []).extend(made)
        for place, batches in waiting.items():
            sent.append(batches[0])
            if len(batches) > 1:
                self._waiting[place] = batches[1:]
        self._sent = sent
        return [
            NewBatch(TopicPartition(each.kafka.name, each.partition), each.builder.finish()) for each in sent
        ]

    def settle(self, answers: Sequence[Appended | BrokerError]) -> None:
        """Take the answers to `batches`, in their order."""
        sent, self._sent = self._sent, []
        for batch, answer in zip(sent, answers, strict=True):
            if isinstance(answer, BrokerError):
                self._failed(batch, answer)

    def _failed(self, batch: Batch, error: BrokerError) -> None:
        indexes, name = batch.indexes, batch.kafka.name
        reasons = {at: text for at, text in error.record_errors if 0 <= at < len(indexes)}
        if reasons:
            for at, text in reasons.items():
                self._not_stored(indexes[at], name, error.code, text or _text(error))
            self._repeat(batch, [[index for at, index in enumerate(indexes) if at not in reasons]])
        elif len(indexes) > 1 and error.code in CONCERNS_ONE and self._may_split(error):
            middle = len(indexes) // 2
            self._repeat(batch, [indexes[:middle], indexes[middle:]])
        else:
            full = isinstance(error, StorageError) and error.disk_full
            for index in indexes:
                self._not_stored(index, name, error.code, _text(error), disk_full=full)

    def _may_split(self, error: BrokerError) -> bool:
        """What is for good is never said of a record that is not at fault."""
        if error.code is ErrorCode.UNKNOWN_SERVER_ERROR:
            self._splits += 1
        return self._splits <= MAX_SPLITS

    def _repeat(self, batch: Batch, parts: Sequence[Sequence[int]]) -> None:
        """Write messages of a batch again, before all else of its partition."""
        made: list[Batch] = []
        for indexes in parts:
            records = PartitionRecords(batch.kafka, batch.partition)
            for index in indexes:
                self._place_in(index, batch.kafka.name, records)
            made += records.batches(self._too_large)
        if made:
            place = batch.kafka.place(batch.partition)
            self._waiting[place] = made + self._waiting.get(place, [])

    def _place_in(
        self,
        index: int,
        kafka_topic: str,
        partition: PartitionRecords | None = None,
        *,
        created: bool = False,
    ) -> None:
        topic = self._messages[index].topic
        if index in self._letters and kafka_topic == self._writer.dead_letters:
            target: Target | None = self._writer.letter_target(topic)
        else:
            target = self._writer.target(topic, kafka_topic)
        if target is None or (created and not target.kafka.count):
            self._delay(index, kafka_topic, "it was deleted")
        else:
            self._place(index, target, partition)

    def _place(self, index: int, target: Target, partition: PartitionRecords | None = None) -> None:
        """Put a message into a batch, whatever it is like; of `partition`, if that is given."""
        if target.refusal is not None:
            self._refuse(index, target.refusal)
            return
        message = self._messages[index]
        prepared = target.prepared.get((message.client_id, message.qos, message.retain))
        if prepared is None:
            prepared = target.prepare(message)
            if prepared is None:
                self._absent.setdefault(target.kafka.name, []).append(index)
                return
            self._writer.note_prepared()
        if partition is None:
            kafka, number, place = prepared.kafka, prepared.partition, prepared.place
            if place < 0:
                number = kafka.partition_for(None, len(message.payload))
                place = kafka.place(number)
            partition = self._partitions.get(place) or self._open(kafka, number)
        headers = self._headers(index, message, prepared)
        partition.indexes.append(index)
        partition.records.append((message.payload, prepared.key, headers, message.arrived_ms))

    def _headers(self, index: int, message: Message, prepared: Prepared) -> EncodedHeaders:
        number = self._numbers.get(index)
        refusal = self._letters.get(index)
        if refusal is None and not has_others(message):
            return prepared.headers if number is None else with_number(prepared.fixed, number)
        others = other_headers(message, number)
        if refusal is not None and prepared.kafka.name == self._writer.dead_letters:
            others += letter_headers(refusal)
        return with_others(prepared.fixed, others)

    def _open(self, kafka: KafkaTopic, number: int) -> PartitionRecords:
        opened = self._partitions[kafka.place(number)] = PartitionRecords(kafka, number)
        return opened

    def _not_created(self, kafka_topic: str, indexes: Sequence[int], error: BrokerError) -> None:
        text = _text(error)
        absent = error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if absent:
            text = f"there is no Kafka topic {kafka_topic}, and auto.create.topics.enable is false"
        for index in indexes:
            target = self._writer.target(self._messages[index].topic, kafka_topic)
            if absent and index not in self._letters and target is not None and target.captured:
                # What clients make up is not waited for.
                self._refuse(index, Refusal(kafka_topic, ReasonCode.TOPIC_NAME_INVALID, text))
            else:
                self._not_stored(index, kafka_topic, error.code, text)

    def _too_large(self, kafka: KafkaTopic, index: int) -> None:
        text = f"the message is larger than Kafka topic {kafka.name} allows: {kafka.limit} bytes"
        self._refuse(index, Refusal(kafka.name, ReasonCode.QUOTA_EXCEEDED, text))


def _text(error: BrokerError) -> str:
    return str(error) or error.code.name
