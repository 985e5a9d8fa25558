"""Each operation with state beside real Kafka Streams on the same records.

Kafka Streams gives a result for each record, Spark for each batch: what is compared is what is left in the end of each
key and window, and all rows of joins. Records are out of order by less than the watermark allows.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from leafcuttr_spark.pipelines.operations import (
    Aggregate,
    Count,
    HoppingWindow,
    Join,
    Lookup,
    Reduce,
    SessionWindow,
    SlidingWindow,
    TumblingWindow,
)
from support import jars
from support.spark_streams import Feed, Ran, Streams, step

VERSION = "4.3.1"
PROGRAM = Path(__file__).parents[3] / "clients" / "programs" / "kafka_streams" / "StatefulResults.java"
BASE = 1_700_000_000_000
SUM = {"total": "sum(amount)"}
KEYS = ["a", "b", "c"]
BATCHES = 5
CLOSING = 300_000
"""Of the records that close all windows, whose own results are not compared."""


class Record(NamedTuple):
    arrives: int
    """The order in which they come."""
    key: str
    amount: int
    at: int


class Records:
    """Of one topic, in batches: each about 12 s later than the one before, within a batch out of order by 4 s."""

    def __init__(self, seed: int, count: int, keys: Sequence[str], spread: int = 4000) -> None:
        chance = random.Random(seed)
        self.batches: list[list[Record]] = []
        amounts = iter(chance.sample(range(1, 1000), BATCHES * count))
        for batch in range(BATCHES):
            times = [BASE + batch * 12_000 + chance.randrange(0, 12_000) for _ in range(count)]
            some = [
                Record(at + chance.randrange(0, spread), chance.choice(keys), next(amounts), at)
                for at in times
            ]
            self.batches.append(sorted(some))
        self.batches.append([Record(BASE + CLOSING, "z", 1, BASE + CLOSING)])

    def rows(self, key: str, value: str, time: str) -> list[list[dict[str, Any]]]:
        offsets = iter(range(10_000))
        return [
            [{key: one.key, value: one.amount, time: one.at, "offset": next(offsets)} for one in batch]
            for batch in self.batches
        ]

    def lines(self, topic: str) -> list[list[tuple[int, str]]]:
        """When each comes, and what the program gets."""
        return [
            [(one.arrives, f"{topic}\t{one.key}\t{one.amount}\t{one.at}") for one in batch]
            for batch in self.batches
        ]


ORDERS, PAYMENTS = Records(1, 14, KEYS), Records(2, 6, [*KEYS, "d"])


def changelog(name: str, seed: int) -> list[tuple[str, str | None, int]]:
    """Of a table: the records in the order of their times."""
    chance = random.Random(seed)
    times = sorted(chance.sample(range(BASE, BASE + 60_000), 14))
    return [
        (chance.choice(KEYS), None if chance.random() < 0.3 else f"{name}{number}", at)
        for number, at in enumerate(times)
    ]


CUSTOMERS, PEOPLE, CITIES = (changelog(name, seed) for seed, name in enumerate(["n", "p", "c"], 5))


def table(changes: list[tuple[str, str | None, int]], column: str, time: str) -> list[list[dict[str, Any]]]:
    """All in the first batch."""
    rows = [
        {"id": key, column: value, time: at, "offset": offset, "deleted": value is None}
        for offset, (key, value, at) in enumerate(changes)
    ]
    return [rows, *([] for _ in range(BATCHES))]


Found = dict[str, list[tuple[str, int, str | None]]]
Rows = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def kafka() -> Found:
    """By the name: key, time, value."""
    if why := jars.missing():
        pytest.skip(why)
    lines = [f"customers\t{key}\t{value or NULL}\t{at}" for key, value, at in CUSTOMERS]
    both = [("people", *one) for one in PEOPLE] + [("cities", *one) for one in CITIES]
    lines += [
        f"{name}\t{key}\t{value or NULL}\t{at}"
        for name, key, value, at in sorted(both, key=lambda one: one[3])
    ]
    for orders, payments in zip(ORDERS.lines("orders"), PAYMENTS.lines("payments"), strict=True):
        lines += [line for _, line in sorted(orders + payments)]
    command = jars.java(VERSION, str(PROGRAM), more=jars.streams_driver(VERSION) / "libs")
    done = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found: Found = {}
    for line in done.stdout.splitlines():
        name, key, at, value = line.split("\t")
        found.setdefault(name, []).append((key, int(at), None if value == NULL else value))
    return found


NULL = "\\N"


@pytest.fixture(scope="module")
def spark_s(streams: Streams) -> Rows:
    changes = "id string, {} string, {} bigint, offset bigint, deleted boolean"
    feeds = {
        "orders": Feed(
            "id string, amount bigint, at bigint, offset bigint",
            ORDERS.rows("id", "amount", "at"),
            watermark_ms=5000,
        ),
        "payments": Feed(
            "order string, paid bigint, paid_at bigint, offset bigint",
            PAYMENTS.rows("order", "paid", "paid_at"),
            watermark_ms=5000,
            time="paid_at",
        ),
    }
    for name, changed in (("customers", CUSTOMERS), ("persons", PEOPLE), ("towns", CITIES)):
        time = f"{name}_at"
        feeds[name] = Feed(
            changes.format(name[:-1], time), table(changed, name[:-1], time), is_table=True, time=time
        )
    updates = streams.run(
        feeds,
        step("tumbling", Aggregate(("id",), SUM, TumblingWindow(10_000)), "orders"),
        step("hopping", Aggregate(("id",), SUM, HoppingWindow(10_000, 4000)), "orders"),
        step("sliding", Aggregate(("id",), SUM, SlidingWindow(3000)), "orders"),
        step("sessions", Aggregate(("id",), SUM, SessionWindow(4000)), "orders"),
        step("count", Count(("id",)), "orders"),
        step("largest", Reduce(("id",), "max_by(amount)"), "orders"),
        step("inner", Join("payments", {"id": "order"}, 6000), "orders"),
        step("inner-lookup", Lookup("customers", {"id": "id"}), "orders"),
        step("left-lookup", Lookup("customers", {"id": "id"}, "left"), "orders"),
        step("inner-tables", Lookup("towns", {"id": "id"}), "persons"),
        step("left-tables", Lookup("towns", {"id": "id"}, "left"), "persons"),
    )
    # What Spark gives once, and joins that it cannot do beside updates.
    once = streams.run(
        {name: feeds[name] for name in ("orders", "payments")},
        step("once", Aggregate(("id",), SUM, SlidingWindow(3000), emit="final"), "orders"),
        step("sessions-once", Aggregate(("id",), SUM, SessionWindow(4000), emit="final"), "orders"),
        step("left", Join("payments", {"id": "order"}, 6000, "left"), "orders"),
        step("full", Join("payments", {"id": "order"}, 6000, "full"), "orders"),
    )
    return {**by_name(updates), **by_name(once)}


def by_name(ran: Ran) -> Rows:
    names = {name for batch in ran.batches.values() for name in batch}
    return {name: ran.rows(name) for name in names}


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def windows_of_kafka(
    found: list[tuple[str, int, str | None]], gap: int = 0
) -> dict[tuple[str, int, int], int]:
    """What is left of each window; the end of a session is its last record there."""
    left: dict[tuple[str, int, int], int] = {}
    for text, _, value in found:
        key, start, end = text.split("|")
        place = key, int(start), int(end) + gap
        if value is None:
            del left[place]
        elif key != "z":
            left[place] = int(value)
    return left


def windows_of_spark(rows: list[Mapping[str, Any]]) -> dict[tuple[str, int, int], int]:
    return {
        (row["id"], ms(row["window_start"]), ms(row["window_end"])): row["total"]
        for row in rows
        if row["id"] != "z"
    }


@pytest.mark.parametrize("name", ["tumbling", "hopping", "sliding"])
def test_windows(kafka: Found, spark_s: Rows, name: str) -> None:
    expected = windows_of_kafka(kafka[name])
    assert len(expected) > 10
    assert windows_of_spark(spark_s[name]) == expected


def test_windows_that_are_given_once(kafka: Found, spark_s: Rows) -> None:
    assert windows_of_spark(spark_s["once"]) == windows_of_kafka(kafka["sliding"])
    assert windows_of_spark(spark_s["sessions-once"]) == windows_of_kafka(kafka["sessions"], 4000)
    given = [(row["id"], row["window_start"], row["window_end"]) for row in spark_s["once"]]
    assert len(given) == len(set(given))


def test_sessions(kafka: Found, spark_s: Rows) -> None:
    """A session that has become part of a longer one is deleted, as there."""
    left: dict[tuple[str, int, int], int] = {}
    for row in spark_s["sessions"]:
        place = row["id"], ms(row["window_start"]), ms(row["window_end"])
        if row.get("_lc_deleted"):
            del left[place]
        elif row["id"] != "z":
            left[place] = row["total"]
    assert left == windows_of_kafka(kafka["sessions"], 4000)


@pytest.mark.parametrize(("name", "column"), [("count", "count"), ("largest", "amount")])
def test_running_results(kafka: Found, spark_s: Rows, name: str, column: str) -> None:
    expected = {key: int(value) for key, _, value in kafka[name] if value is not None}
    assert {row["id"]: row[column] for row in spark_s[name]} == expected


def numbers(text: str | None) -> tuple[Any, ...]:
    assert text is not None
    return tuple(None if part == "null" else int(part) for part in text.split(","))


@pytest.mark.parametrize("name", ["inner", "left", "full"])
def test_joins_of_streams(kafka: Found, spark_s: Rows, name: str) -> None:
    expected = sorted(((key, at, *numbers(value)) for key, at, value in kafka[name] if key != "z"), key=str)
    found = sorted(
        (
            (row["id"], ms(row["_lc_time"]), row["amount"], row["paid"])
            for row in spark_s[name]
            if row["id"] != "z"
        ),
        key=str,
    )
    assert found == expected
    assert len(found) > 10


@pytest.mark.parametrize("name", ["inner-lookup", "left-lookup"])
def test_lookups_in_a_table(kafka: Found, spark_s: Rows, name: str) -> None:
    expected = sorted(f"{key} {value}" for key, _, value in kafka[name])
    found = sorted(f"{row['id']} {row['amount']},{row['customer'] or 'null'}" for row in spark_s[name])
    assert found == expected


@pytest.mark.parametrize("name", ["inner-tables", "left-tables"])
def test_joins_of_tables(kafka: Found, spark_s: Rows, name: str) -> None:
    """Each change, in its order."""
    for wanted in KEYS:
        expected = [value for key, _, value in kafka[name] if key == wanted]
        found = [
            None if row["_lc_deleted"] else f"{row['person']},{row['town'] or 'null'}"
            for row in spark_s[name]
            if row["id"] == wanted
        ]
        assert found == expected
