"""Finding the keys of a batch's records in bulk: where each record begins, what its key is, which have no value.

A record costs nearly a microsecond when it is walked varint by varint in Python. Runs of records of the same shape
(equal length, equal widths of all numbers before the value) are recognised by looking at columns of bytes, and taken
apart by one `struct.iter_unpack`; the rest is walked, by a reader generated from `leafcuttr.wire.record_layout`.

What the keys are for is the business of `leafcuttr.log.cleaner.compaction.compact`.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import chain
from struct import Struct
from typing import Final, NamedTuple

from leafcuttr.wire.record_frames import compile_frame
from leafcuttr.wire.record_layout import RECORD, Byte

_CONTINUED: Final = bytes(range(128, 256))  # first bytes of a longer varint
_PADDED: Final = 0x81  # begins -1 in more bytes than it needs
_SAMPLE: Final = 32  # records checked before a whole run is
_SHORT: Final = 8  # a run below this has cost more than it has saved
_PATIENCE: Final = 3


class Walked(NamedTuple):
    """The records of one batch in their order. `bounds` has one more: the end of the last record. `keys` has None for
    a record without a key; `nulls` are the numbers of those without a value; `longest` is the most bytes in a key."""

    bounds: list[int]
    keys: list[bytes | None]
    nulls: list[int]
    longest: int
    keyless: bool


def walk(data: bytes, at: int, end: int, count: int) -> Walked:
    """Take apart the `count` uncompressed records in data[at:end]. Raises MalformedMessage or MalformedRecord."""
    return _walk(data, at, end, count)


def _compile_walk(data: bytes, at: int, end: int, count: int) -> Walked:
    global _walk  # noqa: PLW0603 - compiled once, at the first use
    scope: dict[str, object] = {"PATIENCE": _PATIENCE, "SHORT": _SHORT, "run_of": _run}
    scope |= {
        "PADDED": _PADDED,
        "places_of": _places,
        "slices": _slices,
        "Walked": Walked,
        "make": tuple.__new__,
    }
    _walk = compile_frame(_compile_walk, _WALK, misfit="", scope=scope)
    return _walk(data, at, end, count)


_walk: Callable[[bytes, int, int, int], Walked] = _compile_walk

_WALK: Final = """
    def read(data, at, total, count):
        bounds, keys, nulls = [], [], []
        longest, keyless, patience = 0, False, PATIENCE
        try:
            while at < total:
                start = at
                bounds.append(start)
                @end length total:
                    raise Bad(f"record {len(keys)} does not end where its length says")
                @skip attributes
                @pass timestamp_delta
                @pass offset_delta
                @size key
                if key_size & 1:
                    if key_size > 1:
                        raise Bad(f"a key of {-(key_size >> 1) - 1} bytes")
                    keys.append(None)
                    keyless = True
                else:
                    if key_size > longest:
                        longest = key_size
                    stop = at + (key_size >> 1)
                    keys.append(data[at:stop])
                    at = stop
                if data[at] == 1 or (data[at] == PADDED and unsigned(data, at)[0] == 1):  # of the value
                    nulls.append(len(keys) - 1)
                @leave value
                @leave headers
                if at >= end:
                    raise Bad(f"record {len(keys) - 1} does not end where its length says")
                at = end
                if patience and at < total and data[at] == data[start] and not key_size & 1:
                    stride, places = at - start, places_of(data, start)
                    run = run_of(data, start, total, stride, places)
                    if run > 1:
                        stop, number, size, key = start + run * stride, len(keys), key_size >> 1, places[3]
                        bounds.extend(range(at, stop, stride))
                        keys.extend(slices(data, at, stop, stride, key, size))
                        values = data[at + key + size : stop : stride]
                        if 1 in values or PADDED in values:
                            first = at + key + size
                            nulls.extend(
                                number + i
                                for i, byte in enumerate(values)
                                if byte == 1 or (byte == PADDED and unsigned(data, first + i * stride)[0] == 1)
                            )
                        at = stop
                    if run < SHORT:
                        patience -= 1
        except IndexError:
            raise Bad(f"record {len(keys)} ends in the middle of a number") from None
        if len(keys) != count:
            raise Bad(f"{len(keys)} records are in a batch of {count}")
        bounds.append(total)
        return make(Walked, (bounds, keys, nulls, longest >> 1, keyless))
    """


def _bytes_before_numbers() -> Iterator[int]:
    """For each number of a record up to the size of its key: how many single bytes lie before it."""
    unused = 0
    for field in RECORD:
        if isinstance(field, Byte):
            unused += 1
            continue
        yield unused
        unused = 0
        if field.name == "key":
            return


_BEFORE_NUMBERS: Final = tuple(_bytes_before_numbers())


def _places(data: bytes, start: int) -> tuple[int, ...]:
    """How far behind the beginning of a record its attributes, offset delta, key's length and key begin."""
    found, at = [], start
    for unused in _BEFORE_NUMBERS:
        at += unused
        while data[at] > 127:
            at += 1
        at += 1
        found.append(at - start)
    return tuple(found)


def _run(data: bytes, at: int, end: int, stride: int, places: tuple[int, ...]) -> int:
    """How many records from the one at `at` on have its length and its widths."""
    most = (end - at) // stride
    run = _alike(data, at, min(most, _SAMPLE), stride, places)
    return run if run < _SAMPLE or run == most else _alike(data, at, most, stride, places)


def _alike(data: bytes, at: int, run: int, stride: int, places: tuple[int, ...]) -> int:
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
    return _largest(data, starts, base_timestamp)


def _compile_largest(data: bytes, starts: Iterable[int], base_timestamp: int) -> int:
    global _largest  # noqa: PLW0603 - compiled once, at the first use
    _largest = compile_frame(_compile_largest, _LARGEST, misfit="")
    return _largest(data, starts, base_timestamp)


_largest: Callable[[bytes, Iterable[int], int], int] = _compile_largest

_LARGEST: Final = """
    def read(data, starts, base_timestamp):
        largest = None
        far = not -FAR < base_timestamp < FAR
        for at in starts:
            @pass length
            @skip attributes
            @read timestamp_delta unless far
            @leave offset_delta
            @leave key
            @leave value
            @leave headers
            if largest is None or timestamp_delta > largest:
                largest = timestamp_delta
        return -1 if largest is None else base_timestamp + largest
    """
