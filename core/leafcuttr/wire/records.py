"""Records inside a batch of format 2: decoding them one by one, encoding a whole batch.

Not in this module: files, topic settings, checks of the batch header (`wire/batch.py`).

Layout of one record, after the optional decompression of all of them together (KIP-98; varints are zigzag):

    length varint | attributes int8 (unused) | timestamp delta varlong | offset delta varint
    | key length varint, key | value length varint, value | header count varint
    | each header: key length varint, key, value length varint, value

A length of -1 is null. Deltas count from the base offset and the base timestamp of the batch. With attribute
bit 6 (KIP-534) the base timestamp is the delete horizon; the deltas still count from it. With LogAppendTime
(bit 3) the timestamp of every record is the batch's max timestamp, whatever its delta says. A timestamp is a
long in Kafka's code too: base and delta together wrap, and so do deltas.

It is written down as data in `wire/record_layout.py`, from which all readers of records are generated.
"""

from collections.abc import Callable, Iterable, Iterator
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from leafcuttr.wire.batch import (
    ATTRIBUTES_AT,
    CONTROL,
    CRC_AT,
    DELETE_HORIZON,
    HEADER,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MAGIC,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    parse,
)
from leafcuttr.wire.compression import Codec, compress, decompress
from leafcuttr.wire.errors import MalformedRecord
from leafcuttr.wire.primitives import Buffer, as_long, write_varlong
from leafcuttr.wire.record_frames import compile_frame
from leafcuttr_sdk.batches.checksum import crc32c

if TYPE_CHECKING:
    from leafcuttr.wire.record_shapes import Shapes
    from leafcuttr_sdk.records import StoredRecord

DECOMPRESSED_LIMIT: Final = 100 * 1024 * 1024
"""Bytes that the records of one batch may take once decompressed, unless the caller says otherwise."""


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

    `batch` begins at the batch's header and ends with it; the header is not checked (see `wire/batch.py` for
    its checks). The first step decompresses, at most `limit` bytes. Raises the WireError family at the record
    that is broken, or at the end when there are more or fewer records than the header says.
    """
    return _decode(batch, limit)


def decode_alike(
    batch: Buffer, shapes: "Shapes", *, limit: int = DECOMPRESSED_LIMIT
) -> "Iterator[Record | StoredRecord]":
    """The same. Records with headers that are like earlier ones of the partition, which `shapes` has learnt, are read
    faster, and come as plugins get them."""
    return _decode_alike(batch, limit, shapes)


def _compile(batch: Buffer, limit: int) -> Iterator[Record]:
    global _decode  # noqa: PLW0603 - compiled once, at the first use
    _decode = compile_frame(
        _compile,
        _DECODE,
        misfit=_MISFIT,
        scope={"make": Record._make, "parse": parse, "record_bytes": record_bytes},
    )
    return _decode(batch, limit)


def _compile_alike(batch: Buffer, limit: int, shapes: "Shapes") -> "Iterator[Record | StoredRecord]":
    from leafcuttr.wire.shape_readers import LONGEST_TAIL

    global _decode_alike  # noqa: PLW0603 - compiled once, at the first use
    _decode_alike = compile_frame(
        _compile_alike,
        _DECODE_ALIKE,
        misfit=_MISFIT,
        scope={
            "make": Record._make,
            "parse": parse,
            "record_bytes": record_bytes,
            "LONGEST_TAIL": LONGEST_TAIL,
        },
    )
    return _decode_alike(batch, limit, shapes)


_MISFIT: Final = "record {index} does not end where its length says"
_decode: Callable[[Buffer, int], Iterator[Record]] = _compile
_decode_alike: "Callable[[Buffer, int, Shapes], Iterator[Record | StoredRecord]]" = _compile_alike
_DECODE: Final = """
    def read(batch, limit):
        data = record_bytes(batch, limit=limit).tobytes()
        header = parse(batch)
        base_offset, base_timestamp, count = header.base_offset, header.base_timestamp, header.count
        append_time = header.max_timestamp if header.is_log_append_time else None
        far = not -FAR < base_timestamp < FAR
        at, total = 0, len(data)
        for index in range(count):
            start = at
            try:
                @end length total:
                    raise Bad(f"record {index} claims {length} bytes with {total - at} left")
                @skip attributes
                @read timestamp_delta unless far
                @read offset_delta
                @read key
                @read value
                @read headers
                if at != end:
                    raise Bad(f"record {index} does not end where its length says")
            except IndexError:
                raise Bad(f"record {index} at byte {start} ends in the middle of a number") from None
            timestamp = base_timestamp + timestamp_delta if append_time is None else append_time
            yield make((base_offset + offset_delta, timestamp, key, value, headers))
        if at != total:
            raise Bad(f"{total - at} bytes follow the last of {count} records")
    """
_DECODE_ALIKE: Final = """
    def read(batch, limit, shapes):
        data = record_bytes(batch, limit=limit).tobytes()
        header = parse(batch)
        base_offset, base_timestamp, count = header.base_offset, header.base_timestamp, header.count
        append_time = header.max_timestamp if header.is_log_append_time else None
        far = not -FAR < base_timestamp < FAR
        at, total = 0, len(data)
        shapes.records += count
        headers, mixed = True, False
        for index in range(count):
            start = at
            try:
                @end length total:
                    raise Bad(f"record {index} claims {length} bytes with {total - at} left")
                @skip attributes
                @read timestamp_delta unless far
                @read offset_delta
                timestamp = base_timestamp + timestamp_delta if append_time is None else append_time
                # Without headers there is nothing to be gained. A record mostly has some if the one before has. Where
                # some have and others have not, the last byte tells: the number of none is 0.
                if (data[end - 1] if mixed else headers) and (
                    record := shapes.read(data, at, end, base_offset + offset_delta, timestamp)
                ):
                    at = end
                    headers = True
                    yield record
                    continue
                begin, before = at, headers
                @read key
                @read value
                behind = at
                if headers and end - begin > LONGEST_TAIL and (headers := shapes.of_long(data[at:end])):
                    behind = at = end
                else:
                    @read headers
                if at != end:
                    raise Bad(f"record {index} does not end where its length says")
            except IndexError:
                raise Bad(f"record {index} at byte {start} ends in the middle of a number") from None
            if headers and behind < end:
                mixed = mixed or not before
                shapes.learn(data, begin, behind, end, key, value, headers)
            yield make((base_offset + offset_delta, timestamp, key, value, headers))
        if at != total:
            raise Bad(f"{total - at} bytes follow the last of {count} records")
    """


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


def _write_bytes(out: bytearray, content: bytes | None) -> None:
    if content is None:
        out.append(1)
        return
    write_varlong(out, len(content))
    out += content


def _codec(codec: int) -> Codec:
    try:
        return Codec(codec)
    except ValueError:
        raise MalformedRecord(f"compression codec {codec} does not exist") from None
