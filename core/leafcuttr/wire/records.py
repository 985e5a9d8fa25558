"""Records inside a batch of format 2: decoding them one by one, encoding a whole batch.

What may not live here: files, topic settings, checks of the batch header (`wire/batch.py`).

Layout of one record, after the optional decompression of all of them together (KIP-98; varints are zigzag):

    length varint | attributes int8 (unused) | timestamp delta varlong | offset delta varint
    | key length varint, key | value length varint, value | header count varint
    | each header: key length varint, key, value length varint, value

A length of -1 is null. Deltas count from the base offset and the base timestamp of the batch. With attribute
bit 6 (KIP-534) the base timestamp is the delete horizon; the deltas still count from it. With LogAppendTime
(bit 3) the timestamp of every record is the batch's max timestamp, whatever its delta says. A timestamp is a
long in Kafka's code too: base and delta together wrap, and so do deltas.

One module, longer than most, because the same layout is read in three ways: whole records, their shapes, and a summary
as fast as Python allows. A change of one is a change of all.
"""

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final, NamedTuple

from leafcuttr.wire.batch import (
    ATTRIBUTES_AT,
    CONTROL,
    CRC_AT,
    HEADER,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MAGIC,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    parse,
)
from leafcuttr.wire.checksum import crc32c
from leafcuttr.wire.compression import Codec, compress, decompress
from leafcuttr.wire.errors import MalformedMessage
from leafcuttr.wire.primitives import (
    LONG_MAX,
    LONG_MIN,
    Buffer,
    as_long,
    more_of_unsigned_varint,
    read_varlong,
    write_varlong,
)

DECOMPRESSED_LIMIT: Final = 100 * 1024 * 1024
"""Bytes that the records of one batch may take once decompressed, unless the caller says otherwise."""

DELETE_HORIZON: Final = 0x40  # KIP-534


class MalformedRecord(MalformedMessage):
    """A record, or the sequence of records of a batch, that does not follow the format."""


class EndlessNumber(MalformedRecord):
    """The length of a record goes on for more than five bytes. Kafka has another error code for it."""


