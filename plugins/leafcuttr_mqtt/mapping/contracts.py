"""What stores messages in Kafka topics, be they of this broker (`writer`, `turn`) or of another cluster (`cluster`)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from leafcuttr_mqtt.mapping.outcomes import Failure
from leafcuttr_mqtt.mapping.targets import Target
from leafcuttr_mqtt.messages import Message

if TYPE_CHECKING:
    from leafcuttr_sdk.errors import BrokerError
    from leafcuttr_sdk.records import Appended, NewBatch


class WriterTurn(Protocol):
    """Messages that are stored together. The module `turn` says in which steps."""

    @property
    def failures(self) -> dict[int, Failure]:
        """What is not stored, by the numbers of messages."""
        ...

    @property
    def pending(self) -> bool:
        """Whether there is something to write."""
        ...

    def add(self, message: Message, targets: Sequence[Target], number: int | None = None) -> int:
        """Store a message in all of these; its number in the turn. `number` is that of a message whose record has to be
        recognised later."""
        ...

    def again(self, message: Message, failure: Failure, number: int | None = None) -> int:
        """Store a message of an earlier turn in the Kafka topics that did not take it then."""
        ...

    def dead_letter(self, index: int) -> None:
        """Store a message that was refused among the dead letters. It is no failure then, but for Kafka topics that it
        is missing in, and unless the dead letters do not take it either."""
        ...

    async def advance(self) -> None:
        """Do what has to be waited for: `batches` has what is left to be appended then."""
        ...

    def batches(self) -> "list[NewBatch]":
        """What is to be appended now; `settle` takes the answers."""
        ...

    def settle(self, answers: "Sequence[Appended | BrokerError]") -> None:
        """Take the answers to `batches`, in their order."""
        ...


class KafkaTopics(Protocol):
    """The Kafka topics of this broker, as a turn sees them."""

    @property
    def dead_letters(self) -> str:
        """The Kafka topic for refused messages."""
        ...

    def target(self, topic: str, kafka_topic: str) -> Target | None:
        """The target of an MQTT topic that is this Kafka topic."""
        ...

    def letter_target(self, topic: str) -> Target:
        """Where the dead letters of an MQTT topic go."""
        ...

    async def create(self, kafka_topic: str) -> None:
        """Create a topic, if the broker allows it. Raises BrokerError."""
        ...

    def note_prepared(self) -> None:
        """One more publisher is remembered."""
        ...


class Writer(Protocol):
    """Where the messages of MQTT topics go."""

    def targets(self, topic: str, via: Sequence[str] = ()) -> tuple[Target, ...]:
        """Where the messages of an MQTT topic are stored, but for the Kafka topics that they come from; empty if they
        are in none. To be asked for each message: it changes with the Kafka topics."""
        ...

    def begin(self) -> WriterTurn:
        """A turn without messages."""
        ...

    def end(self) -> None:
        """The writer is not used any more."""
        ...
