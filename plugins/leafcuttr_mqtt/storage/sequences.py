"""`Sequences`: a set of sequences in ranges, as small as it has gaps. No I/O."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator


class Sequences:
    """A client that never acknowledges its first delivery has millions of later ones end: they are one range."""

    __slots__ = ("_ends", "_firsts")

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        """`ranges`: each from its first sequence to before its end, see `add_range`."""
        # Of the ranges in their order. None is empty, and none touches the next one.
        self._firsts: list[int] = []
        self._ends: list[int] = []
        for first, end in ranges:
            self.add_range(first, end)

    @classmethod
    def all_but(cls, kept: Iterable[int], first: int, end: int) -> "Sequences":
        """Those from `first` to before `end` without `kept`, which are in order and in these bounds."""
        sequences = cls()
        for sequence in kept:
            sequences.add_range(first, sequence)
            first = sequence + 1
        sequences.add_range(first, end)
        return sequences

    def __bool__(self) -> bool:
        return bool(self._firsts)

    def __contains__(self, sequence: int) -> bool:
        index = bisect_right(self._firsts, sequence) - 1
        return index >= 0 and sequence < self._ends[index]

    def ranges(self) -> Iterator[tuple[int, int]]:
        """In order, each from its first sequence to before its end."""
        return zip(self._firsts, self._ends, strict=True)

    def add(self, sequence: int) -> None:
        self.add_range(sequence, sequence + 1)

    def add_range(self, first: int, end: int) -> None:
        """Those from `first` to before `end`, if there are any."""
        if first >= end:
            return
        firsts, ends = self._firsts, self._ends
        # Those that overlap or touch the new one become one with it.
        low, high = bisect_left(ends, first), bisect_right(firsts, end)
        if low < high:
            first, end = min(first, firsts[low]), max(end, ends[high - 1])
        firsts[low:high], ends[low:high] = [first], [end]

    def pop_from(self, first: int) -> int:
        """Take out the range that begins with `first`, which is not above the first range: its end. Where there is no
        such range, `first`."""
        if not self._firsts or self._firsts[0] != first:
            return first
        del self._firsts[0]
        return self._ends.pop(0)
