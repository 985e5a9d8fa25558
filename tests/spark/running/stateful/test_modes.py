"""The output mode of a pipeline's query, and which results replace earlier ones."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from leafcuttr_spark.pipelines.model import Pipeline, Source, Step, TopicOrigin
from leafcuttr_spark.pipelines.operations import (
    Aggregate,
    Count,
    Filter,
    Join,
    Lookup,
    Reduce,
    TumblingWindow,
)
from leafcuttr_spark.running.stateful.modes import mode_settings, output_mode, updates_before

WINDOW = TumblingWindow(1000)
FINAL = Aggregate(("id",), {"n": "count(*)"}, WINDOW, emit="final")
JOIN = Join("other", {"id": "id"}, 1000)


def pipeline(*steps: Step) -> Pipeline:
    return Pipeline("p", {name: Source(TopicOrigin((name,))) for name in ("in", "other")}, steps)


def test_one_result_that_is_given_as_updates_makes_the_query_one_of_updates() -> None:
    assert output_mode(pipeline(Step("large", Filter("a > 1"), "in"))) == "append"
    assert output_mode(pipeline(Step("sums", FINAL, "in"), Step("joined", JOIN, "in"))) == "append"
    for operation in (Count(("id",)), Reduce(("id",), "last"), Aggregate(("id",), {}, WINDOW)):
        assert (
            output_mode(pipeline(Step("sums", FINAL, "in"), Step("other_sums", operation, "in"))) == "update"
        )


def test_only_a_query_of_updates_with_a_join_is_not_checked_by_spark() -> None:
    count = Step("count", Count(("id",)), "in")
    joined = Step("joined", JOIN, "in")
    assert mode_settings(pipeline(count)) == {}
    assert mode_settings(pipeline(joined)) == {}
    assert mode_settings(pipeline(count, joined)) == {
        "spark.sql.streaming.unsupportedOperationCheck": "false"
    }


def test_which_results_replace_earlier_ones() -> None:
    steps = (
        Step("count", Count(("id",)), "in"),
        Step("some", Filter("count > 1"), "count"),
        Step("sums", FINAL, "some"),
        Step("once", FINAL, "in"),
        Step("again", FINAL, "once"),
        Step("named", Lookup("count", {"id": "id"}), "in"),
        Step("by_name", FINAL, "named"),
        Step("joined", Join("count", {"id": "id"}, 1000), "in"),
        Step("by_pair", FINAL, "joined"),
    )
    pipe = pipeline(*steps)
    found = {step.name: updates_before(pipe, step) for step in pipe.steps}
    assert {name: before for name, before in found.items() if before} == {
        "some": "count",
        "sums": "count",
        "joined": "count",
        "by_pair": "count",
    }
