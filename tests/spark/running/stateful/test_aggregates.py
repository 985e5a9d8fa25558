"""Count, aggregate and reduce on Spark, with windows of all kinds, late rows and grace.

A query for each output mode has all steps that are tried in it: a batch costs more than a step.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from leafcuttr_spark.pipelines.operations import (
    Aggregate,
    Count,
    Deduplicate,
    HoppingWindow,
    Reduce,
    SessionWindow,
    SlidingWindow,
    TumblingWindow,
)
from support.spark_streams import DEAD, Feed, Ran, Streams, step

BASE = 1_700_000_000_000
"""Windows of 10 s begin here."""
DDL = "id string, amount bigint, at bigint, offset bigint"
SUM = {"total": "sum(amount)"}


def rows(*given: tuple[str, int | None, int]) -> list[dict[str, Any]]:
    return [
        {"id": id_, "at": None if at is None else BASE + at, "amount": amount, "offset": amount}
        for id_, at, amount in given
    ]


FEED = Feed(
    DDL,
    [
        rows(("a", 1000, 1), ("a", 9000, 2), ("b", 4000, 4)),
        rows(("a", 11_000, 8)),
        rows(("a", 3000, 16), ("a", 30_000, 32)),
        rows(("a", 8000, 64), ("c", 31_000, 128)),
        rows(("a", 9500, 256), ("a", 29_000, 512), ("b", None, 1024)),
        rows(("z", 200_000, 2048)),
    ],
    watermark_ms=5000,
)
"""The watermark of a batch is 5 s behind the latest row of those before: none, 4, 6, 25, 26 and 26 s. A row is late by
that of the batch before: of the window [0, 10), the row of 8 s is in time, that of 9.5 s is not."""


def edge(text: str) -> int:
    at = datetime.fromisoformat(text) - datetime.fromtimestamp(BASE / 1000, UTC)
    return round(at.total_seconds() * 1000)


def windows(found: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    """The windows' edges behind BASE, and these columns."""
    return sorted(
        (row["id"], edge(row["window_start"]), edge(row["window_end"]), *(row[name] for name in names))
        for row in found
    )


@pytest.fixture(scope="module")
def final(streams: Streams) -> Ran:
    """All windows once, in a query with the mode append."""
    return streams.run(
        {"in": FEED},
        step(
            "tumbling",
            Aggregate(("id",), {**SUM, "n": "count(*)"}, TumblingWindow(10_000), emit="final"),
            "in",
        ),
        step("graced", Count(("id",), window=TumblingWindow(10_000), grace_ms=17_000, emit="final"), "in"),
        step("hopping", Aggregate(("id",), SUM, HoppingWindow(10_000, 5000), emit="final"), "in"),
        step("sessions", Aggregate(("id",), SUM, SessionWindow(4000), emit="final"), "in"),
        step("sliding", Aggregate(("id",), SUM, SlidingWindow(2000), emit="final"), "in"),
        step("largest", Reduce(("id",), "max_by(amount % 16)", TumblingWindow(10_000), emit="final"), "in"),
        step("all", Count((), window=TumblingWindow(10_000), emit="final"), "in"),
        step("once", Deduplicate(("id",), within_ms=1000), "in"),
        step("parts", Aggregate(("id",), SUM, TumblingWindow(10_000), grace_ms=1000, emit="final"), "in"),
        step(
            "twice", Aggregate(("id",), {"sums": "sum(total)"}, TumblingWindow(20_000), emit="final"), "parts"
        ),
        late="dead-letters",
    )


def test_a_tumbling_window_is_given_once_when_it_is_closed(final: Ran) -> None:
    assert windows(final.rows("tumbling"), "total", "n") == [
        ("a", 0, 10_000, 1 + 2 + 16 + 64, 4),
        ("a", 10_000, 20_000, 8, 1),
        ("a", 20_000, 30_000, 512, 1),
        ("a", 30_000, 40_000, 32, 1),
        ("b", 0, 10_000, 4, 1),
        ("c", 30_000, 40_000, 128, 1),
    ]


def test_late_rows_and_rows_without_a_time_become_dead_letters(final: Ran) -> None:
    assert final.late["tumbling"] == 2
    letters = [each for each in final.rows(DEAD) if each["_lc_error"]["step"] == "steps[0] (tumbling)"]
    late, without = sorted(letters, key=lambda each: "no event time" in each["_lc_error"]["reason"])
    assert late["_lc_error"]["reason"] == (
        "it came late: its time is 2023-11-14T22:13:29.500Z, the watermark is at 2023-11-14T22:13:45.000Z"
    )
    assert '"amount":256' in late["value"]
    assert without["_lc_error"]["reason"] == "it has no event time"


def test_grace_keeps_a_window_open(final: Ran) -> None:
    """The window [0, 10) is open until the watermark comes to 27 s, and takes the row of 9.5 s."""
    assert windows(final.rows("graced"), "count")[:2] == [("a", 0, 10_000, 5), ("a", 10_000, 20_000, 1)]
    assert final.late["graced"] == 1


