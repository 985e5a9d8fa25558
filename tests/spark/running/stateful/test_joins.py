"""Joins on Spark: stream with stream, stream with table as of the row's time, table with table, global tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from leafcuttr_spark.pipelines.errors import PipelineError
from leafcuttr_spark.pipelines.model import FileOrigin, Source, Table
from leafcuttr_spark.pipelines.operations import Count, Join, Lookup, TumblingWindow
from support.spark_streams import Feed, Ran, Streams, step

BASE = 1_700_000_000_000
ORDERS = "id string, amount bigint, at bigint, offset bigint"
PAYMENTS = "order string, paid bigint, paid_at bigint, offset bigint"
CUSTOMERS = "id string, name string, named_at bigint, offset bigint, deleted boolean"


def orders(*given: tuple[str, int, int]) -> list[dict[str, Any]]:
    return [{"id": id_, "at": BASE + at, "amount": amount, "offset": amount} for id_, at, amount in given]


def payments(*given: tuple[str, int, int]) -> list[dict[str, Any]]:
    return [{"order": id_, "paid_at": BASE + at, "paid": paid, "offset": paid} for id_, at, paid in given]


def names(*given: tuple[str, int, int, str | None]) -> list[dict[str, Any]]:
    return [
        {"id": id_, "named_at": BASE + at, "offset": offset, "name": name, "deleted": name is None}
        for id_, at, offset, name in given
    ]


@pytest.fixture(scope="module")
def joined(streams: Streams) -> Ran:
    feeds = {
        "orders": Feed(
            ORDERS,
            [
                orders(("a", 0, 1), ("b", 1000, 2)),
                orders(("c", 20_000, 3)),
                orders(("d", 60_000, 4)),
                orders(("z", 200_000, 5)),
            ],
            watermark_ms=1000,
        ),
        "payments": Feed(
            PAYMENTS,
            [
                payments(("a", 5000, 10), ("x", 2000, 11)),
                payments(("a", 10_000, 12), ("b", 11_001, 13), ("c", 15_000, 14)),
                payments(("d", 69_000, 15)),
                payments(("y", 200_000, 16)),
            ],
            watermark_ms=1000,
            time="paid_at",
        ),
    }
    return streams.run(
        feeds,
        step("inner", Join("payments", {"id": "order"}, 10_000), "orders"),
        step("left", Join("payments", {"id": "order"}, 10_000, "left"), "orders"),
        step("full", Join("payments", {"id": "order"}, 10_000, "full"), "orders"),
        step("joined", Join("payments", {"id": "order"}, 10_000, "left"), "orders"),
        step("in windows", Count((), window=TumblingWindow(60_000), emit="final"), "joined"),
    )


def pairs(found: list[dict[str, Any]]) -> set[tuple[Any, Any, Any]]:
    assert all(list(row) == ["id", "amount", "at", "paid", "paid_at", "_lc_time"] for row in found)
    return {(row["id"], row["amount"], row["paid"]) for row in found}


MATCHED = {("a", 1, 10), ("a", 1, 12), ("c", 3, 14), ("d", 4, 15)}


def test_rows_join_whose_times_differ_by_the_window_at_most(joined: Ran) -> None:
    assert pairs(joined.rows("inner")) == MATCHED


def test_a_left_row_without_a_partner_is_given_once_none_can_come(joined: Ran) -> None:
    assert pairs(joined.rows("left")) == MATCHED | {("b", 2, None)}


def test_both_sides_are_kept_by_a_full_join_with_the_key_of_either(joined: Ran) -> None:
    assert pairs(joined.rows("full")) == MATCHED | {("b", 2, None), ("b", None, 13), ("x", None, 11)}


def test_joined_rows_are_in_time_for_a_window_behind(joined: Ran) -> None:
    assert [row["count"] for row in joined.rows("in windows")] == [4, 1]
    assert joined.late["in windows"] == 0


def test_rows_that_wait_are_in_the_state(spark: Any, joined: Ran) -> None:
    from leafcuttr_spark.running.stateful.stores import read_state

    found = read_state(spark, joined.checkpoint, "inner")
    assert {
        (each["side"], each["value"].get("left.id") or each["value"].get("right.order")) for each in found
    } == {
        ("left", "z"),
        ("right", "y"),
    }


LOOKED = {
    "orders": Feed(
        ORDERS,
        [
            orders(("a", 1000, 1), ("a", 5000, 2), ("b", 9000, 3)),
            orders(("a", 6000, 4), ("a", 3000, 5)),
            orders(("a", 9000, 6), ("b", 9500, 7)),
            orders(("z", 100_000, 8)),
            orders(("b", 101_000, 9)),
        ],
        watermark_ms=10_000,
    ),
    "customers": Feed(
        CUSTOMERS,
        [
            names(("a", 2000, 1, "Ann"), ("a", 5000, 3, "Anna"), ("a", 5000, 2, "Anne")),
            names(("a", 8000, 4, None), ("b", 9000, 5, "Bob")),
            names(("a", 7000, 6, "Late Ann")),
            names(("y", 100_000, 7, "Yan")),
            names(),
        ],
        watermark_ms=10_000,
        is_table=True,
        time="named_at",
    ),
    "cities": Feed(
        "id string, city string, moved_at bigint, offset bigint, deleted boolean",
        [
            [{"id": "a", "city": "Rome", "moved_at": BASE + 2000, "offset": 1, "deleted": False}],
            [{"id": "a", "city": None, "moved_at": BASE + 8500, "offset": 2, "deleted": True}],
            [],
            [
                {"id": "b", "city": "Oslo", "moved_at": BASE + 9500, "offset": 3, "deleted": False},
                {"id": "y", "city": None, "moved_at": BASE + 100_000, "offset": 4, "deleted": True},
            ],
            [],
        ],
        watermark_ms=10_000,
        is_table=True,
        time="moved_at",
    ),
}


@pytest.fixture(scope="module")
def looked_up(spark: Any, streams: Streams, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    from leafcuttr_spark.running.stateful.everywhere import GlobalTables

    folder = tmp_path_factory.mktemp("regions")
    (folder / "regions.csv").write_text("code,region\na,north\nb,south\n")
    now = [0.0]
    tables = GlobalTables(clock=lambda: now[0])
    source = Source(FileOrigin(str(folder), "csv"), table=Table(("code",), refresh_ms=60_000))
    regions = tables.add(spark.read.option("header", True).csv(str(folder)), source)

    def between(batch: int) -> None:
        (folder / "more.csv").write_text("code,region\nz,east\n")
        now[0] = 59.0 if batch == 0 else 61.0
        tables.refresh()

    ran = streams.run(
        LOOKED,
        step("inner", Lookup("customers", {"id": "id"}), "orders"),
        step("left", Lookup("customers", {"id": "id"}, "left"), "orders"),
        step("tables", Lookup("cities", {"id": "id"}), "customers"),
        step("left tables", Lookup("cities", {"id": "id"}, "left"), "customers"),
        step("everywhere", Lookup("regions", {"id": "code"}, "left"), "orders"),
        extra={"regions": regions},
        between=between,
    )
    tables.close()
    return ran


SEEN = {1: None, 2: "Anna", 3: None, 4: "Anna", 5: "Ann", 6: None, 7: "Bob", 8: None, 9: "Bob"}
"""Of each order the name: by the table as of the order's time, as far as it had come."""


