"""The topics of both ends: which of the source are copied, and what the target has for them.

`TopicPlan.refresh` compares the two clusters: it finds topics of the source, creates and enlarges those of the target,
gives them the source's settings, and makes the routes. What it cannot do for one topic is that topic's trouble, and the
others go on.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from leafcuttr_forward.flows.errors import FlowStopped, line_of
from leafcuttr_forward.flows.routes import DEFAULT_LIMIT, Route
from leafcuttr_forward.flows.spec import FLOWS_TOPIC, FlowSpec, Partitioning, TopicRule
from leafcuttr_sdk.errors import (
    BrokerError,
    InvalidConfig,
    PolicyViolation,
    RequestTimedOut,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
)
from leafcuttr_sdk.types import TopicPartition

if TYPE_CHECKING:
    import logging

    from leafcuttr_forward.flows.report import FlowReport
    from leafcuttr_sdk.peers import Peer, PeerTopic

_LIMIT: Final = "max.message.bytes"


class TopicPlan:
    """What is copied where, as it was at the last refresh."""

    def __init__(
        self, spec: FlowSpec, source: "Peer", target: "Peer", report: "FlowReport", logger: "logging.Logger"
    ) -> None:
        self._spec = spec
        self._source = source
        self._target = target
        self._report = report
        self._logger = logger
        self._routes: dict[str, Route] = {}
        self._others: dict[str, Route] = {}
        self._limits: dict[str, int] = {}
        self._known_limits: dict[str, int] = {}
        self._said: set[str] = set()
        self._same_cluster: bool | None = None
        self.sources: dict[str, PeerTopic] = {}
        """The topics of the source that have a route now."""
        self.missing: set[str] = set()
        """Names in rules that the source does not have."""
        self.unmet: set[str] = set()
        """Topics of the source without a route: the target does not have theirs, and it cannot be created."""

    def route(self, topic: str) -> Route:
        """For a topic of the source in `sources`. Raises UnknownTopicOrPartition where it was deleted while its records
        were on their way."""
        route = self._routes.get(topic)
        if route is None:
            raise UnknownTopicOrPartition(f"{self._source.name} does not have {topic} any more")
        limit = self._limits.get(route.topic, route.limit)
        return route if limit >= route.limit else route._replace(limit=limit)

    def lower_limit(self, topic: str, limit: int) -> None:
        """Of a topic of the source: its target has refused a batch that is larger."""
        self._limits[self.route(topic).topic] = limit

    @property
    def is_complete(self) -> bool:
        """Whether every topic of the rules is there, at both ends."""
        return not self.missing and not self.unmet

    @property
    def partitions(self) -> list[TopicPartition]:
        """All that are copied."""
        return [
            TopicPartition(name, number)
            for name, topic in self.sources.items()
            for number in range(topic.partitions)
        ]

    async def refresh(self) -> None:
        """Raises BrokerError of a cluster that is away, FlowStopped for a topic that would be copied to itself."""
        rules = self._spec.rules
        names = None if any(rule.is_pattern for rule in rules) else [rule.source for rule in rules]
        found = await self._source.topics(names)
        wanted: dict[str, TopicRule] = {}
        for name, topic in found.items():
            rule = self._spec.rule_of(name)
            internal = name == FLOWS_TOPIC or topic.internal
            if rule is not None and not (internal and rule.is_pattern):
                wanted[name] = rule
        self.missing = {rule.source for rule in rules if not rule.is_pattern} - found.keys()
        await self._refuse_circles(wanted)
        there = dict(
            await self._target.topics(sorted({rule.target_of(name) for name, rule in wanted.items()}))
        )
        settings = (
            await self._source.topic_configs(sorted(wanted))
            if wanted and self._spec.creation.sync_settings
            else {}
        )
        for name, rule in wanted.items():
            target = rule.target_of(name)
            try:
                await self._settle(found[name], target, rule, there, settings.get(name, {}))
            except RequestTimedOut:
                raise
            except BrokerError as error:
                self._trouble(target, f"it cannot be created or enlarged: {line_of(error)}")
        await self._settings(wanted, there, settings)
        self.sources = {name: found[name] for name, rule in wanted.items() if rule.target_of(name) in there}
        self.unmet = wanted.keys() - self.sources.keys()
        self._routes = {
            name: self._made(found[name], there[wanted[name].target_of(name)], wanted[name])
            for name in self.sources
        }

    async def route_to(self, topic: str, like: str) -> Route:
        """For a topic of the target that a filter names; created with as many partitions as that of the source has.
        Raises BrokerError."""
        route = self._others.get(topic)
        if route is None:
            found = await self._target.topics([topic])
            if topic not in found:
                await self._create(topic, self.sources[like].partitions, {})
                found = await self._target.topics([topic])
            route = self._others[topic] = Route(topic, found[topic].partitions, by_key=False)
        return route

    async def _refuse_circles(self, wanted: Mapping[str, TopicRule]) -> None:
        # Those that rules name count before they exist: the flow itself may create them.
        rules = {**{rule.source: rule for rule in self._spec.rules if not rule.is_pattern}, **wanted}
        circle = circle_in({name: rule.target_of(name) for name, rule in rules.items()})
        letters = self._spec.dead_letter_topic
        if not circle and letters not in rules:
            return
        if self._same_cluster is None:
            self._same_cluster = await self._source.cluster_id() == await self._target.cluster_id()
        if not self._same_cluster:
            return
        if len(circle) == 1:
            what = f"{circle[0]} would be copied to itself"
        elif circle:
            what = f"{' to '.join([*circle, circle[0]])} would be copied in a circle"
        else:
            what = f"{letters} would be copied, and takes the dead letters"
        raise FlowStopped(f"{what}: source and target are the same cluster, {self._target.name}")

    async def _settle(
        self,
        topic: "PeerTopic",
        target: str,
        rule: TopicRule,
        there: "dict[str, PeerTopic]",
        settings: Mapping[str, str],
    ) -> None:
        """See that the target has the topic, with enough partitions."""
        creation = self._spec.creation
        has = there.get(target)
        wanted = topic.partitions if rule.partition is None else rule.partition + 1
        if has is None and not creation.create:
            self._trouble(target, "the target does not have it, and topics are not to be created")
            return
        if has is None:
            await self._create(target, wanted, self._copied(settings))
        elif has.partitions < wanted and creation.create and self._keeps_numbers(rule):
            await self._target.add_partitions(target, wanted)
            self._logger.info("flow %s: %s has %d partitions now", self._spec.name, target, wanted)
        else:
            self._report.notes.pop(target, None)
            return
        there.update(await self._target.topics([target]))
        self._report.notes.pop(target, None)

    def _keeps_numbers(self, rule: TopicRule) -> bool:
        return rule.partition is not None or self._spec.partitioning is Partitioning.SAME

    async def _create(self, name: str, partitions: int, settings: Mapping[str, str]) -> None:
        creation = self._spec.creation
        factor = creation.replication_factor
        if factor > 1:
            nodes = await self._target.node_count()
            if nodes < factor:
                self._say(f"the target has {nodes} brokers: topics get that many replicas, not {factor}")
                factor = nodes
        configs = {**settings, **creation.settings}
        try:
            await self._target.create_topic(
                name, partitions=partitions, replication_factor=factor, configs=configs
            )
        except TopicAlreadyExists:
            return
        except (InvalidConfig, PolicyViolation) as error:
            if not configs:
                raise
            self._say(f"{name} is created without the settings of the source: {line_of(error)}")
            await self._target.create_topic(name, partitions=partitions, replication_factor=factor)
        self._logger.info("flow %s: created %s with %d partitions", self._spec.name, name, partitions)

    def _copied(self, settings: Mapping[str, str]) -> dict[str, str]:
        """Those of the source that the target is to have."""
        if not self._spec.creation.sync_settings:
            return {}
        exclude = self._spec.creation.settings_exclude
        return {
            name: value
            for name, value in settings.items()
            if not any(re.fullmatch(pattern, name) for pattern in exclude)
        }

    async def _settings(
        self,
        wanted: Mapping[str, TopicRule],
        there: "Mapping[str, PeerTopic]",
        settings: Mapping[str, Mapping[str, str]],
    ) -> None:
        """Make those of the target what those of the source are."""
        has = await self._target.topic_configs(sorted(there)) if there else {}
        for name, rule in wanted.items():
            target = rule.target_of(name)
            if target not in has:
                continue
            if self._spec.creation.sync_settings:
                await self._sync(target, self._copied(settings.get(name, {})), has[target])
            limit = settings.get(name, {}).get(_LIMIT) or has[target].get(_LIMIT)
            if limit is not None and limit.isdecimal():
                self._known_limits[target] = int(limit)

    async def _sync(self, target: str, wanted: Mapping[str, str], has: Mapping[str, str]) -> None:
        own = self._spec.creation.settings
        exclude = self._spec.creation.settings_exclude
        change: dict[str, str | None] = {
            name: value for name, value in wanted.items() if has.get(name) != value and name not in own
        }
        for name in has.keys() - wanted.keys() - own.keys():
            if not any(re.fullmatch(pattern, name) for pattern in exclude):
                change[name] = None
        if not change:
            return
        try:
            await self._target.alter_topic(target, change)
        except RequestTimedOut:
            raise
        except BrokerError as error:
            self._say(f"{target} does not take the settings of the source: {line_of(error)}")
        else:
            self._logger.info("flow %s: %s has the settings of the source", self._spec.name, target)

    def _made(self, source: "PeerTopic", target: "PeerTopic", rule: TopicRule) -> Route:
        limit = self._known_limits.get(target.name, DEFAULT_LIMIT)
        if rule.partition is not None:
            return Route(target.name, target.partitions, limit, fixed=rule.partition)
        fewer = target.partitions < source.partitions
        by_key = fewer or self._spec.partitioning is Partitioning.BY_KEY
        if fewer and self._spec.partitioning is Partitioning.SAME:
            self._report.notes[target.name] = (
                f"{target.name} has {target.partitions} partitions, the source {source.partitions}: "
                "records go by their keys"
            )
        return Route(target.name, target.partitions, limit, by_key=by_key)

    def _trouble(self, target: str, why: str) -> None:
        self._report.notes[target] = f"{target}: {why}"
        self._say(f"{target}: {why}")

    def _say(self, line: str) -> None:
        """Once."""
        if line not in self._said:
            self._said.add(line)
            self._logger.warning("flow %s: %s", self._spec.name, line)


def circle_in(targets: Mapping[str, str]) -> list[str]:
    """Topics that would go round in one cluster, by what each is copied to; none if there is no circle."""
    seen: set[str] = set()
    for first in targets:
        path: dict[str, int] = {}
        name = first
        while name in targets and name not in seen:
            seen.add(name)
            path[name] = len(path)
            name = targets[name]
        if name in path:
            return [*path][path[name] :]
    return []
