"""Finding the keys of a batch's records in bulk: where each record begins, what its key is, which have no value.

A record costs nearly a microsecond when it is walked varint by varint in Python. Runs of records of the same shape
(equal length, equal widths of all numbers before the value) are recognised by looking at columns of bytes, and taken
apart by one `struct.iter_unpack`; the rest is walked. The layout is that of `leafcuttr.wire.records`.

Nothing here knows what a key is for.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain
from struct import Struct
from typing import Final, NamedTuple

from leafcuttr.wire.errors import MalformedMessage
from leafcuttr.wire.primitives import as_long, read_varlong

_CONTINUED: Final = bytes(range(128, 256))  # first bytes of a longer varint
_FIRST_LOOK: Final = 32  # records looked at before a whole run is
_SHORT: Final = 8  # a run below this has cost more than it has saved
_PATIENCE: Final = 3
_SAFE: Final = 1 << 62  # a base timestamp that no delta of two bytes takes out of the range of a long


class Walked(NamedTuple):
    """The records of one batch in their order. `bounds` has one more: the end of the last record. `keys` has None for
    a record without a key; `nulls` are the numbers of those without a value; `longest` is the most bytes in a key."""

    bounds: list[int]
    keys: list[bytes | None]
    nulls: list[int]
    longest: int
    keyless: bool


def walk(data: bytes, at: int, end: int, count: int) -> Walked:
    """Take apart the `count` uncompressed records in data[at:end]. Raises MalformedMessage."""
    bounds: list[int] = []
    keys: list[bytes | None] = []
    nulls: list[int] = []
    longest, keyless, patience = 0, False, _PATIENCE
    try:
        while at < end:
            bounds.append(at)
            first = data[at]
            place = at + 1
            if first < 128:
                length = first
            elif data[place] < 128:
                length = first & 127 | data[place] << 7
                place += 1
            else:
                length, place = _unsigned(data, at)
            body = place
            following = place + (length >> 1)
            place += 1
            while data[place] > 127:
                place += 1
            after_time = place = place + 1
            while data[place] > 127:
                place += 1
            place += 1
            size = data[place]
            if size < 128:
                key_at = place + 1
            else:
                size, key_at = _unsigned(data, place)
            if size & 1:
                if size != 1:
                    raise MalformedMessage(f"a key of {-(size >> 1) - 1} bytes")
                keys.append(None)
                keyless = True
                value_at = key_at
            else:
                if size > longest:
                    longest = size
                value_at = key_at + (size >> 1)
                keys.append(data[key_at:value_at])
            if data[value_at] == 1:
                nulls.append(len(keys) - 1)
            if length & 1 or value_at >= following or following > end:
                raise MalformedMessage(f"record {len(keys) - 1} does not end where its length says")
            if patience and following < end and data[following] == first and not size & 1:
                run = _run(
                    data, at, end, following - at, (body - at, after_time - at, place - at, key_at - at)
                )
                if run > 1:
                    stride = following - at
                    stop = at + run * stride
                    number = len(keys)
                    bounds.extend(range(following, stop, stride))
                    keys.extend(_slices(data, following, stop, stride, key_at - at, size >> 1))
                    values = data[value_at + stride : stop : stride]
                    if 1 in values:
                        nulls.extend(number + i for i, byte in enumerate(values) if byte == 1)
                    following = stop
                if run < _SHORT:
                    patience -= 1
            at = following
    except IndexError:
        raise MalformedMessage(f"record {len(keys)} ends in the middle of a number") from None
    if len(keys) != count:
        raise MalformedMessage(f"{len(keys)} records are in a batch of {count}")
    bounds.append(end)
    return Walked(bounds, keys, nulls, longest >> 1, keyless)


def _run(data: bytes, at: int, end: int, stride: int, places: tuple[int, int, int, int]) -> int:
    """How many records from the one at `at` on have its length and its widths."""
    most = (end - at) // stride
    run = _alike(data, at, min(most, _FIRST_LOOK), stride, places)
    return run if run < _FIRST_LOOK or run == most else _alike(data, at, most, stride, places)


def _alike(data: bytes, at: int, run: int, stride: int, places: tuple[int, int, int, int]) -> int:
    body, after_time, key_size, key = places
    # The same bytes: of the length, and of the size of the key.
    for place in (*range(body), *range(key_size, key)):
        column = data[at + place : at + run * stride : stride]
        run -= len(column.lstrip(column[:1]))
    # The same widths: of the time and of the offset, behind the byte of attributes.
    for place in range(body + 1, key_size):
        column = data[at + place : at + run * stride : stride]
        if place + 1 in (after_time, key_size):
            if not column.isascii():
                run -= len(column.lstrip(_ENDED))
        else:
            run -= len(column.lstrip(_CONTINUED))
    return run


_ENDED: Final = bytes(range(128))


@lru_cache(maxsize=64)
def _shape(before: int, size: int, stride: int) -> Struct:
    return Struct(f"{before}x{size}s{stride - before - size}x")


def _slices(data: bytes, at: int, stop: int, stride: int, before: int, size: int) -> Iterator[bytes]:
    """The same `size` bytes of every `stride`."""
    rows = _shape(before, size, stride).iter_unpack(memoryview(data)[at:stop])
    return chain.from_iterable(rows)


def max_timestamp(data: bytes, starts: Iterable[int], base_timestamp: int) -> int:
    """The largest timestamp (ms) of the records that begin at `starts`; -1 without any."""
    largest = None
    safe = abs(base_timestamp) < _SAFE
    for at in starts:
        while data[at] > 127:
            at += 1
        at += 2
        delta = data[at]
        if delta < 128 and safe:
            delta = (delta >> 1) ^ -(delta & 1)
        elif data[at + 1] < 128 and safe:
            delta = delta & 127 | data[at + 1] << 7
            delta = (delta >> 1) ^ -(delta & 1)
        else:
            delta, _ = read_varlong(data, at)
            delta = as_long(base_timestamp + delta) - base_timestamp
        if largest is None or delta > largest:
            largest = delta
    return -1 if largest is None else base_timestamp + largest


def _unsigned(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned varint of at most five bytes. Raises IndexError, MalformedMessage."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift > 28:
            raise MalformedMessage("a number is too long")
