"""What plugins count and show beside the broker's own metrics. Nothing is written out here: see the admin endpoint."""

from collections.abc import Iterator

from leafcuttr_sdk.metrics import Metric, MetricReading, Sample, counter, gauge


class Series:
    """One metric of a plugin, by the values of its labels. It is both `Counter` and `Gauge` of the SDK."""

    __slots__ = ("_metric", "_values")

    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        # A metric without labels is there from the first scrape on.
        self._values: dict[tuple[str, ...], float] = {} if metric.labels else {(): 0.0}

    def add(self, count: float = 1, *labels: str) -> None:
        """Raises ValueError for less than nothing, and for labels of another number than the metric's."""
        if count < 0:
            raise ValueError(f"{self._metric.name} only grows; {count} is less than nothing")
        self._check(labels)
        self._values[labels] = self._values.get(labels, 0.0) + count

    def set(self, value: float, *labels: str) -> None:
        """Raises ValueError for labels of another number than the metric's."""
        self._check(labels)
        self._values[labels] = value

    def samples(self) -> Iterator[Sample]:
        return iter(list(self._values.items()))

    def _check(self, labels: tuple[str, ...]) -> None:
        if len(labels) != len(self._metric.labels):
            raise ValueError(f"{self._metric.name} has {len(self._metric.labels)} labels, not {len(labels)}")


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
