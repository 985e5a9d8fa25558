"""What people and programs see of a broker's pipelines: a health check, metrics, and `/plugins/spark/pipelines`."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from leafcuttr_sdk.admin import AdminRoute, Finding, HealthCheck, Request, Response
from leafcuttr_sdk.metrics import Metric, MetricReading, Sample, counter, gauge
from leafcuttr_spark.service.reports import STATES, PipelineReport, RunningPipelines, running_of

if TYPE_CHECKING:
    from leafcuttr_sdk.broker import Broker

_MOST_NAMED: Final = 3


# Health


def health_checks(broker: "Broker") -> Iterator[HealthCheck]:
    """One: the pipelines that do not go on."""
    yield HealthCheck(
        "pipelines", "nothing keeps pipelines from going on", lambda: finding_of(running_of(broker))
    )


def finding_of(running: RunningPipelines) -> Finding:
    """In one line: what is wrong with the first ones that do not go on, or how many there are."""
    lines = [running.trouble] if running.trouble else []
    lines += [f"{one.name}: {one.trouble}" for one in running.all() if one.trouble]
    if not lines:
        count = len(running.reports)
        return Finding(True, f"{count} pipeline{'' if count == 1 else 's'}")
    more = f"; {len(lines) - _MOST_NAMED} more" if len(lines) > _MOST_NAMED else ""
    return Finding(False, "; ".join(lines[:_MOST_NAMED]) + more)


# Metrics


class _Reading(NamedTuple):
    metric: Metric
    value: Callable[[PipelineReport], float | None]


def _of_status(name: str) -> Callable[[PipelineReport], float | None]:
    def value(report: PipelineReport) -> float | None:
        found = None if report.status is None else getattr(report.status, name)
        return None if found is None else float(found)

    return value


_READINGS: Final = (
    _Reading(
        gauge("leafcuttr_spark_pipeline_up", "1 if nothing keeps the pipeline from going on.", "pipeline"),
        lambda report: not report.trouble,
    ),
    _Reading(
        counter("leafcuttr_spark_restarts_total", "How often the pipeline was started again.", "pipeline"),
        lambda report: report.restarts,
    ),
    _Reading(
        counter("leafcuttr_spark_batches_total", "Micro-batches that are done.", "pipeline"),
        lambda report: report.totals.batches,
    ),
    _Reading(
        counter("leafcuttr_spark_rows_total", "Rows that were read.", "pipeline"),
        lambda report: report.totals.rows,
    ),
    _Reading(
        counter("leafcuttr_spark_late_rows_total", "Rows that came behind the watermark.", "pipeline"),
        lambda report: report.totals.late_rows,
    ),
    _Reading(
        counter("leafcuttr_spark_dead_letters_total", "Records that became dead letters.", "pipeline"),
        lambda report: report.totals.dead_letters,
    ),
    _Reading(
        gauge("leafcuttr_spark_lag_records", "Records that are there and were not read.", "pipeline"),
        _of_status("lag_records"),
    ),
    _Reading(
        gauge(
            "leafcuttr_spark_lag_seconds",
            "How old the oldest record is that was not read; 0 where there is none.",
            "pipeline",
        ),
        _of_status("lag_s"),
    ),
    _Reading(
        gauge("leafcuttr_spark_state_rows", "Rows in the stores of state.", "pipeline"),
        _of_status("state_rows"),
    ),
)
_STATE: Final = gauge(
    "leafcuttr_spark_state", "1 for the state that the pipeline is in, 0 for others.", "pipeline", "state"
)


def pipeline_readings(running: RunningPipelines) -> Iterator[MetricReading]:
    """All metrics of these pipelines."""
    for row in _READINGS:
        yield MetricReading(row.metric, _reader(running, row.value))
    yield MetricReading(_STATE, lambda: _states(running))


def _reader(
    running: RunningPipelines, value: Callable[[PipelineReport], float | None]
) -> Callable[[], Iterable[Sample]]:
    def read() -> Iterator[Sample]:
        for report in running.all():
            if (found := value(report)) is not None:
                yield (report.name,), float(found)

    return read


def _states(running: RunningPipelines) -> Iterator[Sample]:
    for report in running.all():
        for state in STATES:
            yield (report.name, state), float(report.state == state)


# The admin port


def routes(broker: "Broker") -> Iterator[AdminRoute]:
    """A list of the pipelines. It changes nothing."""

    async def pipelines(_: Request) -> Response:
        rows = [row_of(report) for report in running_of(broker).all()]
        body = json.dumps(rows, ensure_ascii=False, separators=(",", ":")).encode()
        return Response(body, headers=(("Cache-Control", "no-store"),))

    yield AdminRoute("/pipelines", pipelines, "the pipelines that this broker runs, with their lag")


def row_of(report: PipelineReport) -> dict[str, Any]:
    """One pipeline, for programs."""
    status, totals = report.status, report.totals
    return {
        "pipeline": report.name,
        "file": str(report.path),
        "state": report.state,
        "trouble": report.trouble,
        "restarts": report.restarts,
        "memory_bytes": 0 if report.child is None else report.child.memory_bytes,
        **totals._asdict(),
        "batch": status.batch if status is not None else None,
        "lag_records": status.lag_records if status is not None else None,
        "lag_s": status.lag_s if status is not None else None,
        "rows_per_s": status.rows_per_s if status is not None else 0.0,
        "checkpoint": status.checkpoint if status is not None else None,
    }
