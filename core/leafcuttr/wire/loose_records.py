"""The records of a batch taken apart, so that each can be kept, changed or dropped, and put together again.

Unlike `decode_records` this reads all of a batch at once and remembers where each record lies, so that those that stay
as they are keep their bytes: offsets and timestamps within a batch are relative to its header, which
does not change. It is the inner loop of record filters.

Source: the record format of https://kafka.apache.org/documentation/#record
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from leafcuttr.wire.primitives import as_long, write_varlong
from leafcuttr.wire.record_frames import compile_frame
from leafcuttr_sdk.records import Record

_SHORT_POSITIVE: Final = 0x40  # below it a number that is not negative takes one byte


class LooseRecords(NamedTuple):
    """Records in their order, and where each begins in the bytes; `bounds` has one more than there are records."""

    records: list[Record]
    bounds: list[int]


def take_apart(data: bytes, count: int, base_timestamp: int) -> LooseRecords:
    """`count` decompressed records, of which the n-th has the offset delta n, as a producer numbers them.

    Raises MalformedRecord: one that does not follow the format, another offset delta, more or fewer records;
    EndlessNumber.
    """
    return _read(data, count, base_timestamp)


def compile_early() -> None:
    """For a caller that measures how long `take_apart` takes: what the first call would do besides is done now."""
    global _read  # noqa: PLW0603 - compiled once
    if _read is not _compile:
        return
    _read = compile_frame(
        _compile,
        _TAKE_APART,
        misfit="record {index} has a {field} of {size} bytes",
        length="encoded_record_length(data, {at}, index)",
        scope={"make": tuple.__new__, "Record": Record, "LooseRecords": LooseRecords},
    )


def _compile(data: bytes, count: int, base_timestamp: int) -> LooseRecords:
    compile_early()
    return _read(data, count, base_timestamp)


_read: Callable[[bytes, int, int], LooseRecords] = _compile
_TAKE_APART: Final = """
    def read(data, count, base_timestamp):
        records, bounds = [], [0]
        far = not -FAR < base_timestamp < FAR
        total, at, index = len(data), 0, 0
        try:
            for index in range(count):
                @end length total:
                    raise Bad(f"record {index} claims {length} bytes with {total - at} left")
                @skip attributes
                @read timestamp_delta unless far
                @expect offset_delta index:
                    if offset_delta != index:
                        raise Bad(f"record {index} has the offset delta {offset_delta}")
                @read key
                @read value
                @read headers
                if at != end:
                    raise Bad(f"record {index} does not end where its length says")
                bounds.append(end)
                records.append(make(Record, (value, key, headers, base_timestamp + timestamp_delta)))
        except IndexError:
            raise Bad(f"record {index} ends in the middle of a number") from None
        if at != total:
            raise Bad(f"{total - at} bytes follow the last of {count} records")
        return make(LooseRecords, (records, bounds))
    """


def put_together(
    data: bytes, loose: LooseRecords, kept: Sequence[int], records: Sequence[Record], base_timestamp: int
) -> bytearray:
    """The bytes of the records that stay: `records[n]` in the place of the one of index `kept[n]`, which ascend. One
    that is the same object as before is not written anew."""
    out = bytearray()
    before, bounds = loose.records, loose.bounds
    began = stopped = 0  # of a run of records that stay as they are
    for index, record in zip(kept, records, strict=True):
        start = bounds[index]
        if record is before[index]:
            if start != stopped:
                out += data[began:stopped]
                began = start
            stopped = bounds[index + 1]
            continue
        out += data[began:stopped]
        began = stopped = start
        _write(out, index, record, base_timestamp)
    out += data[began:stopped]
    return out


def _write(out: bytearray, offset_delta: int, record: Record, base_timestamp: int) -> None:
    value, key, headers, timestamp = record
    assert timestamp is not None
    one = bytearray(1)
    delta = as_long(timestamp - base_timestamp)
    if 0 <= delta < _SHORT_POSITIVE:
        one.append(delta << 1)
    else:
        write_varlong(one, delta)
    if offset_delta < _SHORT_POSITIVE:
        one.append(offset_delta << 1)
    else:
        write_varlong(one, offset_delta)
    _write_bytes(one, key)
    _write_bytes(one, value)
    if headers:
        write_varlong(one, len(headers))
        for name, content in headers:
            _write_bytes(one, name.encode("utf-8", "surrogateescape"))
            _write_bytes(one, content)
    else:
        one.append(0)
    _write_bytes(out, one)


def _write_bytes(out: bytearray, content: bytes | bytearray | None) -> None:
    if content is None:
        out.append(1)
        return
    size = len(content)
    if size < _SHORT_POSITIVE:
        out.append(size << 1)
    elif size < _SHORT_POSITIVE << 7:
        out.append(size << 1 & 0x7F | 0x80)
        out.append(size >> 6)
    else:
        write_varlong(out, size)
    out += content
