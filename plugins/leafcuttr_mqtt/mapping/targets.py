"""Where the messages of an MQTT topic go, with what is the same for all of them: encoded keys and headers, and the
partition."""

from typing import TYPE_CHECKING, Final, NamedTuple

from leafcuttr_mqtt.mapping.outcomes import Refusal
from leafcuttr_mqtt.mapping.records import body_of, fixed_headers, with_others
from leafcuttr_mqtt.mapping.rules import Destination
from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.packets.types import ReasonCode
from leafcuttr_sdk.batches.builder import EncodedHeaders, EncodedKey, encode_key
from leafcuttr_sdk.batches.partitioner import Sticky, partition_of

if TYPE_CHECKING:
    from leafcuttr_sdk.topics import Topics

_PARTITIONS: Final = 1 << 24
DEFAULT_LIMIT: Final = 1_048_588
"""Kafka's default of `max.message.bytes`, for a topic that does not say it."""


class KafkaTopic:
    """A Kafka topic that messages go to."""

    __slots__ = ("count", "limit", "name", "number", "sticky")

    def __init__(self, name: str, number: int) -> None:
        self.name: Final = name
        self.number: Final = number
        """Among those of a writer: places are made of it."""
        self.count = 0
        """Of partitions; 0: there is no such topic."""
        self.limit = DEFAULT_LIMIT
        """Bytes of a batch."""
        self.sticky = Sticky()

    def read(self, topics: "Topics") -> None:
        """See what there is now."""
        self.count = topics.partition_count(self.name)
        if self.count:
            self.limit = int(topics.configs(self.name).get("max.message.bytes") or DEFAULT_LIMIT)

    def place(self, partition: int) -> int:
        """One number for topic and partition: cheaper to look up than the two."""
        return self.number * _PARTITIONS + partition

    def partition_for(self, key: bytes | None, size: int) -> int:
        if key is None:
            return self.sticky.take(size, range(self.count))
        return partition_of(key, self.count)


class Prepared(NamedTuple):
    """What all records of one publisher in one topic share, with the same QoS and RETAIN flag."""

    kafka: KafkaTopic
    place: int
    """-1: without a key each record has a partition of its own."""
    partition: int
    key: EncodedKey
    headers: EncodedHeaders
    """Of a message without properties."""
    fixed: bytes
    """The body of `headers`."""


class Target:
    """A Kafka topic that the messages of one MQTT topic go to."""

    __slots__ = ("_destination", "_topic", "kafka", "prepared", "refusal")

    def __init__(self, topic: str, destination: Destination, kafka: KafkaTopic) -> None:
        self._topic = topic
        self._destination = destination
        self.kafka: Final = kafka
        self.prepared: dict[tuple[str, int, bool], Prepared] = {}
        """By client id, QoS and RETAIN flag."""
        wrong = destination.wrong
        self.refusal: Final = (
            None if wrong is None else Refusal(kafka.name, ReasonCode.TOPIC_NAME_INVALID, wrong)
        )
        """Why it takes no messages at all."""

    @property
    def captured(self) -> bool:
        """Whether the name is made of what a client has sent."""
        return self._destination.rule.kafka_topic.fixed is None

    def key(self, client_id: str) -> bytes | None:
        """The key of a record; None where the template says that there is none."""
        template, captures = self._destination.rule.key, self._destination.captures
        if not template.parts:
            return None

        def value_of(field: str) -> str:
            if field == "topic":
                return self._topic
            return client_id if field == "client_id" else captures[int(field) - 1]

        return template.render(value_of).encode()

    def prepare(self, message: Message) -> Prepared | None:
        """What is not in `prepared` yet; None as long as there is no such Kafka topic."""
        kafka = self.kafka
        if not kafka.count:
            return None
        key = self.key(message.client_id)
        partition = -1 if key is None else partition_of(key, kafka.count)
        fixed = body_of(fixed_headers(self._topic, message.qos, message.retain, message.client_id))
        found = Prepared(
            kafka,
            -1 if key is None else kafka.place(partition),
            partition,
            encode_key(key),
            with_others(fixed, []),
            fixed,
        )
        self.prepared[message.client_id, message.qos, message.retain] = found
        return found
