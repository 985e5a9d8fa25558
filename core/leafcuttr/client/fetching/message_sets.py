"""Message sets, as brokers stored them before Kafka 0.11 (magic 0 and 1), made into batches of magic 2. No I/O.

Such segments are sent as they lie there, whatever the version of Fetch. Layout of a message:

    offset i64 | size i32 | CRC-32 u32 | magic i8 | attributes i8 | timestamp i64 (magic 1) | key length i32, key
    | value length i32, value

`size` counts what follows it, the CRC covers what follows it. A compressed message has a message set as its value. Its
own offset is that of the last message in there; the offsets in there are absolute in magic 0, relative to the first in
magic 1 (KIP-31). With attribute bit 3 all of them have the time of the outer message (KIP-32).

Offsets, keys, values and times stay what they are; a message of magic 0 has no time (-1).
"""

import zlib
from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from leafcuttr.wire.compression import Codec, decompress
from leafcuttr.wire.errors import MalformedRecord, WireError
from leafcuttr.wire.records import DECOMPRESSED_LIMIT, Record, encode_batch

LEGACY_OVERHEAD: Final = 12
LEGACY_MIN: Final = 14
"""The smallest size of a message of magic 0: CRC, magic, attributes, two lengths of null."""

_HEAD: Final = Struct(">qiIbb")
_LONG: Final = Struct(">q")
_LENGTH: Final = Struct(">i")
_CODEC_MASK: Final = 0x07
_LOG_APPEND_TIME: Final = 0x08
_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
_RELATIVE_LIMIT: Final = 0x7FFFFFFF


class Converted(NamedTuple):
    """A batch of magic 2, and how many bytes of message sets it stands for."""

    batch: bytearray
    size: int


class _Message(NamedTuple):
    offset: int
    magic: int
    attributes: int
    timestamp: int
    key: memoryview | None
    value: memoryview | None
    size: int


def convert(data: memoryview, *, limit: int = DECOMPRESSED_LIMIT) -> Converted | None:
    """The messages of magic 0 and 1 at the beginning of `data` as one batch; None if the first is not whole.

    A compressed message becomes a batch by itself, a run of others one together. Raises MalformedRecord, also for a
    wrong CRC, CorruptCompression, DecompressionLimitError.
    """
    records: list[Record] = []
    size = 0
    while (message := _message(data, size)) is not None:
        if message.attributes & _CODEC_MASK:
            if not records:
                return Converted(_batch(list(_inner(message, limit))), message.size)
            break
        if records and message.offset <= records[-1].offset:
            raise MalformedRecord(f"a message at offset {message.offset} follows one at {records[-1].offset}")
        records.append(_record(message, message.offset, message.timestamp))
        size += message.size
    return Converted(_batch(records), size) if records else None


def _batch(records: list[Record]) -> bytearray:
    first, last = records[0].offset, records[-1].offset
    if last - first > _RELATIVE_LIMIT:
        raise MalformedRecord(f"messages from offset {first} to {last} do not fit into a batch")
    return encode_batch(records, base_offset=first)


def _record(message: _Message, offset: int, timestamp: int) -> Record:
    key, value = message.key, message.value
    return Record(
        offset, timestamp, None if key is None else bytes(key), None if value is None else bytes(value)
    )


def _message(data: memoryview, at: int) -> _Message | None:
    """The message at `at`; None at the end, at one that is not whole, and at a batch of magic 2."""
    left = len(data) - at
    if left < _HEAD.size:
        return None
    offset, size, crc, magic, attributes = _HEAD.unpack_from(data, at)
    if magic not in (0, 1):
        return None
    if size < LEGACY_MIN + 8 * magic:
        raise MalformedRecord(f"a message of {size} bytes at offset {offset}")
    if size + LEGACY_OVERHEAD > left:
        return None
    end = at + LEGACY_OVERHEAD + size
    if zlib.crc32(data[at + LEGACY_OVERHEAD + 4 : end]) != crc:
        raise MalformedRecord(f"the message at offset {offset} has a wrong CRC")
    body = at + _HEAD.size
    timestamp = -1
    if magic:
        (timestamp,) = _LONG.unpack_from(data, body)
        body += 8
    key, body = _bytes(data, body, end, offset)
    value, body = _bytes(data, body, end, offset)
    if body != end:
        raise MalformedRecord(f"{end - body} bytes are left over in the message at offset {offset}")
    return _Message(offset, magic, attributes, timestamp, key, value, size + LEGACY_OVERHEAD)


