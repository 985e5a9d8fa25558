"""What plugins count and show beside the broker's own metrics. Nothing is written out here: see the admin endpoint.

Filters and validators count in worker threads, so whatever changes a series, or the table of them, has a lock. A
scrape, on the loop, copies and needs none.
"""

import logging
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import isfinite
from threading import RLock
from typing import Final, Generic, TypeVar

from leafcuttr.metrics.counts import Distribution
from leafcuttr_sdk.metrics import (
    LONGEST_LABEL,
    MOST_BOUNDS,
    MOST_HISTOGRAMS,
    MOST_SERIES,
    OTHER,
    SECONDS,
    Kind,
    Metric,
    MetricReading,
    counter,
    gauge,
    histogram,
)

logger = logging.getLogger(__name__)

V = TypeVar("V")


def encodable(label: str) -> str:
    """The value of a label as it can be shown: half of a surrogate pair, which JSON may have, would fail a scrape."""
    return label.encode("utf-8", "replace").decode()


AddedSample = tuple[tuple[str, ...], float | Distribution]
"""The values of a metric's labels, in their order, and its value; a Distribution for a histogram."""


class Series(Generic[V]):
    """One metric of a plugin, by the values of its labels, of which there are at most `most`."""

    __slots__ = ("_lock", "_metric", "_most", "_other", "_told", "_values")

    def __init__(self, metric: Metric, most: int, first: V) -> None:
        self._metric = metric
        self._most = most
        self._other = (OTHER,) * len(metric.labels)
        self._told = False
        self._lock = RLock()
        # A metric without labels is there from the first scrape on.
        self._values: dict[tuple[str, ...], V] = {} if metric.labels else {(): first}

    def samples(self) -> Iterator[tuple[tuple[str, ...], V]]:
        return iter(dict(self._values).items())

    def _place(self, labels: tuple[str, ...]) -> tuple[str, ...] | None:
        """The labels of the series for these that have none yet; None beyond the bounds."""
        if len(labels) != len(self._metric.labels):
            raise ValueError(f"{self._metric.name} has {len(self._metric.labels)} labels, not {len(labels)}")
        labels = tuple(encodable(str(label)) for label in labels)
        fits = labels in self._values or len(self._values) < self._most - 1  # and one for the others
        if fits and all(len(label) <= LONGEST_LABEL for label in labels):
            return labels
        if not self._told:
            self._told = True
            logger.warning(
                "%s has labels beyond what it may have (%d series, %d characters): their values are %s",
                *(self._metric.name, self._most, LONGEST_LABEL),
                "left out" if self._metric.kind is Kind.GAUGE else f"counted under {OTHER}",
            )
        return None


class NumberSeries(Series[float]):
    """Both `Counter` and `Gauge` of the SDK."""

    __slots__ = ()

    def __init__(self, metric: Metric) -> None:
        super().__init__(metric, MOST_SERIES, 0.0)

    def add(self, count: float = 1, *labels: str) -> None:
        """Raises ValueError for less than nothing, and for labels of another number than the metric's."""
        if count < 0:
            raise ValueError(f"{self._metric.name} only grows; {count} is less than nothing")
        with self._lock:
            found = self._values.get(labels)
            if found is None:
                labels = self._place(labels) or self._other
                found = self._values.get(labels, 0.0)
            self._values[labels] = found + count

    def set(self, value: float, *labels: str) -> None:
        """Raises ValueError for labels of another number than the metric's."""
        with self._lock:
            place = labels if labels in self._values else self._place(labels)
            if place is not None:
                self._values[place] = value


class HistogramSeries(Series[Distribution]):
    """`Histogram` of the SDK."""

    __slots__ = ("bounds",)

    def __init__(self, metric: Metric, bounds: tuple[float, ...]) -> None:
        """Raises ValueError for bounds that do not rise, are no numbers, or too many."""
        rise = all(before < after for before, after in pairwise(bounds))
        if not bounds or len(bounds) > MOST_BOUNDS or not rise or not all(map(isfinite, bounds)):
            raise ValueError(f"{metric.name}: its bounds are 1 to {MOST_BOUNDS} numbers that rise")
        super().__init__(metric, MOST_HISTOGRAMS, Distribution(bounds))
        self.bounds = bounds

    def observe(self, value: float, *labels: str) -> None:
        """Raises ValueError for NaN, and for labels of another number than the metric's."""
        if value != value:
            raise ValueError(f"{self._metric.name}: NaN is in no bucket")
        with self._lock:
            found = self._values.get(labels)
            if found is None:
                labels = self._place(labels) or self._other
                found = self._values.get(labels)
                if found is None:
                    found = self._values[labels] = Distribution(self.bounds)
            found.add(value)


