"""How far a flow is: the positions that are at the target for good, and what the report says of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from leafcuttr_forward.flows.making import Portion
from leafcuttr_forward.flows.positions import Position, key_of, value_of
from leafcuttr_forward.flows.report import FlowReport, PartitionReport, Written
from leafcuttr_sdk.records import Appended
from leafcuttr_sdk.types import TopicPartition


class AppendedPortion(NamedTuple):
    """A portion whose batches the target has taken, and where."""

    portion: Portion
    appended: Sequence[Appended]


class Progress:
    """The positions of one flow. `cluster` names the source in their keys, `source` is the cluster that is read."""

    def __init__(
        self,
        flow: str,
        cluster: str,
        source: str,
        positions: Mapping[TopicPartition, Position],
        report: FlowReport,
    ) -> None:
        self._flow = flow
        self._cluster = cluster
        self._source = source
        self._report = report
        self.positions = dict(positions)
        self.topic_ids: dict[str, str] = {}
        """Of the topics of the source, in hexadecimal digits."""
        self.on_settled: Callable[[], None] = lambda: None
        """Called whenever positions have moved."""

    def start(
        self, partition: TopicPartition, offset: int, target_topic: str, target_partition: int | None = None
    ) -> None:
        """The flow goes on there, whatever its position was. `target_partition` takes all of it; None: keys decide."""
        topic_id = self.topic_ids.get(partition.topic, "")
        position = self.positions.get(partition)
        if position is None or position.offset != offset or position.topic_id != topic_id:
            self.positions[partition] = Position(offset, topic_id=topic_id, source=self._source)
        report = self._report.partitions.setdefault(partition, PartitionReport(target_topic))
        report.target_topic, report.target_partition = target_topic, target_partition
        report.position = offset
        report.target_offset = self.positions[partition].target_offset
        report.trouble = None

    def wait(self, partition: TopicPartition, why: str, target_topic: str) -> None:
        """The flow does not go on with this one for now."""
        report = self._report.partitions.setdefault(partition, PartitionReport(target_topic))
        report.trouble = why
        position = self.positions.get(partition)
        if position is not None:
            report.position = position.offset

    def hide(self, partition: TopicPartition) -> None:
        """The source does not have it now; its position stays."""
        self._report.partitions.pop(partition, None)

    def forget(self, partition: TopicPartition) -> None:
        """The flow does not read this any more."""
        self.positions.pop(partition, None)
        self._report.partitions.pop(partition, None)

    def after(self, written: Iterable[AppendedPortion]) -> dict[TopicPartition, Position]:
        """The positions once these are at the target."""
        found: dict[TopicPartition, Position] = {}
        for portion, appended in written:
            before = found.get(portion.source) or self.positions.get(portion.source) or Position(0)
            has_records = portion.last >= 0
            behind = self._behind_last(portion, appended)
            found[portion.source] = Position(
                portion.next,
                portion.epoch if portion.epoch >= 0 else before.epoch,
                self.topic_ids.get(portion.source.topic, ""),
                self._source,
                portion.last if has_records else before.last,
                portion.digest if has_records else before.digest,
                before.target_offset if behind is None else behind,
            )
        return found

    def _behind_last(self, portion: Portion, appended: Sequence[Appended]) -> int | None:
        """Behind the last record at the target; None where none went to the flow's own topic there: a dead letter, and
        what a filter has sent elsewhere, have offsets of other topics."""
        report = self._report.partitions.get(portion.source)
        for piece, one in zip(reversed(portion.pieces), reversed(appended), strict=True):
            if report is None or piece.target.topic == report.target_topic:
                return one.last_offset + 1 if one.base_offset >= 0 else -1
        return None

    def records(self, positions: Mapping[TopicPartition, Position | None]) -> dict[bytes, bytes | None]:
        """As they are stored; None is a tombstone."""
        return {
            key_of(self._flow, self._cluster, partition): None if position is None else value_of(position)
            for partition, position in positions.items()
        }

    def settle(self, written: Sequence[AppendedPortion]) -> None:
        """These are at the target for good."""
        self.positions.update(self.after(written))
        told: list[Written] = []
        listened = bool(self._report.on_written)
        for portion, appended in written:
            report = self._report.partitions.get(portion.source)
            if report is None:
                continue
            report.position = portion.next
            report.timestamp = max(report.timestamp, portion.timestamp)
            report.read_records += portion.read_records
            report.dropped_records += portion.dropped
            report.dead_letters += portion.dead_letters
            behind = self._behind_last(portion, appended)
            if behind is not None:
                report.target_offset = behind
            written_to = report.written_to
            for piece, one in zip(portion.pieces, appended, strict=True):
                report.written_records += piece.records
                report.written_bytes += piece.size
                written_to[piece.target] = written_to.get(piece.target, 0) + piece.records
                if listened:
                    behind = portion.next if piece is portion.pieces[-1] else piece.last + 1
                    told.append(
                        Written(
                            portion.source,
                            piece.first,
                            behind,
                            piece.target,
                            one.base_offset,
                            piece.records,
                            piece.size,
                        )
                    )
        for call in self._report.on_written if told else ():
            call(told)
        self.on_settled()