def _bytes(data: memoryview, at: int, end: int, offset: int) -> tuple[memoryview | None, int]:
    if at + 4 > end:
        raise MalformedRecord(f"the message at offset {offset} ends in a length")
    (size,) = _LENGTH.unpack_from(data, at)
    at += 4
    if size < 0:
        return None, at
    if at + size > end:
        raise MalformedRecord(f"the message at offset {offset} claims {size} bytes with {end - at} left")
    return data[at : at + size], at + size


def _inner(outer: _Message, limit: int) -> Iterator[Record]:
    """The records in a compressed message."""
    if outer.value is None:
        raise MalformedRecord(f"the compressed message at offset {outer.offset} has no value")
    data = memoryview(_decompressed(outer, limit))
    found: list[_Message] = []
    at = 0
    while at < len(data):
        message = _message(data, at)
        if message is None or message.attributes & _CODEC_MASK:
            raise MalformedRecord(f"the compressed message at offset {outer.offset} holds what is no message")
        found.append(message)
        at += message.size
    if not found:
        raise MalformedRecord(f"the compressed message at offset {outer.offset} is empty")
    # Kafka before 0.10 and librdkafka wrote absolute offsets into magic 0; producers of magic 1 count from 0.
    shift = outer.offset - found[-1].offset if outer.magic else 0
    before = -1
    for message in found:
        offset = message.offset + shift
        if offset <= before:
            raise MalformedRecord(f"the compressed message at offset {outer.offset} has offsets out of order")
        before = offset
        timestamp = outer.timestamp if outer.attributes & _LOG_APPEND_TIME else message.timestamp
        yield _record(message, offset, timestamp)


def _decompressed(outer: _Message, limit: int) -> memoryview:
    try:
        codec = Codec(outer.attributes & _CODEC_MASK)
    except ValueError:
        codec = Codec.ZSTD
    if codec is Codec.ZSTD:
        raise MalformedRecord(
            f"the message at offset {outer.offset} has codec {outer.attributes & _CODEC_MASK}"
        )
    data = outer.value
    assert data is not None
    if codec is Codec.LZ4 and outer.magic == 0:
        data = _repaired(data)
    try:
        return decompress(codec, data, limit=limit)
    except WireError as error:
        raise type(error)(f"the message at offset {outer.offset}: {error}") from error


def _repaired(frame: memoryview) -> memoryview:
    """The LZ4 frame with the right checksum of its descriptor: producers of magic 0 took it over the magic number too
    (KAFKA-3160)."""
    if len(frame) < 7 or bytes(frame[:4]) != _LZ4_MAGIC:
        return frame
    flags = frame[4]
    end = 6 + (8 if flags & 0x08 else 0)  # the content size is optional
    if len(frame) <= end:
        return frame
    right = bytearray(frame)
    right[end] = (_xxh32(bytes(frame[4:end])) >> 8) & 0xFF
    return memoryview(right)


_P1, _P2, _P3, _P4, _P5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
_MASK: Final = 0xFFFFFFFF


def _xxh32(data: bytes) -> int:
    """xxHash32 with seed 0 of fewer than 16 bytes (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md)."""
    assert len(data) < 16
    value = (_P5 + len(data)) & _MASK
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little")
        value = (value + word * _P3) & _MASK
        value = (((value << 17) | (value >> 15)) * _P4) & _MASK
    for byte in data[whole:]:
        value = (value + byte * _P5) & _MASK
        value = ((((value << 11) & _MASK) | (value >> 21)) * _P1) & _MASK
    value = ((value ^ (value >> 15)) * _P2) & _MASK
    value = ((value ^ (value >> 13)) * _P3) & _MASK
    return value ^ (value >> 16)
