"""The checks of health checks and metrics pass what keeps its contract, and name what is wrong with what does not."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from leafcuttr_sdk import Finding, HealthCheck, MetricReading, gauge
from leafcuttr_sdk.metrics import MOST_SAMPLES
from leafcuttr_sdk.testing import ContractError, check_health_check, check_metric_reading

WEIGHT = gauge("leafcuttr_parcels_weight", "Of all parcels.", "kind")


def health(look: Callable[[], Any]) -> HealthCheck:
    return HealthCheck("sorted", "Parcels are sorted.", look)


async def later() -> Finding:
    return Finding(True)


def exits() -> Any:
    sys.exit(3)


@pytest.mark.parametrize("found", [Finding(True), Finding(False, "no parcels"), Finding(True, "größer")])
def test_a_good_health_check_passes(found: Finding) -> None:
    check_health_check(health(lambda: found))


@pytest.mark.parametrize(
    ("look", "check", "says"),
    [
        (
            lambda: 1 / 0,
            "answers",
            "look raised ZeroDivisionError: division by zero: return Finding(False, why)",
        ),
        (exits, "answers", "look raised SystemExit: 3"),
        (later, "answers", "look is an async function"),
        (lambda: True, "answers", "look returned a bool: return Finding(fine, detail)"),
        (lambda: Finding(1), "answers", "whose fine is an int"),  # type: ignore[arg-type]
        (lambda: Finding(True, "two\nlines"), "answers", "'two\\nlines': it is one line"),
        (lambda: Finding(True, None), "answers", "whose detail is None"),  # type: ignore[arg-type]
        (lambda: time.sleep(0.15) or Finding(True), "does not wait", ": let a service do that"),
    ],
)
def test_a_bad_one_is_named(look: Callable[[], Any], check: str, says: str) -> None:
    with pytest.raises(ContractError) as caught:
        check_health_check(health(look))
    problems = {one.name: one.problems for one in caught.value.report.checks if one.problems}
    assert problems.keys() == {check}
    assert says in problems[check][0]


@pytest.mark.parametrize(
    "samples", [[], [(("large",), 1)], [(("a",), 1), (("b",), 0.5)], [(["list"], float("nan"))]]
)
def test_a_good_metric_passes(samples: Any) -> None:
    check_metric_reading(MetricReading(WEIGHT, lambda: iter(samples)))


def breaks_off() -> Any:
    yield (("large",), 1)
    exits()


@pytest.mark.parametrize(
    ("read", "check", "says"),
    [
        (lambda: 1 / 0, "reads", "read raised ZeroDivisionError"),
        (lambda: None, "reads", "read raised TypeError"),
        (breaks_off, "reads", "read raised SystemExit: 3"),
        (lambda: [7], "samples", "7 is no sample: it is ((label, ...), number)"),
        (lambda: [("large", 1)], "samples", "the labels are a tuple, also one alone"),
        (lambda: [((), 1)], "samples", "() are 0 labels, and the metric has 1"),
        (lambda: [(("a",), 1), (("a",), 2)], "samples", "the labels ('a',) are there twice"),
        (lambda: [(("a",), "many")], "samples", "'many' of ('a',) is no number"),
        (lambda: [(("a" * 250,), 1)], "samples", "a label has more than 249 characters"),
        (lambda: [((str(n),), n) for n in range(MOST_SAMPLES + 1)], "samples", "it has 10001 samples"),
        (lambda: time.sleep(0.15) or [], "does not wait", ": let a service do that"),
    ],
)
def test_a_bad_metric_is_named(read: Callable[[], Any], check: str, says: str) -> None:
    with pytest.raises(ContractError) as caught:
        check_metric_reading(MetricReading(WEIGHT, read))
    problems = {one.name: one.problems for one in caught.value.report.checks if one.problems}
    assert problems.keys() == {check}
    assert says in problems[check][0]
