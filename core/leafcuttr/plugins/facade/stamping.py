"""A batch that somebody else has made becomes one of a producer here: its id, epoch and sequence numbers."""

from leafcuttr.client.producing.stamp import checked
from leafcuttr_sdk.batches.header import TRANSACTIONAL, seal


def stamp_batch(
    batch: bytes | bytearray | memoryview, producer: tuple[int, int], sequence: int, *, transactional: bool
) -> tuple[bytearray, int]:
    """The batch as one of this producer (id and epoch), in place where that can be done, and how many records it
    claims. Raises CorruptMessage for what is not one whole batch of magic 2 with its CRC."""
    found = checked(batch)
    attributes = found.header.attributes
    producer_id, epoch = producer
    new = batch if isinstance(batch, bytearray) else bytearray(batch)
    seal(
        new,
        found.header._replace(
            base_offset=0,
            leader_epoch=-1,
            attributes=attributes | TRANSACTIONAL if transactional else attributes & ~TRANSACTIONAL,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
        ),
    )
    return new, found.records
