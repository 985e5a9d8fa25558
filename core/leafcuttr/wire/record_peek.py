"""The first bytes of keys and values, and headers by name, of all records of a batch, without taking records out.

It is what produce validators with a `peek` see, and it refuses what `loose_records.take_apart` refuses: each record is
walked over as a whole. Records of one layout are compared in C (`record_runs`); this module steps over the others, one
by one, and puts both together.
"""

from collections.abc import Callable
from functools import cache
from math import inf
from typing import Final, TypeAlias

from leafcuttr.wire.errors import MalformedRecord
from leafcuttr.wire.primitives import Buffer, more_of_unsigned_varint
from leafcuttr.wire.record_frames import compile_frame
from leafcuttr.wire.record_runs import Taken, take_run
from leafcuttr_sdk.peek import Peek, PeekedBatch

_APART: Final = 64
"""Records that are stepped over before the next search for a run; twice as many each time in which none is found."""
_TOP_APART: Final = 1024
_FIRST_REACH: Final = 512
_REACH: Final = 64
"""Records that the first run may have, and one after records that were none, because some is done with all of them in
vain."""
_TOP_REACH: Final = 8192
_COPIED: Final = 256
"""Bytes a record, on average, up to which a copy pays: indexing bytes costs less than indexing a view."""


class TooManyHeaders(Exception):
    """There are more headers than the caller has the time for."""


def peek_records(records: memoryview, count: int, peek: Peek, *, most_headers: float = inf) -> PeekedBatch:
    """What is wanted of `count` decompressed records, of which the n-th has the offset delta n.

    Raises MalformedRecord: a record that does not follow the format, another offset delta, more or fewer records;
    EndlessNumber; TooManyHeaders where more than `most_headers` would have to be stepped over one by one.
    """
    taken = Taken([], [], {name.encode("utf-8", "surrogateescape"): [] for name in peek.headers})
    total, copied = len(records), len(records) <= _COPIED * count
    data: Buffer = b""
    at = index = 0
    reach, apart = _FIRST_REACH, _APART
    while index < count:
        run, at = take_run(records, at, index, min(count - index, reach), peek, taken)
        index += run
        if run:
            reach, apart = _TOP_REACH, _APART
        elif index < count:
            data = data or (records.tobytes() if copied else records)
            stop = min(index + apart, count)
            at, most_headers = _walk_for(peek, copied)(data, at, index, stop, peek, taken, most_headers)
            index = stop
            reach, apart = _REACH, min(2 * apart, _TOP_APART)
    if at != total:
        raise MalformedRecord(f"{total - at} bytes follow the last of {count} records")
    headers = dict(zip(peek.headers, taken.headers.values(), strict=True))
    return PeekedBatch(count, taken.keys, taken.values, headers)


def compile_early(peek: Peek) -> None:
    """For a caller that measures how long `peek_records` takes: what the first call would do besides is done now."""
    for copied in (False, True):
        _walk_for(peek, copied)


_Walk: TypeAlias = Callable[[Buffer, int, int, int, Peek, Taken, float], tuple[int, float]]
"""Of `data`, records `start` to `stop`, the first of which begins at `at`: take out what is wanted, and return where
the last one ends and how many headers are left."""


def _walk_for(peek: Peek, copied: bool) -> _Walk:
    return _compiled(peek.key_bytes is not None, peek.value_bytes is not None, bool(peek.headers), copied)


@cache
def _compiled(key: bool, value: bool, headers: bool, copied: bool) -> _Walk:
    frame = _WALK.format(
        key=_TAKE.format(field="key") if key else "@skip key",
        value=_TAKE.format(field="value") if value else "@skip value",
        without="for found in named: found.append(())" if headers else "pass",
    )
    return compile_frame(
        _like,
        frame if copied else frame.replace("(data[at:stop])", "(data[at:stop].tobytes())"),
        misfit="record {index} has a {field} of {size} bytes",
        length="encoded_record_length(data, {at}, index)",
        scope={"take_headers": _take_headers, "TooManyHeaders": TooManyHeaders},
    )


def _like(
    data: Buffer, at: int, start: int, stop: int, peek: Peek, taken: Taken, most_headers: float
) -> tuple[int, float]:
    """See `_Walk`."""
    raise NotImplementedError


_WALK: Final = """
    def read(data, at, first, last, peek, taken, most_headers):
        keys, values, by_name = taken
        named = list(by_name.values())
        most_key_bytes, most_value_bytes = peek.key_bytes, peek.value_bytes
        total, index = len(data), first
        try:
            for index in range(first, last):
                @end length total:
                    raise Bad(f"record {{index}} claims {{length}} bytes with {{total - at}} left")
                @skip attributes
                @skip timestamp_delta
                @expect offset_delta index:
                    if offset_delta != index:
                        raise Bad(f"record {{index}} has the offset delta {{offset_delta}}")
                {key}
                {value}
                @count headers
                if headers_count:
                    if not 0 <= 2 * headers_count <= end - at:
                        raise Bad(f"{{headers_count}} headers do not fit into {{end - at}} bytes")
                    most_headers -= headers_count
                    if most_headers < 0:
                        raise TooManyHeaders
                    at = take_headers(data, at, end, headers_count, by_name)
                else:
                    {without}
                if at != end:
                    raise Bad(f"record {{index}} does not end where its length says")
        except IndexError:
            raise Bad(f"record {{index}} ends in the middle of a number") from None
        return at, most_headers
    """
_TAKE: Final = """@size {field}
                if {field}_size & 1:
                    if {field}_size > 1:
                        raise Bad(f"record {{index}} has a {field} of {{~({field}_size >> 1)}} bytes")
                    {field}s.append(None)
                else:
                    behind = at + ({field}_size >> 1)
                    stop = min(behind, at + most_{field}_bytes)
                    {field}s.append(data[at:stop]); at = behind"""


def _take_headers(
    data: Buffer, at: int, end: int, count: int, by_name: dict[bytes, list[tuple[bytes | None, ...]]]
) -> int:
    """Step over the headers of one record, and take those that are wanted. Returns where they end. Raises as the
    walk."""
    found: dict[bytes, list[bytes | None]] = {}
    for _ in range(count):
        n = data[at]
        n, at = (n, at + 1) if n < 0x80 else more_of_unsigned_varint(data, at + 1, n)
        stop = at + (n >> 1)
        if n & 1 or stop > end:
            raise _misfit("key", n)
        name = bytes(data[at:stop]) if by_name else b""
        at = stop
        n = data[at]
        n, at = (n, at + 1) if n < 0x80 else more_of_unsigned_varint(data, at + 1, n)
        stop = at + (n >> 1)
        if stop > end or (n & 1 and n > 1):
            raise _misfit("value", n)
        if name in by_name:
            found.setdefault(name, []).append(None if n & 1 else bytes(data[at:stop]))
        at = stop
    for name, values in by_name.items():
        values.append(tuple(found.get(name, ())))
    return at


def _misfit(part: str, encoded: int) -> MalformedRecord:
    size = encoded >> 1 ^ -(encoded & 1)
    return MalformedRecord(f"a header {part} of {size} bytes does not fit into its record")
