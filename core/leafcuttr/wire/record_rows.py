"""Rows of bytes around the bounds of records: of each the end of the record before, and its own begin. What these have
in common is compared a column at a time, by a slice with a step (`record_runs` says which columns, and with what).

A row has a zero behind it. In a narrow row a zero is in the place of a byte that wide ones have: offset deltas take one
byte in the first 64 records of a batch, and two behind them. Both zeros are what rows, and parts of rows, are joined
by.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import repeat
from struct import Struct, error
from typing import Final, NamedTuple

from leafcuttr.wire.primitives import Buffer
from leafcuttr.wire.record_lengths import jumps_of_records

_AT_ONCE: Final = 512
"""Rows that are taken out by one call: so many are worth a Struct."""
_NARROW: Final = 8
"""Bytes of a field up to which its columns are compared one by one."""
_SAMPLED: Final = 64
"""Records of different sizes after which the last one is compared, before `_WIDEN` times as many are taken."""
_WIDEN: Final = 8


class Extent(NamedTuple):
    """Where the bytes of a field lie: in a head from its begin on, in a tail from that of the tail."""

    at: int
    size: int


class Form(NamedTuple):
    """Of rows: the bytes of a tail, those of a head behind it, and where in a row the byte is that narrow ones lack;
    None if there are no narrow ones."""

    tail: int
    head: int
    cut: int | None

    @property
    def size(self) -> int:
        """Of a wide row."""
        return self.tail + self.head


class Rows:
    """Those of `count` records, the last of which ends at `end`. A head begins at `head`, and its tail one row further
    on."""

    __slots__ = ("count", "data", "end", "head", "size", "tail")

    def __init__(self, parts: Sequence[bytes], form: Form, count: int, end: int) -> None:
        """Of all their parts, in which that of the last record's tail is one more row."""
        self.data = b"\0".join(parts)
        self.head = form.tail
        self.tail = self.size = form.size + 1
        self.count = count
        self.end = end

    def column(self, at: int) -> bytes:
        """The byte at `at`, and those of the other records at the same place."""
        return self.data[at : at + (self.count - 1) * self.size + 1 : self.size]

    def columns(self, places: range) -> list[bytes]:
        """Those of heads."""
        return [self.column(self.head + at) for at in places]

    def take(self, start: int, field: Extent) -> Sequence[bytes]:
        """What stands there in each. `start` is `head` or `tail`."""
        at, size = start + field.at, field.size
        if size <= _NARROW and self._are_equal(at, size):
            return [self.data[at : at + size]] * self.count
        return _strided(self.data, at, f"{size}s", size, self.size, self.count)

    def _are_equal(self, at: int, size: int) -> bool:
        """Whether all have the same there."""
        data, count, step = self.data, self.count, self.size
        stop = (count - 1) * step + 1
        for one in range(at, at + size):
            found = data[one : one + stop : step]
            if found != found[:1] * count:
                return False
        return True


def even_rows(records: memoryview, at: int, size: int, narrow: int, wide: int, form: Form) -> Rows:
    """Of the records from the one at `at` on, which takes `size` bytes: `narrow` ones of this size, and `wide` ones of
    one byte more. Without a `cut` all count as narrow."""
    parts = _first(records, at, form)
    begin, first = at + size - form.tail, narrow - 1
    if first + wide <= _AT_ONCE:
        parts += _of_two_widths(form, size, first, wide).unpack_from(records, begin)
    else:
        parts += _strided(records, begin, *_narrow(form), size, first)
        parts += _strided(records, begin + first * size, f"{form.size}s", form.size, size + 1, wide)
    end = at + narrow * size + wide * (size + 1)
    parts.append(_last(records, end, form))
    return Rows(parts, form, narrow + wide, end)


