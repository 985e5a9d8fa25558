"""`format("leafcuttr")` on a real Spark: batches beside its own Kafka connector, streams through restarts, and what
changes meanwhile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewPartitions

from leafcuttr_sdk.blocking_peers import open_peer
from support import jars, librdkafka
from support.broker_process import BrokerProcess
from support.spark_patience import patiently
from support.waiting import until

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def fill(address: str, topic: str, first: int, end: int, *, partitions: int = 3, codec: str = "none") -> None:
    """A record for each number, in partition number % partitions."""
    producer = Producer({"bootstrap.servers": address, "compression.type": codec, "linger.ms": 20})
    for number in range(first, end):
        producer.produce(
            topic,
            None if number % 7 == 0 else b"%d" % number,
            None if number % 5 == 0 else b"key-%d" % number,
            partition=number % partitions,
            headers=[("n", b"%d" % number), ("none", None)] if number % 3 == 0 else None,
            timestamp=1_700_000_000_000 + number,
        )
    assert producer.flush(60) == 0


def frame(reader: Any, address: str, topic: str, **options: Any) -> Any:
    given = {"kafka.bootstrap.servers": address, "subscribe": topic, **options}
    return reader.format("leafcuttr").options(**given).load()


def ran(query_of: Any, folder: Path, sink: Any = None) -> Any:
    """A stream of what is there, to its end; its rows by batch."""
    rows: dict[int, list[Any]] = {}

    def keep(found: Any, batch: int) -> None:
        rows[batch] = found.collect()

    def run() -> None:
        query = (
            query_of.writeStream.foreachBatch(sink or keep)
            .option("checkpointLocation", str(folder))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    patiently(run)
    return rows


def offsets(rows: Any) -> list[tuple[int, int]]:
    return sorted((row["partition"], row["offset"]) for row in rows)


# Batches


@pytest.mark.on_spark
@pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing()))
def test_rows_are_those_of_spark_s_own_connector(spark: Any, live: BrokerProcess, wide: str) -> None:
    if "spark-sql-kafka" not in spark.conf.get("spark.jars", ""):
        pytest.skip(f"the Kafka connector of Spark {spark.version} is not on Maven")
    for place, codec in enumerate(CODECS):
        fill(live.address, wide, 200 * place, 200 * place + 200, codec=codec)
    producer = Producer({"bootstrap.servers": live.address, "transactional.id": wide})
    producer.init_transactions(30)
    for ends in (producer.abort_transaction, producer.commit_transaction):
        producer.begin_transaction()
        for number in range(30):
            producer.produce(wide, b"in a transaction", partition=number % 3)
        producer.flush(30)
        ends(30)
    columns = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers"]
    given = {"includeHeaders": "true", "kafka.isolation.level": "read_committed"}
    ours = frame(spark.read, live.address, wide, **given)
    theirs = (
        spark.read.format("kafka")
        .options(**{"kafka.bootstrap.servers": live.address, "subscribe": wide, **given})
        .load()
    )
    assert ours.columns == theirs.columns == columns
    assert [one.dataType for one in ours.schema] == [one.dataType for one in theirs.schema]
    order = ["partition", "offset"]
    found, expected = ours.orderBy(*order).collect(), theirs.orderBy(*order).collect()
    assert len(expected) == 1030
    assert found == expected


def test_only_some_columns_and_many_tasks(spark: Any, live: BrokerProcess, wide: str) -> None:
    from pyspark.sql import functions as f

    fill(live.address, wide, 0, 3000)
    found = frame(spark.read, live.address, wide, columns="offset,partition", minPartitions="8")
    assert found.columns == ["offset", "partition"]
    assert found.select(f.spark_partition_id()).distinct().count() in range(7, 10)
    assert offsets(found.collect()) == [(p, o) for p in range(3) for o in range(1000)]
    some = frame(spark.read, live.address, wide, maxRecordsPerPartition="400")
    assert some.rdd.getNumPartitions() == 9


def test_offsets_and_times(spark: Any, live: BrokerProcess, wide: str) -> None:
    fill(live.address, wide, 0, 300)
    given = {
        "startingOffsets": json.dumps({wide: {"0": 10, "1": -2, "2": 99}}),
        "endingOffsets": json.dumps({wide: {"0": 20, "1": 3, "2": -1}}),
    }
    found = frame(spark.read, live.address, wide, **given).collect()
    assert offsets(found) == [(0, o) for o in range(10, 20)] + [(1, 0), (1, 1), (1, 2), (2, 99)]
    by_time = frame(
        spark.read, live.address, wide, startingTimestamp="1700000000100", endingTimestamp="1700000000110"
    )
    assert len(by_time.collect()) == 10


def test_an_empty_topic_has_no_rows(spark: Any, live: BrokerProcess, wide: str) -> None:
    assert frame(spark.read, live.address, wide).collect() == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"startingOffset": "earliest"}, "there is no option startingoffset: did you mean startingOffsets?"),
        ({"startingOffsets": "newest"}, "the option startingOffsets has the value 'newest'"),
        ({"subscribe": "not-there"}, "does not have not-there"),
    ],
)
def test_wrong_options_are_said(
    spark: Any, live: BrokerProcess, wide: str, options: dict[str, str], said: str
) -> None:
    with pytest.raises(Exception, match=said.replace("?", r"\?")):
        spark.read.format("leafcuttr").options(
            **{"kafka.bootstrap.servers": live.address, "subscribe": wide, **options}
        ).load().collect()


# Streams


@pytest.mark.on_spark
def test_a_stream_reads_each_record_once_through_restarts(
    spark: Any, live: BrokerProcess, wide: str, tmp_path: Path
) -> None:
    fill(live.address, wide, 0, 900)
    stream = frame(
        spark.readStream, live.address, wide, startingOffsets="earliest", maxOffsetsPerTrigger="300"
    )
    first = ran(stream, tmp_path / "checkpoint")
    assert [len(rows) for rows in first.values()] == [300, 300, 300]
    assert offsets(row for rows in first.values() for row in rows) == [
        (p, o) for p in range(3) for o in range(300)
    ]
    fill(live.address, wide, 900, 1000)
    second = ran(stream, tmp_path / "checkpoint")
    assert [len(rows) for rows in second.values()] == [100]
    assert ran(stream, tmp_path / "checkpoint") == {}
    kept = json.loads((tmp_path / "checkpoint" / "offsets" / "3").read_text().splitlines()[-1])
    assert kept["offsets"] == {wide: {"0": 334, "1": 333, "2": 333}}


def test_new_partitions_join_from_their_beginning(
    spark: Any, live: BrokerProcess, wide: str, tmp_path: Path
) -> None:
    fill(live.address, wide, 0, 30)
    stream = frame(spark.readStream, live.address, wide, startingOffsets="earliest")
    ran(stream, tmp_path / "checkpoint")
    client = librdkafka.admin(live.address)
    client.create_partitions([NewPartitions(wide, 4)])[wide].result(30)
    fill(live.address, wide, 0, 40, partitions=4)
    found = ran(stream, tmp_path / "checkpoint")
    assert sorted(row["offset"] for row in found[1] if row["partition"] == 3) == list(range(10))
    assert len(found[1]) == 40


def test_a_topic_that_was_created_anew(spark: Any, live: BrokerProcess, wide: str, tmp_path: Path) -> None:
    fill(live.address, wide, 0, 30)

    def stream(**given: str) -> Any:
        return frame(spark.readStream, live.address, wide, startingOffsets="earliest", **given)

    ran(stream(), tmp_path / "checkpoint")
    librdkafka.delete(live.address, wide)
    librdkafka.create(live.address, wide, 3)
    fill(live.address, wide, 0, 60)
    with pytest.raises(Exception, match=f"the topic {wide} was deleted and created anew"):
        ran(stream(), tmp_path / "checkpoint")
    found = ran(stream(failOnDataLoss="false"), tmp_path / "checkpoint")
    assert offsets(row for rows in found.values() for row in rows) == [
        (p, o) for p in range(3) for o in range(20)
    ]


def test_a_stream_begins_at_the_latest(spark: Any, live: BrokerProcess, wide: str, tmp_path: Path) -> None:
    fill(live.address, wide, 0, 30)
    stream = frame(spark.readStream, live.address, wide)
    assert all(rows == [] for rows in ran(stream, tmp_path / "checkpoint").values())
    fill(live.address, wide, 30, 36)
    (rows,) = ran(stream, tmp_path / "checkpoint").values()
    assert offsets(rows) == [(p, o) for p in range(3) for o in (10, 11)]


def test_a_group_shows_what_was_read(spark: Any, live: BrokerProcess, wide: str, tmp_path: Path) -> None:
    from leafcuttr_spark.options import OptionError
    from leafcuttr_spark.spark.listener import GroupOffsets

    fill(live.address, wide, 0, 90)
    listener = GroupOffsets({"kafka.bootstrap.servers": live.address, "kafka.group.id": wide}, wide)
    spark.streams.addListener(listener)
    try:
        stream = frame(spark.readStream, live.address, wide, startingOffsets="earliest")
        query = (
            stream.writeStream.format("noop")
            .queryName(wide)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        with open_peer({"bootstrap.servers": live.address}) as peer:
            until(lambda: len(peer.committed(wide)) == 3, "the offsets of the group")
            assert {one.partition: found.offset for one, found in peer.committed(wide).items()} == {
                0: 30,
                1: 30,
                2: 30,
            }
    finally:
        spark.streams.removeListener(listener)
    with pytest.raises(OptionError, match=r"kafka\.group\.id is missing"):
        GroupOffsets({"kafka.bootstrap.servers": live.address}, "x")


def test_filters_are_left_to_spark() -> None:
    """What a reader takes of them gives wrong results in Spark 4.2.1 and 4.3.0."""
    pytest.importorskip("pyspark")
    from leafcuttr_spark.spark.datasource import BatchReader, StreamReader

    for reader in (BatchReader, StreamReader):
        ours = [class_ for class_ in reader.__mro__ if class_.__module__.startswith("leafcuttr_spark")]
        assert len(ours) > 1
        assert not [class_ for class_ in ours if "pushFilters" in vars(class_)]
