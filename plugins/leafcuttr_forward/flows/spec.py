"""What a flow does, as plain values: which topics go where, with which guarantee, and what is done about trouble.

The faces (MirrorMaker's file, the relay, the mirror) make a `FlowSpec` each, and `flow.run_flow` carries it out between
two peers. No function here reads a file or a cluster.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final, Protocol

from leafcuttr_sdk.types import TopicPartition

if TYPE_CHECKING:
    from leafcuttr_sdk.peers import Peer

FLOWS_TOPIC: Final = "leafcuttr-flows"
"""The compacted topic on the target that has the positions of all flows there, and what was requested of them."""
SAME_NAME: Final = "{topic}"
"""In `TopicRule.target`: the name of the source's topic."""


class Guarantee(Enum):
    """What a flow promises about each record of the source."""

    EXACTLY_ONCE = "exactly once"
    """Records and position in one transaction of the target. Where it has none, the flow is at least once, and its
    report says so."""
    AT_LEAST_ONCE = "at least once"
    """The position is stored once the records are acknowledged: after a crash the last ones come twice."""


class Start(Enum):
    """Where a partition begins that the flow has no position of."""

    EARLIEST = "earliest"
    LATEST = "latest"


class Partitioning(Enum):
    """Which partition of the target a record goes to, unless its rule names one."""

    SAME = "same"
    """That with the number of the source's. The target's topic is enlarged (`TopicCreation.create`) where it has fewer;
    where it cannot be, records go by their keys, as with BY_KEY, and the report says so."""
    BY_KEY = "by key"
    """Where Java's producer would send it: by the murmur2 of its key. Records without a key go to the number of the
    source's partition modulo the target's number of partitions."""


class Reaction(Enum):
    """What a flow does about a change of its source that it cannot undo. Each is logged and counted."""

    CONTINUE = "continue"
    """Go on with what there is: see the fields of `SourceChanges`."""
    WAIT = "wait"
    """This partition waits until the source has what was expected again; the others go on."""
    STOP = "stop"
    """The flow ends with FlowStopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceChanges:
    """What is done about a source that is not any more what it was."""

    deleted: Reaction = Reaction.WAIT
    """The topic is gone. CONTINUE forgets it and its position; if it comes back, it is a new topic."""
    recreated: Reaction = Reaction.CONTINUE
    """It was deleted and created anew (its id is another one). CONTINUE begins with the earliest record of the new."""
    truncated: Reaction = Reaction.CONTINUE
    """The log ends before the position, or has other records there (an unclean election). CONTINUE goes on with the
    first record that the flow has not seen: the end of what both had."""
    expired: Reaction = Reaction.CONTINUE
    """The log begins behind the position (retention). CONTINUE goes on at its start: the records between are lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRule:
    """Which topics of the source go to which of the target. Of several rules that fit a topic the first counts."""

    source: str
    """The name of a topic; with `is_pattern` a regular expression that fits the whole name."""
    is_pattern: bool = False
    exclude: Sequence[str] = ()
    """Regular expressions; a topic whose whole name one of them fits is left out."""
    target: str = SAME_NAME
    """The name on the target; `{topic}` in it stands for the source's name."""
    partition: int | None = None
    """The partition of the target that takes everything; None: see `FlowSpec.partitioning`."""

    def fits(self, topic: str) -> bool:
        """Whether the rule is for this topic of the source."""
        if any(re.fullmatch(pattern, topic) for pattern in self.exclude):
            return False
        if self.is_pattern:
            return re.fullmatch(self.source, topic) is not None
        return topic == self.source

    def target_of(self, topic: str) -> str:
        """The name on the target."""
        return self.target.replace(SAME_NAME, topic)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicCreation:
    """What a flow does with the topics of its target."""

    create: bool = True
    """Create those that are missing, with the partitions of the source, and enlarge those that have fewer. Without it
    a topic that is missing is waited for, and the report says so."""
    replication_factor: int = -1
    """-1 is the target's default; more than its brokers is lowered to their number, with a line in the log."""
    sync_settings: bool = True
    """Give the target's topics the settings of the source's topics, at their creation and at every refresh."""
    settings_exclude: Sequence[str] = (
        r"follower\.replication\.throttled\.replicas",
        r"leader\.replication\.throttled\.replicas",
        r"message\.timestamp\.difference\.max\.ms",
        r"message\.timestamp\.(before|after)\.max\.ms",
        # With LogAppendTime records would get the time at which they are copied.
        r"message\.timestamp\.type",
        r"unclean\.leader\.election\.enable",
        r"min\.insync\.replicas",
        r"lc\..*",
    )
    """Regular expressions: settings that are never given to the target."""
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    """Given to each topic at its creation, over those of the source."""


