"""Records of one layout in a row: their first bytes taken out, and all that they have to have in common compared, in C.

A producer's records often have the same length. They then stand at equal distances, and so do their fields, if the
bytes that say where these are do not differ: lengths, counts, and how many bytes each number takes. The first record is
read number by number; of the others each of these bytes is compared at once, by a slice with a step. What is asked for
is taken out by `Struct.iter_unpack`, which steps over the rest.

A run ends before the first record that differs, or is wrong: how it is read, or refused, says `record_peek`.
"""

from functools import cache
from itertools import chain, repeat, takewhile
from operator import eq
from struct import Struct
from typing import Final, NamedTuple

from leafcuttr.wire.errors import WireError
from leafcuttr.wire.primitives import read_varlong
from leafcuttr.wire.record_lengths import run_of_length
from leafcuttr_sdk.peek import Peek

SHORTEST: Final = 32
"""Records below which a run costs more than to step over them one by one."""

_MOST_HEADERS: Final = 8
"""Of a record in a run: each takes some more slices."""
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
    """It is read by itself."""


class _Extent(NamedTuple):
    """Where the bytes of a field lie in a record; None of one that is null."""

    at: int
    size: int


class _Layout(NamedTuple):
    """Of a record, positions counted from its length on."""

    size: int
    common: list[int]
    """Bytes that have to be the same in all records."""
    time: range
    offset: range
    key: _Extent | None
    value: _Extent | None
    headers: list[tuple[_Extent, _Extent | None]]


def take_run(
    records: memoryview, at: int, index: int, count: int, peek: Peek, taken: Taken
) -> tuple[int, int]:
    """Take out what is asked for of the run that begins with record `index`, at `at`: how many records it has, and the
    bytes of each. (0, 0) if it is shorter than `SHORTEST`."""
    most = min(count, _ONE if index < _ONE else _TWO) - index
    if most < SHORTEST:
        return 0, 0
    layout = _layout(records, at)
    if layout is None:
        return 0, 0
    size = layout.size
    if len(records) - at < SHORTEST * size:
        return 0, 0
    run = _conforming(records, at, index, run_of_length(records, at, size, most), layout)
    if run < SHORTEST or not _take(records[at : at + run * size], run, layout, peek, taken):
        return 0, 0
    return run, size


def _layout(records: memoryview, at: int) -> _Layout | None:
    """That of the record at `at`; None if it is an unusual one, or wrong."""
    common: list[int] = []
    start = at

    def size_at(at: int) -> tuple[int, int]:
        size, behind = read_varlong(records, at)
        if behind - at > _SURE:
            raise _Unusual
        common.extend(range(at - start, behind - start))
        return size, behind

    def extent_at(at: int, least: int = -1) -> tuple[_Extent | None, int]:
        size, at = size_at(at)
        if size < least:
            raise _Unusual
        return (None, at) if size < 0 else (_Extent(at - start, size), at + size)

    try:
        length, at = size_at(at)
        common.clear()  # of the length, which `run_of_length` compares
        end = at + length
        if length < 0 or end > len(records):
            return None
        time_at = at + 1  # behind the attributes, which are unused
        _, offset_at = read_varlong(records, time_at)
        _, at = read_varlong(records, offset_at)
        if offset_at - time_at > _SURE_LONG or at - offset_at > 2:
            return None
        time, offset = range(time_at - start, offset_at - start), range(offset_at - start, at - start)
        key, at = extent_at(at)
        value, at = extent_at(at)
        many, at = size_at(at)
        if not 0 <= many <= _MOST_HEADERS:
            return None
        headers: list[tuple[_Extent, _Extent | None]] = []
        for _ in range(many):
            name, at = extent_at(at, 0)
            assert name is not None
            content, at = extent_at(at)
            headers.append((name, content))
    except (WireError, IndexError, _Unusual):
        return None
    return _Layout(end - start, common, time, offset, key, value, headers) if at == end else None


def _conforming(records: memoryview, at: int, index: int, run: int, layout: _Layout) -> int:
    """How many of the `run` records from the one of this index on, which have the same length, have this layout."""
    size = layout.size

    def column(of: int) -> bytes:
        return records[at + of : at + of + (run - 1) * size + 1 : size].tobytes()

    # Most columns are as they should be, which one comparison shows; they are searched where they are not.
    for of in layout.common:
        found = column(of)
        if found != found[:1] * run:
            run -= len(found.lstrip(found[:1]))
    for of in layout.time[:-1]:
        found = column(of)
        if found.translate(None, _CONTINUED):
            run -= len(found.lstrip(_CONTINUED))
    found = column(layout.time[-1])
    if not found.isascii():
        run -= len(found.lstrip(_LAST))
    for of, due in zip(layout.offset, _offset_deltas(len(layout.offset)), strict=True):
        found, wanted = column(of), due[index : index + run]
        if found != wanted:
            run = sum(1 for _ in takewhile(bool, map(eq, found, wanted)))
    return run


@cache
def _offset_deltas(width: int) -> tuple[bytes, ...]:
    """The n-th byte of the encoded offset deltas that take so many bytes, by offset delta. Others have a byte that no
    record can have."""
    if width == 1:
        return (bytes(range(0, 2 * _ONE, 2)),)
    low = b"\0" * _ONE + bytes(range(0x80, 0x100, 2)) * (_TWO // _ONE - 1)
    return low, b"".join(bytes((high,)) * _ONE for high in range(_TWO // _ONE))


def _take(run: memoryview, count: int, layout: _Layout, peek: Peek, taken: Taken) -> bool:
    """Take out what is asked for of these records. Nothing is, and False returned, if the names of their headers
    differ."""
    fields: list[_Extent] = []
    key = _first(layout.key, peek.key_bytes, fields)
    value = _first(layout.value, peek.value_bytes, fields)
    names: list[int] = []
    contents: list[int | None] = []
    if taken.headers:
        for name, content in layout.headers:
            names.append(_add(name, fields))
            contents.append(None if content is None else _add(content, fields))
    ends, steps = 0, ""
    for extent in fields:
        steps += f"{extent.at - ends}x{extent.size}s"
        ends = extent.at + extent.size
    flat: list[bytes] = []
    if fields:
        flat += chain.from_iterable(Struct(f"{steps}{layout.size - ends}x").iter_unpack(run))
    columns: list[list[bytes]] = [flat[at :: len(fields)] for at in range(len(fields))]
    if any(columns[name].count(columns[name][0]) != count for name in names):
        return False
    if peek.key_bytes is not None:
        taken.keys.extend(repeat(None, count) if key is None else columns[key])
    if peek.value_bytes is not None:
        taken.values.extend(repeat(None, count) if value is None else columns[value])
    for wanted, found in taken.headers.items():
        same = [
            repeat(None, count) if content is None else columns[content]
            for at, content in zip(names, contents, strict=True)
            if columns[at][0] == wanted
        ]
        found.extend(zip(*same, strict=True) if same else repeat((), count))
    return True


def _first(field: _Extent | None, size: int | None, fields: list[_Extent]) -> int | None:
    """Where the first bytes of the field will be found, if they are asked for and it is not null."""
    return None if field is None or size is None else _add(_Extent(field.at, min(size, field.size)), fields)


def _add(field: _Extent, fields: list[_Extent]) -> int:
    fields.append(field)
    return len(fields) - 1
