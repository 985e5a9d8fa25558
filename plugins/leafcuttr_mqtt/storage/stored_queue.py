"""`StoredQueue`: the deliveries of a session that are in the log, small: a start may find millions. No I/O."""

from array import array
from collections.abc import Iterator

from leafcuttr_mqtt.session.types import Delivery


class StoredQueue:
    """Deliveries of one session that are in the log, by their sequence, in 13 bytes each."""

    __slots__ = ("_first", "_flags", "_head", "_identifiers", "_offsets", "_sizes", "count", "size")

    def __init__(self) -> None:
        self.count = 0
        """How many deliveries there are."""
        self.size = 0
        """Their bytes, as the bounds of a queue count them."""
        self._first = 0
        self._head = 0
        self._offsets = array("q")
        self._sizes = array("I")
        self._flags = bytearray()
        self._identifiers: dict[int, tuple[int, ...]] | None = None

    def __len__(self) -> int:
        return self.count

    def __contains__(self, sequence: int) -> bool:
        index = sequence - self._first
        return self._head <= index < len(self._offsets) and self._offsets[index] >= 0

    def sequences(self) -> list[int]:
        """Of all deliveries, in order."""
        first = self._first
        return [first + index for index, offset in enumerate(self._offsets) if offset >= 0]

    def offsets(self) -> Iterator[int]:
        """Of all deliveries."""
        return (offset for offset in self._offsets if offset >= 0)

    def put(
        self, sequence: int, offset: int, flags: int, size: int, identifiers: tuple[int, ...] = ()
    ) -> int:
        """One more at its end, or one that is there already, at another offset; returns the one that it had, or -1.
        `flags`: see `formats.flags_of`."""
        offsets = self._offsets
        index = sequence - self._first
        if not self.count and index != len(offsets):
            self._clear(sequence)
            index = 0
        elif index < self._head:
            self._make_room(sequence)
            index = sequence - self._first
        while index >= len(offsets):
            self._offsets.append(-1)
            self._sizes.append(0)
            self._flags.append(0)
        before = offsets[index]
        offsets[index] = offset
        if before < 0:
            self._sizes[index] = size
            self._flags[index] = flags
            self.count += 1
            self.size += size
            if identifiers:
                if self._identifiers is None:
                    self._identifiers = {}
                self._identifiers[sequence] = identifiers
        return before

    def remove(self, sequence: int) -> int:
        """Returns the offset that it had; -1: it is not there."""
        index = sequence - self._first
        offsets = self._offsets
        if not self._head <= index < len(offsets):
            return -1
        offset = offsets[index]
        if offset < 0:
            return -1
        self.count -= 1
        self.size -= self._sizes[index]
        offsets[index] = -1
        if self._identifiers:
            self._identifiers.pop(sequence, None)
        if not self.count:
            self._clear(self._first + len(offsets))
        elif index == self._head:
            head = index + 1
            while offsets[head] < 0:
                head += 1
            self._head = head
            if head > 64 and head * 2 > len(offsets):
                self._cut()
        return offset

    def get(self, sequence: int) -> Delivery | None:
        if sequence not in self:
            return None
        index = sequence - self._first
        flags = self._flags[index]
        identifiers = self._identifiers.get(sequence, ()) if self._identifiers else ()
        return Delivery(
            None, flags & 3, bool(flags & 4), identifiers, self._sizes[index], self._offsets[index], sequence
        )

    def __iter__(self) -> Iterator[Delivery]:
        """The deliveries in order of their sequences, each without its message."""
        for index in range(self._head, len(self._offsets)):
            delivery = self.get(self._first + index)
            if delivery is not None:
                yield delivery

    def take_rows(self) -> Iterator[tuple[int, int, bool, tuple[int, ...], int, int]]:
        """Of all deliveries in order: sequence, QoS, RETAIN, subscription identifiers, size, offset. The queue is empty
        afterwards."""
        known = self._identifiers or {}
        first = self._first
        for index, (offset, size, flags) in enumerate(
            zip(self._offsets, self._sizes, self._flags, strict=True)
        ):
            if offset >= 0:
                sequence = first + index
                identifiers = known.get(sequence, ()) if known else ()
                yield sequence, flags & 3, bool(flags & 4), identifiers, size, offset
        self._clear(first + len(self._offsets))
        self.count = self.size = 0
        self._identifiers = None

    def _clear(self, first: int) -> None:
        self._first, self._head = first, 0
        del self._offsets[:], self._sizes[:], self._flags[:]

    def _cut(self) -> None:
        head = self._head
        del self._offsets[:head], self._sizes[:head], self._flags[:head]
        self._first += head
        self._head = 0

    def _make_room(self, sequence: int) -> None:
        """Of a sequence before the first one: its message was stored again."""
        self._cut()
        missing = self._first - sequence
        self._offsets[:0] = array("q", [-1]) * missing
        self._sizes[:0] = array("I", [0]) * missing
        self._flags[:0] = bytes(missing)
        self._first = sequence
