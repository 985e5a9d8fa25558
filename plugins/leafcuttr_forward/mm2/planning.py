"""From the text of a file of MirrorMaker 2 to its plan, and to what there is to say of the file. No I/O.

    plan, findings = read_plan(text, resolve)

The plan is None where a finding is an error: nothing is forwarded by a file that is half right.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from leafcuttr_forward.flows.spec import (
    FLOWS_TOPIC,
    FlowSpec,
    Guarantee,
    Reaction,
    SourceChanges,
    Start,
    TopicCreation,
    TopicRule,
)
from leafcuttr_forward.mm2.circles import Link, circles
from leafcuttr_forward.mm2.entries import (
    MIRROR,
    TOP,
    Entries,
    Entry,
    KeyPlace,
    MirrorFinding,
    aliases,
    read_entries,
)
from leafcuttr_forward.mm2.patterns import java_pattern
from leafcuttr_forward.mm2.plan import (
    CheckpointPlan,
    FlowPlan,
    HeartbeatPlan,
    MirrorPlan,
    NamePatterns,
    OffsetSyncPlan,
)
from leafcuttr_forward.mm2.policy import IDENTITY_POLICY, ReplicationPolicy
from leafcuttr_forward.names import check_topic
from leafcuttr_sdk.properties import parse_properties
from leafcuttr_sdk.settings import FindingLevel

OWN_GROUPS: Final = r"leafcuttr-.*"
_OF_CLIENTS: Final = {
    "auto.offset.reset": ("earliest", "latest"),
    "isolation.level": ("read_committed", "read_uncommitted"),
    "compression.type": ("none", "gzip", "snappy", "lz4", "zstd"),
}
"""Settings of clients that a flow uses itself, and their values."""


def read_plan(
    text: str, resolve: Callable[[str], str] = lambda value: value
) -> tuple[MirrorPlan | None, list[MirrorFinding]]:
    """`resolve` puts what providers have in the place of `${...}` (`providers`). Findings are in the order of lines."""
    found, said = read_entries(parse_properties(text), resolve)
    reading = _Reading(Entries(found), sound=all(each.level is not FindingLevel.ERROR for each in said))
    plan = reading.plan()
    said = sorted([*said, *reading.said], key=lambda finding: finding.line)
    if any(finding.level is FindingLevel.ERROR for finding in said):
        return None, said
    return plan, said


class _Reading:
    """Makes the plan, and says what does not go together."""

    def __init__(self, entries: Entries, *, sound: bool) -> None:
        """`sound`: no entry was left out because of its value."""
        self._entries, self._sound = entries, sound
        self.said: list[MirrorFinding] = []

    def plan(self) -> MirrorPlan | None:
        named = self._entries.get("clusters", TOP)
        clusters = tuple(dict.fromkeys(aliases(named.value))) if named else ()
        if named is None or len(clusters) < 2:
            self._wrong(named, "clusters", "allowed are the aliases of two clusters or more")
            return None
        for alias in clusters:
            if not self._client_properties(alias, (), ()).get("bootstrap.servers"):
                self._wrong(
                    named, "clusters", f"{alias}.bootstrap.servers is not given; allowed are HOST:PORT, ..."
                )
        pairs = [KeyPlace(source, target) for source in clusters for target in clusters if source != target]
        flows = [self._flow(pair) for pair in pairs if self._flag("enabled", pair)]
        beats = [self._heartbeats(pair) for pair in pairs if self._flag("emit.heartbeats.enabled", pair, TOP)]
        if not flows and self._sound:
            text = f"no flow is enabled; {pairs[0]}enabled=true does it"
            self.said.append(MirrorFinding(FindingLevel.WARNING, named.line, named.key, named.value, text))
        self._refuse_circles(flows)
        return MirrorPlan(clusters=clusters, flows=flows, heartbeats=beats)

    def _refuse_circles(self, flows: Sequence[FlowPlan]) -> None:
        links = [
            Link(flow.source, flow.target, flow.topics.expressions, flow.topics.fit)
            for flow in flows
            if flow.policy.identity
        ]
        for circle in circles(links):
            found = self._entries.get("enabled", KeyPlace(circle[-1].source, circle[-1].target))
            shown = ", ".join(f"{link.source}->{link.target}" for link in circle)
            self._wrong(
                found,
                "enabled",
                f"{shown} would copy the same topics again and again, as IdentityReplicationPolicy keeps their names; "
                "allowed are topics that are not in all of these flows, or DefaultReplicationPolicy",
            )

    # One flow

    def _flow(self, pair: KeyPlace) -> FlowPlan:
        assert pair.source is not None and pair.target is not None
        policy = self._policy(pair)
        topics = self._names("topics", pair)
        source = self._client_properties(pair.source, ("source.cluster.",), ("source.",), pair)
        target = self._client_properties(pair.target, ("target.cluster.",), ("target.",), pair)
        syncs = self._offset_syncs(pair, policy)
        return FlowPlan(
            source=pair.source,
            target=pair.target,
            policy=policy,
            spec=self._spec(pair, policy, topics, source, target),
            topics=topics,
            source_properties=source,
            target_properties=target,
            offsets_topic=self._offsets_topic(pair),
            offset_syncs=syncs,
            checkpoints=self._checkpoints(pair, policy) if syncs else None,
        )

    def _policy(self, pair: KeyPlace) -> ReplicationPolicy:
        assert pair.source is not None
        separator = self._text("replication.policy.separator", pair, TOP)
        if not separator:
            found = self._entries.get("replication.policy.separator", pair, TOP)
            self._wrong(found, "replication.policy.separator", "allowed is at least one character")
            separator = "."
        own = self._flag("replication.policy.internal.topic.separator.enabled", pair, TOP)
        identity = self._text("replication.policy.class", pair, TOP).lower() == IDENTITY_POLICY.lower()
        return ReplicationPolicy(pair.source, identity, separator, separator if own else ".")

    def _spec(
        self,
        pair: KeyPlace,
        policy: ReplicationPolicy,
        topics: NamePatterns,
        source: Mapping[str, str],
        target: Mapping[str, str],
    ) -> FlowSpec:
        throttle = self._number("lc.throttle.bytes.per.second", pair, TOP)
        refreshes = self._flag("refresh.topics.enabled", pair, TOP)
        every = self._number("refresh.topics.interval.seconds", pair, TOP)
        return FlowSpec(
            name=f"{pair.source}->{pair.target}",
            rules=tuple(self._rules(pair, policy, topics)),
            guarantee=self._guarantee(pair),
            start=self._start(source),
            read_committed=self._of_client(source, "isolation.level") != "read_uncommitted",
            compression=self._of_client(target, "compression.type"),
            creation=TopicCreation(
                replication_factor=self._number("replication.factor", pair, TOP) or -1,
                sync_settings=self._flag("sync.topic.configs.enabled", pair, TOP),
                settings_exclude=(self._pattern("config.properties.exclude", pair), r"lc\..*"),
            ),
            refresh_s=float(every) if refreshes and every else math.inf,
            filters=aliases(self._text("lc.filters", pair, TOP)),
            dead_letter_topic=self._letters(pair),
            throttle_bytes_s=float(throttle) if throttle else None,
            buffer_bytes=self._number("lc.buffer.bytes", pair, TOP) or 32 << 20,
            changes=SourceChanges(
                deleted=self._reaction("lc.on.deleted", pair),
                recreated=self._reaction("lc.on.recreated", pair),
                truncated=self._reaction("lc.on.truncated", pair),
                expired=self._reaction("lc.on.expired", pair),
            ),
        )

    def _rules(self, pair: KeyPlace, policy: ReplicationPolicy, topics: NamePatterns) -> Iterator[TopicRule]:
        assert pair.source is not None and pair.target is not None
        never = (*policy.internal_patterns(), *policy.cycle_patterns(pair.target), re.escape(FLOWS_TOPIC))
        prefixed = f"{pair.source}{policy.separator}{{topic}}"
        if self._flag("heartbeats.replication.enabled", pair, TOP):
            yield TopicRule(
                source=policy.heartbeats_pattern(), is_pattern=True, exclude=never, target=prefixed
            )
        heartbeats = (rf".*{re.escape('heartbeats')}",) if policy.identity else ()
        if policy.identity:
            yield TopicRule(
                source=topics.include, is_pattern=True, exclude=(*topics.exclude, *never, *heartbeats)
            )
        # With identity what looks like heartbeats is renamed all the same.
        include = topics.include if not policy.identity else rf"(?=(?:{topics.include})\Z).*heartbeats"
        yield TopicRule(source=include, is_pattern=True, exclude=(*topics.exclude, *never), target=prefixed)

    def _guarantee(self, pair: KeyPlace) -> Guarantee:
        name = "exactly.once.source.support"
        found = self._entries.get(name, pair, KeyPlace(pair.target), TOP)
        asked = found is not None and found.value.lower() == "disabled"
        return Guarantee.AT_LEAST_ONCE if asked else Guarantee.EXACTLY_ONCE

    def _reaction(self, name: str, pair: KeyPlace) -> Reaction:
        return Reaction(self._text(name, pair, TOP).lower())

    def _letters(self, pair: KeyPlace) -> str | None:
        name = "lc.dead.letter.topic"
        topic = self._text(name, pair, TOP)
        if not topic:
            return None
        try:
            return check_topic(topic)
        except ValueError as error:
            self._wrong(self._entries.get(name, pair, TOP), name, f"{error}; allowed is the name of a topic")
            return None

    def _offsets_topic(self, pair: KeyPlace) -> str:
        found = self._entries.get("offset.storage.topic", pair, TOP, KeyPlace(pair.target))
        return found.value if found else f"mm2-offsets.{pair.source}.internal"

    def _offset_syncs(self, pair: KeyPlace, policy: ReplicationPolicy) -> OffsetSyncPlan | None:
        if not self._flag("emit.offset-syncs.enabled", pair, TOP):
            return None
        at_source = self._text("offset-syncs.topic.location", pair, TOP).lower() == "source"
        return OffsetSyncPlan(
            topic=policy.offset_syncs_topic((pair.target if at_source else pair.source) or ""),
            at_source=at_source,
            replication_factor=self._number("offset-syncs.topic.replication.factor", pair, TOP) or -1,
            lag_max=self._number("offset.lag.max", pair, TOP) or 0,
        )

    def _checkpoints(self, pair: KeyPlace, policy: ReplicationPolicy) -> CheckpointPlan | None:
        if not self._flag("emit.checkpoints.enabled", pair, TOP):
            return None
        groups = self._names("groups", pair)
        return CheckpointPlan(
            topic=policy.checkpoints_topic(),
            replication_factor=self._number("checkpoints.topic.replication.factor", pair, TOP) or -1,
            groups=replace(groups, exclude=(*groups.exclude, OWN_GROUPS)),
            refresh_s=self._interval("refresh.groups", pair),
            emit_s=self._interval("emit.checkpoints", pair) or 60.0,
            sync_s=self._interval("sync.group.offsets", pair),
        )

    def _heartbeats(self, pair: KeyPlace) -> HeartbeatPlan:
        assert pair.source is not None and pair.target is not None
        return HeartbeatPlan(
            source=pair.source,
            target=pair.target,
            topic="heartbeats",
            replication_factor=self._number("heartbeats.topic.replication.factor", pair, TOP) or -1,
            interval_s=self._interval("emit.heartbeats", pair) or 1.0,
            properties=self._client_properties(pair.target, ("target.cluster.",), ("target.",), pair),
        )

    # Settings of clients

    def _client_properties(
        self, alias: str, clusters: Sequence[str], ends: Sequence[str], pair: KeyPlace = TOP
    ) -> dict[str, str]:
        """In the order in which MirrorMaker puts them over each other. A cluster is written and read with one client:
        of two that say different things the consumer's counts at the source, the producer's at the target."""
        roles = ("producer.", "consumer.") if "source." in ends else ("consumer.", "producer.")
        found = dict(self._entries.client(TOP, ""))
        for prefix in ("", "admin.", *roles):
            found |= self._entries.client(KeyPlace(alias), prefix)
        if pair != TOP:
            for prefix in (
                *clusters,
                *(f"{end}{role}" for role in ("admin.", *roles) for end in ("", *ends)),
            ):
                found |= self._entries.client(pair, prefix)
        return found

    def _start(self, source: Mapping[str, str]) -> Start:
        return Start.LATEST if self._of_client(source, "auto.offset.reset") == "latest" else Start.EARLIEST

    def _of_client(self, properties: Mapping[str, str], name: str) -> str | None:
        """One that a flow uses itself."""
        value, allowed = properties.get(name), _OF_CLIENTS[name]
        if value is not None and value not in allowed:
            text = f"allowed are {', '.join(allowed[:-1])} and {allowed[-1]}"
            for entry in self._entries:
                if entry.name == name and entry.value == value:
                    self._wrong(entry, name, text)
        return value

    # Values

    def _text(self, name: str, *places: KeyPlace) -> str:
        found = self._entries.get(name, *places)
        return found.value if found else MIRROR[name].default or ""

    def _flag(self, name: str, *places: KeyPlace) -> bool:
        return self._text(name, *places).lower() == "true"

    def _number(self, name: str, *places: KeyPlace) -> int | None:
        text = self._text(name, *places)
        return int(text) if text else None

    def _interval(self, what: str, pair: KeyPlace) -> float | None:
        """In seconds; None where it is off."""
        if not self._flag(f"{what}.enabled", pair, TOP):
            return None
        return float(self._number(f"{what}.interval.seconds", pair, TOP) or 1)

    def _names(self, name: str, pair: KeyPlace) -> NamePatterns:
        return NamePatterns(
            expressions=aliases(self._text(name, pair, TOP)),
            include=self._pattern(name, pair),
            exclude=(self._pattern(f"{name}.exclude", pair),),
        )

    def _pattern(self, name: str, pair: KeyPlace) -> str:
        try:
            return java_pattern(aliases(self._text(name, pair, TOP)))
        except ValueError as error:
            found = self._entries.get(name, pair, TOP)
            self._wrong(found, name, f"{error}; allowed are regular expressions, separated by commas")
            return r"(?!)"

    def _wrong(self, found: Entry | None, name: str, text: str) -> None:
        finding = (
            found.finding(FindingLevel.ERROR, text)
            if found
            else MirrorFinding(FindingLevel.ERROR, 1, name, None, text)
        )
        if finding not in self.said:
            self.said.append(finding)
