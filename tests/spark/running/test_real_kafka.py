"""A pipeline between topics of a real Apache Kafka: each record once, dead letters, a batch that is done, the lag; and
operations with state, whose results are those that they have with our broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from leafcuttr_spark.pipelines.model import DeadLetters, Decoding, Step, Table
from leafcuttr_spark.pipelines.operations import Count, Filter, Lookup, TumblingWindow
from spark.running.pipes import committed, fill, key_as, pipeline, records, run, sink, source
from support import jars, librdkafka
from support.broker_process import BrokerProcess
from support.real_kafka import real_kafka
from support.waiting import until

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[str]:
    if reason := jars.missing():
        pytest.skip(reason)
    with real_kafka(tmp_path / "kafka") as address:
        yield str(address)


def test_each_record_is_there_once(spark: Any, kafka: str, tmp_path: Path) -> None:
    for topic, partitions in (("orders", 3), ("large", 2), ("all", 1), ("dead", 1)):
        librdkafka.create(kafka, topic, partitions)
    sources = {"orders": source("orders")}
    steps = [Step("large", Filter("amount >= 10"), from_="orders")]
    sinks = {"large": sink("large", "large", key=key_as("id")), "all": sink("orders", "all")}
    pipe = pipeline(kafka, tmp_path, sources, steps, sinks, letters=DeadLetters("dead"), records_per_batch=8)

    def send(first: int, end: int) -> None:
        for number in range(first, end):
            order = {"id": f"o{number}", "amount": number}
            fill(kafka, "orders", [order], partition=number % 3)

    def amounts(topic: str, least: int) -> list[int]:
        return sorted(each.json["amount"] for each in records(spark, kafka, topic, least))

    send(0, 15)
    fill(kafka, "orders", [b"no JSON"])
    running = run(pipe, spark)
    assert len(running.reports) > 1
    assert running.dead_letters == 1
    commits = tmp_path / "checkpoint" / "commits"
    last = max(int(each.name) for each in commits.glob("[0-9]*"))
    # As if it had been killed behind the commit of the transaction, before that of the checkpoint.
    for name in (str(last), f".{last}.crc"):
        (commits / name).unlink()
    send(15, 25)
    again = run(pipe, spark)
    assert [report.batch for report in again.reports if report.skipped] == [last]
    assert amounts("all", 25) == list(range(25))
    assert amounts("large", 15) == list(range(10, 25))
    (letter,) = records(spark, kafka, "dead", 1)
    assert letter.value == b"no JSON"
    until(lambda: committed(kafka, pipe.name) == 26, "the offsets of the group")


# With state

BASE = 1_700_000_000_000
"""The begin of a window."""


def windowed_count(spark: Any, address: str, folder: Path) -> list[Any]:
    """Orders of each customer in ten seconds, once the window is closed, the state being read again; and what is late,
    with its offset."""
    for topic in ("counted", "counts", "late"):
        librdkafka.create(address, topic)
    orders = {"counted": replace(source("counted"), watermark_ms=1000)}
    step = Step("count", Count(("id",), window=TumblingWindow(10_000), emit="final"), from_="counted")
    sinks = {"counts": sink("count", "counts", key=key_as("id"))}
    pipe = replace(
        pipeline(
            address, folder, orders, [step], sinks, letters=DeadLetters("late"), late="dead-letters",
            records_per_batch=2,
        ),
        state_store="rocksdb",
    )  # fmt: skip

    def send(*placed: tuple[str, int]) -> None:
        for id_, seconds in placed:
            fill(address, "counted", [{"id": id_, "amount": 1}], timestamp=BASE + 1000 * seconds)

    send(("a", 1), ("b", 2), ("a", 9), ("a", 4))
    run(pipe, spark)
    send(("a", 8), ("b", 13), ("b", 25), ("b", 26), ("c", 3), ("a", 27), ("c", 60), ("c", 61))
    run(pipe, spark)
    counts = [
        [text(each.key), second_of(each.json["window_start"]), each.json["count"]]
        for each in records(spark, address, "counts", 5)
    ]
    late = [
        [each.json["id"], each.headers["lc.dead.letter.offset"]]
        for each in records(spark, address, "late", 1)
    ]
    return [*sorted(counts), *late]


def second_of(time: str) -> int:
    """After BASE."""
    return round(datetime.fromisoformat(time).replace(tzinfo=UTC).timestamp()) - BASE // 1000


def stream_table_join(spark: Any, address: str, folder: Path) -> list[Any]:
    """Each order with the name that its customer had at the order's time; the table is read again in between."""
    for topic in ("joined", "customers", "named"):
        librdkafka.create(address, topic)
    customers = replace(
        source("customers", key=Decoding("text"), value=Decoding("json", columns="name STRING")),
        table=Table(("key",)),
    )
    sources = {"joined": replace(source("joined"), watermark_ms=60_000), "customers": customers}
    step = Step("named", Lookup("customers", {"id": "key"}, "left"), from_="joined")
    pipe = replace(
        pipeline(address, folder, sources, [step], {"named": sink("named", "named", key=key_as("id"))}),
        state_store="rocksdb",
    )

    def send(topic: str, *placed: tuple[str, Any, int]) -> None:
        for id_, value, seconds in placed:
            given = None if value is None else {"id": id_, "amount": value, "name": value}
            fill(address, topic, [given], key=id_.encode(), timestamp=BASE + 1000 * seconds)

    send("customers", ("a", "Ann", 1), ("b", "Bob", 1), ("a", None, 5), ("a", "Anna", 9))
    send("joined", ("a", 2, 2), ("a", 6, 6), ("b", 3, 3), ("c", 4, 4))
    run(pipe, spark)
    send("customers", ("c", "Cy", 10), ("b", None, 11))
    send("joined", ("a", 12, 12), ("b", 10, 10), ("b", 13, 13), ("c", 14, 14))
    run(pipe, spark)
    found = records(spark, address, "named", 8)
    return sorted([text(each.key), each.json["amount"], each.json["name"]] for each in found)


def text(key: bytes | None) -> str:
    assert key is not None
    return key.decode()


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        (
            windowed_count,
            [["a", 0, 4], ["a", 20, 1], ["b", 0, 1], ["b", 10, 1], ["b", 20, 2], ["c", "8"]],
        ),
        (
            stream_table_join,
            [
                ["a", 2, "Ann"], ["a", 6, None], ["a", 12, "Anna"], ["b", 3, "Bob"],
                ["b", 10, "Bob"], ["b", 13, None], ["c", 4, None], ["c", 14, "Cy"],
            ],
        ),
    ],
    ids=["a windowed count", "a join of a stream and a table"],
)  # fmt: skip
def test_operations_with_state_have_the_results_that_they_have_with_our_broker(
    spark: Any,
    live: BrokerProcess,
    kafka: str,
    tmp_path: Path,
    results: Callable[[Any, str, Path], list[Any]],
    expected: Sequence[Any],
) -> None:
    ours, others = tmp_path / "state-ours", tmp_path / "state-kafka"
    for folder in (ours, others):
        folder.mkdir()
    found = results(spark, kafka, others)
    assert found == expected
    assert results(spark, live.address, ours) == found