class PositionSource(Protocol):
    """Where a flow begins that has no position: what another program has left behind."""

    async def positions(
        self, source: "Peer", target: "Peer", partitions: Mapping[TopicPartition, TopicPartition]
    ) -> Mapping[TopicPartition, int]:
        """The next offset of each of these partitions of the source (with the partition of the target that it goes to,
        where it is one) that is known; the others begin by `FlowSpec.start`. Called for partitions without a position,
        before anything of them is read. Raises BrokerError: it is called again."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowSpec:
    """One flow."""

    name: str
    """Names its position, its group at the source (`leafcuttr-<name>`), its transactional id and its claim. One flow
    of a name runs at a time, on whichever machine: another one stands by."""
    rules: Sequence[TopicRule]
    instance: str = ""
    """Tells flows of one name at one target apart that read different clusters, as those of many machines with one file
    do: part of the transactional id and of the claim."""
    guarantee: Guarantee = Guarantee.EXACTLY_ONCE
    start: Start = Start.EARLIEST
    positions: PositionSource | None = None
    """Called before `start` counts."""
    partitioning: Partitioning = Partitioning.SAME
    creation: TopicCreation = TopicCreation()
    refresh_s: float = 30.0
    """How often the topics of both ends are compared: new ones, new partitions, settings."""
    filters: Sequence[str] = ()
    """Names of record filters, in their order. With some, every record is decoded."""
    compression: str | None = None
    """`none`, `gzip`, `snappy`, `lz4` or `zstd`: what batches that are made anew are compressed with. None: as the
    batches were that they come from."""
    throttle_bytes_s: float | None = None
    """As many bytes of batches in a second, at most."""
    buffer_bytes: int = 32 << 20
    """What may be read and not acknowledged: a target that is slow costs so much memory."""
    dead_letter_topic: str | None = None
    """Where records go, on the target, that it refuses or that a filter sets aside without a topic of its own. None:
    the flow stops at such a record."""
    changes: SourceChanges = SourceChanges()
    read_committed: bool = True
    """False copies records of open and aborted transactions too."""
    stop_at_end: bool = False
    """End once each partition is where its source ended when the flow began."""
    commits_to_group: bool = True
    """Commit the position as the group `leafcuttr-<name>` at the source too, for tools that show its lag."""
    source_id: str | None = None
    """Names the source in the stored positions: sources with one id are copies of each other, and a position of one
    is that of all. None: the cluster's id."""
    request_bytes: int = 8 << 20
    """About the bytes of batches that one append has."""
    transaction_ms: int = 100
    """How long a transaction goes on to grow while there is more to read. It ends at once where there is none."""

    @property
    def group(self) -> str:
        """The group at the source that shows the position."""
        return f"leafcuttr-{self.name}"

    @property
    def transactional_id(self) -> str:
        """At the target."""
        return f"leafcuttr-{self._at_the_target}"

    @property
    def claim(self) -> str:
        """The group at the target whose member runs the flow."""
        return f"leafcuttr-{self._at_the_target}-owner"

    @property
    def _at_the_target(self) -> str:
        return f"{self.name}-{self.instance}" if self.instance else self.name

    def rule_of(self, topic: str) -> TopicRule | None:
        """The first rule that is for this topic of the source."""
        return next((rule for rule in self.rules if rule.fits(topic)), None)
