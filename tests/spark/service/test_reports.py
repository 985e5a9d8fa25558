"""What is known of a pipeline, from its child and from what its run says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leafcuttr_spark.operating.status import RunState
from leafcuttr_spark.service.people import finding_of, row_of
from leafcuttr_spark.service.reports import STATES, PipelineReport, RunningPipelines, Totals
from support.spark_runs import STATUS

SEEN = replace(STATUS, run="first", batches=3, rows=40, late_rows=1, dead_letters=2)


class AChild:
    """What a child says."""

    def __init__(self, up: bool = True, trouble: str = "", restarts: int = 0) -> None:
        self.up, self.trouble, self.restarts, self.memory_bytes = up, trouble, restarts, 9


def report(child: AChild | None = None, **given: Any) -> PipelineReport:
    return PipelineReport("orders", Path("orders.yaml"), child=child, **given)  # type: ignore[arg-type]


FAILED = replace(SEEN, state=RunState.FAILED, trouble="it said why")
AGAIN = replace(STATUS, run="second", last_failure="it said why")


@pytest.mark.parametrize(
    ("one", "state", "trouble"),
    [
        (report(), "starting", ""),
        (report(refused="no name"), "refused", "no name"),
        (report(AChild()), "starting", ""),
        (report(AChild(), status=SEEN), "running", ""),
        (report(AChild(), status=replace(SEEN, trouble="the cluster is away")), "running", "the cluster is away"),
        # Of the run before.
        (report(AChild(), status=FAILED), "starting", "the run before has failed: it said why"),
        (report(AChild(), status=replace(SEEN, state=RunState.STOPPED)), "starting", ""),
        (report(AChild(), status=AGAIN), "running", "the run before has failed: it said why"),
        (report(AChild(), status=replace(AGAIN, trouble="the cluster is away")), "running", "the cluster is away"),
        (report(AChild(False)), "starting", ""),
        (report(AChild(False, "it ended"), status=AGAIN), "restarting", "it ended"),
        (report(AChild(False, "it ended"), status=SEEN), "restarting", "it ended"),
        (report(AChild(False, "it ended"), status=FAILED), "restarting", "it said why"),
        (report(AChild(False, "it ended"), status=FAILED, is_over=True), "failed", "it said why"),
        (report(AChild(False, "it ended"), is_over=True), "failed", "it ended"),
        (report(AChild(False), is_over=True), "finished", ""),
        (report(AChild(False), status=replace(SEEN, state=RunState.STOPPED), is_over=True), "stopped", ""),
        (report(AChild(False), status=replace(SEEN, state=RunState.FINISHED), is_over=True), "finished", ""),
    ],
)  # fmt: skip
def test_state_and_trouble(one: PipelineReport, state: str, trouble: str) -> None:
    assert (one.state, one.trouble) == (state, trouble)
    assert one.state in STATES


def test_counts_of_several_runs_are_added() -> None:
    one = report()
    assert one.totals == Totals()
    one.told(None)
    one.told(SEEN)
    assert one.totals == Totals(3, 40, 1, 2)
    one.told(replace(SEEN, batches=4, rows=50))
    assert one.totals == Totals(4, 50, 1, 2)
    one.told(replace(SEEN, run="second", batches=1, rows=5, late_rows=0, dead_letters=0))
    assert one.totals == Totals(5, 55, 1, 2)
    one.told(None)
    assert one.totals == Totals(5, 55, 1, 2)


def test_a_row_without_a_status() -> None:
    row = row_of(report())
    assert (row["lag_records"], row["batches"], row["memory_bytes"], row["state"]) == (None, 0, 0, "starting")
    assert row_of(report(AChild()))["memory_bytes"] == 9


def test_the_finding_names_three() -> None:
    running = RunningPipelines()
    assert finding_of(running) == (True, "0 pipelines")
    running.reports["a"] = report()
    assert finding_of(running) == (True, "1 pipeline")
    running.trouble = "the folder is away"
    assert finding_of(running) == (False, "the folder is away")
    for name in "dcb":
        running.reports[name] = PipelineReport(name, Path("x"), refused=f"{name} is bad")
    assert finding_of(running) == (False, "the folder is away; b: b is bad; c: c is bad; 1 more")
