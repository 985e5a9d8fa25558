"""What a file of MirrorMaker 2 asks for, as plain values: flows, heartbeats, and how the clusters are reached.
`planning` makes them.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leafcuttr_forward.flows.spec import FlowSpec
from leafcuttr_forward.mm2.policy import ReplicationPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class NamePatterns:
    """Which names are meant: regular expressions in Python's syntax, for whole names."""

    expressions: Sequence[str]
    """What is included, as it was given, in Java's syntax."""
    include: str
    exclude: Sequence[str]

    def fit(self, name: str) -> bool:
        return re.fullmatch(self.include, name) is not None and not any(
            re.fullmatch(pattern, name) for pattern in self.exclude
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetSyncPlan:
    """Where is written which offset of the source is which of the target."""

    topic: str
    at_source: bool
    replication_factor: int
    lag_max: int
    """So many records at most are between two of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointPlan:
    """The positions of groups, translated. An interval of None: never."""

    topic: str
    replication_factor: int
    groups: NamePatterns
    refresh_s: float | None
    emit_s: float
    sync_s: float | None
    """How often they are committed at the target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowPlan:
    """One flow, `source` and `target` by their aliases, with the settings of clients for each end."""

    source: str
    target: str
    policy: ReplicationPolicy
    spec: FlowSpec
    topics: NamePatterns
    """What `topics` and `topics.exclude` say, for checkpoints; `spec.rules` leaves out cycles and internal topics."""
    source_properties: Mapping[str, str]
    target_properties: Mapping[str, str]
    offsets_topic: str
    """Where MirrorMaker has left its positions, at the target."""
    offset_syncs: OffsetSyncPlan | None
    checkpoints: CheckpointPlan | None

    @property
    def name(self) -> str:
        return f"{self.source}->{self.target}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatPlan:
    """Heartbeats of the pair, written at its target."""

    source: str
    target: str
    topic: str
    replication_factor: int
    interval_s: float
    properties: Mapping[str, str]
    """Of the client for the target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorPlan:
    """All of a file."""

    clusters: Sequence[str]
    flows: Sequence[FlowPlan]
    heartbeats: Sequence[HeartbeatPlan]