class Record(NamedTuple):
    """One record. `offset` is absolute, `timestamp` in ms since 1970 (-1: none).

    Header keys that are not UTF-8 are kept by surrogate escapes, so that encoding gives the same bytes back.
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class ControlRecord(NamedTuple):
    """The meaning of a record in a control batch. Types: 0 abort, 1 commit; others belong to KRaft."""

    version: int
    type: int
    coordinator_epoch: int | None


class RecordsSummary(NamedTuple):
    """What the records of a batch have in common. The deltas are of the timestamps, and 0 without records."""

    lowest_delta: int
    highest_delta: int
    keyless: bool  # at least one has no key


class RecordShape(NamedTuple):
    """What a check of a record needs to know, without its contents."""

    timestamp_delta: int
    offset_delta: int
    has_key: bool


# Records are walked over in copies of so many bytes: indexing bytes is cheaper than a view, a copy of all is not.
_WINDOW: Final = 256 * 1024
_CONTROL_KEY: Final = Struct(">hh")
_MARKER_VALUE: Final = Struct(">hi")


def record_bytes(batch: Buffer, *, limit: int = DECOMPRESSED_LIMIT) -> memoryview:
    """The records of one whole batch, decompressed: what lies behind the count in the header.

    Raises CorruptBatch for less than a header, CorruptCompression, DecompressionLimitError, and
    MalformedRecord for an unknown codec.
    """
    view = memoryview(batch)
    return decompress(_codec(parse(view).codec), view[HEADER_SIZE:], limit=limit)


def decode_records(batch: Buffer, *, limit: int = DECOMPRESSED_LIMIT) -> Iterator[Record]:
    """The records of one batch, one at a time.

    `batch` begins at the batch's header and ends with it; the header is believed (see `wire/batch.py` for
    its checks). The first step decompresses, at most `limit` bytes. Raises the WireError family at the record
    that is broken, or at the end when there are more or fewer records than the header says.
    """
    data = record_bytes(batch, limit=limit).tobytes()
    header = parse(batch)
    base_offset, base_timestamp, max_timestamp = (
        header.base_offset,
        header.base_timestamp,
        header.max_timestamp,
    )
    append_time, count = header.is_log_append_time, header.count
    total = len(data)
    at = 0
    make = Record._make
    for index in range(count):
        start = at
        try:
            length, at = _varint(data, at)
            end = at + length
            if length < 0 or end > total:
                raise MalformedRecord(f"record {index} claims {length} bytes with {total - at} left")
            timestamp_delta, at = _varlong(data, at + 1)
            offset_delta, at = _varint(data, at)
            key_length, at = _varint(data, at)
            key = None
            if key_length >= 0:
                key = data[at : at + key_length]
                at += key_length
            value_length, at = _varint(data, at)
            value = None
            if value_length >= 0:
                value = data[at : at + value_length]
                at += value_length
            header_count, at = _varint(data, at)
            headers: tuple[tuple[str, bytes | None], ...] = ()
            if header_count:
                headers, at = _read_headers(data, at, end, header_count)
            if at != end or key_length < -1 or value_length < -1:
                raise MalformedRecord(f"record {index} does not end where its length says")
        except IndexError:
            raise MalformedRecord(f"record {index} at byte {start} ends in the middle of a number") from None
        timestamp = max_timestamp if append_time else base_timestamp + timestamp_delta
        if not LONG_MIN <= timestamp <= LONG_MAX:
            timestamp = as_long(timestamp)
        yield make((base_offset + offset_delta, timestamp, key, value, headers))
    if at != total:
        raise MalformedRecord(f"{total - at} bytes follow the last of {count} records")


def summarize_records(view: memoryview, count: int, last_offset_delta: int) -> RecordsSummary:
    """Walk over `count` decompressed records as a broker does that takes them from a producer, in little memory.

    Raises MalformedRecord for whatever `decode_records` refuses, and for offset deltas that do not ascend to the last
    one at most (so that they are the places of the records, unless some have been taken out); EndlessNumber.
    """
    total, at, index, place = len(view), 0, 0, -1
    lowest, highest, keyless = (1 << 63) - 1, -(1 << 63), False
    while index < count:
        data: Buffer = bytes(view[at : at + _WINDOW])
        size, start = len(data), 0
        try:
            while index < count:
                pos = start + 1
                length = data[start]
                if length & 1 or length > 0x7F:
                    length, pos = record_length(data, start, index)
                    if length < 0:
                        raise MalformedRecord(f"record {index} claims {length} bytes")
                else:
                    length >>= 1
                end = pos + length
                if end > size:
                    if at + end > total:
                        raise MalformedRecord(
                            f"record {index} claims {length} bytes with {total - at - pos} left"
                        )
                    if start:
                        break
                    data, size = view[at : at + end], end  # a large record is looked at where it lies
                delta = data[pos + 1]
                if delta < 0x80:
                    delta = (delta >> 1) ^ -(delta & 1)
                    pos += 2
                else:
                    delta, pos = read_varlong(data, pos + 1)
                if delta < lowest:
                    lowest = delta
                if delta > highest:
                    highest = delta
                place += 1  # as nearly always
                if place < 0x40 and data[pos] == place << 1:
                    pos += 1
                elif place < 0x2000 and data[pos] == place << 1 & 0x7F | 0x80 and data[pos + 1] == place >> 6:
                    pos += 2
                else:
                    due = place
                    place, pos = _varint(data, pos)
                    if not due <= place <= last_offset_delta:
                        raise MalformedRecord(f"record {index} has the offset delta {place}")
                field = data[pos]  # of the key, the length; 1 is -1
                if field == 1:
                    keyless = True
                    pos += 1
                elif field < 0x80 and not field & 1:
                    pos += 1 + (field >> 1)
                else:
                    field, pos = _varint(data, pos)
                    if field < -1:
                        raise MalformedRecord(f"record {index} has a field that does not fit into it")
                    keyless |= field < 0
                    pos += max(field, 0)
                field = data[pos]  # of the value
                if field == 1:
                    pos += 1
                elif field < 0x80 and not field & 1:
                    pos += 1 + (field >> 1)
                else:
                    field, pos = _varint(data, pos)
                    if field < -1:
                        raise MalformedRecord(f"record {index} has a field that does not fit into it")
                    pos += max(field, 0)
                if data[pos]:
                    headers, pos = _varint(data, pos)
                    pos = _skip_headers(data, pos, end, headers)
                else:
                    pos += 1
                if pos != end:
                    raise MalformedRecord(f"record {index} does not end where its length says")
                start = end
                index += 1
        except IndexError:
            if not start:
                raise MalformedRecord(f"record {index} ends in the middle of a number") from None
        at += start
    if at != total:
        raise MalformedRecord(f"{total - at} bytes follow the last of {count} records")
    return RecordsSummary(lowest, highest, keyless) if count > 0 else RecordsSummary(0, 0, False)


def record_shapes(data: Buffer, count: int) -> Iterator[RecordShape]:
    """Walk over `count` decompressed records without taking out keys, values and headers.

    Raises MalformedRecord like `decode_records`; the inside of headers is not looked at.
    """
    total = len(data)
    at = 0
    make = RecordShape._make
    for index in range(count):
        try:
            length, at = _varint(data, at)
            end = at + length
            if length < 0 or end > total:
                raise MalformedRecord(f"record {index} claims {length} bytes with {total - at} left")
            timestamp_delta, at = _varlong(data, at + 1)
            offset_delta, at = _varint(data, at)
            key_length, at = _varint(data, at)
            value_length, at = _varint(data, at + max(key_length, 0))
            header_count, at = _varint(data, at + max(value_length, 0))
            # A header takes two bytes at least.
            if key_length < -1 or value_length < -1 or not 0 <= 2 * header_count <= end - at:
                raise MalformedRecord(f"record {index} has a field that does not fit into it")
        except IndexError:
            raise MalformedRecord(f"record {index} ends in the middle of a number") from None
        at = end
        yield make((timestamp_delta, offset_delta, key_length >= 0))
    if at != total:
        raise MalformedRecord(f"{total - at} bytes follow the last of {count} records")


def control_record(record: Record) -> ControlRecord:
    """What a control record says: transaction markers carry the coordinator's epoch, others None."""
    if record.key is None or len(record.key) < _CONTROL_KEY.size:
        raise MalformedRecord(f"the key of control record {record.offset} is too short")
    version, kind = _CONTROL_KEY.unpack_from(record.key)
    epoch = None
    if kind in (0, 1) and record.value is not None and len(record.value) >= _MARKER_VALUE.size:
        epoch = _MARKER_VALUE.unpack_from(record.value)[1]
    return ControlRecord(version, kind, epoch)


