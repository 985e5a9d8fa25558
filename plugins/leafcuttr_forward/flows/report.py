"""What a flow does now: one object that the flow writes, and that health, metrics and commands read at any time.

All of it is of the loop's thread. Numbers only grow while the flow runs; they begin anew with the process.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from leafcuttr_sdk.types import TopicPartition


class FlowState(Enum):
    """What a flow is doing."""

    STARTING = "starting"
    """It connects, looks for another process that has the flow, creates topics, and reads its position."""
    STANDING_BY = "standing by"
    """Another process has the flow."""
    RUNNING = "running"
    PAUSED = "paused"
    WAITING = "waiting"
    """For a cluster that is away, or whose coordinators are: see `FlowReport.trouble`."""
    ENDED = "ended"
    """`stop_at_end`: everything was copied."""
    STOPPED = "stopped"
    """For good, because of `FlowReport.trouble`."""


class Written(NamedTuple):
    """Records of one partition that are at the target for good: acknowledged, or committed."""

    source: TopicPartition
    first_offset: int
    """Of the first of them at the source."""
    next_offset: int
    """Behind the last of them at the source, and behind what was read with them and left out."""
    target: TopicPartition
    target_offset: int
    """Of the first of them at the target; -1 where the target does not tell."""
    records: int
    """How many there are at the target."""
    bytes: int


@dataclass(slots=True)
class PartitionReport:
    """One partition of the source."""

    target_topic: str
    target_partition: int | None = None
    """That takes all of it; None where keys decide, and before it is known."""
    position: int = -1
    """The next offset that is not at the target for good; -1 before it is known."""
    end: int = -1
    """The high watermark at the last read (of committed records, the last stable offset); -1 before it is known."""
    timestamp: int = -1
    """Of the last record that is at the target, in ms; -1 before there is one."""
    target_offset: int = -1
    """Behind the last record at the target; -1 where it is not known."""
    read_records: int = 0
    """Records that came from the source."""
    written_records: int = 0
    """Records that are at the target for good."""
    written_bytes: int = 0
    dropped_records: int = 0
    """Left out by a filter."""
    dead_letters: int = 0
    lost_records: int = 0
    """Offsets that the source had lost (retention, truncation) before they were copied."""
    written_to: dict[TopicPartition, int] = field(default_factory=dict[TopicPartition, int])
    """Records at the target by its partition."""
    trouble: str | None = None
    """Why this partition does not go on, in one line."""

    @property
    def lag(self) -> int:
        """Offsets between position and end; 0 before both are known."""
        return max(self.end - self.position, 0) if self.position >= 0 and self.end >= 0 else 0

    def lag_s(self, now_ms: int) -> float:
        """Seconds since the time of the last record that was copied; 0 where there is no lag."""
        return max(now_ms - self.timestamp, 0) / 1000 if self.lag and self.timestamp >= 0 else 0.0


@dataclass(slots=True)
class FlowReport:
    """One flow."""

    name: str
    state: FlowState = FlowState.STARTING
    own_trouble: str | None = None
    """What the flow itself says; see `trouble`."""
    cluster_trouble: Callable[[], str | None] | None = None
    """What the clusters that it uses say."""
    notes: dict[str, str] = field(default_factory=dict[str, str])
    """Lines that are true for longer and keep nothing from going on (`the target has no transactions: at least once`),
    by a word for each kind."""
    exactly_once: bool = False
    source: str = ""
    """The name of the cluster that is read."""
    target: str = ""
    partitions: dict[TopicPartition, PartitionReport] = field(
        default_factory=dict[TopicPartition, PartitionReport]
    )
    """By the partition of the source."""
    restarts: int = 0
    """How often it began again after an error."""
    switches: int = 0
    """How often it went on with another source."""
    transactions: int = 0
    buffered_bytes: int = 0
    """Read and not yet at the target for good."""
    events: dict[str, int] = field(default_factory=dict[str, int])
    """How often a source was `deleted`, `recreated`, `truncated`, `expired`."""
    on_written: list[Callable[[Sequence[Written]], None]] = field(
        default_factory=list[Callable[[Sequence[Written]], None]]
    )
    """Called on the loop after records are at the target for good; they must not wait, and raise nothing."""

    @property
    def trouble(self) -> str | None:
        """What keeps it from going on, in one line for `/health`; None while nothing does."""
        if self.own_trouble is not None or self.cluster_trouble is None:
            return self.own_trouble
        return self.cluster_trouble()

    @trouble.setter
    def trouble(self, line: str | None) -> None:
        self.own_trouble = line

    @property
    def lag(self) -> int:
        """Of all partitions, in offsets."""
        return sum(partition.lag for partition in self.partitions.values())

    @property
    def is_well(self) -> bool:
        """Whether nothing keeps it from going on."""
        return self.trouble is None and self.state is not FlowState.STOPPED and not self.troubles

    @property
    def troubles(self) -> list[str]:
        """The lines of partitions that do not go on."""
        return [
            f"{partition}: {report.trouble}"
            for partition, report in self.partitions.items()
            if report.trouble is not None
        ]
