"""What the parts of a connection see of the connection and of its read, which import them."""

from typing import TYPE_CHECKING, Protocol, TypeAlias

from leafcuttr_mqtt.routing.work import Work

if TYPE_CHECKING:
    from collections.abc import Callable

    from leafcuttr_mqtt.mapping.outcomes import Failure
    from leafcuttr_mqtt.messages import Message
    from leafcuttr_mqtt.packets.frames import PublishFrames
    from leafcuttr_mqtt.packets.types import Packet, PubRec, ReasonCode, Version
    from leafcuttr_mqtt.routing.clients import Client
    from leafcuttr_mqtt.routing.work import Gathered
    from leafcuttr_mqtt.server.running import Running
    from leafcuttr_mqtt.server.slow_writer import SlowWriter
    from leafcuttr_mqtt.server.states import Life, Stage
    from leafcuttr_mqtt.session.conversation import Conversation
    from leafcuttr_mqtt.session.events import Event
    from leafcuttr_sdk.principals import Principal

Entry: TypeAlias = "tuple[Message, Gathered | None, int] | None"
"""Of an event: its message, where it is mapped the lane that it is written by, and its place there; None for what is
no message, and for one that is not published."""


class Served(Protocol):
    """One connection. Nothing of this waits."""

    version: "Version"
    client: "Client | None"
    """None until its client is let in."""
    slow: "SlowWriter | None"
    """Where its client has not taken all that was sent."""
    state: "Life"

    @property
    def read(self) -> "UnderWay | None":
        """The one that is under way."""
        ...

    @property
    def peer(self) -> str: ...

    @property
    def listener(self) -> str: ...

    @property
    def running(self) -> "Running": ...

    @property
    def conversation(self) -> "Conversation": ...

    @property
    def fluent(self) -> bool: ...

    def send_frame(self, frames: "PublishFrames", retain: bool, identifiers: tuple[int, ...]) -> None: ...

    def put(self, data: bytes) -> None:
        """To be sent at the end of the turn."""
        ...

    def put_packet(self, packet: "Packet") -> None: ...

    def send_soon(self) -> None:
        """At the end of this turn."""
        ...

    def wait_for_store(self) -> None:
        """What is to be sent says that what was noted is stored: it is held back until that is so."""
        ...

    def begin(self, read: "UnderWay") -> None:
        """It is under way from now on."""
        ...

    def read_is_over(self) -> None:
        """The read under way is answered, or let go of."""
        ...

    def leaves(self) -> None:
        """DISCONNECT has come."""
        ...

    def lost(self) -> None:
        """The client has gone."""
        ...

    def give_up(self) -> None:
        """What it has to store cannot be stored."""
        ...

    def touched(self) -> None:
        """The session has something to send."""
        ...

    def accepted(self, keep_alive_s: int) -> None:
        """Its client is in."""
        ...

    def expires_at(self, expires_ms: int) -> None:
        """Its client has to authenticate again by then."""
        ...

    def holds_while(self, still_holds: "Callable[[], bool]") -> None:
        """What its client has logged in with is good for so long."""
        ...

    def take_quota(self, principal: "Principal | None") -> None:
        """It is held back by what holds for this principal."""
        ...

    def end(
        self,
        reason: "ReasonCode",
        text: str = "",
        *,
        at_fault: bool = False,
        log: str = "",
        said: bytes | None = None,
    ) -> None:
        """End it. `log` is what the log says in the place of the text; with `at_fault` it is a warning."""
        ...


class UnderWay(Work, Protocol):
    """A read of a connection, while its packets are answered."""

    at: int
    """The first event that is not answered."""
    failures: "dict[int, Failure] | None"
    """Messages that are not stored, by their places among the events."""
    numbers: dict[int, tuple[int, int]] | None
    """Of messages with QoS 2 in a session that outlives the connection: in the session, and of the records."""
    verdicts: "dict[int, PubRec] | None"
    """Of messages with QoS 2 that were refused, by packet identifier."""
    held_since: float
    """By trio's clock; 0: it is not held back."""
    stage: "Stage"
    events: "list[Event]"
    entries: "list[Entry]"
    """One for each event."""
    lanes: "list[Gathered]"

    @property
    def connection(self) -> Served: ...

    @property
    def client(self) -> "Client": ...

    @property
    def held_by(self) -> str: ...

    def forget(self) -> None: ...
