"""Records of one layout in a row: what they have to have in common is compared in C, and their first bytes taken out.

Records of one producer mostly differ in the length of their values only. The bytes in front of the value and those
behind it are then as many in each record, and what stands in them is at the same places. So the first record is read
number by number. Of the others these bytes are put together, a row a record, and each column of them is compared by a
slice with a step: lengths, counts, how many bytes each number takes. That the fields fill each record is a sum of
lengths, of all records at once (`_sums`).

From the 64th on the offset delta takes two bytes. A run may go on beyond it: in the rows of the records before, a zero
is put behind the one byte (`_widened`).

A run ends before the first record that differs, or is wrong: how it is read, or refused, says `record_peek`. Nothing is
read beyond the bytes that are there.
"""

from collections.abc import Iterable, Sequence
from functools import cache, lru_cache, partial
from itertools import repeat, takewhile, zip_longest
from operator import eq
from typing import Final, NamedTuple

from leafcuttr.wire.errors import WireError
from leafcuttr.wire.primitives import read_varlong
from leafcuttr.wire.record_lengths import run_of_length, size_of_record
from leafcuttr.wire.record_rows import Extent, Form, Rows, end_of_uneven, even_rows, uneven_rows
from leafcuttr_sdk.peek import Peek

SHORTEST: Final = 32
"""Records below which a run costs more than to step over them one by one."""
LARGEST: Final = 1024 * 1024
"""Bytes of the rows of a run."""

_WIDEST: Final = 4096
"""Bytes of a row."""
_MOST_HEADERS: Final = 8
"""Of a record in a run."""
_SURE: Final = 4
"""Bytes up to which a length or count has no more bits than are allowed."""
_SURE_LONG: Final = 9
_ONE: Final = 1 << 6
_TWO: Final = 1 << 13
"""Offset deltas below them take one byte, or two."""
_CONTINUED: Final = bytes(range(0x80, 0x100))
"""Bytes of a number behind which it goes on."""
_LAST: Final = bytes(range(0x80))


class Taken(NamedTuple):
    """What has been taken out so far: see `leafcuttr_sdk.peek.PeekedBatch`. Header names as they are encoded."""

    keys: list[bytes | None]
    values: list[bytes | None]
    headers: dict[bytes, list[tuple[bytes | None, ...]]]


class _Unusual(Exception):
    """A record that is to be read by itself. The format may allow it."""


class _Number(NamedTuple):
    """Where a number lies in a head, or tail, and what it is in the first record, as it is encoded."""

    columns: range
    encoded: int


class _Layout(NamedTuple):
    """Of the records of a run. A row has first the tail of the record before, which is all behind its value, and then
    the head of the record: all in front of its value, and as much of that as is wanted."""

    size: int  # of the first record
    tail: int
    head: int
    length: _Number
    time: _Number
    offset: _Number
    value_length: _Number
    common: list[Extent]
    """What of a head is the same in all."""
    common_in_tails: list[Extent]
    varies: bool
    """The value, and so the record, may have another length."""
    key: Extent | None
    value: Extent | None
    """What is wanted of them; None where they are null."""
    headers: list[tuple[bytes, Extent | None]]
    """Their names and values."""
    widened: bool
    """The first offset delta takes one byte, and counts as if it took two, because those of others do."""
    form: Form
    columns: tuple[int, ...]
    """Where in rows, and those behind them, the bytes of what is the same in all are."""
    columns_of_even: tuple[int, ...]
    """The same where records have one length, and so have values."""

    def narrow(self, index: int, run: int) -> int:
        """How many of `run` records have an offset delta of as many bytes as the first, which has this index."""
        return min(_ONE - index, run) if self.widened else run