def uneven_rows(
    records: memoryview,
    at: int,
    size: int,
    narrow: int,
    most: int,
    form: Form,
    alike: Callable[[bytes, bytes], bool],
) -> Rows:
    """Of records of any size, from the one at `at` on, which takes `size` bytes: at most `most`, the first `narrow` of
    which are narrow. Fewer where the length of one takes more than two bytes or is negative, where one goes beyond the
    end of the records, or its row does, and behind a row that is not `alike`, given the second one and itself."""
    parts = _first(records, at, form)
    begin, count, wanted, second = at + size - form.tail, 1, _SAMPLED, b""
    while count < most:
        add, width, stop = (
            (_add_split, 2, narrow) if form.cut is not None and count < narrow else (_add, 1, most)
        )
        wanted = min(wanted, stop - count)
        known = len(parts)
        begin = add(records, begin, wanted, form, parts)
        found = (len(parts) - known) // width
        count += found
        if found < wanted:
            break
        second = second or b"\0".join(parts[known : known + width])
        if not alike(second, b"\0".join(parts[-width:])):
            break
        wanted *= _WIDEN
    if begin + form.tail > len(records):
        # Only the last one can: behind it no row has been found.
        count -= 1
        gone = parts.pop()
        if form.cut is not None and count < narrow:
            gone = parts.pop() + gone
        begin -= _jump_of(gone, form)
    end = begin + form.tail
    parts.append(_last(records, end, form))
    return Rows(parts, form, count, end)


def end_of_uneven(rows: Rows, at: int, count: int) -> int:
    """Where the first `count` of these records end, whose first one begins at `at`."""
    if count == rows.count:
        return rows.end
    jumps, head = jumps_of_records(), rows.head
    pairs = zip(rows.column(head)[:count], rows.column(head + 1), strict=False)
    return at + sum(jumps[one][other] for one, other in pairs)


def _add(records: memoryview, begin: int, most: int, form: Form, parts: list[bytes]) -> int:
    """Add rows, from the one at `begin` on, as long as there are some. Returns where the next one begins."""
    jumps, add, one, other = jumps_of_records(), parts.append, form.tail, form.tail + 1
    take = _at_once(f"{form.size}s", 0, 1).unpack_from
    try:
        for _ in repeat(None, most):
            (row,) = take(records, begin)
            begin += jumps[row[one]][row[other]]
            add(row)
    except (IndexError, error):
        pass
    return begin


def _add_split(records: memoryview, begin: int, most: int, form: Form, parts: list[bytes]) -> int:
    """The same with narrow rows, each in two parts."""
    jumps, add, one, other = jumps_of_records(), parts.append, form.tail, form.tail + 1
    take = _at_once(_narrow(form)[0], 0, 1).unpack_from
    try:
        for _ in repeat(None, most):
            row, rest = take(records, begin)
            begin += jumps[row[one]][row[other]]
            add(row)
            add(rest)
    except (IndexError, error):
        pass
    return begin


def _jump_of(row: bytes, form: Form) -> int:
    return jumps_of_records()[row[form.tail]][row[form.tail + 1]]


def _first(records: memoryview, at: int, form: Form) -> list[bytes]:
    """The parts of the first row, with zeros in the place of a tail."""
    row = bytes(form.tail) + bytes(records[at : at + form.head - (form.cut is not None)])
    return [row] if form.cut is None else [row[: form.cut], row[form.cut :]]


def _last(records: memoryview, end: int, form: Form) -> bytes:
    """The row of a tail without a head."""
    return bytes(records[end - form.tail : end]) + bytes(form.head)


def _narrow(form: Form) -> tuple[str, int]:
    """The parts of a narrow row, for a Struct, and its bytes."""
    if form.cut is None:
        return f"{form.size}s", form.size
    return f"{form.cut}s{form.size - 1 - form.cut}s", form.size - 1


def _strided(data: Buffer, at: int, fields: str, size: int, step: int, count: int) -> list[bytes]:
    """These fields, which are `size` bytes in all, from `at` on, and again after each `step`."""
    found: list[bytes] = []
    for done in range(0, count, _AT_ONCE):
        taken = _at_once(fields, step - size, min(count - done, _AT_ONCE))
        found += taken.unpack_from(data, at + done * step)
    return found


@lru_cache(maxsize=64)
def _of_two_widths(form: Form, size: int, narrow: int, wide: int) -> Struct:
    """So many rows of each. Between them are as many bytes, because a wide row has one more, and so has its record."""
    fields, taken = _narrow(form)
    rows = [fields] * narrow + [f"{form.size}s"] * wide
    return Struct("=" + f"{size - taken}x".join(rows))


@lru_cache(maxsize=64)
def _at_once(fields: str, gap: int, count: int) -> Struct:
    return Struct(f"={fields}" + f"{gap}x{fields}" * (count - 1))
