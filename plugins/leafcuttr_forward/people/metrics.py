"""What is counted of flows, under the same names in a broker's `/metrics` and at the address of a relay."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from leafcuttr_forward.flows.report import FlowState
from leafcuttr_sdk.metrics import Metric, MetricReading, Sample, counter, gauge

if TYPE_CHECKING:
    from leafcuttr_forward.flows.report import FlowReport, PartitionReport

Reports: TypeAlias = "Callable[[], Iterable[FlowReport]]"
_PARTITION: Final = ("flow", "topic", "partition")


class _OfPartition(NamedTuple):
    metric: Metric
    value: "Callable[[PartitionReport, int], float]"


class _OfFlow(NamedTuple):
    metric: Metric
    value: "Callable[[FlowReport], float]"


_PARTITIONS: Final = (
    _OfPartition(
        counter("leafcuttr_forward_read_records_total", "Records that came from the source.", *_PARTITION),
        lambda report, _: report.read_records,
    ),
    _OfPartition(
        counter(
            "leafcuttr_forward_written_records_total",
            "Records that are at the target for good: acknowledged, or committed.",
            *_PARTITION,
        ),
        lambda report, _: report.written_records,
    ),
    _OfPartition(
        counter(
            "leafcuttr_forward_written_bytes_total", "Bytes of the batches with these records.", *_PARTITION
        ),
        lambda report, _: report.written_bytes,
    ),
    _OfPartition(
        counter("leafcuttr_forward_dropped_records_total", "Records that a filter left out.", *_PARTITION),
        lambda report, _: report.dropped_records,
    ),
    _OfPartition(
        counter(
            "leafcuttr_forward_dead_letters_total", "Records that went to a dead-letter topic.", *_PARTITION
        ),
        lambda report, _: report.dead_letters,
    ),
    _OfPartition(
        counter(
            "leafcuttr_forward_lost_records_total",
            "Offsets that the source had lost before they were copied: by retention, or truncation.",
            *_PARTITION,
        ),
        lambda report, _: report.lost_records,
    ),
    _OfPartition(
        gauge(
            "leafcuttr_forward_lag_records", "Offsets between the position and the source's end.", *_PARTITION
        ),
        lambda report, _: report.lag,
    ),
    _OfPartition(
        gauge(
            "leafcuttr_forward_lag_seconds",
            "How old the last copied record is; 0 where there is no lag.",
            *_PARTITION,
        ),
        lambda report, now_ms: report.lag_s(now_ms),
    ),
)
_FLOWS: Final = (
    _OfFlow(
        gauge("leafcuttr_forward_up", "1 if nothing keeps the flow from going on.", "flow"),
        lambda report: report.is_well,
    ),
    _OfFlow(
        counter("leafcuttr_forward_restarts_total", "How often the flow began again after an error.", "flow"),
        lambda report: report.restarts,
    ),
    _OfFlow(
        counter(
            "leafcuttr_forward_switches_total", "How often the flow went on with another source.", "flow"
        ),
        lambda report: report.switches,
    ),
    _OfFlow(
        counter("leafcuttr_forward_transactions_total", "Transactions that were committed.", "flow"),
        lambda report: report.transactions,
    ),
    _OfFlow(
        gauge("leafcuttr_forward_buffered_bytes", "Read, and not yet at the target for good.", "flow"),
        lambda report: report.buffered_bytes,
    ),
)
_STATE: Final = gauge(
    "leafcuttr_forward_state", "1 for the state that the flow is in, 0 for others.", "flow", "state"
)
_EVENTS: Final = counter(
    "leafcuttr_forward_source_changes_total",
    "Topics or logs of the source that were deleted, recreated, truncated, expired.",
    "flow",
    "change",
)


def flow_readings(reports: Reports, now_ms: Callable[[], int]) -> Iterator[MetricReading]:
    """All metrics of these flows."""
    for row in _PARTITIONS:
        yield MetricReading(row.metric, _partition_reader(reports, now_ms, row.value))
    for one in _FLOWS:
        yield MetricReading(one.metric, _flow_reader(reports, one.value))
    yield MetricReading(_STATE, lambda: _states(reports()))
    yield MetricReading(_EVENTS, lambda: _events(reports()))


def _partition_reader(
    reports: Reports, now_ms: Callable[[], int], value: "Callable[[PartitionReport, int], float]"
) -> Callable[[], Iterable[Sample]]:
    def read() -> Iterator[Sample]:
        now = now_ms()
        for report in reports():
            for source, partition in report.partitions.items():
                yield (report.name, source.topic, str(source.partition)), float(value(partition, now))

    return read


def _flow_reader(reports: Reports, value: "Callable[[FlowReport], float]") -> Callable[[], Iterable[Sample]]:
    return lambda: [((report.name,), float(value(report))) for report in reports()]


def _states(reports: "Iterable[FlowReport]") -> Iterator[Sample]:
    for report in reports:
        for state in FlowState:
            yield (report.name, state.value), float(report.state is state)


def _events(reports: "Iterable[FlowReport]") -> Iterator[Sample]:
    for report in reports:
        for name, count in report.events.items():
            yield (report.name, name), float(count)
