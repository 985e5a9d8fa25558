"""State is read by the name of the step, of Spark's own operators and of state processors."""

from __future__ import annotations

from typing import Any

import pytest

from leafcuttr_spark.pipelines.errors import PipelineError
from leafcuttr_spark.pipelines.operations import Count, Deduplicate, SlidingWindow
from support.spark_streams import Feed, Streams, step

BASE = 1_700_000_000_000


@pytest.mark.on_spark
def test_state_is_read_by_the_name_of_the_step(spark: Any, streams: Streams) -> None:
    from leafcuttr_spark.running.stateful.stores import read_state

    rows = [{"id": id_, "at": BASE + at} for id_, at in (("a", 0), ("a", 1000), ("b", 2000))]
    ran = streams.run(
        {"in": Feed("id string, at bigint", [rows], watermark_ms=5000)},
        step("count", Count(("id",)), "in"),
        step("once", Deduplicate(("id",)), "in"),
        step("near", Count(("id",), window=SlidingWindow(3000)), "in"),
    )
    (found,) = read_state(spark, ran.checkpoint, "count", {"id": "a"})
    assert (found["key"], found["value"]["count"]) == ({"id": "a"}, 2)
    assert {each["key"]["id"] for each in read_state(spark, ran.checkpoint, "once")} == {"a", "b"}
    (kept,) = read_state(spark, ran.checkpoint, "near", {"id": "a"})
    assert [row["time"] - BASE for row in kept["value"]["rows"]] == [0, 1000]
    assert len(read_state(spark, ran.checkpoint, "count", limit=1)) == 1
    with pytest.raises(PipelineError, match="the key of count has no column idd; it has id"):
        read_state(spark, ran.checkpoint, "count", {"idd": "a"})
    with pytest.raises(PipelineError, match="no state of a step nothing"):
        read_state(spark, ran.checkpoint, "nothing")
