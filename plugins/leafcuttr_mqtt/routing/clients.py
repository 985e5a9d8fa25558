"""A client identifier, as routing sees it: its session, and its connection while it has one."""

from typing import TYPE_CHECKING, Final, Protocol

from leafcuttr_mqtt.packets.types import Version

if TYPE_CHECKING:
    from leafcuttr_mqtt.packets.frames import PublishFrames
    from leafcuttr_mqtt.packets.types import Packet, ReasonCode, Will
    from leafcuttr_mqtt.routing.retained import Feed
    from leafcuttr_mqtt.routing.rights import Publishing, Who
    from leafcuttr_mqtt.session.session import Session
    from leafcuttr_mqtt.storage.state import StoredSession, Unfinished


class Attached(Protocol):
    """A connection, as routing sees it. None of this waits; what is sent goes out at the end of the turn."""

    version: Version

    @property
    def peer(self) -> str:
        """The client's address."""
        ...

    @property
    def listener(self) -> str:
        """The prefix of the settings of the listener that it came in by."""
        ...

    @property
    def fluent(self) -> bool:
        """Whether a message with QoS 0 may go out past the queue: nothing waits there, and the client has no limit that
        it would be checked for."""
        ...

    def send_frame(self, frames: "PublishFrames", retain: bool, identifiers: tuple[int, ...]) -> None:
        """Send this message with QoS 0."""
        ...

    def put_packet(self, packet: "Packet") -> None:
        """Send this packet."""
        ...

    def wait_for_store(self) -> None:
        """What is to be sent says that what was noted is stored: it is held back until that is so."""
        ...

    def touched(self) -> None:
        """There is something new in the session's queue."""
        ...

    def send_soon(self) -> None:
        """There is something to send."""
        ...

    def end(self, reason: "ReasonCode", text: str = "") -> None:
        """End it: with DISCONNECT in 5.0."""
        ...


_NO_FEEDS: Final["dict[str, Feed]"] = {}


class Client:
    """A client identifier that has a session. The key of its subscriptions."""

    __slots__ = (
        "apart",
        "connected_ms",
        "connection",
        "fed",
        "feeds",
        "filter_bytes",
        "going_will",
        "noted",
        "offered",
        "publishing",
        "repeated",
        "session",
        "stored",
        "unfinished",
        "user_name",
        "waits_in_log",
        "who",
    )

    def __init__(self, session: "Session", stored: "StoredSession") -> None:
        self.session = session
        self.stored = stored
        """What the store knows it by."""
        self.connection: Attached | None = None
        self.noted = False
        """Whether the store has it: it outlives its connection, has a will, or has messages in the log."""
        self.waits_in_log = False
        """Whether its messages with QoS 1 and 2 are stored before they are offered: it outlives its connection, or its
        client was so slow once that they had no place in memory. It stays so, which keeps them in order."""
        self.feeds: dict[str, Feed] = _NO_FEEDS
        """Retained messages that are still to be delivered, by the filters of subscriptions."""
        self.fed = 0
        """The sequence behind those that were delivered so far."""
        self.offered = 0
        """The sequence behind the deliveries that are stored, and were offered to the session, where all of its
        messages with QoS 1 and 2 are."""
        self.going_will: Will | None = None
        """One that is being published: the record of the session has it until it is stored."""
        self.connected_ms = 0
        self.apart: frozenset[str] = frozenset()
        """Client identifiers whose messages are not for its subscriptions with no local, as its own are not: that of a
        bridge from the broker that a bridge of this one leads to."""
        self.filter_bytes = 0
        """Of the session's subscriptions, in characters."""
        self.user_name: str | None = None
        self.who: Who | None = None
        """Whom it is for, where there are rights: the client that is connected, or was last."""
        self.publishing: Publishing | None = None
        """What the client may publish, where it has not all rights."""
        self.repeated: set[int] = set()
        """Packet identifiers with QoS 2 that came again while an earlier connection's message is being stored."""
        self.unfinished: dict[int, Unfinished] = {}
        """Messages with QoS 2 that some Kafka topics got before the last start, by packet identifier."""

    @property
    def client_id(self) -> str:
        return self.session.client_id

    @property
    def outlives(self) -> bool:
        """Whether the session outlives its connection: what is on its way in it is kept in the log."""
        return self.session.expiry_s > 0
