"""Event times that are none: rows of which a step with state can make no window."""

from __future__ import annotations

from typing import Any

import pytest

from leafcuttr_spark.pipelines.operations import (
    Count,
    Lookup,
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


FAR = 253_402_300_800
"""The first second after the year 9999; numbers are seconds where Spark reads times out of JSON."""
DAYS = ("+10000-01-01", "+200000-12-31", "-0001-01-01", "2026-11-28")


def feed_of(prefix: str, *, is_table: bool = False) -> Feed:
    kinds = {
        "until": "timestamp",
        "day": "date",
        "local": "timestamp_ntz",
        "spans": "array<struct<ends: date>>",
    }
    ddl = ", ".join(f"{prefix}_{name} {kind}" for name, kind in kinds.items())
    rows = [
        {
            "offset": number,
            "deleted": False,
            f"{prefix}_at": BASE + number,
            f"{prefix}_until": FAR + number,
            f"{prefix}_day": day,
            f"{prefix}_local": f"{day}T01:02:03.456789",
            f"{prefix}_spans": [{"ends": day}, None],
        }
        for number, day in enumerate(DAYS)
    ]
    if is_table:
        ddl += ", deleted boolean"
    return Feed(
        f"{prefix}_at bigint, offset bigint, {ddl}",
        [rows],
        watermark_ms=None if is_table else 1000,
        is_table=is_table,
        time=f"{prefix}_at",
    )


def test_times_and_dates_that_python_cannot_hold_pass_through_state(streams: Streams) -> None:
    """In rows of the user's, and as keys, of the steps that are state processors."""
    by = ("until", "day", "local")
    ran = streams.run(
        {"a": feed_of("a"), "b": feed_of("b", is_table=True), "c": feed_of("c", is_table=True)},
        step("near", Count(tuple(f"a_{each}" for each in by), window=SlidingWindow(1)), "a"),
        step("seen", Lookup("b", {f"a_{each}": f"b_{each}" for each in by}), "a"),
        step("both", Lookup("c", {f"b_{each}": f"c_{each}" for each in by}), "b"),
    )
    untils = [f"+10000-01-01T00:00:0{number}.000Z" for number in range(len(DAYS))]
    locals_ = [f"{day}T01:02:03.456" for day in DAYS]
    keys = list(zip(untils, DAYS, locals_, strict=True))
    for name, prefix in (("near", "a"), ("seen", "a"), ("both", "b")):
        rows = sorted(ran.rows(name), key=lambda row: str(row[f"{prefix}_until"]))
        assert [tuple(row[f"{prefix}_{each}"] for each in by) for row in rows] == keys, name
        for spans in ("a_spans", "b_spans", "c_spans"):
            kept = [row[spans] for row in rows if spans in row]
            assert kept in ([], [[{"ends": day}, None] for day in DAYS]), (name, spans)
    assert {"a_spans", "b_spans"} < ran.rows("seen")[0].keys()
    assert {"b_spans", "c_spans"} < ran.rows("both")[0].keys()
