"""`Store`: what outlives a connection or the process goes through here into the internal topics.

A turn: `note_...` for each event, `batches()` for the one append of the turn, `settle(answers)` for what became of
them. What could not be written for now stays, and is part of the next turn's batches; nothing that depends on it may be
acknowledged until `settle` says True. Between `batches` and `settle` more may be noted: it is the next turn's.

Longer than most modules because the notes are one interface.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.session.types import Delivery
from leafcuttr_mqtt.storage.checkpoint import Checkpoints
from leafcuttr_mqtt.storage.formats import (
    Event,
    Receiver,
    encode_message,
    flags_of,
    pack_event,
    pack_pair,
    queued_key,
    queued_key_of_one,
)
from leafcuttr_mqtt.storage.moving import Move
from leafcuttr_mqtt.storage.reading import Reading
from leafcuttr_mqtt.storage.sequences import Sequences
from leafcuttr_mqtt.storage.session_records import SessionRecords
from leafcuttr_mqtt.storage.state import Recovered, SessionRecord, StoredSession, record_number
from leafcuttr_mqtt.storage.topics import QUEUE, RETAINED, SESSIONS, Identities, ensure, wants_sync
from leafcuttr_mqtt.storage.turn import Part, Turn
from leafcuttr_sdk import NewBatch
from leafcuttr_sdk.errors import BrokerError, UnknownTopicOrPartition

if TYPE_CHECKING:
    from leafcuttr_sdk import Appended, Broker

_DELIVERED: Final = int(Event.DELIVERED)
_RELEASED: Final = int(Event.RELEASED)
_COMPLETED: Final = int(Event.COMPLETED)
_PARTITIONS: Final = {each.topic: each for each in (SESSIONS, RETAINED, QUEUE)}
GONE: Final = -2
"""The offset of a delivery that was over before its message was stored."""


class Store:
    """See the module. `mapped` gives the names of the Kafka topics that messages may be stored in at present."""

    keeps: Final = True
    """Whether anything is kept."""

    def __init__(
        self, broker: "Broker", *, sync: bool = False, mapped: Callable[[], Iterable[str]] = tuple
    ) -> None:
        """The internal topics are in sync mode with `sync`, or where a mapped topic is."""
        self._broker = broker
        self._sync = sync
        self._mapped = mapped
        self._records = SessionRecords()
        self._turn = Turn(QUEUE.topic, self._records)
        self._pending: list[Part] = []
        self._asked: list[Part] | None = None
        self._unproven: set[StoredSession] = set()
        self._numbers: list[int] = []
        self._checkpoints = Checkpoints(broker, mapped)
        self._reading = Reading(broker)
        self._next_session = 1
        self._failing = False
        self._identities = Identities(broker)

    async def open(self) -> Recovered:
        """Create the internal topics, and read what there is. Raises BrokerError; PluginError, with one line, for
        records that a later version has written."""
        from leafcuttr_mqtt.storage.recovery import Recovery

        self._sync = self._sync or wants_sync(self._broker, self._mapped())
        await ensure(self._broker, sync=self._sync)
        self._identities.remember()
        recovery = Recovery(self._broker, tuple(self._mapped()))
        found = await recovery.recover()
        self._next_session = recovery.next_session
        self._checkpoints.begin(found.sessions, recovery)
        self._records.found(recovery.buckets)
        for client_id in recovery.needless:
            self._turn.sessions[client_id] = None
        self.settle(await self._broker.append(self.batches()))
        return found

    def overtaken(self) -> int | None:
        """The log start offset of the queue, if its retention has deleted messages that are needed since this was last
        called: the deliveries whose `place_of` is lower are lost, and to be noted as `note_delivered`."""
        return self._checkpoints.overtaken()

    def place_of(self, offset: int) -> int:
        """Where the message is by now that a delivery has this offset for: it may have been moved."""
        return self._checkpoints.moved.find(offset)

    async def run(self) -> None:
        """Delete what nobody needs from the queue, whenever a turn has made that possible, and move what is needed out
        of the way. For ever. What it notes is written in the next turn."""
        import trio

        unsubscribe = self._broker.topics.on_change(self._identities.look)
        self._identities.look_at_all()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._checkpoints.run, lambda: self._turn)
                await self._follow_sync()
        finally:
            unsubscribe()

    async def _follow_sync(self) -> None:
        """Take the internal topics to sync mode once a mapped topic is."""
        import trio

        changed = trio.Event()
        names: set[str] = set()

        def on_change(name: str) -> None:
            names.add(name)
            changed.set()

        unsubscribe = self._broker.topics.on_change(on_change)
        try:
            wanted = wants_sync(self._broker, self._mapped())
            while not self._sync:
                if wanted:
                    await ensure(self._broker, sync=True)
                    self._sync = True
                else:
                    await changed.wait()
                    changed = trio.Event()
                    # Those that are mapped may be many: they are asked for only where one that has changed is so.
                    wanted = wants_sync(self._broker, names) and wants_sync(self._broker, self._mapped())
                    names.clear()
        except BrokerError as error:
            self._broker.logger.error("The internal topics cannot be taken to sync mode: %s", error)
        finally:
            unsubscribe()

    # Internal topics that were deleted

    @property
    def generation(self) -> int:
        """How often the queue began anew: offsets of another one mean nothing."""
        return self._checkpoints.generation

    @property
    def is_gone(self) -> bool:
        """Whether an internal topic was deleted: `create_again` is to follow."""
        return bool(self._identities.gone)

    async def create_again(self) -> frozenset[str]:
        """Create the internal topics that were deleted; which ones. What was in them is to be noted again: of the queue
        what `note_queued_again` is for, and `keep_only` is to be called. Empty: it cannot be done for
        now, which the log says."""
        gone = frozenset(self._identities.gone)
        try:
            await ensure(self._broker, sync=self._sync, gone=gone)
        except BrokerError as error:
            if not self._failing:
                self._broker.logger.error(
                    "%s: deleted, and cannot be created again, so nothing is acknowledged that needs it: %s",
                    ", ".join(sorted(gone)),
                    str(error) or error.code.name,
                )
            self._failing = True
            return frozenset()
        # Some may have gone meanwhile: those are others now too.
        self._identities.look_at_all()
        gone = frozenset(self._identities.gone)
        self._identities.remember()
        if SESSIONS.topic in gone:
            self._records.topic_is_gone()
        if QUEUE.topic in gone:
            self._begin_queue_again()
        return gone

    def _begin_queue_again(self) -> None:
        self._reading = Reading(self._broker)
        for part in (*self._pending, *self._turn.queue):
            for place, receivers in enumerate(part.deliveries):
                if isinstance(receivers, Move):
                    part.deliveries[place] = ()  # by the offsets of before it is known to nobody any more
                    continue
                for _, delivery in receivers:
                    if delivery.offset >= 0:
                        delivery.offset = -1
        self._checkpoints.begin_again(self._turn)

    def keep_only(self, sessions: Iterable[tuple[StoredSession, Iterable[int]]]) -> None:
        """After `create_again` of the queue: of the deliveries that were noted for these sessions only those with these
        sequences are to be had still, beside those that are not stored yet."""
        unsettled: dict[StoredSession, set[int]] = {}
        for part in (*self._pending, *self._turn.queue):
            for receivers in part.deliveries:
                if not isinstance(receivers, Move):
                    for stored, delivery in receivers:
                        if delivery.offset != GONE:
                            unsettled.setdefault(stored, set()).add(delivery.sequence)
        for stored, sequences in sessions:
            kept = {each for each in sequences if each < stored.next_sequence}
            kept |= unsettled.get(stored, set())
            stored.first = min(kept, default=stored.next_sequence)
            stored.done = Sequences.all_but(sorted(kept), stored.first, stored.next_sequence)

    def note_queued_again(
        self, message: Message, receivers: Sequence[tuple[StoredSession, Delivery]]
    ) -> None:
        """As `note_queued`, of deliveries that were noted before and have offsets no more (-1)."""
        found = [
            Receiver(
                stored.number,
                each.sequence,
                flags_of(each.qos, each.retain, each.identifiers),
                each.identifiers,
            )
            for stored, each in receivers
        ]
        key = queued_key(receivers[0][1].size, found)
        self._turn.add_queued(key, encode_message(message), message.arrived_ms, receivers)

    # Sessions

    def begin_session(self, client_id: str) -> StoredSession:
        """A new session, under a number of its own. Nothing is noted by this: `note_session` is to follow."""
        stored = StoredSession(client_id, self._next_session)
        self._next_session += 1
        return stored

    def note_session(self, record: SessionRecord) -> None:
        """The session is new, or any of this has changed. The last one of a turn is written."""
        self._turn.sessions[record.client_id] = record

    def note_will_done(self, client_id: str) -> None:
        """The will of a session that ended with its connection needs no record any more."""
        self._turn.sessions[client_id] = None

    def note_session_ended(self, stored: StoredSession, deliveries: Iterable[Delivery] = ()) -> None:
        """The session is over: it has expired, or its client has begun anew. `deliveries` are those that it still
        had."""
        self._turn.sessions[stored.client_id] = None
        stored.ended = True
        self._checkpoints.remove(stored)
        for delivery in deliveries:
            self._forget(delivery)

    # Out of the broker

    def note_queued(self, message: Message, receivers: Sequence[tuple[StoredSession, Delivery]]) -> None:
        """Deliveries with QoS 1 or 2, which have their sequences, of one message. It is stored once. `settle` sets the
        deliveries' `offset`."""
        if len(receivers) == 1:
            stored, delivery = receivers[0]
            if not delivery.identifiers:
                flags = delivery.qos | 4 if delivery.retain else delivery.qos
                sequence = delivery.sequence
                key = queued_key_of_one(stored.number, sequence, flags, delivery.size)
                if sequence == stored.next_sequence:
                    stored.next_sequence = sequence + 1
                else:
                    stored.begin(sequence)
                if stored.proven_at < 0:
                    self._turn.unproven.add(stored)
                self._turn.add_queued(key, encode_message(message), message.arrived_ms, receivers)
                return
        if not receivers:
            return
        found: list[Receiver] = []
        for stored, delivery in receivers:
            flags = flags_of(delivery.qos, delivery.retain, delivery.identifiers)
            found.append(Receiver(stored.number, delivery.sequence, flags, delivery.identifiers))
            stored.begin(delivery.sequence)
            if stored.proven_at < 0:
                self._turn.unproven.add(stored)
        key = queued_key(receivers[0][1].size, found)
        self._turn.add_queued(key, encode_message(message), message.arrived_ms, receivers)

    def note_delivered(self, stored: StoredSession, delivery: Delivery) -> None:
        """PUBACK or PUBCOMP came, or PUBREC with an error, or the delivery was dropped: it is over."""
        sequence = delivery.sequence
        self._turn.events.append(pack_event(_DELIVERED, stored.number, sequence))
        if stored.released:
            stored.released.discard(sequence)
        stored.end(sequence)
        self._forget(delivery)

    def note_released(self, stored: StoredSession, delivery: Delivery) -> None:
        """PUBREC came: the message is not needed any more."""
        sequence = delivery.sequence
        self._turn.events.append(pack_event(_RELEASED, stored.number, sequence))
        stored.released.add(sequence)
        stored.end(sequence)
        self._forget(delivery)

    def forget(self, deliveries: Iterable[Delivery]) -> None:
        """Deliveries of a session that is over, which were not given to `note_session_ended`."""
        for delivery in deliveries:
            self._forget(delivery)

    def _forget(self, delivery: Delivery) -> None:
        if delivery.offset >= 0:
            self._checkpoints.forget(self._checkpoints.moved.find(delivery.offset))
        delivery.offset = GONE

    # Into the broker

    def begin_number(self, stored: StoredSession, number: int) -> int:
        """Before a QoS 2 message, of which `Inbound.number_of` gives the number, is appended to any Kafka topic.
        Returns what its records have in the header `mqtt.message.number`. It is done with the turn of `note_received`,
        or with `number_refused`; until then a start looks for it in the Kafka topics."""
        found = record_number(stored.number, number)
        self._checkpoints.number_begun(found, ())
        return found

    def number_refused(self, stored: StoredSession, number: int) -> None:
        """The message will not be received."""
        self._checkpoints.number_done(record_number(stored.number, number))

    def note_received(self, stored: StoredSession, number: int, topics: tuple[str, ...] = ()) -> None:
        """A QoS 2 message came. It is not delivered again if it comes again. To be noted in the turn in which its
        deliveries are, so that both are stored or none. Kafka topics that are to have it and may not have it yet are
        `topics`: then `number_done` is to follow."""
        pairs = self._turn.received.get(topics)
        if pairs is None:
            pairs = self._turn.received[topics] = []
        pairs.append(pack_pair(stored.number, number))
        stored.received[number & 0xFFFF] = number
        if number >= stored.next_number:
            stored.next_number = number + 1
        if stored.proven_at < 0:
            self._turn.unproven.add(stored)
        found = record_number(stored.number, number)
        if topics:
            self._checkpoints.number_begun(found, topics)
        elif self._checkpoints.is_begun(found):
            self._turn.numbers.append(found)

    def number_done(self, stored: StoredSession, number: int) -> None:
        """The turn of `note_received` with `topics` is settled, and all of them have the message."""
        self._checkpoints.number_done(record_number(stored.number, number))

    def note_completed(self, stored: StoredSession, packet_id: int) -> None:
        """PUBREL came, or the message was refused for good after all: its packet identifier is free."""
        number = stored.received.pop(packet_id, None)
        if number is not None:
            self._turn.events.append(pack_event(_COMPLETED, stored.number, number))
            self._checkpoints.number_done(record_number(stored.number, number))

    # Retained messages

    def note_retained(self, message: Message) -> None:
        """It replaces the one that its topic has; an empty one only removes that."""
        self._turn.retained[message.topic] = message if message.payload else None

    def note_retained_ended(self, topic: str) -> None:
        """It was removed, or has expired."""
        self._turn.retained[topic] = None

    # The turn

    @property
    def has_notes(self) -> bool:
        """Whether there is something to write: that was noted, or could not be written, or is due."""
        return bool(self._pending) or bool(self._turn) or self._checkpoints.due or self.is_gone

    def batches(self) -> list[NewBatch]:
        """What is to be appended, behind the batches of mapped topics. Not again before `settle`."""
        if self._asked is not None:
            raise RuntimeError("the answers to the last batches are not settled")
        turn = self._turn
        now_ms = self._broker.clock.now_ms()
        self._checkpoints.note(turn, now_ms, self._next_session)
        if turn:
            self._turn = Turn(QUEUE.topic, self._records)
            self._pending += turn.parts(SESSIONS.topic, RETAINED.topic, now_ms)
            self._unproven |= turn.unproven
            self._numbers += turn.numbers
        self._asked = self._pending
        return [NewBatch(_PARTITIONS[part.topic], part.builder.finish()) for part in self._pending]

    def settle(self, answers: "Sequence[Appended | BrokerError]") -> bool:
        """The answers to `batches`. True: everything that was noted before is stored, and what depends on it may be
        acknowledged. False: some is not, which the log says; it is in the next batches."""
        asked, self._asked = self._asked or [], None
        left: list[Part] = []
        failed: BrokerError | None = None
        for part, answer in zip(asked, answers, strict=True):
            if isinstance(answer, UnknownTopicOrPartition):
                self._identities.look(part.topic)
            elif part.topic in self._identities.gone:  # it was written to what was deleted, or to another one
                answer = UnknownTopicOrPartition("it was deleted")
            if isinstance(answer, Exception):
                failed = answer
                left.append(part)
                continue
            self._stored(part, answer.base_offset)
            # What is behind a part that is missing is written once more behind it: the last one counts.
            if any(each.topic == part.topic for each in left):
                left.append(part)
        self._pending = left
        if failed is not None:
            if self.is_gone:
                return False  # `create_again` says what becomes of it
            if not self._failing:
                self._broker.logger.error(
                    "%s cannot be written, so nothing is acknowledged that needs it: %s",
                    left[0].topic,
                    str(failed) or failed.code.name,
                )
            self._failing = True
            return False
        if self._failing:
            self._broker.logger.warning("The internal topics are written again")
            self._failing = False
        if asked:
            for number in self._numbers:
                self._checkpoints.number_done(number)
            self._numbers.clear()
            self._checkpoints.settled()
        return True

    def _stored(self, part: Part, base_offset: int) -> None:
        if part.topic != QUEUE.topic:
            return
        checkpoints = self._checkpoints
        for stored in self._unproven:
            if stored.proven_at < 0 and not stored.ended:
                stored.proven_at = base_offset
                checkpoints.add(stored)
        self._unproven.clear()
        offset = base_offset
        for receivers in part.deliveries:
            if isinstance(receivers, Move):
                checkpoints.move(receivers, offset)
                offset += 1
                continue
            for _, delivery in receivers:
                if delivery.offset == GONE:
                    continue
                if delivery.offset >= 0:  # written once more
                    checkpoints.forget(checkpoints.moved.find(delivery.offset))
                    checkpoints.moved.leave(delivery.offset)
                delivery.offset = offset
                checkpoints.needed(offset)
            offset += 1
        self._checkpoints.appended(offset, part.builder.size)

    async def load(self, offsets: Iterable[int]) -> dict[int, Message]:
        """The queued messages at these offsets, read together. Those that the log has no more are not in the answer:
        the deliveries are lost, and `note_delivered` is to be called for each. Raises BrokerError."""
        moved, reading = self._checkpoints.moved, self._reading
        places = {offset: moved.find(offset) for offset in offsets}
        found = await reading.load(places.values())
        if reading is not self._reading or QUEUE.topic in self._identities.gone:
            return {}  # these offsets are of a queue that was deleted
        return {offset: found[place] for offset, place in places.items() if place in found}
