"""Records of one layout in a row: what they have to have in common is compared in C, and their first bytes taken out.

Records of one producer mostly differ in the length of their values only. The bytes in front of the value and those
behind it are then as many in each record, and what stands in them is at the same places. So the first record is read
number by number. Of the others these bytes are put together, a row a record, and each column of them is compared by a
slice with a step: lengths, counts, how many bytes each number takes. That the fields fill each record is a sum of two
columns, of all records at once (`_numbers`).

A run ends before the first record that differs, or is wrong: how it is read, or refused, says `record_peek`. Nothing is
read beyond the bytes that are there.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from itertools import repeat, takewhile
from operator import eq
from struct import Struct
from typing import Final, NamedTuple

from leafcuttr.wire.errors import WireError
from leafcuttr.wire.primitives import Buffer, read_varlong
from leafcuttr.wire.record_lengths import bounds_of_records, run_of_length
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
"""Bytes up to which a length or count has no more bits than are allowed; so many take the numbers of `_numbers`."""
_SURE_LONG: Final = 9
_ONE: Final = 1 << 6
_TWO: Final = 1 << 13
"""Offset deltas below them take one byte, or two."""
_CONTINUED: Final = bytes(range(0x80, 0x100))
"""Bytes of a number behind which it goes on."""
_LAST: Final = bytes(range(0x80))
_AT_ONCE: Final = 64
"""Rows that are taken out by one call: so many are worth a Struct."""
_HIGHEST: Final = 1 << 31


class Taken(NamedTuple):
    """What has been taken out so far: see `leafcuttr_sdk.peek.PeekedBatch`. Header names as they are encoded."""

    keys: list[bytes | None]
    values: list[bytes | None]
    headers: dict[bytes, list[tuple[bytes | None, ...]]]


class _Unusual(Exception):
    """A record that is to be read by itself. The format may allow it."""


class _Extent(NamedTuple):
    """Where the bytes of a field lie: in a head from its begin on, in a tail from that of the tail."""

    at: int
    size: int


class _Number(NamedTuple):
    """Where a number lies in a head, or tail, and what it is in the first record, as it is encoded."""

    columns: range
    encoded: int


class _Layout(NamedTuple):
    """Of the records of a run. A row has first the tail of the record before, which is all behind its value, and then
    the head of the record: all in front of its value, and as much of that as is asked for."""

    size: int  # of the first record
    tail: int
    head: int
    length: _Number
    time: _Number
    offset: _Number
    value_length: _Number
    common: list[int]
    """Columns of a head that are the same in all."""
    common_in_tails: list[int]
    varies: bool
    """The value, and so the record, may have another length."""
    key: _Extent | None
    value: _Extent | None
    """What is asked for of them; None where they are null."""
    headers: list[tuple[bytes, _Extent | None]]
    """Their names and values."""

    @property
    def row(self) -> int:
        return self.tail + self.head


def take_run(
    records: memoryview, at: int, index: int, most: int, peek: Peek, taken: Taken
) -> tuple[int, int]:
    """Take out what is asked for of the run that begins with record `index`, at `at`, and has `most` records at the
    most: how many it has, and where the last one ends. A run of fewer than `SHORTEST` is none."""
    most = min(most, (_ONE if index < _ONE else _TWO) - index)
    layout = _layout(records, at, peek) if most >= SHORTEST else None
    if layout is None:
        return 0, at
    most = min(most, LARGEST // layout.row)
    run = run_of_length(records, at, layout.size, most)
    bounds: Sequence[int]
    if run >= SHORTEST:
        bounds = range(at, at + run * layout.size + 1, layout.size)
    elif layout.varies:
        bounds = bounds_of_records(records, at, most)
    else:
        return 0, at
    run = len(bounds) - 1
    while run and bounds[run - 1] + layout.head > len(records):
        run -= 1
    if run < SHORTEST:
        return 0, at
    rows = _rows(records, bounds, run, layout)
    if isinstance(bounds, range):
        layout = layout._replace(varies=False)
    run = _conforming(rows, index, run, layout, peek)
    if run < SHORTEST:
        return 0, at
    _take(rows, run, layout, peek, taken)
    return run, bounds[run]


def _layout(records: memoryview, at: int, peek: Peek) -> _Layout | None:
    """That of a run whose first record is at `at`; None if that is an unusual one, or wrong."""
    start, total = at, len(records)

    def number(most: int) -> _Number:
        nonlocal at
        began = at
        value, at = read_varlong(records, at)
        if at - began > most:
            raise _Unusual
        return _Number(range(began - start, at - start), value << 1 ^ value >> 63)

    def size(common: list[int]) -> int:
        """A length or count; -1 for null."""
        found = number(_SURE)
        common.extend(found.columns)
        if found.encoded & 1 and found.encoded > 1:
            raise _Unusual
        return -1 if found.encoded & 1 else found.encoded >> 1

    def extent(length: int, most: int | None) -> _Extent | None:
        """Of a field of this length, the bytes that are asked for. Goes on behind it."""
        nonlocal at
        began = at - start
        at += max(length, 0)
        return None if length < 0 else _Extent(began, length if most is None else min(length, most))

    try:
        common: list[int] = []
        common_in_tails: list[int] = []
        length = number(_SURE)
        end = at + (length.encoded >> 1)
        at += 1  # the attributes, which are unused
        time, offset = number(_SURE_LONG), number(2)
        key = extent(size(common), peek.key_bytes)
        value_length = number(_SURE)
        head = at - start
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
        start_of_head, start = start, at
        headers: list[tuple[bytes, _Extent | None]] = []
        many = size(common_in_tails)
        if many > _MOST_HEADERS:
            return None
        for _ in range(many):
            name = extent(size(common_in_tails), None)
            if name is None:
                return None
            if peek.headers:
                common_in_tails += range(name.at, name.at + name.size)
            headers.append((bytes(records[at - name.size : at]), extent(size(common_in_tails), None)))
    except (WireError, IndexError, _Unusual):
        return None
    tail = end - start
    if at != end or many < 0 or head + tail > _WIDEST:
        return None
    return _Layout(
        end - start_of_head, tail, head, length, time, offset, value_length,
        common, common_in_tails, varies, key, value, headers,
    )  # fmt: skip


def _rows(records: memoryview, bounds: Sequence[int], run: int, layout: _Layout) -> bytes:
    """The bytes around each of the bounds of `run` records. The first row has no tail, the last one no head: zeros
    stand there."""
    tail, head = layout.tail, layout.head
    rows: list[bytes | memoryview] = [bytes(tail), records[bounds[0] : bounds[0] + head]]
    if isinstance(bounds, range):
        rows += _strided(records, bounds[1] - tail, layout.row, bounds.step, run - 1)
    else:
        rows += [records[at - tail : at + head] for at in bounds[1:run]]
    rows += [records[bounds[run] - tail : bounds[run]], bytes(head)]
    return b"".join(rows)


def _conforming(rows: bytes, index: int, run: int, layout: _Layout, peek: Peek) -> int:
    """How many of the records, from the one of this index on, have the layout."""
    row, tail, good = layout.row, layout.tail, run

    def column(of: int) -> bytes:
        """Of the heads."""
        return rows[tail + of : run * row : row]

    # Most columns are as they should be, which one comparison shows. They are searched where they are not.
    common = layout.common if layout.varies else [*layout.common, *layout.value_length.columns]
    for found in [*map(column, common), *(rows[row + of :: row] for of in layout.common_in_tails)]:
        if found != found[:1] * run:
            good = min(good, run - len(found.lstrip(found[:1])))
    varying = (layout.length, layout.time, layout.value_length) if layout.varies else (layout.time,)
    for number in varying:
        *continued, last = map(column, number.columns)
        for found in continued:
            if found.translate(None, _CONTINUED):
                good = min(good, run - len(found.lstrip(_CONTINUED)))
        if not last.isascii():
            good = min(good, run - len(last.lstrip(_LAST)))
    deltas = _offset_deltas(len(layout.offset.columns))
    for found, due in zip(map(column, layout.offset.columns), deltas, strict=True):
        wanted = due[index : index + run]
        if found != wanted:
            good = min(good, sum(1 for _ in takewhile(bool, map(eq, found, wanted))))
    return min(good, _filled(column, run, layout, peek.value_bytes or 0)) if layout.varies else good


def _filled(column: Callable[[int], bytes], run: int, layout: _Layout, least: int) -> int:
    """How many records, from the first on, have a value that fills what their length leaves to it, and has `least`
    bytes."""
    ones = int.from_bytes(b"\1\0\0\0" * run, "little")
    lengths = _numbers([column(of) for of in layout.length.columns], ones)
    value_lengths = _numbers([column(of) for of in layout.value_length.columns], ones)
    beside = (
        layout.length.encoded - layout.value_length.encoded
    ) * ones  # the same in all, because all else is
    good = _equal_lanes(lengths, value_lengths + beside, run)
    if not least:
        return good
    # The highest bit of a lane is set by a value that has as many bytes.
    enough = value_lengths + (_HIGHEST - 2 * least) * ones & _HIGHEST * ones
    return min(good, _equal_lanes(enough, _HIGHEST * ones, run))


def _numbers(columns: Sequence[bytes], ones: int) -> int:
    """The numbers that these columns encode, as they are encoded, in lanes of 32 bits of one large number, the first
    record's in the lowest. `ones` has 1 in each."""
    lanes = bytearray(4 * len(columns[0]))
    for at, column in enumerate(columns):
        lanes[at::4] = column
    whole = int.from_bytes(lanes, "little")
    return sum((whole & (0x7F << 8 * at) * ones) >> at for at in range(len(columns)))


