"""Up to where the queue may be deleted, and what has to be said again before that; up to where Kafka topics need not be
looked through at a start.

The queue is deleted up to the first message that a session needs. What its records said beside messages (sequences that
were released, QoS 2 messages that were received, the next sequence) is said again in a turn before, for the sessions
that have it from records which go. Messages that are needed are counted in groups of offsets, not one by one.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from leafcuttr_mqtt.storage.formats import Event, Positions, pack_event, pack_pair
from leafcuttr_mqtt.storage.moving import Move, Moved, note_again, read_front
from leafcuttr_mqtt.storage.sequences import Sequences
from leafcuttr_mqtt.storage.state import RecoveredSession, StoredSession, parts_of, record_number
from leafcuttr_mqtt.storage.topics import QUEUE
from leafcuttr_mqtt.storage.turn import Turn
from leafcuttr_sdk.errors import BrokerError

if TYPE_CHECKING:
    from leafcuttr_mqtt.storage.recovery import Recovery
    from leafcuttr_sdk import Broker

GROUP_BITS: Final = 10
"""Offsets are counted by 1024."""
POSITIONS_MS: Final = 5_000
"""How often positions in Kafka topics are noted, while QoS 2 messages come."""
START_MS: Final = 1_000
"""How often it is looked whether retention has deleted something."""
MOVE_BYTES: Final = 128 * 1024 * 1024
"""The size of the queue up to which no message is moved."""
TRUNCATE_BYTES: Final = 16 * 1024 * 1024
"""After so many bytes of the queue it is looked whether something can be deleted."""
_EVERYTHING: Final = 1 << 63
"""Above all offsets."""


class Checkpoints:
    """See the module."""

    def __init__(self, broker: "Broker", mapped: Callable[[], Iterable[str]]) -> None:
        self._broker = broker
        self._mapped = mapped
        self._sessions: dict[int, StoredSession] = {}
        self._groups: dict[int, int] = {}
        self._needed = 0
        self._steps: deque[tuple[int, int]] = deque()
        """Bytes of the queue up to an offset, from the one before on."""
        self.moved = Moved()
        self._end = 0
        self._start = 0
        self._bytes = 0
        self._numbers: dict[int, tuple[str, ...]] = {}
        self._overtaken: int | None = None
        self._looked_ms = 0
        self._captured: Mapping[str, tuple[int, ...]] | None = None
        self._before: set[int] = set()
        self._ready: Mapping[str, tuple[int, ...]] | None = None
        self._last: Mapping[str, tuple[int, ...]] = {}
        self._last_ms = 0
        self._numbers_since = False
        self._delete_to = -1
        self._deletes = False
        self._moves = False
        """Messages were noted to be moved, and are not stored yet."""
        self._moved_to = 0
        """The messages before were moved as far as they had to be."""
        self.generation = 0
        """How often the queue began anew."""
        self._wake: Callable[[], None] = lambda: None

    def begin(
        self,
        sessions: Iterable[RecoveredSession],
        found: "Recovery",
    ) -> None:
        """What a start has found. While messages are unfinished the positions stay where they were, so that the next
        start finds them again."""
        self._start, self._end = found.log_start, found.end
        self._steps.append((found.end, found.queue_bytes))
        self._last = found.positions
        for offset in found.left:
            self.moved.leave(offset)
        for session in sessions:
            stored = session.stored
            if stored.proven_at >= 0:
                self._sessions[stored.number] = stored
            stored.first = stored.next_sequence
            if session.queue.count:
                sequences = session.queue.sequences()
                stored.first = sequences[0]
                if stored.next_sequence - stored.first > len(sequences):
                    stored.done = Sequences.all_but(sequences, stored.first, stored.next_sequence)
            for offset in session.queue.offsets():
                self.needed(offset)
            for one in session.unfinished.values():
                self._numbers[record_number(stored.number, one.number)] = tuple(sorted(one.topics))
        self._numbers_since = True
        if not self._numbers:
            self._ready = ends_of(self._broker, self._mapped())

    def begin_again(self, turn: Turn) -> None:
        """The queue was deleted, and is empty: what its records said beside messages is said again in this turn."""
        self.generation += 1
        self._groups.clear()
        self._needed = 0
        self._steps.clear()
        self.moved = Moved()
        self._end = self._start = self._bytes = self._moved_to = 0
        self._overtaken = None
        self._delete_to = -1
        self._deletes = self._moves = False
        if self._ready is None:
            self._ready = self._last
        self._say_again(turn, _EVERYTHING)

    def add(self, stored: StoredSession) -> None:
        self._sessions[stored.number] = stored

    def remove(self, stored: StoredSession) -> None:
        self._sessions.pop(stored.number, None)
        if self._numbers:
            for number in [one for one in self._numbers if parts_of(one)[0] == stored.number]:
                self.number_done(number)

    # Messages that are needed

    def needed(self, offset: int) -> None:
        group = offset >> GROUP_BITS
        self._groups[group] = self._groups.get(group, 0) + 1
        self._needed += 1

    def forget(self, offset: int) -> None:
        group = offset >> GROUP_BITS
        self._needed -= 1
        left = self._groups.get(group, 0) - 1
        if left > 0:
            self._groups[group] = left
        else:
            self._groups.pop(group, None)

    def move(self, move: Move, offset: int) -> None:
        """A message was stored once more, here."""
        needing = [stored for stored, sequence in move.receivers if stored.needs(sequence)]
        for _ in needing:
            self.forget(move.old)
            self.needed(offset)
        self.moved.put(move.old, offset)

    @property
    def is_crowded(self) -> bool:
        """Whether messages are to be moved: the queue is large, and little of it is needed."""
        if sum(size for _, size in self._steps) + self._bytes <= MOVE_BYTES:
            return False
        return self._end - self.first_needed > 4 * self._needed

    @property
    def first_needed(self) -> int:
        """Nothing below is needed."""
        return min(self._groups) << GROUP_BITS if self._groups else self._end

    # QoS 2 messages on their way into Kafka topics

    def number_begun(self, number: int, topics: tuple[str, ...]) -> None:
        self._numbers[number] = topics
        self._numbers_since = True

    def is_begun(self, number: int) -> bool:
        return number in self._numbers

    def number_done(self, number: int) -> None:
        self._numbers.pop(number, None)
        if self._captured is not None:
            self._before.discard(number)
            self._look_at_numbers()

    # The turn

    def note(self, turn: Turn, now_ms: int, next_session: int) -> None:
        """Add to a turn what is due."""
        self._look_at_positions(now_ms)
        self._look_at_start(now_ms)
        looks = self._bytes >= TRUNCATE_BYTES
        if looks:
            self._steps.append((self._end, self._bytes))
            self._bytes = 0
        truncates = looks and self.first_needed > self._start
        if self._ready is not None or truncates:
            positions = self._last if self._ready is None else self._ready
            turn.positions = Positions(positions, frozenset(self._numbers), next_session)
            self._last, self._ready = positions, None
        if truncates:
            self._delete_to = self.first_needed
            self._say_again(turn, self._delete_to)

    @property
    def due(self) -> bool:
        """Whether positions are to be noted, or taken, although nothing else is noted."""
        if self._ready is not None:
            return True
        waits = self._numbers_since and self._captured is None
        return waits and self._is_time(self._broker.clock.now_ms())

    def _is_time(self, now_ms: int) -> bool:
        return self._numbers_since and not 0 <= now_ms - self._last_ms < POSITIONS_MS

    def _look_at_positions(self, now_ms: int) -> None:
        """A record below the offsets that are taken now is one of a message that has begun by now: once those are done
        the offsets are the positions."""
        if self._captured is None and self._is_time(now_ms):
            self._last_ms = now_ms
            self._numbers_since = False
            self._captured = ends_of(self._broker, self._mapped())
            self._before = set(self._numbers)
            self._look_at_numbers()

    def _look_at_numbers(self) -> None:
        if self._captured is not None and not self._before:
            self._ready, self._captured = self._captured, None

    def _say_again(self, turn: Turn, before: int) -> None:
        again = [stored for stored in self._sessions.values() if 0 <= stored.proven_at < before]
        for stored in again:
            number = stored.number
            turn.events.append(pack_event(Event.NEXT, number, stored.next_sequence))
            turn.events += [pack_event(Event.RELEASED, number, sequence) for sequence in stored.released]
            if stored.next_number:
                turn.events.append(pack_event(Event.NEXT_NUMBER, number, stored.next_number))
            if stored.received:
                for message in stored.received.values():
                    topics = self._numbers.get(record_number(number, message), ())
                    turn.received.setdefault(topics, []).append(pack_pair(number, message))
            stored.proven_at = -1
            turn.unproven.add(stored)

    def appended(self, end: int, size: int) -> None:
        """A batch was: its records' end, and its bytes."""
        self._end = end
        self._bytes += size

    def overtaken(self) -> int | None:
        """See `Store.overtaken`."""
        found, self._overtaken = self._overtaken, None
        return found

    def _look_at_start(self, now_ms: int) -> None:
        if 0 <= now_ms - self._looked_ms < START_MS:
            return
        self._looked_ms = now_ms
        info = self._broker.topics.get(QUEUE.topic)
        start = info.partitions[0].log_start_offset if info else 0
        if start > self._start:
            if start > self.first_needed:
                self._overtaken = start
            self._start = start

    def settled(self) -> None:
        """All that was noted is stored."""
        self._deletes = self._delete_to > self._start
        if self._deletes or self._moves or self.is_crowded:
            self._wake()

    # Deletion

    async def run(self, turn: Callable[[], Turn]) -> None:
        """See `Store.run`. `turn` gives the one that is noted at present."""
        import trio

        while True:
            event = trio.Event()
            self._wake = event.set
            if not self._deletes:
                await event.wait()
            await self.step(turn)

    async def step(self, turn: Callable[[], Turn]) -> None:
        """What is to be done after a turn."""
        await self.delete_due()
        self._moves = False
        if self.is_crowded:
            await self.move_some(turn)

    async def move_some(self, turn: Callable[[], Turn]) -> None:
        """Note some messages of the front of the queue once more."""
        offset = max(self.first_needed, self._moved_to)
        generation = self.generation
        try:
            front, moved_to = await read_front(self._broker, offset)
        except BrokerError as error:
            self._broker.logger.warning(
                "%s cannot be read for now: %s", QUEUE.topic, str(error) or error.code.name
            )
            return
        if generation != self.generation:
            return
        self._moved_to = moved_to
        note_again(turn(), front, self._sessions, self.moved)
        self._moves = True

    async def delete_due(self) -> None:
        """Delete what the last turn has made unnecessary."""
        if not self._deletes:
            return
        self._deletes = False
        generation = self.generation
        try:
            start = await self._broker.topics.delete_records(QUEUE.topic, 0, self._delete_to)
        except BrokerError as error:
            self._broker.logger.warning(
                "%s cannot be shortened for now: %s", QUEUE.topic, str(error) or error.code.name
            )
            return
        if generation != self.generation:
            return
        self._start = start
        while self._steps and self._steps[0][0] <= self._start:
            self._steps.popleft()
        self.moved.forget_before(self._start)


def ends_of(broker: "Broker", topics: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Where the partitions of these topics end now."""
    found: dict[str, tuple[int, ...]] = {}
    for name in topics:
        info = broker.topics.get(name)
        if info is not None:
            found[name] = tuple(each.high_watermark for each in info.partitions)
    return found