def encode_batch(
    records: Iterable[Record],
    *,
    base_offset: int = 0,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    partition_leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    log_append_time: int | None = None,
    transactional: bool = False,
    control: bool = False,
    delete_horizon: int | None = None,
    last_offset_delta: int | None = None,
) -> bytearray:
    """One batch of format 2 with its CRC.

    `log_append_time` (ms) sets LogAppendTime and becomes the max timestamp. `last_offset_delta` is needed
    where it is not that of the last record: in a batch that compaction has thinned out, or left empty.
    Raises ValueError for a record whose offset lies before the base offset.
    """
    records = list(records)
    base_timestamp = records[0].timestamp if records else NO_TIMESTAMP
    attributes = int(codec)
    max_timestamp = max((record.timestamp for record in records), default=NO_TIMESTAMP)
    if log_append_time is not None:
        attributes |= LOG_APPEND_TIME
        max_timestamp = log_append_time
    if delete_horizon is not None:
        attributes |= DELETE_HORIZON
        base_timestamp = delete_horizon
    if transactional:
        attributes |= TRANSACTIONAL
    if control:
        attributes |= CONTROL
    if last_offset_delta is None:
        last_offset_delta = records[-1].offset - base_offset if records else 0
    payload = encode_records(records, base_offset=base_offset, base_timestamp=base_timestamp)
    body = payload if codec is Codec.NONE else compress(codec, payload, level)
    out = bytearray(HEADER_SIZE)
    out += body
    HEADER.pack_into(
        out, 0, base_offset, len(out) - LOG_OVERHEAD, partition_leader_epoch, MAGIC, 0,
        attributes, last_offset_delta, base_timestamp, max_timestamp,
        producer_id, producer_epoch, base_sequence, len(records),
    )  # fmt: skip
    out[CRC_AT:ATTRIBUTES_AT] = crc32c(memoryview(out)[ATTRIBUTES_AT:]).to_bytes(4, "big")
    return out


