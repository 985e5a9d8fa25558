"""State of the user's own on Spark: a class in the pipeline's folder, with timers of event time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from leafcuttr_spark.pipelines.errors import PipelineError
from leafcuttr_spark.pipelines.operations import Process
from leafcuttr_spark.running.rows import ERROR
from support.spark_streams import DEAD, Feed, Streams, step

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


def test_a_row_that_python_cannot_hold_is_a_dead_letter(streams: Streams, tmp_path: Path) -> None:
    """Times of the years 1 to 9999 pass; one beyond them, wherever in the row, fails no batch."""
    (tmp_path / "far_keys.py").write_text(CODE)
    far = 253_402_300_800  # in seconds, as Spark reads times that are numbers of JSON
    plain = "until timestamp, day date, local timestamp_ntz"
    nested = "spans array<struct<ends: timestamp>>, by map<string, date>"
    given: list[dict[str, Any]] = [
        {"until": far - 1, "day": "9999-12-31", "local": "9999-12-31T23:59:59"},
        {
            "until": -62_135_596_800,
            "day": "0001-01-01",
            "spans": [{"ends": far - 1}, None],
            "by": {"a": "0001-01-01"},
        },
        {},
        {"until": far},
        {"until": -62_135_596_801},
        {"day": "+10000-01-01"},
        {"local": "+10000-01-01T00:00:00"},
        {"spans": [{"ends": 0}, {"ends": far}]},
        {"by": {"a": "2026-11-28", "b": "+10000-01-01"}},
    ]
    batch = [{"id": "a", "at": BASE + number, **more} for number, more in enumerate(given)]
    feed = Feed(f"id string, at bigint, {plain}, {nested}", [batch, rows(("z", 100_000))], watermark_ms=1000)
    operation = Process(
        "far_keys:Quiet", ("id",), "id STRING, n BIGINT, quiet_since BIGINT", timers="event",
        arguments={"after_ms": 4000},
    )  # fmt: skip
    ran = streams.run({"in": feed}, step("quiet", operation, "in"), folder=tmp_path)
    assert [(row["id"], row["n"], row["quiet_since"] - BASE) for row in ran.rows("quiet")] == [("a", 3, 2)]
    letters = sorted((json.loads(row["value"])["at"] - BASE, row[ERROR]) for row in ran.rows(DEAD))
    assert [at for at, _ in letters] == [3, 4, 5, 6, 7, 8]
    assert {error["step"] for _, error in letters} == {"steps[0] (quiet)"}
    assert [error["reason"] for _, error in letters] == [
        f"Python cannot hold the time in {name}" for name in ("until", "until", "day", "local", "spans", "by")
    ]
