"""What a record batch of magic 2 must be, and how the broker stamps it. Its header is `leafcuttr_sdk.batches.header`'s,
whose names are offered here too: code of the broker takes all of them from one place.

The broker sets the base offset and the leader epoch, which lie before the CRC, without touching the sender's checksum.
Records are read by `leafcuttr.wire.records`; what a topic's settings allow is checked by `leafcuttr.log.append.stage`.
"""

import struct
from typing import Final

from leafcuttr.wire.errors import WireError
from leafcuttr_sdk.batches.header import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    CONTROL,
    CRC_AT,
    DELETE_HORIZON,
    HEADER,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MAGIC,
    MAX_SEQUENCE,
    NO_SEQUENCE,
    TRANSACTIONAL,
    BatchHeader,
    seal,
    sequence_after,
)

__all__ = [
    "ATTRIBUTES_AT",
    "BASE_OFFSET_AT",
    "BASE_SEQUENCE_AT",
    "BASE_TIMESTAMP_AT",
    "CODEC_MASK",
    "CONTROL",
    "COUNT_AT",
    "CRC_AT",
    "DELETE_HORIZON",
    "HEADER",
    "HEADER_SIZE",
    "HIGHEST_CODEC",
    "LAST_OFFSET_DELTA_AT",
    "LEADER_EPOCH_AT",
    "LENGTH_AT",
    "LOG_APPEND_TIME",
    "LOG_OVERHEAD",
    "MAGIC",
    "MAGIC_AT",
    "MAX_SEQUENCE",
    "MAX_TIMESTAMP_AT",
    "MIN_LENGTH",
    "MIN_RECORD",
    "NO_PRODUCER_ID",
    "NO_SEQUENCE",
    "NO_TIMESTAMP",
    "PRODUCER_EPOCH_AT",
    "PRODUCER_ID_AT",
    "TRANSACTIONAL",
    "BatchHeader",
    "CorruptBatch",
    "InvalidBatch",
    "batch_size",
    "check_client_batch",
    "parse",
    "sealed",
    "sequence_after",
    "single_batch",
    "stamp",
    "unpack",
]

MIN_LENGTH: Final = HEADER_SIZE - LOG_OVERHEAD
MIN_RECORD: Final = 7  # length, attributes, two deltas, key and value length, header count: a byte each

BASE_OFFSET_AT: Final = 0
LENGTH_AT: Final = 8
LEADER_EPOCH_AT: Final = 12
MAGIC_AT: Final = 16
LAST_OFFSET_DELTA_AT: Final = 23
BASE_TIMESTAMP_AT: Final = 27
MAX_TIMESTAMP_AT: Final = 35
PRODUCER_ID_AT: Final = 43
PRODUCER_EPOCH_AT: Final = 51
BASE_SEQUENCE_AT: Final = 53
COUNT_AT: Final = 57

HIGHEST_CODEC: Final = 4  # zstd, KIP-110

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1

_LENGTH = struct.Struct(">i")
_STAMP = struct.Struct(">qii")
_LEGACY_FRAME = 17  # up to and with the magic byte; a record set shorter than this holds no batch at all
_LEGACY_MIN_LENGTH = 14

unpack = HEADER.unpack_from


class CorruptBatch(WireError):
    """The bytes cannot be what a sender made: a length, magic or CRC that does not fit."""


class InvalidBatch(WireError):
    """The bytes are intact, but say what a client may not say."""


def parse(buffer: bytes | bytearray | memoryview, at: int = 0) -> BatchHeader:
    """Read the header at `at`; nothing is checked but that its bytes are there. Raises CorruptBatch."""
    if len(buffer) - at < HEADER_SIZE:
        raise CorruptBatch(f"{len(buffer) - at} bytes are too few for a batch header of {HEADER_SIZE}")
    return BatchHeader._make(unpack(buffer, at))


def sealed(header: BatchHeader, body: bytes | bytearray) -> bytearray:
    """The bytes of a batch with this header before `body`, its length and CRC set right."""
    out = bytearray(HEADER_SIZE)
    out += body
    seal(out, header)
    return out


def batch_size(records: bytes | bytearray | memoryview, at: int = 0) -> int | None:
    """Bytes of the whole batch at `at`, or None if the record set ends before that batch does.

    Raises CorruptBatch when no batch can begin like this, whatever follows.
    """
    left = len(records) - at
    if left < LOG_OVERHEAD:
        return None
    (length,) = _LENGTH.unpack_from(records, at + LENGTH_AT)
    if length < _LEGACY_MIN_LENGTH:
        raise CorruptBatch(
            f"Record size {length} is less than the minimum record overhead ({_LEGACY_MIN_LENGTH})"
        )
    if left < _LEGACY_FRAME:
        return None
    magic = records[at + MAGIC_AT]
    if magic > MAGIC:
        raise CorruptBatch(f"Invalid magic found in record: {magic - 256 if magic > 127 else magic}")
    return length + LOG_OVERHEAD if length + LOG_OVERHEAD <= left else None


def single_batch(records: memoryview) -> memoryview:
    """The one batch of a produced record set; a cut-off batch behind it is dropped, as Kafka does.

    Raises InvalidBatch when there is none, a second one, or one of an older magic; CorruptBatch when the bytes
    cannot be a batch.
    """
    size = batch_size(records)
    if size is None:
        raise InvalidBatch("Produce requests must have at least one record batch per partition")
    if records[MAGIC_AT] != MAGIC:
        raise InvalidBatch("Produce requests are only allowed to contain record batches with magic version 2")
    if size == len(records):
        return records
    if batch_size(records, size) is not None:
        raise InvalidBatch("Produce requests must contain exactly one record batch per partition")
    return records[:size]


def check_client_batch(header: BatchHeader) -> None:
    """What an intact batch from a client must obey, whatever the topic. Raises InvalidBatch."""
    base_offset, _, _, _, _, attributes, last_delta, _, _, producer_id, _, base_sequence, count = header
    if last_delta < 0:
        raise InvalidBatch(f"Batch has an invalid offset range: [{base_offset}, {base_offset + last_delta}]")
    if count <= 0:
        raise InvalidBatch(f"Invalid reported count for record batch: {count}")
    if count != last_delta + 1:
        raise InvalidBatch(
            f"Inconsistent batch offset range [{base_offset}, {base_offset + last_delta}] and count of records {count}"
        )
    if attributes & CONTROL:
        raise InvalidBatch("Clients are not allowed to write control records")
    if producer_id != NO_PRODUCER_ID and base_sequence < 0:
        raise InvalidBatch(
            f"Invalid sequence number {base_sequence} in record batch with producerId {producer_id}"
        )
    if attributes & CODEC_MASK > HIGHEST_CODEC:
        raise InvalidBatch(f"Unknown compression type id: {attributes & CODEC_MASK}")


def stamp(batch: bytearray | memoryview, base_offset: int, length: int, leader_epoch: int) -> None:
    """Set base offset and leader epoch in place; `length` is written back as it is. All lie before the CRC."""
    _STAMP.pack_into(batch, 0, base_offset, length, leader_epoch)