def test_each_row_sees_the_table_as_of_its_own_time(looked_up: Ran) -> None:
    found = {row["amount"]: row["name"] for row in looked_up.rows("left")}
    assert found == SEEN
    assert list(looked_up.rows("left")[0])[:4] == ["id", "amount", "at", "name"]


def test_rows_without_a_row_of_the_table_are_left_out_of_an_inner_lookup(looked_up: Ran) -> None:
    found = {row["amount"]: row["name"] for row in looked_up.rows("inner")}
    assert found == {amount: name for amount, name in SEEN.items() if name is not None}


def test_what_a_table_had_is_forgotten_once_no_row_can_see_it(spark: Any, looked_up: Ran) -> None:
    from leafcuttr_spark.running.stateful.stores import read_state

    operation = Lookup("customers", {"id": "id"})
    found = read_state(spark, looked_up.checkpoint, "inner", operation=operation)
    assert read_state(spark, looked_up.checkpoint, "inner", {"id": "b"}, operation=operation) == [
        each for each in found if each["key"] == {"id": "b"}
    ]
    kept = {each["key"]["id"]: each["value"]["versions"] for each in found}
    assert {key: [each["since"] - BASE for each in versions] for key, versions in kept.items()} == {
        "b": [9000],
        "y": [100_000],
    }


