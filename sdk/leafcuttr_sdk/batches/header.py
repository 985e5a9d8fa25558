"""The header of a record batch of magic 2: where its fields are, and its CRC.

    base offset i64 | length i32 | leader epoch i32 | magic i8 | CRC u32 | attributes i16 | last offset delta i32 |
    base timestamp i64 | max timestamp i64 | producer id i64 | producer epoch i16 | base sequence i32 | count i32

`length` counts what follows it. The CRC (CRC-32C) covers everything from the attributes to the end, so that base offset
and leader epoch, which lie before it, can be set without it.

Source: https://kafka.apache.org/documentation/#recordbatch, KIP-98.
"""

import struct
from typing import Final, NamedTuple

from leafcuttr_sdk.batches.checksum import crc32c

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
HEADER_SIZE: Final = 61
LOG_OVERHEAD: Final = 12  # base offset and length: what a reader needs to step to the next batch
MAGIC: Final = 2
CRC_AT: Final = 17
ATTRIBUTES_AT: Final = 21  # the CRC covers from here on

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
DELETE_HORIZON: Final = 0x40  # KIP-534

MAX_SEQUENCE: Final = 0x7FFFFFFF
NO_SEQUENCE: Final = -1


class BatchHeader(NamedTuple):
    """The fields of one batch header, in their order on disk. Offsets are absolute, timestamps in ms."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int  # type: ignore[assignment]  # hides tuple.count, which no header needs

    @property
    def size(self) -> int:
        """Bytes of the whole batch."""
        return self.length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> int:
        """The compression: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."""
        return self.attributes & CODEC_MASK

    @property
    def is_log_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    def last_sequence(self) -> int:
        return sequence_after(self.base_sequence, self.last_offset_delta)


def sequence_after(sequence: int, records: int) -> int:
    """The sequence number `records` further on; it goes from 2**31 - 1 to 0 (KIP-98). -1 stays -1."""
    if sequence == NO_SEQUENCE:
        return NO_SEQUENCE
    return (sequence + records) & MAX_SEQUENCE


def seal(batch: bytearray, header: BatchHeader) -> None:
    """Write the header into the first bytes of a whole batch, with the length, magic and CRC that are right."""
    HEADER.pack_into(batch, 0, *header._replace(length=len(batch) - LOG_OVERHEAD, magic=MAGIC, crc=0))
    batch[CRC_AT:ATTRIBUTES_AT] = crc32c(memoryview(batch)[ATTRIBUTES_AT:]).to_bytes(4, "big")
