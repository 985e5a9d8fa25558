"""`StoredQueue`: the deliveries of a session that are in the log, small: a start may find millions. No I/O."""

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

from leafcuttr_mqtt.session.types import Delivery

MOST_MISSING: Final = 1000
"""How many sequences without a delivery a run keeps places for in a row. A delivery that is further away begins a run
of its own: a client that never acknowledges its first delivery may have had millions since, which are over."""


class _Run:
    """Deliveries whose sequences are near each other, by sequence, in 13 bytes each. Those that are over keep their
    place, with the offset -1, while others before them are there."""

    __slots__ = ("count", "first", "flags", "head", "offsets", "sizes")

    def __init__(self, first: int) -> None:
        self.first = first
        """The sequence of the first place."""
        self.head = 0
        """The first place with a delivery."""
        self.count = 0
        self.offsets = array("q")
        self.sizes = array("I")
        self.flags = bytearray()

    @property
    def end(self) -> int:
        return self.first + len(self.offsets)

    def place_of(self, sequence: int) -> int:
        """Its index; -1: it has no delivery."""
        index = sequence - self.first
        return index if self.head <= index < len(self.offsets) and self.offsets[index] >= 0 else -1

    def place_for(self, sequence: int) -> int:
        """The index for this one, which may be before the first one, or behind the last."""
        if sequence - self.first < self.head:
            # Its message was stored again.
            self.cut()
            missing = self.first - sequence
            self.offsets[:0] = array("q", [-1]) * missing
            self.sizes[:0] = array("I", [0]) * missing
            self.flags[:0] = bytes(missing)
            self.first = sequence
        index = sequence - self.first
        while index >= len(self.offsets):
            self.offsets.append(-1)
            self.sizes.append(0)
            self.flags.append(0)
        return index

    def leave(self, index: int) -> None:
        """The delivery there is over, and is not the last one."""
        offsets = self.offsets
        offsets[index] = -1
        if index == self.head:
            head = index + 1
            while offsets[head] < 0:
                head += 1
            self.head = head
            if head > 64 and head * 2 > len(offsets):
                self.cut()

    def cut(self) -> None:
        """Give up the places before the first delivery."""
        head = self.head
        del self.offsets[:head], self.sizes[:head], self.flags[:head]
        self.first += head
        self.head = 0

    def indexes(self) -> Iterator[int]:
        return (index for index, offset in enumerate(self.offsets) if offset >= 0)


def _first_of(run: _Run) -> int:
    return run.first


class StoredQueue:
    """Deliveries of one session that are in the log, by their sequence."""

    __slots__ = ("_identifiers", "_runs", "count", "size")

    def __init__(self) -> None:
        self.count = 0
        """How many deliveries there are."""
        self.size = 0
        """Their bytes, as the bounds of a queue count them."""
        self._runs: list[_Run] = []
        """In order, none without deliveries."""
        self._identifiers: dict[int, tuple[int, ...]] | None = None

    def __len__(self) -> int:
        return self.count

    def __contains__(self, sequence: int) -> bool:
        return self._find(sequence) is not None

    def sequences(self) -> list[int]:
        """Of all deliveries, in order."""
        return [run.first + index for run in self._runs for index in run.indexes()]

    def offsets(self) -> Iterator[int]:
        """Of all deliveries."""
        return (offset for run in self._runs for offset in run.offsets if offset >= 0)

    def put(
        self, sequence: int, offset: int, flags: int, size: int, identifiers: tuple[int, ...] = ()
    ) -> int:
        """One more at its end, or one that is there already, at another offset; returns the one that it had, or -1.
        `flags`: see `formats.flags_of`."""
        run = self._runs[-1] if self._runs else self._run_for(sequence)
        if sequence - run.first == len(run.offsets):
            # The next one, as nearly always.
            run.offsets.append(offset)
            run.sizes.append(size)
            run.flags.append(flags)
        else:
            run = self._run_for(sequence)
            index = run.place_for(sequence)
            before = run.offsets[index]
            run.offsets[index] = offset
            if before >= 0:
                return before
            run.sizes[index] = size
            run.flags[index] = flags
        run.count += 1
        self.count += 1
        self.size += size
        if identifiers:
            if self._identifiers is None:
                self._identifiers = {}
            self._identifiers[sequence] = identifiers
        return -1

    def remove(self, sequence: int) -> int:
        """Returns the offset that it had; -1: it is not there."""
        found = self._find(sequence)
        if found is None:
            return -1
        number, index = found
        run = self._runs[number]
        offset = run.offsets[index]
        self.count -= 1
        self.size -= run.sizes[index]
        if self._identifiers:
            self._identifiers.pop(sequence, None)
        run.count -= 1
        if run.count:
            run.leave(index)
        else:
            del self._runs[number]
        return offset

    def get(self, sequence: int) -> Delivery | None:
        found = self._find(sequence)
        return None if found is None else self._delivery(self._runs[found[0]], found[1])

    def __iter__(self) -> Iterator[Delivery]:
        """The deliveries in order of their sequences, each without its message."""
        return (self._delivery(run, index) for run in self._runs for index in run.indexes())

    def take_rows(self) -> Iterator[tuple[int, int, bool, tuple[int, ...], int, int]]:
        """Of all deliveries in order: sequence, QoS, RETAIN, subscription identifiers, size, offset. The queue is empty
        afterwards."""
        known = self._identifiers or {}
        for run in self._runs:
            first = run.first
            for index, (offset, size, flags) in enumerate(
                zip(run.offsets, run.sizes, run.flags, strict=True)
            ):
                if offset >= 0:
                    sequence = first + index
                    identifiers = known.get(sequence, ()) if known else ()
                    yield sequence, flags & 3, bool(flags & 4), identifiers, size, offset
        self._runs.clear()
        self.count = self.size = 0
        self._identifiers = None

    def _delivery(self, run: _Run, index: int) -> Delivery:
        sequence, flags = run.first + index, run.flags[index]
        identifiers = self._identifiers.get(sequence, ()) if self._identifiers else ()
        return Delivery(
            None, flags & 3, bool(flags & 4), identifiers, run.sizes[index], run.offsets[index], sequence
        )

    def _find(self, sequence: int) -> tuple[int, int] | None:
        """The number of the run that has this delivery, and the index there."""
        number = self._last_before(sequence)
        if number < 0 or (index := self._runs[number].place_of(sequence)) < 0:
            return None
        return number, index

    def _last_before(self, sequence: int) -> int:
        """The number of the last run that does not begin behind this sequence; -1: there is none."""
        runs = self._runs
        # Mostly there is one; what comes to the end, and what is over, is looked for in any.
        if runs and runs[-1].first <= sequence:
            return len(runs) - 1
        return bisect_right(runs, sequence, key=_first_of) - 1

    def _run_for(self, sequence: int) -> _Run:
        """The run that has this sequence, or gets it."""
        runs = self._runs
        number = self._last_before(sequence)
        if number >= 0 and sequence - runs[number].end <= MOST_MISSING:
            return runs[number]
        number += 1
        if number < len(runs) and runs[number].first - sequence <= MOST_MISSING:
            return runs[number]
        run = _Run(sequence)
        runs.insert(number, run)
        return run