class PluginMetrics:
    """The metrics that one plugin makes: `Metrics` of the SDK."""

    def __init__(self, table: "AddedMetrics", plugin: str) -> None:
        self._table = table
        self._plugin = plugin

    def counter(self, name: str, help: str, *labels: str) -> NumberSeries:
        return self._table.series(self._plugin, counter(name, help, *labels))

    def gauge(self, name: str, help: str, *labels: str) -> NumberSeries:
        return self._table.series(self._plugin, gauge(name, help, *labels))

    def histogram(
        self, name: str, help: str, *labels: str, bounds: Sequence[float] = SECONDS
    ) -> HistogramSeries:
        return self._table.histogram(self._plugin, histogram(name, help, *labels), tuple(bounds))


class AddedMetrics:
    """All metrics of all plugins. `readings` may be gone through while others are added."""

    def __init__(self) -> None:
        self._owners: dict[str, str] = {}
        self._readings: dict[Metric, MetricReading] = {}
        self._numbers: dict[Metric, NumberSeries] = {}
        self._histograms: dict[Metric, HistogramSeries] = {}
        self._lock: Final = RLock()

    def of(self, plugin: str) -> PluginMetrics:
        return PluginMetrics(self, plugin)

    def series(self, plugin: str, metric: Metric) -> NumberSeries:
        """The same for the same metric. Raises ValueError: see `add`."""
        with self._lock:
            found = self._numbers.get(metric)
            if found is None:
                found = NumberSeries(metric)
                self.add(plugin, MetricReading(metric, found.samples))
                self._numbers[metric] = found
        self._check_owner(plugin, metric)
        return found

    def histogram(self, plugin: str, metric: Metric, bounds: tuple[float, ...]) -> HistogramSeries:
        """The same for the same metric. Raises ValueError: see `add`, `HistogramSeries`; and for other bounds."""
        with self._lock:
            found = self._histograms.get(metric)
            if found is None:
                found = HistogramSeries(metric, bounds)
                self.add(plugin, MetricReading(metric, found.samples))  # type: ignore[arg-type]  # plugins give numbers
                self._histograms[metric] = found
        self._check_owner(plugin, metric)
        if found.bounds != bounds:
            raise ValueError(f"{metric.name} has other bounds already")
        return found

    def _check_owner(self, plugin: str, metric: Metric) -> None:
        if self._owners[metric.family] != plugin:
            raise ValueError(f"{metric.name} is a metric of the plugin {self._owners[metric.family]}")

    def add(self, plugin: str, reading: MetricReading) -> None:
        """Raises ValueError for a name without that of the plugin, and for one that is taken."""
        metric, prefix = reading.metric, f"leafcuttr_{plugin.replace('-', '_')}_"
        if not metric.name.startswith(prefix):
            raise ValueError(f"{metric.name}: a metric of the plugin {plugin} begins with {prefix}")
        if _is_ours(metric) or metric.family in self._owners:
            raise ValueError(f"there is a metric {metric.name} already, of another kind or with other words")
        self._owners[metric.family] = plugin
        self._readings[metric] = reading

    def remove(self, plugin: str) -> None:
        """Forget all metrics of this plugin."""
        for metric in [each for each in list(self._readings) if self._owners[each.family] == plugin]:
            del self._readings[metric], self._owners[metric.family]
            self._numbers.pop(metric, None)
            self._histograms.pop(metric, None)

    def readings(self) -> list[tuple[str, MetricReading]]:
        """Each with the name of its plugin, in the order in which they came."""
        return [(self._owners[metric.family], reading) for metric, reading in dict(self._readings).items()]


def _is_ours(metric: Metric) -> bool:
    from leafcuttr.metrics.catalog import METRICS

    return any(own.family == metric.family for own in METRICS.values())
