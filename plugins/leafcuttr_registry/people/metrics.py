"""The metrics of the registry, as `/metrics` shows them, and its health check. What it holds is looked up when it is
asked for; what is counted while it runs is in `leafcuttr_registry.counts`."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from leafcuttr_registry.provider import provider_of
from leafcuttr_registry.storage.topics import SCHEMAS
from leafcuttr_sdk.admin import Finding, HealthCheck
from leafcuttr_sdk.metrics import Metric, MetricReading, Sample, counter, gauge

if TYPE_CHECKING:
    from leafcuttr_registry.registry import Registry
    from leafcuttr_sdk.broker import Broker

_READ: Final[tuple[tuple[Metric, Callable[["Registry"], float]], ...]] = (
    (
        gauge("leafcuttr_registry_schemas", "Schemas that have an id, of all contexts."),
        lambda registry: sum(len(each.ids) for each in registry.state.contexts.values()),
    ),
    (
        gauge(
            "leafcuttr_registry_subjects", "Subjects; those that are deleted, but not for good, among them."
        ),
        lambda registry: len(registry.state.subjects),
    ),
    (
        gauge(
            "leafcuttr_registry_versions",
            "Versions of all subjects; those that are deleted, but not for good, among them.",
        ),
        lambda registry: sum(map(len, registry.state.subjects.values())),
    ),
    (
        counter(
            "leafcuttr_registry_records_passed_over_total",
            "Records of _schemas that are none of a schema registry, or give an id another schema than it has.",
        ),
        lambda registry: registry.reader.garbage + registry.state.conflicts,
    ),
)


def readings(broker: "Broker") -> Iterator[MetricReading]:
    """None has a sample while `_schemas` is still being read."""
    provider = provider_of(broker)

    def reading(metric: Metric, value: "Callable[[Registry], float]") -> MetricReading:
        def look() -> Iterable[Sample]:
            registry = provider.registry
            return () if registry is None else [((), value(registry))]

        return MetricReading(metric, look)

    for metric, value in _READ:
        yield reading(metric, value)


def health_checks(broker: "Broker") -> Iterator[HealthCheck]:
    """One: what the registry waits for, or why it cannot write."""
    provider = provider_of(broker)

    def look() -> Finding:
        registry = provider.registry
        if registry is None:
            return Finding(False, f"it waits: {provider.waits_for}")
        trouble = registry.trouble
        if trouble is not None:
            return Finding(False, f"the last change was refused: {trouble}")
        state = registry.state
        schemas = sum(len(each.ids) for each in state.contexts.values())
        return Finding(True, f"{schemas} schemas, {len(state.subjects)} subjects")

    yield HealthCheck("schemas", f"{SCHEMAS} has been read, and can be written", look)
