"""Messages at the front of the queue that few sessions still need are stored once more at its end, so that what is
between them can be deleted: a session that nobody comes back for does not keep the messages of all others.

They are moved where the queue is large and at most one record in four is needed, so that it is never much larger than
four times what waits in it.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from leafcuttr_mqtt.storage.formats import (
    Kind,
    Receiver,
    RecordFormatError,
    decode_queued,
    kind_of,
    queued_key,
)
from leafcuttr_mqtt.storage.state import StoredSession
from leafcuttr_mqtt.storage.topics import QUEUE
from leafcuttr_sdk.batches import BatchError, batches_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from leafcuttr_sdk import Broker

READ_BYTES: Final = 1024 * 1024


class Move:
    """One message that is stored once more."""

    __slots__ = ("old", "receivers")

    def __init__(self, old: int, receivers: list[tuple[StoredSession, int]]) -> None:
        self.old = old
        """The offset that it had."""
        self.receivers = receivers
        """Sessions, and the sequences of its deliveries there."""


class Moved:
    """Where messages are that were moved. Deliveries go on having the offset that they were given."""

    def __init__(self) -> None:
        self._offsets: dict[int, int] = {}
        self._names: dict[int, int] = {}
        """The offset that deliveries have, by the one where the message is."""
        self._left: set[int] = set()
        """Offsets where messages were once, and are still, but are not read."""

    def __len__(self) -> int:
        return len(self._offsets)

    def find(self, offset: int) -> int:
        """Where the message is that was at this offset once."""
        return self._offsets.get(offset, offset)

    def was_left(self, offset: int) -> bool:
        """Whether the message here is elsewhere too, and read there."""
        return offset in self._left

    def leave(self, offset: int) -> None:
        """A start has found the message of this offset behind it once more."""
        self._left.add(offset)

    def put(self, old: int, new: int) -> None:
        """What was here is there now. It may have been moved before."""
        self._left.add(old)
        name = self._names.pop(old, old)
        self._offsets[name] = new
        self._names[new] = name

    def forget_before(self, log_start: int) -> None:
        """What is below was deleted: nobody needed it."""
        for new in [each for each in self._names if each < log_start]:
            del self._offsets[self._names.pop(new)]
        self._left = {each for each in self._left if each >= log_start}


class Front(NamedTuple):
    """A queued message that is to be stored once more if it is still needed."""

    offset: int
    timestamp: int
    value: bytes
    size: int
    receivers: tuple[Receiver, ...]


async def read_front(broker: "Broker", offset: int) -> tuple[list[Front], int]:
    """The queued messages from an offset on, about a megabyte, and where to go on. Raises BrokerError."""
    found: list[Front] = []
    read = await broker.read_batches(QUEUE, offset, max_bytes=READ_BYTES)
    for batch in batches_in(read.data):
        try:
            for record in batch.records():
                if record.offset < offset or record.key is None or record.value is None:
                    continue
                try:
                    if kind_of(record.key) is not Kind.QUEUED:
                        continue
                    queued = decode_queued(record.key)
                except RecordFormatError:
                    continue
                value = bytes(record.value)
                found.append(Front(record.offset, record.timestamp, value, queued.size, queued.receivers))
        except BatchError:
            continue
    return found, read.next_offset


class Notes(Protocol):
    """What is noted until the next batches."""

    def add_queued(self, key: bytes, value: bytes, timestamp: int, receivers: Move) -> None:
        """One message with its receivers."""
        ...


def note_again(
    turn: Notes, front: Iterable[Front], sessions: "Mapping[int, StoredSession]", moved: Moved
) -> int:
    """Note the messages that are still needed; how many."""
    count = 0
    for message in front:
        if moved.was_left(message.offset):
            continue
        needing: list[Receiver] = []
        deliveries: list[tuple[StoredSession, int]] = []
        for receiver in message.receivers:
            stored = sessions.get(receiver.session)
            if stored is not None and stored.needs(receiver.sequence):
                needing.append(receiver)
                deliveries.append((stored, receiver.sequence))
        if needing:
            key = queued_key(message.size, needing)
            turn.add_queued(key, message.value, message.timestamp, Move(message.offset, deliveries))
            count += 1
    return count
