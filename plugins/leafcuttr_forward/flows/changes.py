"""Where a flow begins in each partition, and what has become of its source since: deleted, created anew, truncated, or
behind its retention. What is done about it is configured (`SourceChanges`), and is always said.

Checked at the start, whenever the reader meets an error, and when the leader epoch of the source changes.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from leafcuttr_forward.flows.errors import FlowStopped, SourceDiffers
from leafcuttr_forward.flows.making import parts_of
from leafcuttr_forward.flows.positions import Position, digest_of
from leafcuttr_forward.flows.report import PartitionReport
from leafcuttr_forward.flows.rewriting import tails
from leafcuttr_forward.flows.spec import FlowSpec, Reaction, Start
from leafcuttr_sdk.batches import batches_in
from leafcuttr_sdk.broker import EARLIEST, LATEST
from leafcuttr_sdk.types import TopicPartition

if TYPE_CHECKING:
    import logging

    from leafcuttr_forward.flows.report import FlowReport
    from leafcuttr_sdk.peers import Peer


@dataclass(slots=True)
class Starts:
    """What to do with each of the partitions."""

    offsets: dict[TopicPartition, int] = field(default_factory=dict[TopicPartition, int])
    """Where to go on."""
    waiting: dict[TopicPartition, str] = field(default_factory=dict[TopicPartition, str])
    """Those that cannot go on yet, and why."""
    forgotten: set[TopicPartition] = field(default_factory=set[TopicPartition])
    """Those whose position is to be given up."""


class SourceCheck:
    """Compares positions with what the source has. `source_id` is the id of the cluster that is read."""

    def __init__(
        self, spec: FlowSpec, source: "Peer", source_id: str, report: "FlowReport", logger: "logging.Logger"
    ) -> None:
        self._spec = spec
        self._source = source
        self._source_id = source_id
        self._report = report
        self._logger = logger

    async def starts(
        self,
        partitions: Collection[TopicPartition],
        positions: Mapping[TopicPartition, Position],
        topic_ids: Mapping[str, str],
        taken_over: Mapping[TopicPartition, int],
        *,
        is_first: bool,
    ) -> Starts:
        """Of these partitions, which exist. `taken_over` are offsets that another program has left. `is_first`: the
        flow has never run, so that `Start.LATEST` counts; what appears later is read from its beginning. Raises
        BrokerError, FlowStopped, SourceDiffers."""
        starts = Starts()
        first = await self._source.offsets(dict.fromkeys(partitions, EARLIEST))
        end = await self._source.offsets(dict.fromkeys(partitions, LATEST))
        known = {one: positions[one] for one in partitions if one in positions}
        cut = await self._truncated(known)
        for partition in partitions:
            if partition not in first or partition not in end:
                starts.waiting[partition] = "the source does not tell its offsets"
                continue
            bounds = (first[partition], end[partition])
            position = known.get(partition)
            if position is None:
                latest = is_first and self._spec.start is Start.LATEST and partition not in taken_over
                begin = bounds[1] if latest else bounds[0]
                self._check_bounds(starts, partition, taken_over.get(partition, begin), bounds)
            else:
                self._check(
                    starts,
                    partition,
                    position,
                    bounds,
                    topic_ids.get(partition.topic, ""),
                    cut.get(partition),
                )
        await self._compare(starts, known)
        return starts

    def deleted(self, starts: Starts, partition: TopicPartition) -> None:
        """The source does not have it any more. Raises FlowStopped."""
        why = "the source does not have it any more: it was deleted"
        if self._reaction(partition, self._spec.changes.deleted, "deleted", why):
            starts.forgotten.add(partition)
        else:
            starts.waiting[partition] = why

    async def is_truncated(self, partition: TopicPartition, epoch: int, offset: int) -> bool:
        """Whether the log that ended with this leader epoch has lost records before the offset. Raises BrokerError."""
        found = await self._source.epoch_end({partition: epoch})
        _, end = found.get(partition, (-1, -1))
        return 0 <= end < offset

    def _check(
        self,
        starts: Starts,
        partition: TopicPartition,
        position: Position,
        bounds: tuple[int, int],
        topic_id: str,
        cut: int | None,
    ) -> None:
        same = position.source == self._source_id
        if same and position.topic_id and topic_id and position.topic_id != topic_id:
            why = f"it was deleted and created anew; the position was {position.offset}"
            if self._reaction(partition, self._spec.changes.recreated, "recreated", why):
                starts.offsets[partition] = bounds[0]
            else:
                starts.waiting[partition] = why
        elif cut is not None:
            why = f"its log was truncated to {cut}, the position is {position.offset}"
            self._cut(starts, partition, max(cut, bounds[0]), position.offset, why)
        else:
            self._check_bounds(starts, partition, position.offset, bounds)

    def _check_bounds(
        self, starts: Starts, partition: TopicPartition, offset: int, bounds: tuple[int, int]
    ) -> None:
        first, end = bounds
        if offset > end:
            why = f"it ends at {end}, before the position {offset}"
            if self._spec.source_id is not None:
                self._behind(starts, partition, why)
            else:
                self._cut(starts, partition, end, offset, why)
        elif offset < first:
            why = f"it begins at {first}, behind the position {offset}: {first - offset} offsets are lost"
            if self._reaction(partition, self._spec.changes.expired, "expired", why):
                starts.offsets[partition] = first
                self._lost(partition, first - offset)
            else:
                starts.waiting[partition] = why
        else:
            starts.offsets[partition] = offset

    def _behind(self, starts: Starts, partition: TopicPartition, why: str) -> None:
        """A copy that has not caught up is waited for (see `SourceSwitch`), which is said once."""
        report = self._report.partitions.get(partition)
        if report is None or report.trouble is None:
            line = f"{partition} of {self._source.name}: {why}; it is waited for"
            self._logger.warning("flow %s: %s", self._spec.name, line)
        starts.waiting[partition] = why

    def _cut(self, starts: Starts, partition: TopicPartition, offset: int, position: int, why: str) -> None:
        if self._reaction(partition, self._spec.changes.truncated, "truncated", why):
            starts.offsets[partition] = offset
        else:
            starts.waiting[partition] = why

    def _reaction(self, partition: TopicPartition, reaction: Reaction, event: str, why: str) -> bool:
        """Whether to go on with what there is; False: wait. Raises FlowStopped."""
        line = f"{partition} of {self._source.name}: {why}"
        report = self._report.partitions.get(partition)
        if report is None or report.trouble != why:
            self._report.events[event] = self._report.events.get(event, 0) + 1
            self._logger.warning("flow %s: %s", self._spec.name, line)
        if reaction is Reaction.STOP:
            raise FlowStopped(line)
        return reaction is Reaction.CONTINUE

    def _lost(self, partition: TopicPartition, offsets: int) -> None:
        report = self._report.partitions.setdefault(partition, PartitionReport(partition.topic))
        report.lost_records += offsets

    async def _truncated(self, positions: Mapping[TopicPartition, Position]) -> dict[TopicPartition, int]:
        """Where logs were truncated below their positions (KIP-101)."""
        epochs = {
            partition: position.epoch
            for partition, position in positions.items()
            if position.epoch >= 0 and position.source == self._source_id
        }
        if not epochs:
            return {}
        ends = await self._source.epoch_end(epochs)
        return {
            partition: end for partition, (_, end) in ends.items() if 0 <= end < positions[partition].offset
        }

    async def _compare(self, starts: Starts, positions: Mapping[TopicPartition, Position]) -> None:
        """Whether a copy of the source has the last record that was copied. Raises SourceDiffers."""
        others = {
            partition: position
            for partition, position in positions.items()
            if self._spec.source_id is not None
            and position.source != self._source_id
            and position.digest
            and starts.offsets.get(partition) == position.offset
        }
        if not others:
            return
        first = await self._source.offsets(dict.fromkeys(others, EARLIEST))
        # What the copy has deleted by its own retention cannot be compared.
        left = {partition: one for partition, one in others.items() if first.get(partition, 0) <= one.last}
        async with self._source.reader(committed=False, partition_bytes=256 << 10) as reader:
            reader.assign({partition: position.last for partition, position in left.items()})
            while left:
                for read in await reader.read():
                    if read.error is not None:
                        raise read.error
                    position = left.get(read.partition)
                    if position is not None:
                        self._same(read.partition, position, read.data)
                        del left[read.partition]
                        reader.unassign(read.partition)

    def _same(
        self, partition: TopicPartition, position: Position, data: bytes | bytearray | memoryview
    ) -> None:
        for batch in batches_in(data):
            if batch.header.next_offset <= position.last or batch.header.is_control:
                continue
            for tail in tails(batch):
                if tail.offset == position.last:
                    key, value, _ = parts_of(tail.data)
                    if digest_of(key, value) != position.digest:
                        raise SourceDiffers(
                            f"{partition}: the record at offset {position.last} is another one than was copied"
                        )
                    return
        raise SourceDiffers(f"{partition}: there is no record at offset {position.last}, which was copied")
