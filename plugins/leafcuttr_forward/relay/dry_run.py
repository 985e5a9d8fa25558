"""What a run would copy, without copying any of it: which topics, from which offset on, how many records."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import trio

from leafcuttr_forward.flows.positions import read_positions
from leafcuttr_forward.flows.spec import FLOWS_TOPIC, Start
from leafcuttr_sdk.broker import EARLIEST, LATEST
from leafcuttr_sdk.errors import PluginError
from leafcuttr_sdk.types import TopicPartition

if TYPE_CHECKING:
    from leafcuttr_forward.flows.spec import TopicRule
    from leafcuttr_forward.relay.running import EndPlan, OpenPeer, RunPlan
    from leafcuttr_sdk.peers import Peer, PeerTopic

COLUMNS: Final = ("SOURCE", "PARTITION", "TARGET", "PARTITION", "FROM", "END", "RECORDS", "WHY")


class DryRow(NamedTuple):
    """One partition of the source."""

    topic: str
    partition: int
    target_topic: str
    target_partition: int
    start: int
    end: int
    why: str
    """Why it begins at `start`."""

    @property
    def records(self) -> int:
        """Offsets between start and end: at most so many records."""
        return max(self.end - self.start, 0)

    def cells(self) -> tuple[object, ...]:
        return (*self[:6], self.records, self.why)

    def json(self) -> dict[str, Any]:
        return {**self._asdict(), "records": self.records}


class DryRun(NamedTuple):
    """What was found."""

    source: str
    rows: list[DryRow]
    notes: list[str]


async def dry_run(plan: "RunPlan", open_peer: "OpenPeer") -> DryRun:
    """Raises PluginError where no source, or not the target, answers; BrokerError."""
    notes: list[str] = []
    async with open_peer(plan.target.properties) as target:
        await _reach(target, plan.target, "the target")
        for index in range(len(plan.sources)):
            end = plan.sources[(plan.first + index) % len(plan.sources)]
            async with open_peer(end.properties) as source:
                try:
                    await _reach(source, end, "the source")
                except PluginError as error:
                    notes.append(str(error))
                    continue
                return DryRun(end.name, await _rows(plan, source, target, notes), notes)
    raise PluginError("; ".join(notes))


async def _reach(peer: "Peer", end: "EndPlan", what: str) -> None:
    from leafcuttr_sdk.errors import BrokerError

    with trio.move_on_after(end.connect_s):
        try:
            await peer.topics([FLOWS_TOPIC])
            return
        except BrokerError as error:
            raise PluginError(f"{what} {end.name} does not answer: {error}") from None
    raise PluginError(f"{what} {end.name} does not answer: {peer.trouble or 'no answer in time'}")


async def _rows(plan: "RunPlan", source: "Peer", target: "Peer", notes: list[str]) -> list[DryRow]:
    spec = plan.spec
    topics = {
        name: topic
        for name, topic in sorted((await source.topics(plan.topics)).items())
        if spec.rule_of(name) is not None and (plan.topics is not None or not topic.internal)
    }
    notes += [f"the source has no topic {each}" for each in plan.topics or () if each not in topics]
    rules = {name: rule for name in topics if (rule := spec.rule_of(name)) is not None}
    there = await target.topics(sorted({rule.target_of(name) for name, rule in rules.items()}))
    ways = _ways(topics, rules, there, notes)
    starts = await source.offsets(dict.fromkeys(ways, EARLIEST))
    ends = await source.offsets(dict.fromkeys(ways, LATEST), committed=spec.read_committed)
    stored = await read_positions(target, spec.name, spec.source_id or await source.cluster_id())
    without = {ours: theirs for ours, theirs in ways.items() if ours not in stored}
    found: Mapping[TopicPartition, int] = {}
    if spec.positions is not None:
        existing = {ours: theirs for ours, theirs in without.items() if theirs.topic in there}
        found = await spec.positions.positions(source, target, existing)
    rows = []
    for ours, theirs in sorted(ways.items()):
        if ours not in starts or ours not in ends:
            continue
        if ours in stored:
            start, why = stored[ours].offset, "position"
        elif ours in found:
            start, why = found[ours], "end of the target"
        else:
            first = spec.start is Start.EARLIEST
            start, why = (starts if first else ends)[ours], spec.start.value
        rows.append(DryRow(*ours, *theirs, start, ends[ours], why))
    return rows


def _ways(
    topics: "Mapping[str, PeerTopic]",
    rules: "Mapping[str, TopicRule]",
    there: "Mapping[str, PeerTopic]",
    notes: list[str],
) -> dict[TopicPartition, TopicPartition]:
    """From each partition of the source to one of the target."""
    ways: dict[TopicPartition, TopicPartition] = {}
    for name, rule in rules.items():
        to, partitions = rule.target_of(name), topics[name].partitions
        if to not in there:
            notes.append(f"the target has no topic {to}: it would be created")
        elif rule.partition is None and there[to].partitions < partitions:
            notes.append(f"{to} of the target has {there[to].partitions} partitions, {name} has {partitions}")
        for number in range(partitions):
            partition = number if rule.partition is None else rule.partition
            ways[TopicPartition(name, number)] = TopicPartition(to, partition)
    return ways
