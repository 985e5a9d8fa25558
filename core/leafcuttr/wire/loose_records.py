"""The records of a batch taken apart for somebody who may keep, change or drop each of them, and put together again.

Unlike `decode_records` this reads all of a batch at once and remembers where each record lies, so that those that stay
as they are go on as the bytes they came in: offsets and timestamps within a batch are relative to its header, which
does not change. It is the inner loop of record filters, written for speed: one pass, short numbers read in place.

Source: the record format of https://kafka.apache.org/documentation/#record
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from leafcuttr.wire.primitives import as_long, more_of_unsigned_varint, read_varlong, write_varlong
from leafcuttr.wire.records import MalformedRecord, record_length
from leafcuttr_sdk.records import Record

_SHORT: Final = 0x80
_SAFE: Final = 1 << 62
_SHORT_POSITIVE: Final = 0x40  # below it a number that is not negative takes one byte
_make = tuple.__new__


class LooseRecords(NamedTuple):
    """Records in their order, and where each begins in the bytes; `bounds` has one more than there are records."""

    records: list[Record]
    bounds: list[int]


def take_apart(data: bytes, count: int, base_timestamp: int) -> LooseRecords:
    """`count` decompressed records, of which the n-th has the offset delta n, as a producer numbers them.

    Raises MalformedRecord: one that does not follow the format, another offset delta, more or fewer records;
    EndlessNumber.
    """
    records: list[Record] = []
    # A base timestamp that a delta of one byte takes out of the range of a long has all of them looked at.
    short = _SHORT if abs(base_timestamp) < _SAFE else 0
    bounds = [0]
    keep, mark = records.append, bounds.append
    total = len(data)
    at = index = 0
    try:
        for index in range(count):
            length = data[at]
            at += 1
            if length < _SHORT:
                length = (length >> 1) ^ -(length & 1)
            else:
                length, at = record_length(data, at - 1, index)
            end = at + length
            if length < 0 or end > total:
                raise MalformedRecord(f"record {index} claims {length} bytes with {total - at} left")
            delta = data[at + 1]
            if delta < short:
                delta = (delta >> 1) ^ -(delta & 1)
                at += 2
            else:
                delta, at = read_varlong(data, at + 1)
                delta = as_long(base_timestamp + delta) - base_timestamp
            offset = data[at]
            at += 1
            if offset < _SHORT:
                offset = (offset >> 1) ^ -(offset & 1)
            else:
                offset, at = _varint(data, at, offset)
            if offset != index:
                raise MalformedRecord(f"record {index} has the offset delta {offset}")
            size = data[at]
            at += 1
            key = None
            if size != 1:
                if size < _SHORT:
                    size = (size >> 1) ^ -(size & 1)
                else:
                    size, at = _varint(data, at, size)
                if size >= 0:
                    key = data[at : at + size]
                    at += size
                elif size != -1:
                    raise MalformedRecord(f"record {index} has a key of {size} bytes")
            size = data[at]
            at += 1
            value = None
            if size != 1:
                if size < _SHORT:
                    size = (size >> 1) ^ -(size & 1)
                else:
                    size, at = _varint(data, at, size)
                if size >= 0:
                    value = data[at : at + size]
                    at += size
                elif size != -1:
                    raise MalformedRecord(f"record {index} has a value of {size} bytes")
            if data[at]:
                headers, at = _headers(data, at, end)
            else:
                headers = ()
                at += 1
            if at != end:
                raise MalformedRecord(f"record {index} does not end where its length says")
            mark(end)
            keep(_make(Record, (value, key, headers, base_timestamp + delta)))
    except IndexError:
        raise MalformedRecord(f"record {index} ends in the middle of a number") from None
    if at != total:
        raise MalformedRecord(f"{total - at} bytes follow the last of {count} records")
    return LooseRecords(records, bounds)


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


def _headers(data: bytes, at: int, end: int) -> tuple[tuple[tuple[str, bytes | None], ...], int]:
    count, at = _varint(data, at + 1, data[at])
    if not 0 <= 2 * count <= end - at:  # a header takes two bytes at least
        raise MalformedRecord(f"{count} headers do not fit into {end - at} bytes")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        length = data[at]
        at += 1
        if length < _SHORT:
            length = (length >> 1) ^ -(length & 1)
        else:
            length, at = _varint(data, at, length)
        if length < 0 or at + length > end:
            raise MalformedRecord(f"a header key of {length} bytes does not fit into its record")
        name = data[at : at + length].decode("utf-8", "surrogateescape")
        at += length
        length = data[at]
        at += 1
        if length < _SHORT:
            length = (length >> 1) ^ -(length & 1)
        else:
            length, at = _varint(data, at, length)
        if length < -1 or at + length > end:
            raise MalformedRecord(f"a header value of {length} bytes does not fit into its record")
        if length < 0:
            headers.append((name, None))
        else:
            headers.append((name, data[at : at + length]))
            at += length
    return tuple(headers), at


def _varint(data: bytes, at: int, first: int) -> tuple[int, int]:
    """A zigzag varint of at most 32 bits whose first byte stands before `at`."""
    if first >= _SHORT:
        first, at = more_of_unsigned_varint(data, at, first)
    return (first >> 1) ^ -(first & 1), at
