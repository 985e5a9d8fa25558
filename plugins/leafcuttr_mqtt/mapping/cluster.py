"""Kafka topics of another cluster that messages are stored in: at least once.

The writer and its turns are used as those of `writer` and `turn` are. They have no batches: `advance` returns
once the cluster has answered for all messages of the turn.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from leafcuttr_mqtt.mapping.fields import DEFAULT_KEY
from leafcuttr_mqtt.mapping.outcomes import Failure, Outcomes, Refusal
from leafcuttr_mqtt.mapping.producer import ClusterProducer, DeliveryError, OpenPeer
from leafcuttr_mqtt.mapping.records import fixed_headers, letter_headers, other_headers
from leafcuttr_mqtt.mapping.rules import Destination, Rule, Rules
from leafcuttr_mqtt.mapping.targets import KafkaTopic, Target
from leafcuttr_mqtt.mapping.templates import parse
from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.packets.types import ReasonCode
from leafcuttr_mqtt.topics.cache import TopicCache
from leafcuttr_sdk.errors import ErrorCode

if TYPE_CHECKING:
    from leafcuttr_sdk.errors import BrokerError
    from leafcuttr_sdk.records import Appended, NewBatch

TARGET_BYTES: Final = 500
_AT_ONCE: Final = 200
"""Records that are sent in one step of the loop."""


class ClusterWriter:
    """The targets of recent MQTT topics, and the way to the cluster. `run` has to be running."""

    def __init__(
        self,
        open_peer: OpenPeer,
        servers: str,
        client_id: str,
        properties: Mapping[str, str],
        rules: Rules,
        dead_letters: str,
        max_bytes: int = 64 * 1024 * 1024,
    ) -> None:
        """`max_bytes` is how much of records may be under way."""
        self.dead_letters: Final = dead_letters
        self.producer: Final = ClusterProducer(open_peer, servers, client_id, properties, max_bytes)
        self._rules = rules
        self._letters = Rule("#", parse(dead_letters), parse(DEFAULT_KEY, ("topic",)), None)
        self._cache: TopicCache[tuple[Target, ...]] = TopicCache()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """See `ClusterProducer.run`."""
        await self.producer.run(task_status=task_status)

    def targets(self, topic: str, via: Sequence[str] = ()) -> tuple[Target, ...]:
        """As `KafkaWriter.targets`. What comes from Kafka topics (`via`) comes from those of this broker."""
        found = self._cache.get(topic)
        if found is None:
            found = tuple(
                [
                    Target(topic, each, KafkaTopic(each.kafka_topic, -1))
                    for each in self._rules.destinations(topic)
                ]
            )
            self._cache.put(topic, found, len(found) * TARGET_BYTES)
        return found

    def begin(self) -> "ClusterTurn":
        """A turn without messages."""
        return ClusterTurn(self)

    def letter_target(self, topic: str) -> Target:
        """Where the dead letters of an MQTT topic go."""
        letters = Destination(self._letters, self.dead_letters, (), None)
        return Target(topic, letters, KafkaTopic(self.dead_letters, -1))

    def end(self) -> None:
        """The writer is not used any more."""


class ClusterTurn(Outcomes):
    """Messages that are stored together; see `turn.Turn`."""

    def __init__(self, writer: ClusterWriter) -> None:
        super().__init__()
        self._writer = writer
        self._messages: list[tuple[Message, int | None]] = []
        self._waiting: list[tuple[int, Target]] = []
        self._under_way = 0
        self._done = trio.Event()

    @property
    def pending(self) -> bool:
        """Whether there is something to store."""
        return bool(self._waiting)

    def add(self, message: Message, targets: Sequence[Target], number: int | None = None) -> int:
        """As `Turn.add`."""
        index = len(self._messages)
        self._messages.append((message, number))
        for target in targets:
            if target.refusal is not None:
                self._refuse(index, target.refusal)
            else:
                self._waiting.append((index, target))
        return index

    def again(self, message: Message, failure: Failure, number: int | None = None) -> int:
        """As `Turn.again`."""
        missing = failure.missing
        found = [each for each in self._writer.targets(message.topic) if each.kafka.name in missing]
        if failure.letter is not None and self._writer.dead_letters in missing:
            found = [each for each in found if each.kafka.name != self._writer.dead_letters]
            found.append(self._writer.letter_target(message.topic))
        index = self.add(message, found, number)
        self._take_over(index, failure)
        return index

    def dead_letter(self, index: int) -> None:
        """As `Turn.dead_letter`."""
        self._begin_letter(index)
        self._waiting.append((index, self._writer.letter_target(self._messages[index][0].topic)))

    async def advance(self) -> None:
        """Store all messages: returns once the cluster has answered for each of them. Cancelled: any of them may have
        been stored, or will be."""
        waiting, self._waiting = self._waiting, []
        self._under_way, self._done = len(waiting), trio.Event()
        for number, (index, target) in enumerate(waiting):
            if number % _AT_ONCE == _AT_ONCE - 1:
                await trio.lowlevel.checkpoint()
            self._send(index, target)
        if waiting:
            await self._done.wait()

    def batches(self) -> "list[NewBatch]":
        """None: nothing is appended here."""
        return []

    def settle(self, answers: "Sequence[Appended | BrokerError]") -> None:
        """There is nothing to answer."""

    def _send(self, index: int, target: Target) -> None:
        message, number = self._messages[index]
        headers = [
            *fixed_headers(message.topic, message.qos, message.retain, message.client_id),
            *other_headers(message, number),
        ]
        refusal = self._letters.get(index)
        if refusal is not None and target.kafka.name == self._writer.dead_letters:
            headers += letter_headers(refusal)
        self._writer.producer.send(
            target.kafka.name,
            target.key(message.client_id),
            message.payload,
            tuple(headers),
            message.arrived_ms,
            partial(self._told, index, target),
        )

    def _told(self, index: int, target: Target, error: DeliveryError | None) -> None:
        if error is not None:
            name = target.kafka.name
            if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and target.captured:
                # What clients make up is not waited for.
                text = f"there is no Kafka topic {name} in the cluster"
                self._refuse(index, Refusal(name, ReasonCode.TOPIC_NAME_INVALID, text))
            else:
                self._not_stored(index, name, error.code, error.text)
        self._under_way -= 1
        if not self._under_way:
            self._done.set()
