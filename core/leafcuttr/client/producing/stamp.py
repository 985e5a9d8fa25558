"""A prebuilt batch as one of a producer: a new header in front of the same records, which are not copied. No I/O."""

from typing import Final, NamedTuple

from leafcuttr.client.protocol import GatheredRecords
from leafcuttr.errors import CorruptMessage
from leafcuttr.wire.batch import (
    ATTRIBUTES_AT,
    CRC_AT,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    TRANSACTIONAL,
    BatchHeader,
)
from leafcuttr_sdk.batches.checksum import crc32c

NO_PRODUCER: Final = -1


class ProducerIdentity(NamedTuple):
    """Producer id and epoch; -1 for both: not idempotent."""

    producer_id: int = NO_PRODUCER
    epoch: int = -1


class Unstamped(NamedTuple):
    """A whole batch whose CRC was right: its header, and the records behind it."""

    header: BatchHeader
    body: memoryview

    @property
    def records(self) -> int:
        """How many sequence numbers it takes."""
        return self.header.last_offset_delta + 1

    @property
    def size(self) -> int:
        return HEADER_SIZE + len(self.body)


def checked(batch: bytes | bytearray | memoryview) -> Unstamped:
    """Raises CorruptMessage for what is not one whole batch of magic 2 with its CRC: a new one would hide that."""
    view = memoryview(batch)
    if len(view) < HEADER_SIZE:
        raise CorruptMessage(f"{len(view)} bytes are too few for a batch header of {HEADER_SIZE}")
    header = BatchHeader._make(HEADER.unpack_from(view))
    if header.magic != MAGIC or header.length != len(view) - LOG_OVERHEAD:
        raise CorruptMessage(
            f"{len(view)} bytes are not one batch: magic {header.magic}, length {header.length}"
        )
    computed = crc32c(view[ATTRIBUTES_AT:])
    if computed != header.crc:
        raise CorruptMessage(f"Record is corrupt (stored crc = {header.crc}, computed crc = {computed})")
    return Unstamped(header, view[HEADER_SIZE:])


def stamped(
    batch: Unstamped, identity: ProducerIdentity, sequence: int, *, transactional: bool
) -> GatheredRecords:
    """The batch with base offset 0, this producer and sequence, and the CRC of that."""
    attributes = batch.header.attributes
    attributes = attributes | TRANSACTIONAL if transactional else attributes & ~TRANSACTIONAL
    header = bytearray(HEADER_SIZE)
    fields = batch.header._replace(
        base_offset=0,
        leader_epoch=-1,
        crc=0,
        attributes=attributes,
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
        base_sequence=sequence,
    )
    HEADER.pack_into(header, 0, *fields)
    crc = crc32c(batch.body, crc32c(memoryview(header)[ATTRIBUTES_AT:]))
    header[CRC_AT:ATTRIBUTES_AT] = crc.to_bytes(4, "big")
    return GatheredRecords((header, batch.body), batch.size)
