"""Whether the records of a batch end where its header says, found without looking inside any of them.

One bad producer must not stop all consumers of a partition. A batch whose CRC is right may still hold anything, and a
client that cannot step from one record to the next reads no further than that batch. This walk is what every
uncompressed batch of a client goes through (`lc.records.check=ends`), so it has to cost little beside the CRC:

- Records of the same length stand at equal distances, and so do the bytes of their lengths. A run of them is compared
  by slices with a step, in C, a few nanoseconds a record.
- Between runs, `jumps_of_records()` gives from the first two bytes of a record how far the next one is: one lookup for
  each record, about half of what reading the number in place would cost.
- A length of three bytes or more, and whatever is wrong, is read number by number in `_size`.

The insides of records (deltas, keys, values, headers) are read by the readers of `wire.record_frames`.

Source: the record format of https://kafka.apache.org/documentation/#record
"""

from functools import cache
from itertools import repeat
from operator import length_hint
from typing import Final

from leafcuttr.wire.errors import MalformedRecord
from leafcuttr.wire.primitives import Buffer
from leafcuttr.wire.record_frames import encoded_record_length

_PROBE: Final = 16
"""Records that are compared first: a shorter run is not worth slices."""
_WIDEN: Final = 8
"""How much longer the next slice is while a run goes on: what is compared in vain stays a part of what was not."""
_APART: Final = 1024
"""Records of different lengths that are stepped over before the next search for a run."""
_WINDOW: Final = 32 * 1024
"""Bytes of which a copy is made at a time, because indexing bytes costs less than indexing a view. A copy of the whole
batch would be memory that the kernel hands out anew each time."""
_COPIED: Final = 256
"""Bytes a record, on average, up to which a copy pays."""
_LONGEST: Final = 5
"""Bytes that a length can take."""
_NEEDS_THREE: Final = 8192
"""Bytes of a record whose length needs three bytes or more."""
_SHORT: Final = 4
"""Records with lengths of one byte or two, in a row, after which lookups go on."""


def check_record_lengths(records: memoryview, count: int) -> None:
    """Step over `count` uncompressed records, which have to end with `records`.

    Raises EndlessNumber for a length of more than five bytes; MalformedRecord for a length that is negative or more
    than what is left, more records than `count`, or fewer.
    """
    total, at, left = len(records), 0, count
    window = _WINDOW if total < _COPIED * count else total
    while left:
        size = _size(records, at, count - left)
        run = run_of_length(records, at, size, left)
        at += run * size
        left -= run
        if run < _PROBE and left:
            some = min(left, _APART)
            at = _apart(records, at, count - left, some, window)
            left -= some
    if at != total:
        raise MalformedRecord(f"{total - at} bytes follow the last of {count} records")


def run_of_length(records: memoryview, at: int, size: int, most: int) -> int:
    """How many records in a row, `most` at the most, have the length of the one at `at`, which takes `size` bytes."""
    width = 1
    while records[at + width - 1] > 0x7F:
        width += 1
    most = min(most, (len(records) - at) // size)
    run, wanted = 0, _PROBE
    while run < most:
        wanted = min(wanted, most - run)
        start = at + run * size
        equal = wanted
        for column in range(start, start + width):
            if not equal:
                break
            found = records[column : column + (equal - 1) * size + 1 : size]
            first = records[at + column - start]
            # Views compare in C, an item after the other; copies are made only where the run ends.
            if found[0] != first or found[1:] != found[:-1]:
                equal -= len(found.tobytes().lstrip(bytes((first,))))
        run += equal
        if equal < wanted:
            break
        wanted *= _WIDEN
    return run


def size_of_record(records: memoryview, at: int) -> int:
    """Bytes of the record at `at`, with its length; 0 if that takes more than two bytes, is negative, or goes beyond
    the end."""
    try:
        size = jumps_of_records()[records[at]][records[at + 1]]
    except IndexError:
        return 0
    return size if at + size <= len(records) else 0


def _apart(records: memoryview, at: int, index: int, count: int, window: int) -> int:
    """Step over `count` records, the first of which is the one of this index, at `at`: where the next one begins.
    Raises as `check_record_lengths`."""
    jumps, total = jumps_of_records(), len(records)
    steps = repeat(None, count)
    start, data = at, _from(records, at, window)
    at = 0
    while True:
        try:
            for _ in steps:
                at += jumps[data[at]][data[at + 1]]
        except IndexError:
            # The end of the window; a longer or a negative length; the end of all: this step is made, or refused, here.
            size = _size(records, start + at, index + count - 1 - length_hint(steps))
            at += size
        else:
            break
        if size < _NEEDS_THREE:
            at = _in_place(data, at, steps)
        if at + 1 >= len(data):
            start, at = start + at, 0
            data = _from(records, start, window)
    at += start
    if at > total:
        raise MalformedRecord(f"record {index + count - 1} claims {at - total} bytes more than are left")
    return at


def _from(records: memoryview, start: int, window: int) -> Buffer:
    """What indexes are to be taken of, from `start` on."""
    return records[start:] if window >= len(records) else bytes(records[start : start + window])


def _in_place(data: Buffer, at: int, steps: "repeat[None]") -> int:
    """Step over records, number by number, until `_SHORT` in a row have lengths of one byte or two, or one needs more
    than that. A client may write short lengths in more bytes than they need, many of them, and an
    exception for each would cost some ten times as much."""
    most, short = len(data) - _LONGEST + 1, 0
    while short < _SHORT and at < most and length_hint(steps):
        byte = data[at]
        if byte & 1:
            break
        length, shift, after = byte & 0x7F, 7, at + 1
        while byte > 0x7F and shift <= 28:
            byte = data[after]
            length |= (byte & 0x7F) << shift
            shift, after = shift + 7, after + 1
        if byte > 0x7F:
            break
        next(steps)
        short = 0 if shift > 14 else short + 1
        at = after + ((length & 0xFFFFFFFF) >> 1)
    return at


@cache
def jumps_of_records() -> tuple[tuple[int, ...], ...]:
    """By the first byte of a record and the second, its size with its length; made when the first batch needs it (a
    millisecond, 0.4 MB). What is not in it: negative lengths, which are odd, and those of more than two bytes."""
    jumps: list[tuple[int, ...]] = []
    for first in range(256):
        if first & 1:
            jumps.append(())
        elif first < 0x80:
            jumps.append((1 + (first >> 1),) * 256)
        else:
            jumps.append(tuple(2 + (second << 6 | (first & 0x7F) >> 1) for second in range(128)))
    return tuple(jumps)


def _size(records: memoryview, at: int, index: int) -> int:
    """Bytes of the record at `at`, with its length. Raises as `check_record_lengths`."""
    if at >= len(records):
        raise MalformedRecord(f"the bytes end before record {index}")
    try:
        encoded, begins = encoded_record_length(records, at, index)
    except IndexError:
        raise MalformedRecord(f"record {index} ends in the middle of its length") from None
    length, left = (encoded >> 1) ^ -(encoded & 1), len(records) - begins
    if not 0 <= length <= left:
        raise MalformedRecord(f"record {index} claims {length} bytes with {left} left")
    return begins - at + length
