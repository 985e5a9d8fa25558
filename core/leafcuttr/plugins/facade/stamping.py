"""A batch that somebody else has made becomes one of a producer here: its id, epoch and sequence numbers."""

from leafcuttr.errors import CorruptMessage
from leafcuttr_sdk.batches.checksum import crc32c
from leafcuttr_sdk.batches.header import (
    ATTRIBUTES_AT,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    TRANSACTIONAL,
    BatchHeader,
    seal,
)


def stamp_batch(
    batch: bytes | bytearray | memoryview, producer: tuple[int, int], sequence: int, *, transactional: bool
) -> tuple[bytearray, int]:
    """The batch as one of this producer (id and epoch), in place where that can be done, and how many records it
    claims. Raises CorruptMessage for what is not one whole batch of magic 2 with its CRC: a new one would hide that."""
    if len(batch) < HEADER_SIZE:
        raise CorruptMessage(f"{len(batch)} bytes are too few for a batch header of {HEADER_SIZE}")
    header = BatchHeader._make(HEADER.unpack_from(batch))
    if header.magic != MAGIC or header.length != len(batch) - LOG_OVERHEAD:
        raise CorruptMessage(
            f"{len(batch)} bytes are not one batch: magic {header.magic}, length {header.length}"
        )
    computed = crc32c(memoryview(batch)[ATTRIBUTES_AT:])
    if computed != header.crc:
        raise CorruptMessage(f"Record is corrupt (stored crc = {header.crc}, computed crc = {computed})")
    new = batch if isinstance(batch, bytearray) else bytearray(batch)
    producer_id, epoch = producer
    seal(
        new,
        header._replace(
            base_offset=0,
            leader_epoch=-1,
            attributes=header.attributes | TRANSACTIONAL
            if transactional
            else header.attributes & ~TRANSACTIONAL,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
        ),
    )
    return new, header.last_offset_delta + 1
