"""The events of one turn as records for the internal topics: gathered, made into batches, and made again where these
were refused for now. No I/O.

The queue's records are in the order messages, what was received, events: a start that has the batch has all of them, so
it does not matter that events were noted between messages.
"""

from collections.abc import Iterable
from typing import Final

from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.session.types import Delivery
from leafcuttr_mqtt.storage import formats
from leafcuttr_mqtt.storage.moving import Move
from leafcuttr_mqtt.storage.session_records import SessionRecords
from leafcuttr_mqtt.storage.state import SessionRecord, StoredSession
from leafcuttr_sdk.batches import BatchBuilder, encode_key

BATCH_BYTES: Final = 4 * 1024 * 1024
"""Of a batch, unless one record is larger. Every record stands for itself, so a turn may be more than one."""

Receivers = Iterable[tuple[StoredSession, Delivery]]

_EVENTS_KEY: Final = encode_key(formats.EVENTS_KEY)
_POSITIONS_KEY: Final = encode_key(formats.POSITIONS_KEY)


class Part:
    """One batch, and what depends on where it is stored."""

    __slots__ = ("builder", "deliveries", "topic")

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.builder = BatchBuilder()
        self.deliveries: list[Receivers | Move] = []
        """For each of the first records."""


class Turn:
    """What is noted until the batches are requested."""

    __slots__ = (
        "_records", "events", "numbers", "positions", "queue", "received", "retained", "sessions", "unproven",
    )  # fmt: skip

    def __init__(self, queue: str, records: SessionRecords) -> None:
        self._records = records
        self.sessions: dict[str, SessionRecord | None] = {}
        self.retained: dict[str, Message | None] = {}
        self.queue: list[Part] = [Part(queue)]
        self.received: dict[tuple[str, ...], list[bytes]] = {}
        """Packed pairs of session and number, by the Kafka topics of the messages."""
        self.events: list[bytes] = []
        self.numbers: list[int] = []
        """Record numbers that are done once the turn is stored."""
        self.positions: formats.Positions | None = None
        self.unproven: set[StoredSession] = set()
        """Sessions of which the queue has nothing yet but what is in this turn."""

    def __bool__(self) -> bool:
        return bool(
            self.sessions
            or self.retained
            or self.received
            or self.events
            or self.positions is not None
            or self.queue[0].builder.count
        )

    def add_queued(self, key: bytes, value: bytes, timestamp: int, receivers: Receivers | Move) -> None:
        part = self.queue[-1]
        if part.builder.size + len(value) > BATCH_BYTES and part.builder.count:
            part = Part(part.topic)
            self.queue.append(part)
        part.builder.add(value, timestamp, encode_key(key))
        part.deliveries.append(receivers)

    def parts(self, sessions: str, retained: str, now_ms: int) -> list[Part]:
        """The batches: sessions first, for the queue speaks of them."""
        made = [*self._of_sessions(sessions, now_ms), *self._of_retained(retained, now_ms)]
        builder = self.queue[-1].builder
        for topics, pairs in self.received.items():
            builder.add(b"".join(pairs), now_ms, encode_key(formats.received_key(topics)))
        if self.events:
            builder.add(b"".join(self.events), now_ms, _EVENTS_KEY)
        if self.positions is not None:
            builder.add(formats.encode_positions(self.positions), now_ms, _POSITIONS_KEY)
        return made + [part for part in self.queue if part.builder.count]

    def _of_sessions(self, topic: str, now_ms: int) -> list[Part]:
        parts: list[Part] = []
        for client_id, record in self.sessions.items():
            for key, value in self._records.of(client_id, record):
                self._part(parts, topic, value).builder.add(value, now_ms, encode_key(key))
        return parts

    def _of_retained(self, topic: str, now_ms: int) -> list[Part]:
        parts: list[Part] = []
        for name, message in self.retained.items():
            value = None if message is None else formats.encode_message(message)
            self._part(parts, topic, value).builder.add(value, now_ms, encode_key(name.encode()))
        return parts

    def _part(self, parts: list[Part], topic: str, value: bytes | None) -> Part:
        """The last one, or a new one."""
        if not parts or parts[-1].builder.size + len(value or b"") > BATCH_BYTES:
            parts.append(Part(topic))
        return parts[-1]
