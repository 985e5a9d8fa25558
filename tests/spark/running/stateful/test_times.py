"""Event times that are none: rows of which a step with state can make no window."""

from __future__ import annotations

from typing import Any

import pytest

from leafcuttr_spark.pipelines.operations import (
    Count,
    SessionWindow,
    SlidingWindow,
    TumblingWindow,
)
from support.spark_streams import DEAD, Feed, Streams, step

BASE = 1_700_000_000_000
NONE = (BASE * 1_000_000, -BASE * 1_000_000, 2**63 - 1, -(2**63), 253_402_300_800_000, -62_135_596_800_001)
"""Nanoseconds instead of milliseconds, the ends of a long, and the first ones outside of the years 1 to 9999."""

GOOD, LAST = "2023-11-14T22:13:21Z", "9999-12-31T23:59:59.999Z"


def row(at: Any, number: int) -> dict[str, Any]:
    return {"id": "a", "at": at, "number": number, "offset": number}


@pytest.mark.parametrize("kind", ["bigint", "timestamp", "string"])
def test_a_row_whose_time_is_none_is_late(streams: Streams, kind: str) -> None:
    """A row that no window can take fails no batch, and does not make all rows late that come after it."""
    times: list[Any] = [*NONE]
    if kind != "bigint":
        times = ["+294247-01-10T04:00:54.775807Z", "+10000-01-01T00:00:00Z", "-0001-01-01T00:00:00Z"]
    rows = [row(at, number) for number, at in enumerate(times)]
    good, last = (BASE + 1000, NONE[4] - 1) if kind == "bigint" else (GOOD, LAST)
    ran = streams.run(
        {
            "in": Feed(
                f"id string, at {kind}, number bigint, offset bigint",
                [rows, [row(good, 100)], [row(last, 101)]],
                watermark_ms=1000,
            )
        },
        step("tumbling", Count(("id",), window=TumblingWindow(10_000), grace_ms=1000, emit="final"), "in"),
        step("sliding", Count(("id",), window=SlidingWindow(10_000), grace_ms=1000, emit="final"), "in"),
        step("session", Count(("id",), window=SessionWindow(10_000), grace_ms=1000, emit="final"), "in"),
        late="dead-letters",
    )
    for name in ("tumbling", "sliding", "session"):
        assert [each["count"] for each in ran.rows(name)] == [1], name
        assert ran.late[name] == len(times), name
    assert len(ran.rows(DEAD)) == 3 * len(times)
