"""Metrics in Prometheus's text format, for the address of a command: a broker exposes its own."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, NamedTuple

from leafcuttr_sdk.metrics import Kind, MetricReading, Sample


class OtherMetric(NamedTuple):
    """A metric with a name that none of ours could have: kaf-relay's."""

    name: str
    """Of one that ends with `_total` the type is counter, else it is not said."""
    help: str
    labels: tuple[str, ...]
    samples: Iterable[Sample]


def expose(readings: Iterable[MetricReading], others: Iterable[OtherMetric] = ()) -> bytes:
    """All of them as text; prometheus_client is imported at the first call."""
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, UntypedMetricFamily
    from prometheus_client.exposition import generate_latest

    def families() -> Iterable[Any]:
        for metric, read in readings:
            kind = CounterMetricFamily if metric.kind is Kind.COUNTER else GaugeMetricFamily
            family = kind(metric.family, metric.help, labels=metric.labels)
            for labels, value in read():
                family.add_metric(labels, value)
            yield family
        for name, help, names, samples in others:
            made = CounterMetricFamily if name.endswith("_total") else UntypedMetricFamily
            other = made(name.removesuffix("_total"), help, labels=names)
            for labels, value in samples:
                other.add_metric(labels, value)
            yield other

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Families(families))
    return generate_latest(registry)


class _Families:
    """A collector of prometheus_client."""

    def __init__(self, families: Callable[[], Iterable[Any]]) -> None:
        self.collect: Final = partial(families)
