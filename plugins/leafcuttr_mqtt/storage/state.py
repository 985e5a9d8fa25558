"""What the store keeps, as plain data: sessions, what is on its way in them, retained messages. No I/O."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.packets.types import Will
from leafcuttr_mqtt.session.types import Subscription
from leafcuttr_mqtt.storage.sequences import Sequences
from leafcuttr_mqtt.storage.stored_queue import StoredQueue

_SESSION_BITS: Final = 64


def record_number(session: int, number: int) -> int:
    """What the header `mqtt.message.number` says of a QoS 2 message: the session by its number, and the message's own
    number in it (`Inbound.number_of`), which ends in the packet identifier. Unique, and rising in a session."""
    return (session << _SESSION_BITS) + number


def parts_of(record_number: int) -> tuple[int, int]:
    """Session, and number in it."""
    return record_number >> _SESSION_BITS, record_number & ((1 << _SESSION_BITS) - 1)


class Bucket(NamedTuple):
    """Some of the subscriptions of a session that has many."""

    session: int
    """Its number."""
    subscriptions: tuple[Subscription, ...]


class History(NamedTuple):
    """What a session is still to get of stored messages, for a subscription to `$replay/...`. All before `positions`
    is stored in its queue, or sent; all before `reached` too, if the next sequence of the session is `sequence` at
    least: both are written in one turn, to two topics."""

    filter: str
    since_ms: int | None
    offset: int
    """As the client has requested it, which counts where there are no positions."""
    positions: Mapping[tuple[str, int], int]
    """By Kafka topic and partition."""
    reached: Mapping[tuple[str, int], int]
    sequence: int


@dataclass(slots=True)
class SessionRecord:
    """A session but for what is on its way in it, as `__mqtt_sessions` has it. Of a session that ends with its
    connection it is there for its will only."""

    client_id: str
    number: int
    """Of this session, unique in the broker: a later session of the same client identifier has another one."""
    expiry_s: int = 0
    """The session expiry interval in seconds; 0: it ends with its connection."""
    connected_ms: int = 0
    """When its last connection began: milliseconds since 1970."""
    disconnected_ms: int | None = None
    """When its connection ended; None: there is one, or was one when the process ended."""
    subscriptions: tuple[Subscription, ...] = ()
    will: Will | None = None
    """Of its connection, or one that is still to be published."""
    will_due_ms: int | None = None
    """When the will is to be published, once the connection has ended."""
    user_name: str | None = None
    who: tuple[str, str, str] | None = None
    """Type and name of the principal of its client, and the address, where there are rights."""
    sent: int = 0
    """When its connection ended: all deliveries with lower sequences had been sent."""
    retained: tuple[str, ...] = ()
    """The filters of subscriptions, as they were sent, whose retained messages are not all in the queue."""
    histories: tuple[History, ...] = ()
    divided: bool = False
    """The subscriptions are in records of their own: see `session_records`."""


@dataclass(slots=True, eq=False)
class StoredSession:
    """By what the store knows a session: one object for as long as there is the session. Its fields but for the first
    three are the store's own."""

    client_id: str
    number: int
    next_sequence: int = 0
    """What the next delivery with QoS 1 or 2 gets."""
    released: set[int] = field(default_factory=set)
    """Sequences whose PUBREC came and whose PUBCOMP did not."""
    received: dict[int, int] = field(default_factory=dict)
    """QoS 2 messages that came and whose PUBREL did not: packet identifier -> number."""
    next_number: int = 0
    """Above the numbers of all QoS 2 messages that came."""
    proven_at: int = -1
    """The first offset of the queue that the fields above need; -1: none."""
    first: int = 0
    """No message of a delivery with a lower sequence is needed."""
    done: Sequences = field(default_factory=Sequences)
    """Higher ones of which the same is true."""
    ended: bool = False

    def needs(self, sequence: int) -> bool:
        """Whether the message of this delivery is needed."""
        return not self.ended and self.first <= sequence < self.next_sequence and sequence not in self.done

    def begin(self, sequence: int) -> None:
        """A delivery has this sequence, at least `next_sequence`."""
        if self.first == self.next_sequence:
            self.first = sequence
        else:
            self.done.add_range(self.next_sequence, sequence)
        self.next_sequence = sequence + 1

    def end(self, sequence: int) -> None:
        """The message of this delivery is not needed any more."""
        first = self.first
        if sequence == first < self.next_sequence:
            first += 1
            self.first = self.done.pop_from(first) if self.done else first
        elif first < sequence < self.next_sequence:
            self.done.add(sequence)


@dataclass(slots=True)
class Unfinished:
    """A QoS 2 message that some of its Kafka topics have, and whose publisher has no PUBREC. When it is sent again
    (its packet identifier, with DUP), it goes under this number into those that are missing, to subscribers unless it
    is `queued`, and `note_received` gets this number. Sent without DUP the packet identifier is one of a new message
    ([MQTT-3.3.1-1]): `number_refused` gets this one."""

    number: int
    """In its session."""
    topics: frozenset[str]
    """The Kafka topics that were to have it, as far as that is known: those that have it are among them."""
    stored_in: frozenset[str]
    """The Kafka topics that have it."""
    queued: bool
    """Whether the queues of sessions have it."""


@dataclass(slots=True)
class RecoveredSession:
    """A session that outlives its connection, as it was at the last acknowledgement."""

    record: SessionRecord
    stored: StoredSession
    queue: StoredQueue
    """QoS 1: not acknowledged; QoS 2: no PUBREC came. Some may have been sent."""
    unfinished: dict[int, Unfinished] = field(default_factory=dict)
    """By packet identifier. What `stored.received` has is finished."""


@dataclass(slots=True)
class Recovered:
    """What a start found."""

    sessions: list[RecoveredSession] = field(default_factory=list)
    wills: list[SessionRecord] = field(default_factory=list)
    """Sessions that ended with their connection, which was open or whose will was not published: it is to be published,
    and `Store.note_will_done` is to be called for each."""
    retained: list[Message] = field(default_factory=list)
    """Expired ones too."""
    damaged: Mapping[str, int] = field(default_factory=dict)
    """By internal topic: how many records were damaged, and left out."""
