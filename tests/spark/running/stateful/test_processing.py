"""State of the user's own on Spark: a class in the pipeline's folder, with timers of event time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from leafcuttr_spark.pipelines.errors import PipelineError
from leafcuttr_spark.pipelines.operations import Process
from support.spark_streams import Feed, Streams, step

BASE = 1_700_000_000_000
CODE = """
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor


class Quiet(StatefulProcessor):
    def __init__(self, after_ms):
        self.after_ms = after_ms

    def init(self, handle):
        self.handle = handle
        self.last = handle.getValueState("last", "at bigint, n bigint")

    def handleInputRows(self, key, rows, timerValues):
        found = self.last.get()
        at, n = (found[0], found[1]) if found else (0, 0)
        for row in rows:
            at, n = max(at, row["at"]), n + 1
        self.last.update((at, n))
        for timer in list(self.handle.listTimers()):
            self.handle.deleteTimer(timer)
        self.handle.registerTimer(at + self.after_ms)
        return iter(())

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):
        found = self.last.get()
        self.last.clear()
        yield Row(id=key[0], n=found[1], quiet_since=found[0])

    def close(self):
        pass


class Other:
    pass
"""


def rows(*given: tuple[str, int]) -> list[dict[str, Any]]:
    return [{"id": id_, "at": BASE + at} for id_, at in given]


def test_a_class_of_the_user_s_with_timers(streams: Streams, tmp_path: Path) -> None:
    (tmp_path / "quiet_keys.py").write_text(CODE)
    feed = Feed(
        "id string, at bigint",
        [rows(("a", 0), ("b", 1000)), rows(("a", 3000)), rows(("b", 9000)), rows(("z", 100_000))],
        watermark_ms=1000,
    )
    operation = Process(
        "quiet_keys:Quiet", ("id",), "id STRING, n BIGINT, quiet_since BIGINT", timers="event",
        arguments={"after_ms": 4000},
    )  # fmt: skip
    ran = streams.run({"in": feed}, step("quiet", operation, "in"), folder=tmp_path)
    found = sorted((row["id"], row["n"], row["quiet_since"] - BASE) for row in ran.rows("quiet"))
    assert found == [("a", 2, 3000), ("b", 2, 9000)]


def test_what_is_no_processor_is_refused(streams: Streams, tmp_path: Path) -> None:
    (tmp_path / "other_keys.py").write_text(CODE)
    operation = Process("other_keys:Other", ("id",), "id STRING")
    feed = Feed("id string, at bigint", [], watermark_ms=1000)
    with pytest.raises(PipelineError, match=r"other_keys:Other is not made of pyspark\.sql\.streaming"):
        streams.run({"in": feed}, step("quiet", operation, "in"), folder=tmp_path)
