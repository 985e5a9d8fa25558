"""The few types that the broker and its plugins share."""

from typing import NamedTuple, Protocol

from leafcuttr_sdk._described import described


@described
class TopicPartition(NamedTuple):
    """A partition's name: topic and number. Prints as Kafka names its folder, `topic-0`."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Clock(Protocol):
    """The two times a broker lives by. Tests pass one that they move by hand."""

    def now_ms(self) -> int:
        """Wall clock: milliseconds since the Unix epoch. May jump."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary start that never go back; what timeouts are measured with. Any thread."""
        ...
