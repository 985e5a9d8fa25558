"""Where a relay goes on at a target that kaf-relay has filled: kaf-relay has no positions, because each record of a
source partition has the same offset in the target's. So the next offset is the end of the target's partition, where
the last record there is the source's record at that offset. kaf-relay has no transactions: a partition that ends with
one was begun by a relay of ours, which has ended before it had a position, and begins anew."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from leafcuttr_forward.flows.errors import FlowStopped
from leafcuttr_sdk.broker import EARLIEST, LATEST
from leafcuttr_sdk.types import TopicPartition

if TYPE_CHECKING:
    from leafcuttr_sdk.batches import BatchRecord
    from leafcuttr_sdk.peers import Peer

_READ_S: Final = 30.0
"""For one record that is there."""


class Content(NamedTuple):
    """What kaf-relay keeps of a record: not its timestamp, and it adds a header."""

    key: bytes | None
    value: bytes | None


class TargetEnds:
    """A `PositionSource`. `topics` are the source topics that kaf-relay would have copied offset by offset: without
    filters, and each alone into its target topic, partition by partition."""

    def __init__(self, topics: Collection[str]) -> None:
        self._topics = frozenset(topics)

    async def positions(
        self, source: "Peer", target: "Peer", partitions: Mapping[TopicPartition, TopicPartition]
    ) -> Mapping[TopicPartition, int]:
        """Of partitions whose target has had records the end of the target. Raises BrokerError; FlowStopped where the
        target has other records than the source."""
        same = {
            ours: theirs
            for ours, theirs in partitions.items()
            if ours.topic in self._topics and ours.partition == theirs.partition
        }
        ends = await target.offsets(dict.fromkeys(same.values(), LATEST))
        found: dict[TopicPartition, int] = {}
        for ours, theirs in same.items():
            end = ends.get(theirs, 0)
            if end > 0 and not await _ends_with_transaction(target, theirs, end):
                await _compare(source, ours, target, theirs, end)
                found[ours] = end
        return found


async def _ends_with_transaction(peer: "Peer", partition: TopicPartition, end: int) -> bool:
    """Whether the last batch, if there is one, is of a transaction, or its marker."""
    from leafcuttr_sdk.batches import batches_in

    first = (await peer.offsets({partition: EARLIEST})).get(partition)
    if first is None or first >= end:
        return False
    async with peer.reader(committed=False, partition_bytes=1) as reader:
        reader.assign({partition: end - 1})
        with trio.move_on_after(_READ_S):
            while True:
                for read in await reader.read():
                    if read.error is not None:
                        raise read.error
                    for batch in batches_in(read.data):
                        if batch.header.last_offset == end - 1:
                            return batch.header.is_control or batch.header.is_transactional
                    if read.next_offset >= end:
                        return False
    return False


async def _compare(
    source: "Peer", ours: TopicPartition, target: "Peer", theirs: TopicPartition, end: int
) -> None:
    """Raises FlowStopped if the target's last record is another one than the source's at that offset. What one of both
    has no longer, or not yet, is not compared."""
    there = await content_at(target, theirs, end - 1)
    here = await content_at(source, ours, end - 1)
    if there is not None and here is not None and there != here:
        raise FlowStopped(
            f"{theirs} of the target ends at {end}, and its last record is not record {end - 1} of {ours} at the "
            f"source: it was not filled from there; --start earliest or --start latest says where to begin"
        )


async def content_at(peer: "Peer", partition: TopicPartition, offset: int) -> Content | None:
    """Key and value of the record at an offset; None where there is none: outside of the log, compacted, a marker of a
    transaction. Raises BrokerError."""
    first = (await peer.offsets({partition: EARLIEST})).get(partition)
    end = (await peer.offsets({partition: LATEST})).get(partition)
    if first is None or end is None or not first <= offset < end:
        return None
    async with peer.reader(committed=False, partition_bytes=1) as reader:
        reader.assign({partition: offset})
        position = offset
        with trio.move_on_after(_READ_S):
            while position <= offset:
                for read in await reader.read():
                    if read.error is not None:
                        raise read.error
                    record = _record_in(read.data, offset)
                    if record is not None:
                        return Content(_bytes(record.key), _bytes(record.value))
                    position = read.next_offset
    return None


def _record_in(data: bytes | bytearray | memoryview, offset: int) -> "BatchRecord | None":
    from leafcuttr_sdk.batches import batches_in

    for batch in batches_in(data):
        if not batch.header.is_control:
            for record in batch.records():
                if record.offset == offset:
                    return record
    return None


def _bytes(part: bytes | memoryview | None) -> bytes | None:
    return None if part is None else bytes(part)
