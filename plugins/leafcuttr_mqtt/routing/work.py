"""What turns and those that use them know of one another."""

from typing import TYPE_CHECKING, Protocol

import trio

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from leafcuttr_mqtt.mapping.contracts import WriterTurn
    from leafcuttr_mqtt.mapping.outcomes import Failure


class Work(Protocol):
    """What is stored in a turn and goes on after it: a read of a connection, or a message of the broker's own."""

    waits_for: int
    """Lanes that it is in."""

    def letters(self, gathered: "Gathered") -> "Sequence[int]":
        """The messages of a lane that go to the dead letters if they are refused, by their numbers."""
        ...

    def stored(self) -> None:
        """All lanes are done: `Gathered.failures` says what is not stored. It does not wait."""
        ...

    def failed(self) -> None:
        """`stored` has raised."""
        ...


class Sender(Protocol):
    """A connection that has something to send at the end of a turn."""

    @property
    def needs_store(self) -> bool:
        """Whether something of what is to be sent, sealed or not, says that what was noted is stored."""
        ...

    def seal(self) -> None:
        """Take what is to be sent: all that was decided before now."""
        ...

    def send(self) -> None:
        """Send what was sealed. It does not wait."""
        ...

    def give_up(self) -> None:
        """What was sealed will not be allowed to go: end the connection."""
        ...


class Gathered:
    """One append in the making."""

    __slots__ = ("began", "lane", "letters", "number", "turn", "works")

    def __init__(self, number: int, lane: str, turn: "WriterTurn") -> None:
        self.number = number
        """In the order in which they were begun, from 0 on."""
        self.lane = lane
        """The Kafka topic; empty for all that have no lane of their own."""
        self.turn = turn
        self.began = trio.current_time()
        self.works: list[Work] = []
        self.letters: Collection[int] = ()
        """Messages that were refused, and are among the dead letters, by their numbers."""

    @property
    def failures(self) -> "dict[int, Failure]":
        return self.turn.failures
