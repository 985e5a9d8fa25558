"""The sample `order-topology.yaml` beside real Kafka Streams on the same records: each topic that they write, record by
record, with key and value. Those of a key are in the order in which they came."""

from __future__ import annotations

import base64
import random
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leafcuttr_spark.pipelines.checking.whole import load_pipeline
from leafcuttr_spark.pipelines.model import Trigger
from spark.running.pipes import Found, records, run
from support import jars, librdkafka
from support.broker_process import running_broker

VERSION = "4.3.1"
PROGRAM = Path(__file__).parents[3] / "clients" / "programs" / "kafka_streams" / "StatelessResults.java"
SAMPLE = Path(__file__).parents[2] / "samples" / "order-topology.yaml"
ENRICHED, HIGH, LOW = "enriched-orders", "high-priority-orders", "low-priority-orders"
NORMAL, ITEMS = "normal-orders", "order-items"
SINKS = (ENRICHED, HIGH, LOW, NORMAL, ITEMS)
PARTITIONS = 3
NULL = "-"

Record = tuple[str | None, str | None]
VALUES = (
    *(None, "", " ", "tea", "tea,milk", ",", ",tea,,milk,", "tea, milk", "a\nb,c\nd", "straße,ǆ,ﬁ,naïve,😀"),
    *('{"id":1,"priority":"high"}', '{"priority":"low","id":2}', '{"id":3,"priority":"normal"}'),
    # The first branch whose condition is true; what is nearly a priority; what LIKE and expressions could take apart.
    *(
        '{"priority":"low"},{"priority":"high"}',
        '{"priority": "high"}',
        '{"PRIORITY":"HIGH"}',
        '\n"priority":"low"\n',
    ),
    *("%,_,\\,\\%", "a.b|c", '"priority":"hi_h"', "null", "[]"),
)
KEYS = ("a", "b", "c", "", "schlüssel", None)


def orders() -> list[Record]:
    """Each value with each key, and some again."""
    every = [(key, value) for key in KEYS for value in VALUES]
    chance = random.Random(1)
    chosen = [*every, *chance.choices(every, k=60)]
    chance.shuffle(chosen)
    return chosen


ORDERS = orders()
Results = Mapping[str, list[Record]]


def encoded(text: str | None) -> str:
    return NULL if text is None else base64.b64encode(text.encode()).decode()


def decoded(text: str) -> str | None:
    return None if text == NULL else base64.b64decode(text).decode()


@pytest.fixture(scope="module")
def kafka() -> Results:
    """What Kafka Streams writes, by topic."""
    if why := jars.missing():
        pytest.skip(why)
    lines = "".join(f"{encoded(key)}\t{encoded(value)}\n" for key, value in ORDERS)
    command = jars.java(VERSION, str(PROGRAM), more=jars.streams_driver(VERSION) / "libs")
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, list[Record]] = {}
    for line in done.stdout.splitlines():
        topic, key, value = line.split("\t")
        found.setdefault(topic, []).append((decoded(key), decoded(value)))
    return found


@pytest.fixture(scope="module")
def spark_s(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """What the sample writes, by topic, of a broker of its own: it names its topics itself."""
    with running_broker(tmp_path_factory.mktemp("broker"), {"log.retention.ms": "-1"}) as broker:
        for topic in ("orders", *SINKS):
            librdkafka.create(broker.address, topic, PARTITIONS)
        send(broker.address, ORDERS)
        sample = replace(
            load_pipeline(SAMPLE).pipeline,
            clusters={"main": {"bootstrap.servers": broker.address}},
            checkpoint=str(tmp_path_factory.mktemp("checkpoint")),
            trigger=Trigger(available_now=True),
        )
        run(sample, spark)
        return {topic: list(map(record, records(spark, broker.address, topic, 1))) for topic in SINKS}


def send(address: str, some: Iterable[Record]) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": address, "partitioner": "murmur2_random"})
    for key, value in some:
        producer.produce("orders", value, key)
    assert producer.flush(30) == 0


def record(found: Found) -> Record:
    key, value = (None if each is None else each.decode() for each in (found.key, found.value))
    return key, value


def by_key(some: Iterable[Record]) -> dict[str | None, list[str | None]]:
    """In their order; those without a key, which may be in any partition, sorted."""
    found: dict[str | None, list[str | None]] = {}
    for key, value in some:
        found.setdefault(key, []).append(value)
    found.get(None, []).sort(key=str)
    return found


@pytest.mark.parametrize("topic", SINKS)
def test_each_topic(kafka: Results, spark_s: Results, topic: str) -> None:
    assert by_key(spark_s[topic]) == by_key(kafka[topic])


def test_the_records_have_what_tells_them_apart(kafka: Results) -> None:
    """Every key is in every topic, items are empty too, and no branch has all."""
    assert all(set(by_key(kafka[topic])) == set(KEYS) for topic in SINKS)
    assert ("a", "") in kafka[ITEMS]
    assert sum(len(kafka[topic]) for topic in (HIGH, LOW, NORMAL)) == len(kafka[ENRICHED]) < len(ORDERS)
