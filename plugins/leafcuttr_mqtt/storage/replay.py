"""The records of the queue one after the other, back to the state that they left. No I/O.

Records of sessions that are over, or whose record was never written, mean nothing. Each record stands for itself: after
any of them the state is one that was.
"""

from collections.abc import Iterable
from struct import Struct
from typing import Final

from leafcuttr_mqtt.storage import formats
from leafcuttr_mqtt.storage.formats import Bytes, Event, Kind, RecordFormatError
from leafcuttr_mqtt.storage.state import StoredSession, Unfinished, parts_of, record_number
from leafcuttr_mqtt.storage.stored_queue import StoredQueue

_ONE: Final = Struct(">BBIIQQB")
_EVENTS: Final = frozenset(Event)


class SessionReplay:
    """One session."""

    __slots__ = ("open", "queue", "stored")

    def __init__(self, stored: StoredSession) -> None:
        self.stored = stored
        self.queue = StoredQueue()
        self.open: dict[int, tuple[int, frozenset[str]]] = {}
        """QoS 2 messages that may not be in all of their Kafka topics, by packet identifier: number, topics."""


class Replay:
    """See the module."""

    def __init__(self, sessions: Iterable[StoredSession]) -> None:
        self.sessions = {stored.number: SessionReplay(stored) for stored in sessions}
        self.positions: formats.Positions | None = None
        self.positions_ms = -1
        """The time of that record."""
        self.left: set[int] = set()
        """Offsets of messages that were found behind these once more."""
        self.highest_session = max(self.sessions, default=0)
        """The highest number of a session that anything speaks of."""

    def apply(self, offset: int, timestamp: int, key: Bytes | None, value: Bytes | None) -> None:
        """Raises RecordFormatError, and VersionError; then nothing has changed."""
        if key is None or len(key) < 2 or key[0] != formats.VERSION:
            formats.kind_of(key)
            raise RecordFormatError("no record")  # not reached
        kind = key[1]
        if kind == Kind.QUEUED:
            if len(key) == _ONE.size:
                _, _, count, size, number, sequence, flags = _ONE.unpack(key)
                if count == 1 and not flags & formats.HAS_IDENTIFIERS:
                    self._queued(offset, size, number, sequence, flags, ())
                    return
            plain = formats.decode_plain_receivers(key)
            if plain is not None:
                size, receivers = plain
                for number, sequence, flags in receivers:
                    self._queued(offset, size, number, sequence, flags, ())
                return
            queued = formats.decode_queued(key)
            for number, sequence, flags, identifiers in queued.receivers:
                self._queued(offset, queued.size, number, sequence, flags, identifiers)
        elif kind == Kind.EVENTS:
            events = list(formats.decode_events(value))
            for event, _, _ in events:
                if event not in _EVENTS:
                    raise RecordFormatError(f"there is no event {event}")
            for event, number, which in events:
                session = self.sessions.get(number)
                if session is not None:
                    _apply_event(session, offset, event, which)
                elif number > self.highest_session:
                    self.highest_session = number
        elif kind == Kind.RECEIVED:
            topics = frozenset(formats.decode_received_key(key))
            for number, which in list(formats.decode_pairs(value)):
                self._received(offset, number, which, topics)
        else:
            formats.kind_of(key)
            self._positions(timestamp, formats.decode_positions(value))

    def _queued(
        self, offset: int, size: int, number: int, sequence: int, flags: int, identifiers: tuple[int, ...]
    ) -> None:
        session = self.sessions.get(number)
        if session is None:
            if number > self.highest_session:
                self.highest_session = number
            return
        stored = session.stored
        before = session.queue.put(sequence, offset, flags, size, identifiers)
        if before >= 0:
            self.left.add(before)
        if sequence >= stored.next_sequence:
            stored.next_sequence = sequence + 1
        if stored.proven_at < 0:
            stored.proven_at = offset

    def _received(self, offset: int, session_number: int, number: int, topics: frozenset[str]) -> None:
        session = self.sessions.get(session_number)
        if session is None:
            self.highest_session = max(self.highest_session, session_number)
            return
        stored = session.stored
        packet_id = number & 0xFFFF
        if stored.received.get(packet_id) != number:
            session.open.pop(packet_id, None)
            if topics:
                session.open[packet_id] = (number, topics)
        stored.received[packet_id] = number
        stored.next_number = max(stored.next_number, number + 1)
        if stored.proven_at < 0:
            stored.proven_at = offset

    def _positions(self, timestamp: int, positions: formats.Positions) -> None:
        self.positions, self.positions_ms = positions, timestamp
        self.highest_session = max(self.highest_session, positions.next_session - 1)
        for number, session in self.sessions.items():
            if session.open:
                session.open = {
                    packet_id: one
                    for packet_id, one in session.open.items()
                    if record_number(number, one[0]) in positions.unfinished
                }

    def finish(self, stored_in: dict[int, set[str]]) -> dict[int, dict[int, Unfinished]]:
        """With the Kafka topics in which messages were found, by their record numbers: the unfinished messages of each
        session, by packet identifier. All else that the sessions received is finished."""
        found: dict[int, dict[int, Unfinished]] = {}
        for number, session in self.sessions.items():
            for packet_id, (message, topics) in session.open.items():
                there = frozenset(stored_in.get(record_number(number, message), ()))
                if not topics <= there:
                    del session.stored.received[packet_id]
                    found.setdefault(number, {})[packet_id] = Unfinished(message, topics | there, there, True)
        for one, names in sorted(stored_in.items()):
            number, message = parts_of(one)
            replayed = self.sessions.get(number)
            if replayed is None or message < replayed.stored.next_number:
                continue
            topics = frozenset(names)
            found.setdefault(number, {})[message & 0xFFFF] = Unfinished(message, topics, topics, False)
        for number, unfinished in found.items():
            stored = self.sessions[number].stored
            stored.next_number = max([stored.next_number, *(one.number + 1 for one in unfinished.values())])
        return found


def _apply_event(session: SessionReplay, offset: int, event: int, which: int) -> None:
    stored = session.stored
    if event == Event.DELIVERED:
        session.queue.remove(which)
        if stored.released:
            stored.released.discard(which)
    elif event == Event.RELEASED:
        session.queue.remove(which)
        stored.released.add(which)
        stored.next_sequence = max(stored.next_sequence, which + 1)
    elif event == Event.COMPLETED:
        packet_id = which & 0xFFFF
        if stored.received.get(packet_id) == which:
            del stored.received[packet_id]
            session.open.pop(packet_id, None)
    elif event == Event.NEXT:
        stored.next_sequence = max(stored.next_sequence, which)
    else:
        stored.next_number = max(stored.next_number, which)
    if stored.proven_at < 0:
        stored.proven_at = offset
