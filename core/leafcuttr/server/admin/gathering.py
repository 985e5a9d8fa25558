"""What one scrape shows. Figures that take a while to find are gathered first, in turns and by a worker thread; then
the families are written one after the other.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import trio

from leafcuttr.log.log import Log
from leafcuttr.metrics.counts import Distribution, Times
from leafcuttr.runtime.pacing import Pace
from leafcuttr.server.admin.health import HealthTable
from leafcuttr.server.admin.lag import LagMeter, Lags
from leafcuttr.server.admin.names import TopicNames, Traffic
from leafcuttr.server.listener import Connections
from leafcuttr.state.broker import Broker
from leafcuttr_sdk.metrics import Metric

Sample = tuple[tuple[str, ...], float | Times | Distribution]
"""The values of a metric's labels, in their order, and its value; one of the last two for a histogram."""

ReadMetric = Callable[["Gathered"], Iterable[Sample]]
"""Finds the samples of one metric. Each step of its iterator is short."""

_STEP: Final = 200  # partitions read between two turns of others


@dataclass(slots=True)
class Gathered:
    """The figures of one scrape. `named` are the partitions with series of their own, `other_*` the sums of all
    others."""

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


class Gatherer:
    """Gathers the figures of one broker."""

    def __init__(self, broker: Broker, connections: Connections, health: HealthTable) -> None:
        self._broker = broker
        self._connections = connections
        self._health = health
        self._names = TopicNames(broker.topics, broker.settings)
        self._lags = LagMeter(broker, broker.settings)
        self._most = broker.settings.int("lc.metrics.max.partitions")
        self.scrape_seconds = 0.0

    async def gather(self) -> Gathered:
        """Gather what a scrape needs."""
        gathered = Gathered(self._broker, self._connections, self._health, self.scrape_seconds)
        await self._topics(gathered)
        pace = Pace()
        async for transaction in pace.over(self._broker.transactions.all()):
            title = transaction.now.state.title
            gathered.transactions[title] = gathered.transactions.get(title, 0) + 1
        async for connection in pace.over(list(self._connections.all)):
            gathered.connected[connection.listener] = gathered.connected.get(connection.listener, 0) + 1
        gathered.lags = await self._lags.measure()
        gathered.disk, gathered.process = await trio.to_thread.run_sync(
            _machine, self._broker.logs.directory, abandon_on_cancel=True
        )
        return gathered

    async def _topics(self, gathered: Gathered) -> None:
        walked, other = 0, Traffic()
        for topic in list(self._broker.topics.by_name.values()):
            named = self._names.named(topic)
            traffic = Traffic() if named else other
            if named:
                gathered.topics.append((topic.name, traffic))
            for partition in topic.partitions:
                walked += 1
                if walked % _STEP == 0:
                    await Pace.give_way()
                log, label = partition.log, str(partition.index)
                traffic.add(log)
                shown = named and len(gathered.named) < self._most
                if shown:
                    gathered.named.append((topic.name, label, log))
                else:
                    gathered.other_partitions += 1
                    gathered.other_size += log.size
                    gathered.other_segments += log.segment_count
                if log.offline is not None:
                    gathered.offline_count += 1
                    if shown:
                        gathered.offline.append((topic.name, label))
        if self._names.others or self._names.deleted.records_in:
            other.add(self._names.deleted)
            gathered.other = other


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

    def __init__(self, more: "Callable[[], Iterable[tuple[Metric, ReadMetric]]]" = tuple) -> None:
        self._more = more
        self._readings: dict[Metric, ReadMetric] = {}
        self._names: set[str] = set()

    def add(self, metric: Metric, reading: ReadMetric) -> None:
        """Raises ValueError if there is a metric of that name."""
        if metric.family in self._names:
            raise ValueError(f"there is a metric {metric.name} already")
        self._names.add(metric.family)
        self._readings[metric] = reading

    def items(self, names: Iterable[str] = ()) -> list[tuple[Metric, ReadMetric]]:
        """All, or those whose name, or a series of theirs, is among `names`."""
        wanted = set(names)
        return [
            (metric, reading)
            for metric, reading in (*self._readings.items(), *self._more())
            if not wanted or any(name == metric.name or name.startswith(f"{metric.name}_") for name in wanted)
        ]
