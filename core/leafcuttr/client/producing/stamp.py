"""A prebuilt batch as one of a producer: a new header in front of the same records, which are not copied. No I/O."""

from struct import Struct
from typing import Final, NamedTuple

from leafcuttr.client.protocol import GatheredRecords
from leafcuttr.errors import CorruptMessage
from leafcuttr.wire.batch import (
    ATTRIBUTES_AT,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    TRANSACTIONAL,
    BatchHeader,
)
from leafcuttr.wire.crc_change import changed
from leafcuttr_sdk.batches.checksum import crc32c

NO_PRODUCER: Final = -1
LARGE: Final = 48 << 10
"""From this length on a CRC that is changed costs less than one that is computed twice."""
_COVERED: Final = Struct(">hiqqqhii")
"""The part of a header that the CRC covers, from the attributes on."""
_HEAD: Final = Struct(">qiibI")
_new: Final = tuple.__new__


class ProducerIdentity(NamedTuple):
    """Producer id and epoch; -1 for both: not idempotent."""

    producer_id: int = NO_PRODUCER
    epoch: int = -1


class Unstamped(NamedTuple):
    """A whole batch: its header, and the records behind it."""

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
    header = _header(view)
    _check_crc(view, header)
    return Unstamped(header, view[HEADER_SIZE:])


def fit(batch: bytes | bytearray | memoryview) -> Unstamped:
    """The same for `stamped`, which leaves the CRC of a large batch to the broker: what is wrong stays wrong."""
    view = memoryview(batch)
    header = _header(view)
    if header.length < LARGE:
        _check_crc(view, header)
    return _new(Unstamped, (header, view[HEADER_SIZE:]))


def stamped(
    batch: Unstamped, identity: ProducerIdentity, sequence: int, *, transactional: bool
) -> GatheredRecords:
    """The batch with base offset 0, this producer and sequence, and the CRC of that."""
    header, body = batch
    attributes = header.attributes
    after = _COVERED.pack(
        attributes | TRANSACTIONAL if transactional else attributes & ~TRANSACTIONAL,
        *header[6:9],
        *identity,
        sequence,
        header.count,
    )
    if header.length < LARGE:
        crc = crc32c(body, crc32c(after))
    else:
        before = _COVERED.pack(*header[5:])
        crc = changed(header.crc, crc32c(before), crc32c(after), len(body))
    return GatheredRecords(
        (_HEAD.pack(0, header.length, -1, MAGIC, crc) + after, body), HEADER_SIZE + len(body)
    )


def _header(view: memoryview) -> BatchHeader:
    """Raises CorruptMessage for what is not one whole batch of magic 2."""
    size = len(view)
    if size < HEADER_SIZE:
        raise CorruptMessage(f"{size} bytes are too few for a batch header of {HEADER_SIZE}")
    header = _new(BatchHeader, HEADER.unpack_from(view))
    if header.magic != MAGIC or header.length != size - LOG_OVERHEAD:
        raise CorruptMessage(f"{size} bytes are not one batch: magic {header.magic}, length {header.length}")
    return header


def _check_crc(view: memoryview, header: BatchHeader) -> None:
    computed = crc32c(view[ATTRIBUTES_AT:])
    if computed != header.crc:
        raise CorruptMessage(f"Record is corrupt (stored crc = {header.crc}, computed crc = {computed})")
