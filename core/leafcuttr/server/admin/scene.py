"""What one scrape sees: the figures that take more than a glance, gathered in turns and by a worker thread before the
families are written one after the other."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import trio

from leafcuttr.log.log import Log
from leafcuttr.metrics.counts import Times
from leafcuttr.runtime.pacing import Pace
from leafcuttr.server.admin.health import HealthTable
from leafcuttr.server.admin.lag import LagMeter, Lags
from leafcuttr.server.admin.names import TopicNames, Traffic
from leafcuttr.server.listener import Connections
from leafcuttr.state.broker import Broker
from leafcuttr_sdk.metrics import Metric

Sample = tuple[tuple[str, ...], float | Times]
"""The values of a metric's labels, in their order, and its value; `Times` for a histogram."""

Reading = Callable[["Scene"], Iterable[Sample]]
"""Finds the samples of one metric. Each step of its iterator is short."""

_STEP: Final = 200  # partitions looked at between two turns of others


@dataclass(slots=True)
class Scene:
    """See the module's docstring. `named` are the partitions with series of their own; `other_*` what the rest comes
    to."""

    broker: Broker
    connections: Connections
    health: HealthTable
    scrape_seconds: float
    topics: list[tuple[str, Traffic]] = field(default_factory=list)
    other: Traffic | None = None
    named: list[tuple[str, str, Log]] = field(default_factory=list)
    other_partitions: int = 0
    other_size: int = 0
    other_segments: int = 0
    offline: list[tuple[str, str]] = field(default_factory=list)
    offline_count: int = 0
    transactions: dict[str, int] = field(default_factory=dict)
    connected: dict[str, int] = field(default_factory=dict)
    lags: Lags = field(default_factory=Lags)
    disk: tuple[int, int] | None = None
    process: Mapping[str, float] = field(default_factory=dict)


class Surveyor:
    """Makes scenes of one broker."""

    def __init__(self, broker: Broker, connections: Connections, health: HealthTable) -> None:
        self._broker = broker
        self._connections = connections
        self._health = health
        self._names = TopicNames(broker.topics, broker.settings)
        self._lags = LagMeter(broker, broker.settings)
        self._most = broker.settings.int("lc.metrics.max.partitions")
        self.scrape_seconds = 0.0

    async def look(self) -> Scene:
        """Gather what a scrape needs."""
        scene = Scene(self._broker, self._connections, self._health, self.scrape_seconds)
        await self._topics(scene)
        pace = Pace()
        async for transaction in pace.over(self._broker.transactions.all()):
            title = transaction.now.state.title
            scene.transactions[title] = scene.transactions.get(title, 0) + 1
        async for connection in pace.over(list(self._connections.all)):
            scene.connected[connection.listener] = scene.connected.get(connection.listener, 0) + 1
        scene.lags = await self._lags.measure()
        scene.disk, scene.process = await trio.to_thread.run_sync(
            _machine, self._broker.logs.directory, abandon_on_cancel=True
        )
        return scene

    async def _topics(self, scene: Scene) -> None:
        walked, other = 0, Traffic()
        for topic in list(self._broker.topics.by_name.values()):
            named = self._names.named(topic)
            traffic = Traffic() if named else other
            if named:
                scene.topics.append((topic.name, traffic))
            for partition in topic.partitions:
                walked += 1
                if walked % _STEP == 0:
                    await Pace.give_way()
                log, label = partition.log, str(partition.index)
                traffic.add(log)
                shown = named and len(scene.named) < self._most
                if shown:
                    scene.named.append((topic.name, label, log))
                else:
                    scene.other_partitions += 1
                    scene.other_size += log.size
                    scene.other_segments += log.segment_count
                if log.offline is not None:
                    scene.offline_count += 1
                    if shown:
                        scene.offline.append((topic.name, label))
        if self._names.others or self._names.deleted.records_in:
            other.add(self._names.deleted)
            scene.other = other


def _machine(directory: Path) -> tuple[tuple[int, int] | None, dict[str, float]]:
    """Size and free bytes of the file system, and what prometheus_client says of the process. In a worker thread: a
    file system may hang, and listing ten thousand descriptors takes a while."""
    from prometheus_client.process_collector import ProcessCollector

    try:
        found = os.statvfs(directory)
        disk = found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize
    except OSError:
        disk = None
    families: Iterable[Any] = ProcessCollector(registry=None).collect()
    return disk, {sample.name: sample.value for family in families for sample in family.samples}


class Families:
    """Every metric that a scrape shows, and how it is read: the broker's, and those that `more` has by then."""

    def __init__(self, more: "Callable[[], Iterable[tuple[Metric, Reading]]]" = tuple) -> None:
        self._more = more
        self._readings: dict[Metric, Reading] = {}
        self._names: set[str] = set()

    def add(self, metric: Metric, reading: Reading) -> None:
        """Raises ValueError if there is a metric of that name."""
        if metric.family in self._names:
            raise ValueError(f"there is a metric {metric.name} already")
        self._names.add(metric.family)
        self._readings[metric] = reading

    def items(self, names: Iterable[str] = ()) -> list[tuple[Metric, Reading]]:
        """All, or those whose name, or a series of theirs, is among `names`."""
        wanted = set(names)
        return [
            (metric, reading)
            for metric, reading in (*self._readings.items(), *self._more())
            if not wanted or any(name == metric.name or name.startswith(f"{metric.name}_") for name in wanted)
        ]