def test_hopping_windows_have_each_row_in_several(final: Ran) -> None:
    found = windows(final.rows("hopping"), "total")
    assert found[:4] == [
        ("a", -5000, 5000, 1 + 16),
        ("a", 0, 10_000, 1 + 2 + 16 + 64),
        ("a", 5000, 15_000, 2 + 8 + 64),
        ("a", 10_000, 20_000, 8),
    ]


def test_a_session_ends_with_its_gap(final: Ran) -> None:
    found = windows(final.rows("sessions"), "total")
    # 1 and 3 s; 8 s, 9 s and 11 s: the row of 8 s, in time by its batch, joins what is still open.
    assert ("a", 29_000, 34_000, 512 + 32) in found
    assert sum(total for *_, total in found if total < 256) == 1 + 2 + 4 + 8 + 16 + 64 + 128
    assert ("b", 4000, 8000, 4) in found


def test_sliding_windows_are_set_by_the_rows(final: Ran) -> None:
    found = {(id_, end): total for id_, _, end, total in windows(final.rows("sliding"), "total")}
    assert found["a", 1000] == 1
    assert found["b", 4000] == 4
    assert found["a", 30_000] == 512 + 32
    assert found["a", 31_001] == 32, "what comes behind the row of 29 s"
    assert ("a", 32_001) not in found, "behind the row of 30 s nothing came"
    assert found["a", 11_000] == 2 + 8


def test_reduce_keeps_whole_rows_and_of_equal_ones_the_first(final: Ran) -> None:
    found = {(row["id"], edge(row["window_start"])): row for row in final.rows("largest")}
    assert found["a", 0]["amount"] == 2
    assert found["a", 0]["at"] == BASE + 9000
    assert list(found["a", 0])[:3] == ["id", "window_start", "window_end"]


def test_windows_over_all_rows(final: Ran) -> None:
    found = {edge(row["window_start"]): row["count"] for row in final.rows("all")}
    assert found == {0: 5, 10_000: 1, 20_000: 1, 30_000: 2}


def test_results_of_windows_are_put_into_windows_again(final: Ran) -> None:
    found = windows(final.rows("twice"), "sums")
    assert found[0] == ("a", 0, 20_000, 1 + 2 + 16 + 64 + 8)
    assert final.late["twice"] == 0


def test_a_key_is_given_once_within_a_time(final: Ran) -> None:
    assert [row["amount"] for row in final.rows("once") if row["id"] == "b"] == [4]
    assert [row["amount"] for row in final.rows("once") if row["id"] == "c"] == [128]


@pytest.fixture(scope="module")
def update(streams: Streams) -> Ran:
    """Running results, in a query with the mode update; windows that are given once beside them."""
    return streams.run(
        {"in": FEED},
        step("count", Count(("id",)), "in"),
        step("all", Aggregate((), {"n": "count(*)"}), "in"),
        step("first", Reduce(("id",), "first"), "in"),
        step("last", Reduce(("id",), "last"), "in"),
        step("tumbling", Aggregate(("id",), SUM, TumblingWindow(10_000)), "in"),
        step("sliding", Aggregate(("id",), SUM, SlidingWindow(2000)), "in"),
        step("sessions", Aggregate(("id",), SUM, SessionWindow(4000)), "in"),
        step("final", Aggregate(("id",), SUM, TumblingWindow(10_000), emit="final"), "in"),
        step("once", Deduplicate(("id",)), "in"),
    )


def test_a_count_is_given_after_each_batch_that_changed_it(update: Ran) -> None:
    assert [row["count"] for row in update.rows("count") if row["id"] == "a"] == [2, 3, 5, 6, 8]
    assert [row["count"] for row in update.rows("count") if row["id"] == "b"] == [1, 2]


def test_the_first_and_the_last_row_by_time(update: Ran) -> None:
    assert [row["amount"] for row in update.rows("first") if row["id"] == "a"] == [1, 1, 1, 1, 1]
    assert [row["amount"] for row in update.rows("last") if row["id"] == "a"] == [2, 8, 32, 32, 32]


def test_a_window_is_given_whenever_it_has_changed(update: Ran) -> None:
    of_a = [row for row in update.rows("tumbling") if row["id"] == "a" and edge(row["window_start"]) == 0]
    assert [row["total"] for row in of_a] == [3, 3 + 16, 3 + 16 + 64]
    assert update.late["tumbling"] == 2


def test_sliding_windows_give_updates(update: Ran) -> None:
    of_a = [row for row in update.rows("sliding") if row["id"] == "a"]
    assert [row["total"] for row in of_a if edge(row["window_end"]) == 9000] == [2, 2 + 64]
    assert [row["total"] for row in of_a if edge(row["window_end"]) == 11_000] == [2 + 8]


def test_sessions_give_updates(update: Ran) -> None:
    of_a = [row for row in update.rows("sessions") if row["id"] == "a"]
    last = {(edge(row["window_start"]), edge(row["window_end"])): row["total"] for row in of_a}
    assert last[29_000, 34_000] == 512 + 32


def test_windows_that_are_given_once_in_a_query_of_updates(update: Ran, final: Ran) -> None:
    assert windows(update.rows("final"), "total") == windows(final.rows("tumbling"), "total")


def test_a_key_is_given_once_for_ever(update: Ran) -> None:
    assert sorted(row["id"] for row in update.rows("once")) == ["a", "b", "c", "z"]
