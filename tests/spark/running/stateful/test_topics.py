"""Steps with state between topics: late records as dead letters, tables of topics, sources without records."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leafcuttr_spark.pipelines.model import (
    DeadLetters,
    Decoding,
    Pipeline,
    Source,
    Step,
    Table,
    TopicOrigin,
    Trigger,
)
from leafcuttr_spark.pipelines.operations import Count, Join, Lookup, TumblingWindow
from spark.running.pipes import fill, key_as, pipeline, records, sink
from support import librdkafka
from support.broker_process import BrokerProcess
from support.waiting import until

pytestmark = pytest.mark.timeout(1200)
BASE = 1_700_000_000_000


def json_source(topic: str, columns: str, *, key: str = "none", **more: Any) -> Source:
    origin = TopicOrigin((topic,), value=Decoding("json", columns=columns), key=Decoding(key))
    return Source(origin, **more)


def with_state(pipe: Pipeline, **more: Any) -> Pipeline:
    return replace(pipe, state_store="rocksdb", **more)


def run(pipe: Pipeline, spark: Any) -> None:
    """To the end of what is there. Each batch starts workers of Python for several stages."""
    from leafcuttr_spark.running.run import start

    running = start(pipe, spark)
    try:
        assert running.wait(900)
    finally:
        running.stop()


def test_a_late_record_becomes_a_dead_letter(
    spark: Any, live: BrokerProcess, wide: str, tmp_path: Path
) -> None:
    topic, out, dead = f"{wide}-one", f"{wide}-out", f"{wide}-dead"
    for name in (topic, out, dead):
        librdkafka.create(live.address, name, 1)
    for at in (1000, 60_000, 61_000, 2000, 90_000):
        fill(live.address, topic, [{"id": "a", "n": at}], timestamp=BASE + at)
    pipe = pipeline(
        live.address,
        tmp_path,
        {"in": json_source(topic, "id STRING, n BIGINT", watermark_ms=1000)},
        [Step("count", Count(("id",), window=TumblingWindow(10_000), emit="final"))],
        {"out": sink("count", out, key=key_as("id"))},
        letters=DeadLetters(dead),
        late="dead-letters",
        records_per_batch=1,
    )
    run(with_state(pipe), spark)
    found = [each.json["count"] for each in records(spark, live.address, out, 2)]
    assert found == [1, 2]
    (letter,) = records(spark, live.address, dead, 1)
    assert letter.json == {"id": "a", "n": 2000}
    assert letter.headers["lc.dead.letter.step"] == "steps[0] (count)"
    assert letter.headers["lc.dead.letter.reason"].startswith(
        "it came late: its time is 2023-11-14T22:13:22.000Z"
    )
    assert letter.headers["lc.dead.letter.offset"] == "3"


def test_a_record_with_a_time_that_is_none_fails_nothing(
    spark: Any, live: BrokerProcess, wide: str, tmp_path: Path
) -> None:
    """Brokers take any time where topics allow it. It neither fails the batch nor makes late what comes after it."""
    topic, out, dead = f"{wide}-one", f"{wide}-out", f"{wide}-dead"
    librdkafka.create(live.address, topic, 1, message_timestamp_after_max_ms=str(2**63 - 1))
    for name in (out, dead):
        librdkafka.create(live.address, name, 1)
    fill(live.address, topic, [{"id": "a", "n": 0}], timestamp=2**63 - 1)
    for at in (1000, 60_000):
        fill(live.address, topic, [{"id": "a", "n": at}], timestamp=BASE + at)
    pipe = pipeline(
        live.address,
        tmp_path,
        {"in": json_source(topic, "id STRING, n BIGINT", watermark_ms=1000)},
        [Step("count", Count(("id",), window=TumblingWindow(10_000), grace_ms=1000, emit="final"))],
        {"out": sink("count", out, key=key_as("id"))},
        letters=DeadLetters(dead),
        late="dead-letters",
        records_per_batch=1,
    )
    run(with_state(pipe), spark)
    assert [each.json["count"] for each in records(spark, live.address, out, 1)] == [1]
    (letter,) = records(spark, live.address, dead, 1)
    assert letter.json == {"id": "a", "n": 0}
    assert letter.headers["lc.dead.letter.reason"] == "it has no event time"
    assert letter.headers["lc.dead.letter.offset"] == "0"


def test_tables_of_topics(spark: Any, live: BrokerProcess, wide: str, tmp_path: Path) -> None:
    names = [f"{wide}-{name}" for name in ("orders", "customers", "regions", "out")]
    orders, customers, regions, out = names
    for name in names:
        librdkafka.create(live.address, name, 1)
    for at, name in ((1000, "Ann"), (5000, None), (9000, "Anna")):
        fill(live.address, customers, [name and {"name": name}], key=b"a", timestamp=BASE + at)
    fill(live.address, regions, [{"region": "old"}, None], key=b"x")
    fill(live.address, regions, [{"region": "old"}, {"region": "north"}], key=b"a")
    for at in (2000, 10_000, 6000):
        fill(
            live.address, orders, [{"id": "a", "amount": at}, {"id": "x", "amount": at}], timestamp=BASE + at
        )
    pipe = pipeline(
        live.address,
        tmp_path,
        {
            "orders": json_source(orders, "id STRING, amount BIGINT", watermark_ms=10_000),
            "customers": json_source(customers, "name STRING", key="text", table=Table(("key",))),
            "regions": json_source(
                regions, "region STRING", key="text", table=Table(("key",), is_global=True)
            ),
        },
        [
            Step("named", Lookup("customers", {"id": "key"}, "left"), "orders"),
            Step("placed", Lookup("regions", {"id": "key"}, "left"), "named"),
        ],
        {"out": sink("placed", out)},
    )
    run(with_state(pipe), spark)
    found = {
        (each.json["id"], each.json["amount"]): each.json for each in records(spark, live.address, out, 6)
    }
    assert {key: row["name"] for key, row in found.items()} == {
        ("a", 2000): "Ann",
        ("a", 6000): None,
        ("a", 10_000): "Anna",
        ("x", 2000): None,
        ("x", 6000): None,
        ("x", 10_000): None,
    }
    assert {row["region"] for (id_, _), row in found.items() if id_ == "a"} == {"north"}
    assert {row["region"] for (id_, _), row in found.items() if id_ == "x"} == {None}


def test_a_source_without_records_does_not_hold_the_watermark(
    spark: Any, live: BrokerProcess, wide: str, tmp_path: Path
) -> None:
    """Nothing is ever paid: that an order has no payment is known once the payments' event time has gone on alone."""
    orders, payments, out = f"{wide}-orders", f"{wide}-payments", f"{wide}-out"
    for name in (orders, payments, out):
        librdkafka.create(live.address, name, 1)
    fill(live.address, orders, [{"id": "a", "amount": 1}], timestamp=int(time.time() * 1000))
    pipe = pipeline(
        live.address,
        tmp_path,
        {
            "orders": json_source(orders, "id STRING, amount BIGINT", watermark_ms=0),
            "payments": json_source(payments, "order STRING, paid BIGINT", watermark_ms=0),
        },
        [Step("paid", Join("payments", {"id": "order"}, 100, "left"), "orders")],
        {"out": sink("paid", out)},
    )
    from leafcuttr_spark.running.run import start

    running = start(with_state(pipe, trigger=Trigger(every_ms=100), idle_ms=500), spark)
    try:
        until(lambda: any(report.written for report in running.reports), "a written record", seconds=600)
        (found,) = records(spark, live.address, out, 1)
    finally:
        running.stop()
    assert (found.json["id"], found.json["paid"]) == ("a", None)
