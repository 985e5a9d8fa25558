"""What a store is to have kept, without any log: plain dicts, changed by the same events."""

from dataclasses import dataclass, field
from typing import NamedTuple

from leafcuttr_mqtt.session.types import Delivery
from leafcuttr_mqtt.storage.state import StoredSession
from leafcuttr_mqtt.storage.stored_queue import StoredQueue


class Pending(NamedTuple):
    qos: int
    retain: bool
    identifiers: tuple[int, ...]
    size: int


@dataclass
class SessionModel:
    """One session."""

    pending: dict[int, Pending] = field(default_factory=dict)
    released: set[int] = field(default_factory=set)
    received: dict[int, int] = field(default_factory=dict)
    next_sequence: int = 0
    next_number: int = 0

    def queued(self, delivery: Delivery) -> None:
        self.pending[delivery.sequence] = Pending(
            delivery.qos, delivery.retain, delivery.identifiers, delivery.size
        )
        self.next_sequence = max(self.next_sequence, delivery.sequence + 1)

    def delivered(self, sequence: int) -> None:
        self.pending.pop(sequence, None)
        self.released.discard(sequence)

    def release(self, sequence: int) -> None:
        self.pending.pop(sequence, None)
        self.released.add(sequence)

    def receive(self, number: int) -> None:
        self.received[number & 0xFFFF] = number
        self.next_number = max(self.next_number, number + 1)

    def complete(self, number: int) -> None:
        if self.received.get(number & 0xFFFF) == number:
            del self.received[number & 0xFFFF]


def model_of(stored: StoredSession, queue: StoredQueue) -> SessionModel:
    """What was recovered, as a model."""
    found = SessionModel(
        released=set(stored.released),
        received=dict(stored.received),
        next_sequence=stored.next_sequence,
        next_number=stored.next_number,
    )
    for one in queue:
        found.pending[one.sequence] = Pending(one.qos, one.retain, one.identifiers, one.size)
    return found