def test_two_tables_make_a_table(looked_up: Ran) -> None:
    found = [(row["id"], row["name"], row["city"], row["_lc_deleted"]) for row in looked_up.rows("tables")]
    assert [each for each in found if each[0] == "a"] == [
        ("a", "Ann", "Rome", False),
        ("a", "Anne", "Rome", False),
        ("a", "Anna", "Rome", False),
        ("a", None, None, True),
    ]
    assert [each for each in found if each[0] == "b"] == [("b", "Bob", "Oslo", False)]


def test_a_left_join_of_tables_keeps_rows_without_a_partner(looked_up: Ran) -> None:
    found = [
        (row["id"], row["name"], row["city"], row["_lc_deleted"])
        for row in looked_up.rows("left tables")
        if row["id"] == "b"
    ]
    assert found == [("b", "Bob", None, False), ("b", "Bob", "Oslo", False)]


def test_nothing_has_the_row_of_a_table_without_a_key(streams: Streams) -> None:
    none: Any = None
    customers = Feed(
        CUSTOMERS, [names((none, 0, 1, "No one"), ("a", 0, 2, "Ann"))], 1000, is_table=True, time="named_at"
    )
    cities = [
        {"id": id_, "city": "Rome", "moved_at": BASE, "offset": 1, "deleted": False} for id_ in ("a", None)
    ]
    ran = streams.run(
        {
            "orders": Feed(ORDERS, [orders((none, 10, 1), ("a", 10, 2))], 1000),
            "customers": customers,
            "cities": Feed(LOOKED["cities"].ddl, [cities], 1000, is_table=True, time="moved_at"),
        },
        step("inner", Lookup("customers", {"id": "id"}), "orders"),
        step("left", Lookup("customers", {"id": "id"}, "left"), "orders"),
        step("tables", Lookup("cities", {"id": "id"}, "left"), "customers"),
    )
    assert {(row["amount"], row["name"]) for row in ran.rows("left")} == {(1, None), (2, "Ann")}
    assert [row["amount"] for row in ran.rows("inner")] == [2]
    assert {(row["id"], row["city"]) for row in ran.rows("tables")} <= {("a", None), ("a", "Rome")}


def test_a_window_that_is_given_after_its_grace_sees_the_table_as_of_its_own_time(streams: Streams) -> None:
    ends = [25_000, 60_000, 120_000]
    ran = streams.run(
        {
            "orders": Feed(ORDERS, [orders(("a", 1000, 1)), *(orders(("z", at, 2)) for at in ends)], 1000),
            "customers": Feed(
                CUSTOMERS,
                [
                    names(("a", 0, 1, "Ann"), ("a", 15_000, 2, "Anna")),
                    names(("z", 25_000, 3, "Zoe")),
                    names(("a", 30_000, 4, "Annie"), ("z", 60_000, 5, "Zoe")),
                    names(("z", 120_000, 6, "Zoe")),
                ],
                1000,
                is_table=True,
                time="named_at",
            ),
        },
        step(
            "counts", Count(("id",), window=TumblingWindow(10_000), grace_ms=20_000, emit="final"), "orders"
        ),
        step("named", Lookup("customers", {"id": "id"}, "left"), "counts"),
    )
    assert [row["name"] for row in ran.rows("named") if row["id"] == "a"] == ["Ann"]


def test_a_global_table_is_read_anew_after_its_time(looked_up: Ran) -> None:
    found = {row["amount"]: row["region"] for row in looked_up.rows("everywhere")}
    assert found[1] == "north"
    assert found[3] == "south"
    assert found[8] == "east", "it came with the second reading"


def test_a_join_that_spark_cannot_do_beside_updates_is_refused(streams: Streams) -> None:
    feeds = {
        "one": Feed(ORDERS, [], watermark_ms=1000),
        "other": Feed("order string, x_at bigint", [], 1000, time="x_at"),
    }
    steps = [
        step("count", Count(("id",)), "one"),
        step("left", Join("other", {"id": "order"}, 1000, "left"), "one"),
    ]
    with pytest.raises(PipelineError, match="a left join of streams cannot be in one pipeline with results"):
        streams.run(feeds, *steps)


def test_columns_of_one_name_on_both_sides_are_refused(streams: Streams, tmp_path: Path) -> None:
    feeds = {
        "one": Feed(ORDERS, [], watermark_ms=1000),
        "other": Feed(ORDERS, [], watermark_ms=1000),
    }
    with pytest.raises(
        PipelineError, match="both sides have a column amount: rename or drop one of them before"
    ):
        streams.run(feeds, step("joined", Join("other", {"id": "id"}, 1000), "one"))
