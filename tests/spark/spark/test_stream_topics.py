"""Streams whose topics come, go and lose records, on a real Spark; and one that waits for more."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from spark.spark.test_datasource import fill, frame, offsets, ran
from support import librdkafka
from support.broker_process import BrokerProcess
from support.waiting import until


@pytest.fixture
def stream(spark: Any, live: BrokerProcess) -> Callable[..., Any]:
    def made(topic: str, **given: str) -> Any:
        return frame(spark.readStream, live.address, topic, startingOffsets="earliest", **given)

    return made


def of_pattern(spark: Any, live: BrokerProcess, pattern: str, **given: str) -> Any:
    options = {
        "kafka.bootstrap.servers": live.address,
        "subscribePattern": pattern,
        "startingOffsets": "earliest",
        **given,
    }
    return spark.readStream.format("leafcuttr").options(**options).load()


def by_topic(rows: dict[int, list[Any]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for some in rows.values():
        for row in some:
            found[row["topic"]] = found.get(row["topic"], 0) + 1
    return found


def test_topics_of_a_pattern_join_and_go(spark: Any, live: BrokerProcess, wide: str, tmp_path: Path) -> None:
    fill(live.address, wide, 0, 30)
    both = of_pattern(spark, live, f"{wide}(-more)?")
    assert by_topic(ran(both, tmp_path / "checkpoint")) == {wide: 30}
    librdkafka.create(live.address, f"{wide}-more", 3)
    librdkafka.create(live.address, f"{wide}-more-of-another", 3)
    fill(live.address, f"{wide}-more", 0, 12)
    fill(live.address, f"{wide}-more-of-another", 0, 12)
    fill(live.address, wide, 30, 33)
    assert by_topic(ran(both, tmp_path / "checkpoint")) == {wide: 3, f"{wide}-more": 12}
    librdkafka.delete(live.address, f"{wide}-more")
    fill(live.address, wide, 33, 36)
    with pytest.raises(Exception, match=f"{wide}-more-0.* not exist any more"):
        ran(both, tmp_path / "checkpoint")
    on = of_pattern(spark, live, f"{wide}(-more)?", failOnDataLoss="false")
    assert by_topic(ran(on, tmp_path / "checkpoint")) == {wide: 3}


def test_records_that_are_gone_before_they_were_read(
    stream: Callable[..., Any], live: BrokerProcess, wide: str, tmp_path: Path
) -> None:
    fill(live.address, wide, 0, 30)
    ran(stream(wide), tmp_path / "checkpoint")
    fill(live.address, wide, 30, 60)
    gone = TopicPartition(wide, 1, 15)
    client = librdkafka.admin(live.address)
    client.delete_records([gone])[gone].result(60)
    with pytest.raises(Exception, match=f"{wide}-1.*10"):
        ran(stream(wide), tmp_path / "checkpoint")
    found = ran(stream(wide, failOnDataLoss="false"), tmp_path / "checkpoint")
    assert offsets(row for rows in found.values() for row in rows) == [
        *((0, offset) for offset in range(10, 20)),
        *((1, offset) for offset in range(15, 20)),
        *((2, offset) for offset in range(10, 20)),
    ]


def test_some_partitions_alone(spark: Any, live: BrokerProcess, wide: str, tmp_path: Path) -> None:
    fill(live.address, wide, 0, 30)
    options = {
        "kafka.bootstrap.servers": live.address,
        "assign": json.dumps({wide: [2, 0]}),
        "startingOffsets": json.dumps({wide: {"0": 8, "2": -2}}),
    }
    some = spark.readStream.format("leafcuttr").options(**options).load()
    (rows,) = ran(some, tmp_path / "checkpoint").values()
    assert offsets(rows) == [(0, 8), (0, 9), *((2, offset) for offset in range(10))]


def test_a_stream_waits_until_there_are_as_many_as_it_is_told(
    stream: Callable[..., Any], live: BrokerProcess, wide: str, tmp_path: Path
) -> None:
    fill(live.address, wide, 0, 3)
    batches: dict[int, int] = {}

    def keep(found: Any, batch: int) -> None:
        batches[batch] = found.count()

    query = (
        stream(wide, minOffsetsPerTrigger="30", maxTriggerDelay="1h")
        .writeStream.foreachBatch(keep)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(processingTime="100 milliseconds")
        .start()
    )
    try:
        until(lambda: batches.get(0) == 3, "the first batch, which does not wait", seconds=300)
        fill(live.address, wide, 3, 32)
        query.processAllAvailable()
        assert batches == {0: 3}
        fill(live.address, wide, 32, 33)
        until(lambda: len(batches) == 2, "the second one", seconds=300)
        assert batches == {0: 3, 1: 30}
    finally:
        query.stop()
