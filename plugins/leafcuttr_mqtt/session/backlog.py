"""Deliveries that are in the log, without their messages, in about 25 bytes each: the middle of a long queue."""

from array import array
from collections.abc import Iterator

from leafcuttr_mqtt.session.types import Delivery


class Backlog:
    """First in, first out."""

    __slots__ = ("_flags", "_head", "_identifiers", "_offsets", "_sequences", "_sizes")

    def __init__(self) -> None:
        self._head = 0
        self._sequences = array("q")
        self._offsets = array("q")
        self._sizes = array("I")
        self._flags = bytearray()
        """QoS, and 4 for RETAIN."""
        self._identifiers: dict[int, tuple[int, ...]] = {}
        """By sequence, of those that have some."""

    def __len__(self) -> int:
        return len(self._sequences) - self._head

    @property
    def bytes(self) -> int:
        """Of the messages, as the bounds of a queue count them."""
        return sum(self._sizes[self._head :])

    def append(self, delivery: Delivery) -> None:
        flags = delivery.qos | 4 if delivery.retain else delivery.qos
        self.put(delivery.sequence, delivery.offset, delivery.size, flags, delivery.identifiers)

    def put(self, sequence: int, offset: int, size: int, flags: int, identifiers: tuple[int, ...]) -> None:
        """As `append`. `flags`: QoS, and 4 for RETAIN."""
        self._sequences.append(sequence)
        self._offsets.append(offset)
        self._sizes.append(size)
        self._flags.append(flags)
        if identifiers:
            self._identifiers[sequence] = identifiers

    def pop(self) -> Delivery:
        """Raises IndexError where there is none."""
        delivery = self._get(self._head)
        self._head += 1
        self._identifiers.pop(delivery.sequence, None)
        # Cutting off the first half now and then costs as much as it saves.
        if self._head >= 64 and self._head * 2 > len(self._sequences):
            head = self._head
            del self._sequences[:head], self._offsets[:head], self._sizes[:head], self._flags[:head]
            self._head = 0
        return delivery

    def __iter__(self) -> Iterator[Delivery]:
        for index in range(self._head, len(self._sequences)):
            yield self._get(index)

    def _get(self, index: int) -> Delivery:
        sequence, flags = self._sequences[index], self._flags[index]
        identifiers = self._identifiers.get(sequence, ())
        return Delivery(
            None, flags & 3, flags > 3, identifiers, self._sizes[index], self._offsets[index], sequence
        )
