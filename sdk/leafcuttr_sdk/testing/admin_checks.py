"""Conformance of what a plugin shows on the admin port: `leafcuttr_sdk.admin` and `leafcuttr_sdk.metrics` say what
health checks and readings of metrics promise.

Each is called as `/health` and a scrape call it. The broker goes on without one that raises, and says so there; here it
is a problem.
"""

import inspect
from collections.abc import Callable, Coroutine
from typing import Any, Final, cast

from leafcuttr_sdk._described import kind_of
from leafcuttr_sdk.admin import Finding, HealthCheck
from leafcuttr_sdk.metrics import LONGEST_LABEL, MOST_SAMPLES, Metric, MetricReading
from leafcuttr_sdk.testing import watch
from leafcuttr_sdk.testing.report import Notes, Report, told

_HEALTH: Final = {
    "answers": "look returns a Finding whose detail is one line, and raises nothing",
    "does not wait": "it says what is known: it neither waits nor computes for long",
}
_METRIC: Final = {
    "reads": "read yields samples, and raises nothing",
    "samples": "each sample has the labels of the metric, no other has the same, and its value is a number",
    "does not wait": "it says what is known: it neither waits nor computes for long",
}


def check_health_check(check: HealthCheck) -> None:
    """Check a health check, in the thread of the caller: it may find what it likes. Raises ContractError with all that
    is wrong."""
    health_check_report(check).raise_problems()


def check_metric_reading(reading: MetricReading) -> None:
    """Check what `leafcuttr_register_metrics` returns, in the thread of the caller. Raises ContractError with all that
    is wrong."""
    metric_report(reading).raise_problems()


def health_check_report(check: HealthCheck) -> Report:
    """The report that `check_health_check` would raise."""
    notes = Notes("health check", check.name, _HEALTH)
    call = watch.watched(check.look)
    _look_at_time(notes, check.look, call)
    if call.error is not None:
        notes.add("answers", f"look raised {told(call.error)}: return Finding(False, why)")
    else:
        found: object = call.result
        wrong = _why_no_finding(found)
        if wrong is not None:
            notes.add("answers", wrong)
        if inspect.iscoroutine(found):
            cast("Coroutine[Any, Any, Any]", found).close()
    return notes.report()


def metric_report(reading: MetricReading) -> Report:
    """The report that `check_metric_reading` would raise."""
    notes = Notes("metric", reading.metric.name, _METRIC)

    def samples() -> list[object]:
        return list(reading.read())

    call = watch.watched(samples)
    _look_at_time(notes, samples, call)
    if call.error is not None:
        notes.add("reads", f"read raised {told(call.error)}: yield no sample where there is none")
    for problem in _problems(reading.metric, call.result or []):
        notes.add("samples", problem)
    return notes.report()


def _look_at_time(notes: Notes, function: Callable[[], object], call: watch.Call[Any]) -> None:
    slow = None if call.did else watch.slowness(function, call)
    for deed in (*sorted(call.did), *([slow] if slow is not None else [])):
        notes.add("does not wait", f"it {deed}: let a service do that, and keep what it has found")


def _why_no_finding(found: object) -> str | None:
    if inspect.isawaitable(found):
        return "look is an async function: write `def`, and say what is known"
    if not isinstance(found, Finding):
        return f"look returned {kind_of(found)}: return Finding(fine, detail)"
    fine, detail = cast("tuple[Any, Any]", found)
    if not isinstance(fine, bool):
        return f"look returned a Finding whose fine is {kind_of(fine)}, not True or False"
    if not isinstance(detail, str) or len(detail.splitlines()) > 1:
        return f"look returned a Finding whose detail is {detail!r}: it is one line of text"
    return None


def _problems(metric: Metric, samples: list[object]) -> list[str]:
    """The first of each kind."""
    found: dict[str, str] = {}
    seen: set[tuple[Any, ...]] = set()
    if len(samples) > MOST_SAMPLES:
        found["many"] = f"it has {len(samples)} samples; a scrape shows {MOST_SAMPLES}"
    for sample in samples:
        try:
            labels, value = cast("tuple[tuple[Any, ...], Any]", sample)
            labels = tuple(labels)
        except (TypeError, ValueError):
            found.setdefault("pair", f"{sample!r} is no sample: it is ((label, ...), number)")
            continue
        if isinstance(cast("tuple[Any, Any]", sample)[0], str):
            found.setdefault(
                "pair", f"{sample!r} is no sample: the labels are a tuple, also one alone: (label,)"
            )
        elif len(labels) != len(metric.labels):
            found.setdefault(
                "labels", f"{labels!r} are {len(labels)} labels, and the metric has {len(metric.labels)}"
            )
        elif labels in seen:
            found.setdefault("twice", f"the labels {labels!r} are there twice")
        elif any(len(str(label)) > LONGEST_LABEL for label in labels):
            found.setdefault("long", f"a label has more than {LONGEST_LABEL} characters")
        elif not isinstance(value, int | float):
            found.setdefault("value", f"{value!r} of {labels!r} is no number")
        seen.add(labels)
    return list(found.values())
