"""The Kafka topics of this broker that messages are stored in."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Final

from leafcuttr_mqtt.mapping.fields import DEFAULT_KEY
from leafcuttr_mqtt.mapping.rules import Destination, Rule, Rules
from leafcuttr_mqtt.mapping.targets import KafkaTopic, Target
from leafcuttr_mqtt.mapping.templates import parse
from leafcuttr_mqtt.mapping.turn import Turn
from leafcuttr_mqtt.topics.cache import TopicCache
from leafcuttr_sdk.errors import TopicAlreadyExists

if TYPE_CHECKING:
    from leafcuttr_sdk.topics import Topics

TARGET_BYTES: Final = 1000
"""About what a target takes in the cache, with what is prepared for one publisher."""
CACHE_BYTES: Final = 32 * 1024 * 1024
MAX_PREPARED: Final = 32_768
"""Publishers and topics for which keys and headers are remembered."""
LETTER_EXTRA_BYTES: Final = 64 * 1024
"""What the record of a dead letter may have beside the packet that brought the message."""


class KafkaWriter:
    """What is known of the Kafka topics, and the targets of recent MQTT topics.

    `dead_letters` is the Kafka topic for refused messages, `max_message_bytes` what it has to take at least."""

    def __init__(
        self,
        topics: "Topics",
        rules: Rules,
        dead_letters: str = "mqtt-dead-letters",
        max_message_bytes: int = 1024 * 1024,
    ) -> None:
        self.dead_letters: Final = dead_letters
        self._topics = topics
        self._rules = rules
        self._kafka: dict[str, KafkaTopic] = {}
        """Those that exist."""
        self._numbers = count()
        self._cache: TopicCache[tuple[Target, ...]] = TopicCache(CACHE_BYTES)
        self._prepared = 0
        self._letters = Rule("#", parse(dead_letters), parse(DEFAULT_KEY, ("topic",)), None)
        self._letter_bytes = max_message_bytes + LETTER_EXTRA_BYTES
        self._end: Final[Callable[[], None]] = topics.on_change(self._changed)

    def targets(self, topic: str, via: Sequence[str] = ()) -> tuple[Target, ...]:
        """Where the messages of an MQTT topic are stored, but for the Kafka topics that they come from; empty if they
        are in none. To be asked for each message: it changes with the Kafka topics."""
        found = self._cache.recent.get(topic)
        if found is None:
            found = self._cache.get(topic)
            if found is None:
                found = self._find(topic)
        if via and found:
            return tuple([target for target in found if target.kafka.name not in via])
        return found

    def end(self) -> None:
        """The writer is not used any more."""
        self._end()

    def begin(self) -> Turn:
        """A turn without messages."""
        return Turn(self)

    def target(self, topic: str, kafka_topic: str) -> Target | None:
        """The one of these that is a Kafka topic."""
        return next((each for each in self.targets(topic) if each.kafka.name == kafka_topic), None)

    def letter_target(self, topic: str) -> Target:
        """Where the dead letters of an MQTT topic go."""
        letters = Destination(self._letters, self.dead_letters, (), None)
        return Target(topic, letters, self._kafka_topic(self.dead_letters))

    async def create(self, kafka_topic: str) -> None:
        """Create a topic, if the broker allows it. Raises BrokerError."""
        if kafka_topic != self.dead_letters:
            await self._topics.ensure(kafka_topic)
            return
        with suppress(TopicAlreadyExists):
            await self._topics.create(kafka_topic, configs={"max.message.bytes": str(self._letter_bytes)})

    def note_prepared(self) -> None:
        """One more publisher is remembered: with too many, all are forgotten."""
        self._prepared += 1
        if self._prepared > MAX_PREPARED:
            self._forget()

    def _find(self, topic: str) -> tuple[Target, ...]:
        found = tuple(
            [
                Target(topic, each, self._kafka_topic(each.kafka_topic))
                for each in self._rules.destinations(topic)
            ]
        )
        # What a client can make up is remembered where it is cheap only: clients name Kafka topics that there are not.
        if all(target.kafka.count or target.refusal is not None for target in found):
            self._cache.put(topic, found, len(found) * TARGET_BYTES)
        return found

    def _kafka_topic(self, name: str) -> KafkaTopic:
        found = self._kafka.get(name)
        if found is None:
            found = KafkaTopic(name, next(self._numbers))
            found.read(self._topics)
            if found.count:
                self._kafka[name] = found
        return found

    def _changed(self, name: str) -> None:
        kafka = self._kafka.get(name)
        if kafka is not None:
            kafka.read(self._topics)
            if not kafka.count:
                del self._kafka[name]
            self._forget()

    def _forget(self) -> None:
        self._cache.clear()
        self._prepared = 0