def _equal_lanes(one: int, other: int, run: int) -> int:
    """How many lanes are equal, from the lowest on."""
    differing = one ^ other
    return min(run, ((differing & -differing).bit_length() - 1) // 32) if differing else run


@cache
def _offset_deltas(width: int) -> tuple[bytes, ...]:
    """The n-th byte of the encoded offset deltas that take so many bytes, by offset delta. Below the first one is a
    byte that none can have."""
    if width == 1:
        return (bytes(range(0, 2 * _ONE, 2)),)
    low = bytes(_ONE) + bytes(range(0x80, 0x100, 2)) * (_TWO // _ONE - 1)
    return low, b"".join(bytes((high,)) * _ONE for high in range(_TWO // _ONE))


def _take(rows: bytes, run: int, layout: _Layout, peek: Peek, taken: Taken) -> None:
    row, tail = layout.row, layout.tail

    def column(field: _Extent | None, start: int) -> Iterable[bytes | None]:
        if field is None:
            return repeat(None, run)
        return _strided(rows, start + field.at, field.size, row, run)

    if peek.key_bytes is not None:
        taken.keys.extend(column(layout.key, tail))
    if peek.value_bytes is not None:
        taken.values.extend(column(layout.value, tail))
    for wanted, found in taken.headers.items():
        # The tail of a record stands in the row of the next one.
        same = [column(content, row) for name, content in layout.headers if name == wanted]
        found.extend(zip(*same, strict=True) if same else repeat((), run))


def _strided(data: Buffer, at: int, size: int, step: int, count: int) -> list[bytes]:
    """`size` bytes from `at` on, and again after each `step`."""
    if size > step:
        return [bytes(data[start : start + size]) for start in range(at, at + count * step, step)]
    found: list[bytes] = []
    for done in range(0, count, _AT_ONCE):
        found += _at_once(size, step, min(count - done, _AT_ONCE)).unpack_from(data, at + done * step)
    return found


@lru_cache(maxsize=64)
def _at_once(size: int, step: int, count: int) -> Struct:
    return Struct(f"{size}s" + f"{step - size}x{size}s" * (count - 1))