def take_run(
    records: memoryview, at: int, index: int, most: int, peek: Peek, taken: Taken
) -> tuple[int, int]:
    """Take out what is wanted of the run that begins with record `index`, at `at`, and has `most` records at the
    most: how many it has, and where the last one ends. A run of fewer than `SHORTEST` is none."""
    one_byte = max(_ONE - index, 0)
    most = min(most, _TWO - index)
    if min(most, one_byte or most) < SHORTEST:
        return 0, at
    layout = _layout_at(records, at, peek, widened=most > one_byte > 0)
    if layout is None:
        return 0, at
    rows, even = _rows(records, at, layout, min(most, LARGEST // layout.form.size), index)
    if rows is None or rows.count < SHORTEST:
        return 0, at
    run = _conforming(rows, index, layout, even, peek.value_bytes or 0)
    if run < SHORTEST:
        return 0, at
    end = at + run * layout.size + max(run - even, 0) if even else end_of_uneven(rows, at, run)
    rows.count = run
    _take(rows, layout, peek, taken)
    return run, end


def _rows(records: memoryview, at: int, layout: _Layout, most: int, index: int) -> tuple[Rows | None, int]:
    """Of the records that may be a run. If they have one size, how many have the size of the first: those behind them
    have a byte more, because their offset deltas do. Otherwise 0."""
    size, narrow, form = layout.size, layout.narrow(index, most), layout.form
    wide = most - narrow
    last = at + narrow * size + wide * (size + 1) - (size + 1 if wide else size)
    # Where the last one has the size that it should have there, the others do too, or their rows do not conform.
    if size_of_record(records, last) == (size + 1 if wide else size):
        return even_rows(records, at, size, narrow, wide, form), narrow
    even = run_of_length(records, at, size, narrow)
    if even >= SHORTEST:
        end, wide = at + even * size, 0
        if even == narrow < most and size_of_record(records, end) == size + 1:
            wide = run_of_length(records, end, size + 1, most - narrow)
        return even_rows(records, at, size, even, wide, form), even
    if not layout.varies:
        return None, 0
    return uneven_rows(records, at, size, narrow, most, form, partial(_alike, layout)), 0


def _alike(layout: _Layout, row: bytes, other: bytes) -> bool:
    """Whether the records of both rows, and those before them, may have this layout."""
    return all(
        row[base + at : base + at + size] == other[base + at : base + at + size]
        for base, fields in ((0, layout.common_in_tails), (layout.tail, layout.common))
        for at, size in fields
    )


class _Known(NamedTuple):
    """The layout that was found last, and what it follows from: all in front of the first record's value, and all
    behind it."""

    front: bytes
    behind: bytes
    layout: _Layout


_known: Final[dict[tuple[Peek, bool], _Known]] = {}
"""By the peek, and whether the first offset delta is widened. The batches of a producer begin alike."""
_MOST_KNOWN: Final = 64


def _layout_at(records: memoryview, at: int, peek: Peek, *, widened: bool) -> _Layout | None:
    """That of a run whose first record is at `at`; None if that is an unusual one, or wrong."""
    known = _known.get((peek, widened))
    if known is not None:
        front, behind, layout = known
        end = at + layout.size
        # Behind the value there is a number at least: what goes beyond the records is not the same.
        if records[at : at + len(front)] == front and records[end - len(behind) : end] == behind:
            return layout
    found = _layout(records, at, peek, widened=widened)
    if found is None:
        return None
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    layout, front_size = found
    end = at + layout.size
    _known[peek, widened] = _Known(
        bytes(records[at : at + front_size]), bytes(records[end - layout.tail : end]), layout
    )
    return layout


def _layout(records: memoryview, at: int, peek: Peek, *, widened: bool) -> tuple[_Layout, int] | None:
    """The layout, and how many bytes there are in front of the value."""
    start = start_of_head = at
    total = len(records)

    def encoded(most: int) -> int:
        nonlocal at
        found = records[at]
        at += 1
        if found > 0x7F:
            value, end = read_varlong(records, at - 1)
            if end - at >= most:
                raise _Unusual
            found, at = value << 1 ^ value >> 63, end
        return found

    def number(most: int) -> _Number:
        began = at - start
        found = encoded(most)
        return _Number(range(began, at - start), found)

    def size(common: list[Extent]) -> int:
        """A length or count; -1 for null."""
        began = at - start
        found = encoded(_SURE)
        _join(common, Extent(began, at - start - began))
        if found & 1:
            if found > 1:
                raise _Unusual
            return -1
        return found >> 1

    def extent(length: int, most: int | None) -> Extent | None:
        """Of a field of this length, the bytes that are wanted. Goes on behind it."""
        nonlocal at
        began = at - start
        at += max(length, 0)
        return None if length < 0 else Extent(began, length if most is None else min(length, most))

    try:
        common: list[Extent] = []
        common_in_tails: list[Extent] = []
        length = number(_SURE)
        end = at + (length.encoded >> 1)
        at += 1  # the attributes, which are unused
        time, offset = number(_SURE_LONG), number(2)
        if widened:
            if len(offset.columns) > 1:
                return None
            offset = _Number(range(offset.columns.start, offset.columns.start + 2), offset.encoded)
            start -= 1
        key = extent(size(common), peek.key_bytes)
        value_length = number(_SURE)
        head, front = at - start, at - start_of_head
        value_size = -1 if value_length.encoded == 1 else value_length.encoded >> 1
        asked = peek.value_bytes or 0
        varies = value_size >= asked
        value = extent(value_size, asked)
        if value is not None:
            head += value.size
        if (
            (length.encoded | value_length.encoded) & 1 and value_length.encoded != 1
        ) or not at < end <= total:
            return None
        start = at
        headers: list[tuple[bytes, Extent | None]] = []
        many = size(common_in_tails)
        if many > _MOST_HEADERS:
            return None
        for _ in range(many):
            name = extent(size(common_in_tails), None)
            if name is None:
                return None
            if peek.headers:
                _join(common_in_tails, name)
            headers.append((bytes(records[at - name.size : at]), extent(size(common_in_tails), None)))
    except (WireError, IndexError, _Unusual):
        return None
    tail = end - start
    if at != end or many < 0 or head + tail > _WIDEST:
        return None
    # A narrow row lacks the second byte of the offset delta.
    form = Form(tail, head, tail + offset.columns.start + 1 if widened else None)
    columns = (
        *(tail + one for field in common for one in _columns_of(field)),
        *(form.size + 1 + one for field in common_in_tails for one in _columns_of(field)),
    )
    with_values = (*columns, *(tail + one for one in value_length.columns))
    layout = _Layout(
        end - start_of_head, tail, head, length, time, offset, value_length,
        common, common_in_tails, varies, key, value, headers, widened,
        form, columns if varies else with_values, with_values,
    )  # fmt: skip
    return layout, front


def _columns_of(field: Extent) -> range:
    return range(field.at, field.at + field.size)


def _join(extents: list[Extent], more: Extent) -> None:
    """Add one behind the others, as one with the last if it follows that at once."""
    if extents and extents[-1].at + extents[-1].size == more.at:
        extents[-1] = Extent(extents[-1].at, extents[-1].size + more.size)
    else:
        extents.append(more)


def _conforming(rows: Rows, index: int, layout: _Layout, even: int, least: int) -> int:
    """How many of the records, from the one of this index on, have the layout. With `even` so many of the first have
    one size, and the others a byte more; without it their values may vary, and have at least `least` bytes then."""
    data, size, good = rows.data, rows.size, rows.count
    run, stop = good, (good - 1) * size + 1
    for at in layout.columns_of_even if even else layout.columns:
        found = data[at : at + stop : size]
        if found != found[:1] * run:
            good = min(good, run - len(found.lstrip(found[:1])))
    lengths, times = rows.columns(layout.length.columns), rows.columns(layout.time.columns)
    if even:
        good = min(good, *map(_agreeing, lengths, _lengths_of_even(layout.length, even, run - even)))
    else:
        good = min(good, _in_as_many_bytes(lengths))
    good = min(good, _in_as_many_bytes(times))
    offsets = rows.columns(layout.offset.columns)
    for found, due in zip(offsets, _offset_deltas(len(offsets)), strict=True):
        good = min(good, _agreeing(found, due[index : index + run]))
    if layout.varies and not even:
        values = rows.columns(layout.value_length.columns)
        good = min(good, _in_as_many_bytes(values))
        good = min(good, _filled(lengths, values, run, layout, layout.narrow(index, run), least))
    return good


def _agreeing(found: bytes, due: bytes) -> int:
    """How many bytes, from the first on, are those that are due; at most as many as there are of these."""
    return len(due) if found == due else sum(1 for _ in takewhile(bool, map(eq, found, due)))


def _in_as_many_bytes(columns: Sequence[bytes]) -> int:
    """How many numbers take a byte of each column."""
    *continued, last = columns
    good = len(last)
    for found in continued:
        if found.translate(None, _CONTINUED):
            good = min(good, len(last) - len(found.lstrip(_CONTINUED)))
    if not last.isascii():
        good = min(good, len(last) - len(last.lstrip(_LAST)))
    return good


@lru_cache(maxsize=64)
def _lengths_of_even(length: _Number, narrow: int, wide: int) -> list[bytes]:
    """The columns of the lengths of so many records like the first, and of so many of one byte more behind them; of
    these none, if the length takes more bytes then."""
    width = len(length.columns)
    more = length.encoded + 2
    if more >> 7 * width:
        wide = 0
    columns: list[bytes] = []
    for at in range(width):
        goes_on = 0x80 if at < width - 1 else 0
        one, other = (number >> 7 * at & 0x7F | goes_on for number in (length.encoded, more))
        columns.append(bytes((one,)) * narrow + bytes((other,)) * wide)
    return columns


def _filled(
    length_columns: Sequence[bytes],
    value_columns: Sequence[bytes],
    run: int,
    layout: _Layout,
    narrow: int,
    least: int,
) -> int:
    """How many records of a run, from the first on, have a value that fills what their length leaves to it, and has
    `least` bytes. Those behind the `narrow` first ones have one byte more that is not the value's."""
    ones = _ones(run)
    wide = ones >> 8 * narrow << 8 * narrow
    low = 0x7F * ones
    lengths = [int.from_bytes(column, "little") & low for column in length_columns]
    values = [int.from_bytes(column, "little") & low for column in value_columns]
    # Equal in all records of a width, because all that is not the value is.
    beside = layout.length.encoded - layout.value_length.encoded
    places = range(0, 7 * max(len(lengths), len(values)), 7)
    more = [(beside >> at & 0x7F) * (ones ^ wide) + (beside + 2 >> at & 0x7F) * wide for at in places]
    sums, differing = _sums(values, more, low)
    for due, found in zip_longest(sums, lengths, fillvalue=0):
        differing |= due ^ found
    if least:
        # What is added carries out of the highest digit if, and only if, there are as many bytes.
        added = (1 << 7 * len(values)) - 2 * least
        _, enough = _sums(values, [(added >> 7 * at & 0x7F) * ones for at in range(len(values))], low)
        differing |= enough ^ ones
    return _equal_lanes(differing, run)


@lru_cache(maxsize=64)
def _ones(count: int) -> int:
    """1 in each of so many lanes: eight bits of one large number for each record, the lowest for the first."""
    return int.from_bytes(b"\1" * count, "little")


def _sums(numbers: Sequence[int], others: Sequence[int], low: int) -> tuple[list[int], int]:
    """Add two numbers in each lane, which are given by their digits of seven bits, the lowest first: as many digits of
    the sums as `others` have, and what is carried out of the highest. `low` has the seven lower bits of each lane. No
    lane overflows: two digits and a carry are 255 at most."""
    carry, sums = 0, list[int]()
    for digit, other in zip_longest(numbers[: len(others)], others, fillvalue=0):
        whole = digit + other + carry
        sums.append(whole & low)
        carry = whole - sums[-1] >> 7
    return sums, carry


def _equal_lanes(differing: int, run: int) -> int:
    """How many lanes are 0, from the lowest on."""
    return min(run, ((differing & -differing).bit_length() - 1) // 8) if differing else run


@cache
def _offset_deltas(width: int) -> tuple[bytes, ...]:
    """The n-th byte of the encoded offset deltas that take so many bytes, by offset delta. Where the second one is
    missing, a zero is in its place."""
    one = bytes(range(0, 2 * _ONE, 2))
    if width == 1:
        return (one,)
    low = one + bytes(range(0x80, 0x100, 2)) * (_TWO // _ONE - 1)
    return low, b"".join(bytes((high,)) * _ONE for high in range(_TWO // _ONE))


def _take(rows: Rows, layout: _Layout, peek: Peek, taken: Taken) -> None:
    def taken_of(start: int, field: Extent | None) -> Iterable[bytes | None]:
        return repeat(None, rows.count) if field is None else rows.take(start, field)

    if peek.key_bytes is not None:
        taken.keys.extend(taken_of(rows.head, layout.key))
    if peek.value_bytes is not None:
        taken.values.extend(taken_of(rows.head, layout.value))
    for wanted, found in taken.headers.items():
        same = [taken_of(rows.tail, content) for name, content in layout.headers if name == wanted]
        found.extend(zip(*same, strict=True) if same else repeat((), rows.count))
