"""A pipeline between topics of a real Apache Kafka: each record once, dead letters, a batch that is done, the lag."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leafcuttr_spark.pipelines.model import DeadLetters, Step
from leafcuttr_spark.pipelines.operations import Filter
from spark.running.pipes import committed, fill, key_as, pipeline, records, run, sink, source
from support import jars, librdkafka
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
