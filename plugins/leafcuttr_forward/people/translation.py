"""Offsets of a group at the source as offsets at the target: where a consumer goes on that moves to the target.

Offsets of the two differ: markers of transactions, records that filters left out, partitions that were merged. So the
record that the group would read next is looked for at the target, by its key, value and timestamp. A record that comes
twice there is found where it comes first: a consumer may see records again, and misses none. Of a partition that the
group has read to the position of the flow, the offset behind the last copied record is the answer.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import trio

from leafcuttr_sdk.broker import EARLIEST, LATEST
from leafcuttr_sdk.types import TopicPartition

if TYPE_CHECKING:
    from leafcuttr_sdk.batches import BatchRecord
    from leafcuttr_sdk.peers import Peer

_SEARCH_S: Final = 30.0
"""For one partition."""


class Translated(NamedTuple):
    """One partition of the source."""

    source: TopicPartition
    offset: int
    """That the group has committed at the source."""
    target: TopicPartition
    target_offset: int | None
    """None: not found."""
    how: str
    """How it was found, or why not."""

    def json(self) -> dict[str, Any]:
        return {
            "topic": self.source.topic,
            "partition": self.source.partition,
            "offset": self.offset,
            "target_topic": self.target.topic,
            "target_partition": self.target.partition,
            "target_offset": self.target_offset,
            "how": self.how,
        }


async def translate_group(
    source: "Peer", target: "Peer", group: str, flow: Mapping[str, Any]
) -> list[Translated]:
    """`flow` is what its address says of it. Raises BrokerError."""
    committed = await source.committed(group)
    rows = {TopicPartition(row["topic"], row["partition"]): row for row in flow["topics"]}
    return [
        await _translate(source, target, each, committed[each].offset, rows[each])
        for each in sorted(committed)
        if each in rows
    ]


async def _translate(
    source: "Peer", target: "Peer", ours: TopicPartition, offset: int, row: Mapping[str, Any]
) -> Translated:
    number = row["target_partition"]
    theirs = TopicPartition(row["target_topic"], ours.partition if number is None else number)
    if number is None:
        return Translated(ours, offset, theirs, None, "its records go to several partitions, by their keys")
    position, behind_last = row["position"], row["target_offset"]
    if position is not None and offset >= position and behind_last is not None:
        how = "behind the last copied record"
        if offset > position:
            how += f": the flow is at {position}, and the group ahead of it"
        return Translated(ours, offset, theirs, behind_last, how)
    record = await _first_from(source, ours, offset)
    if record is None:
        end = (await target.offsets({theirs: LATEST})).get(theirs)
        return Translated(ours, offset, theirs, end, "the source has no record there: the end of the target")
    found = await _same(target, theirs, record)
    if found is None:
        return Translated(ours, offset, theirs, None, "the record is not at the target")
    return Translated(ours, offset, theirs, found, "the same record")


async def _first_from(peer: "Peer", partition: TopicPartition, offset: int) -> "BatchRecord | None":
    """The first record from an offset on; None at the end."""
    first = (await peer.offsets({partition: EARLIEST})).get(partition, 0)
    end = (await peer.offsets({partition: LATEST}, committed=True)).get(partition, 0)
    return await _search(peer, partition, max(first, offset), end, None)


async def _same(peer: "Peer", partition: TopicPartition, record: "BatchRecord") -> int | None:
    """The offset of the first record that is the same."""
    times = {partition: max(record.timestamp, 0)}
    start = (await peer.offsets(times)).get(partition)
    end = (await peer.offsets({partition: LATEST}, committed=True)).get(partition, 0)
    if start is None:
        return None
    found = await _search(peer, partition, start, end, record)
    return None if found is None else found.offset


async def _search(
    peer: "Peer", partition: TopicPartition, start: int, end: int, wanted: "BatchRecord | None"
) -> "BatchRecord | None":
    """The first record of that content, or the first at all."""
    from leafcuttr_sdk.batches import batches_in

    if start >= end:
        return None
    async with peer.reader(committed=True) as reader:
        reader.assign({partition: start})
        position = start
        with trio.move_on_after(_SEARCH_S):
            while position < end:
                for read in await reader.read():
                    if read.error is not None:
                        raise read.error
                    for batch in batches_in(read.data):
                        if batch.header.is_control or batch.is_aborted(read.aborted):
                            continue
                        for record in batch.records():
                            if record.offset >= position and (
                                wanted is None or _content(record) == _content(wanted)
                            ):
                                return record
                    position = read.next_offset
    return None


def _content(record: "BatchRecord") -> tuple[int, bytes | None, bytes | None]:
    key, value = record.key, record.value
    return (
        record.timestamp,
        None if key is None else bytes(key),
        None if value is None else bytes(value),
    )