def encode_records(records: Iterable[Record], *, base_offset: int, base_timestamp: int) -> bytearray:
    """The records as they stand behind the header, uncompressed."""
    out = bytearray()
    for offset, timestamp, key, value, headers in records:
        if offset < base_offset:
            raise ValueError(f"offset {offset} lies before the batch's base offset {base_offset}")
        one = bytearray(1)
        write_varlong(one, as_long(timestamp - base_timestamp))
        write_varlong(one, offset - base_offset)
        _write_bytes(one, key)
        _write_bytes(one, value)
        write_varlong(one, len(headers))
        for name, content in headers:
            _write_bytes(one, name.encode("utf-8", "surrogateescape"))
            _write_bytes(one, content)
        write_varlong(out, len(one))
        out += one
    return out


def _varint(data: Buffer, at: int) -> tuple[int, int]:
    """A zigzag varint of at most 32 bits: one call for the short ones, and IndexError where the data ends."""
    value = data[at]
    if value < 0x80:
        return (value >> 1) ^ -(value & 1), at + 1
    value, at = more_of_unsigned_varint(data, at + 1, value)
    return (value >> 1) ^ -(value & 1), at


def _varlong(data: Buffer, at: int) -> tuple[int, int]:
    value = data[at]
    if value < 0x80:
        return (value >> 1) ^ -(value & 1), at + 1
    return read_varlong(data, at)


def _read_headers(
    data: bytes, at: int, end: int, count: int
) -> tuple[tuple[tuple[str, bytes | None], ...], int]:
    # A header takes two bytes at least, so this refuses a count that is only claimed.
    if not 0 <= 2 * count <= end - at:
        raise MalformedRecord(f"{count} headers do not fit into {end - at} bytes")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        length, at = _varint(data, at)
        if length < 0 or at + length > end:
            raise MalformedRecord(f"a header key of {length} bytes does not fit into its record")
        name = data[at : at + length].decode("utf-8", "surrogateescape")
        length, at = _varint(data, at + length)
        if length < -1 or at + length > end:
            raise MalformedRecord(f"a header value of {length} bytes does not fit into its record")
        if length < 0:
            headers.append((name, None))
        else:
            headers.append((name, data[at : at + length]))
            at += length
    return tuple(headers), at


def _write_bytes(out: bytearray, content: bytes | None) -> None:
    if content is None:
        out.append(1)
        return
    write_varlong(out, len(content))
    out += content


def record_length(data: Buffer, at: int, index: int) -> tuple[int, int]:
    """The length of the record of this index, and the position behind it, as Kafka's `ByteUtils.readVarint` reads it:
    at most five bytes, of which the bits above 32 fall away. Raises EndlessNumber, and IndexError where the data ends.
    """
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            value &= 0xFFFFFFFF
            return (value >> 1) ^ -(value & 1), at
        shift += 7
        if shift > 28:
            raise EndlessNumber(f"the length of record {index} takes more than 5 bytes")


def _skip_headers(data: Buffer, at: int, end: int, count: int) -> int:
    """Step over the headers of a record that ends at `end`; checked as `_read_headers` does."""
    if not 0 <= 2 * count <= end - at:
        raise MalformedRecord(f"{count} headers do not fit into {end - at} bytes")
    for _ in range(count):
        length, at = _varint(data, at)
        if length < 0 or at + length > end:
            raise MalformedRecord(f"a header key of {length} bytes does not fit into its record")
        length, at = _varint(data, at + length)
        if length < -1 or at + length > end:
            raise MalformedRecord(f"a header value of {length} bytes does not fit into its record")
        at += max(length, 0)
    return at


def _codec(codec: int) -> Codec:
    try:
        return Codec(codec)
    except ValueError:
        raise MalformedRecord(f"compression codec {codec} does not exist") from None
