"""What plugins count and show beside the broker's own metrics. Nothing is written out here: see the admin endpoint."""

import logging
from collections.abc import Iterator

from leafcuttr_sdk.metrics import (
    LONGEST_LABEL,
    MOST_SERIES,
    OTHER,
    Kind,
    Metric,
    MetricReading,
    Sample,
    counter,
    gauge,
)

logger = logging.getLogger(__name__)


def encodable(label: str) -> str:
    """The value of a label as it can be shown: half of a surrogate pair, which JSON may have, would fail a scrape."""
    return label.encode("utf-8", "replace").decode()


class Series:
    """One metric of a plugin, by the values of its labels. It is both `Counter` and `Gauge` of the SDK."""

    __slots__ = ("_metric", "_other", "_told", "_values")

    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        self._other = (OTHER,) * len(metric.labels)
        self._told = False
        # A metric without labels is there from the first scrape on.
        self._values: dict[tuple[str, ...], float] = {} if metric.labels else {(): 0.0}

    def add(self, count: float = 1, *labels: str) -> None:
        """Raises ValueError for less than nothing, and for labels of another number than the metric's."""
        if count < 0:
            raise ValueError(f"{self._metric.name} only grows; {count} is less than nothing")
        found = self._values.get(labels)
        if found is None:
            labels = self._place(labels) or self._other
            found = self._values.get(labels, 0.0)
        self._values[labels] = found + count

    def set(self, value: float, *labels: str) -> None:
        """Raises ValueError for labels of another number than the metric's."""
        place = labels if labels in self._values else self._place(labels)
        if place is not None:
            self._values[place] = value

    def samples(self) -> Iterator[Sample]:
        return iter(list(self._values.items()))

    def _place(self, labels: tuple[str, ...]) -> tuple[str, ...] | None:
        """The labels of the series for these that have none yet; None beyond the bounds."""
        if len(labels) != len(self._metric.labels):
            raise ValueError(f"{self._metric.name} has {len(self._metric.labels)} labels, not {len(labels)}")
        labels = tuple(encodable(str(label)) for label in labels)
        fits = labels in self._values or len(self._values) < MOST_SERIES - 1  # and one for the others
        if fits and all(len(label) <= LONGEST_LABEL for label in labels):
            return labels
        if not self._told:
            self._told = True
            logger.warning(
                "%s has labels beyond what it may have (%d series, %d characters): their values are %s",
                *(self._metric.name, MOST_SERIES, LONGEST_LABEL),
                f"counted under {OTHER}" if self._metric.kind is Kind.COUNTER else "left out",
            )
        return None


class PluginMetrics:
    """The metrics that one plugin makes: `Metrics` of the SDK."""

    def __init__(self, table: "AddedMetrics", plugin: str) -> None:
        self._table = table
        self._plugin = plugin

    def counter(self, name: str, help: str, *labels: str) -> Series:
        return self._table.series(self._plugin, counter(name, help, *labels))

    def gauge(self, name: str, help: str, *labels: str) -> Series:
        return self._table.series(self._plugin, gauge(name, help, *labels))


class AddedMetrics:
    """All metrics of all plugins. `readings` may be gone through while others are added."""

    def __init__(self) -> None:
        self._owners: dict[str, str] = {}
        self._readings: dict[Metric, MetricReading] = {}
        self._series: dict[Metric, Series] = {}

    def of(self, plugin: str) -> PluginMetrics:
        return PluginMetrics(self, plugin)

    def series(self, plugin: str, metric: Metric) -> Series:
        """The same for the same metric. Raises ValueError: see `add`."""
        found = self._series.get(metric)
        if found is None:
            found = Series(metric)
            self.add(plugin, MetricReading(metric, found.samples))
            self._series[metric] = found
        elif self._owners[metric.family] != plugin:
            raise ValueError(f"{metric.name} is a metric of the plugin {self._owners[metric.family]}")
        return found

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
        for metric in [each for each in self._readings if self._owners[each.family] == plugin]:
            del self._readings[metric], self._owners[metric.family]
            self._series.pop(metric, None)

    def readings(self) -> list[tuple[str, MetricReading]]:
        """Each with the name of its plugin, in the order in which they came."""
        return [(self._owners[metric.family], reading) for metric, reading in self._readings.items()]


def _is_ours(metric: Metric) -> bool:
    from leafcuttr.metrics.catalog import METRICS

    return any(own.family == metric.family for own in METRICS.values())
