"""`TopicSink` and `write_topics` on a real Spark: each record once, whatever ends between two steps."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from leafcuttr_sdk.batches import partition_of
from support import librdkafka
from support.broker_process import BrokerProcess
from support.spark_patience import patiently
from support.waiting import until


def source(spark: Any, live: BrokerProcess, topic: str, **given: str) -> Any:
    options = {
        "kafka.bootstrap.servers": live.address,
        "subscribe": topic,
        "startingOffsets": "earliest",
        **given,
    }
    return spark.readStream.format("leafcuttr").options(**options).load().select("key", "value")


def sink(live: BrokerProcess, topic: str, **given: str) -> Any:
    from leafcuttr_spark.spark.sink import TopicSink

    options = {
        "kafka.bootstrap.servers": live.address,
        "topic": topic,
        "kafka.transactional.id": topic,
        **given,
    }
    return TopicSink(options)


def run(frame: Any, to: Any, folder: Path) -> None:
    def begin() -> None:
        query = (
            frame.writeStream.foreachBatch(to)
            .option("checkpointLocation", str(folder))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    patiently(begin)


def stored(spark: Any, live: BrokerProcess, topic: str, level: str = "read_committed") -> list[int]:
    options = {"kafka.bootstrap.servers": live.address, "subscribe": topic, "kafka.isolation.level": level}
    rows = spark.read.format("leafcuttr").options(**options).load().select("value").collect()
    return sorted(int(row["value"]) for row in rows)


def until_stored(spark: Any, live: BrokerProcess, topic: str, expected: list[int]) -> None:
    """A commit is decided when it returns, and seen a moment later."""
    until(lambda: len(stored(spark, live, topic)) >= len(expected), f"the records of {topic}")
    assert stored(spark, live, topic) == expected


def fill(live: BrokerProcess, topic: str, first: int, end: int) -> None:
    for partition in range(3):
        values = [b"%d" % number for number in range(first + partition, end, 3)]
        librdkafka.send(live.address, topic, values, timestamp=1, partition=partition, key=b"k%d" % partition)


@pytest.fixture
def out(live: BrokerProcess, wide: str) -> str:
    librdkafka.create(live.address, f"{wide}-out", 2)
    return f"{wide}-out"


@pytest.mark.on_spark
def test_topic_to_topic_through_restarts(
    spark: Any, live: BrokerProcess, wide: str, out: str, tmp_path: Path
) -> None:
    fill(live, wide, 0, 300)
    frame = source(spark, live, wide, maxOffsetsPerTrigger="100")
    run(frame, sink(live, out), tmp_path / "checkpoint")
    until_stored(spark, live, out, list(range(300)))
    fill(live, wide, 300, 360)
    run(frame, sink(live, out), tmp_path / "checkpoint")
    until_stored(spark, live, out, list(range(360)))
    given = {"kafka.bootstrap.servers": live.address, "subscribe": out}
    for row in (
        spark.read.format("leafcuttr").options(**given).load().select("key", "partition").distinct().collect()
    ):
        assert row["partition"] == partition_of(bytes(row["key"]), 2), "where Java's producer puts it"


def test_a_batch_that_is_done_is_skipped(
    spark: Any, live: BrokerProcess, wide: str, out: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As after a kill between the commit of the transaction and that of the checkpoint."""
    fill(live, wide, 0, 90)
    frame = source(spark, live, wide)
    run(frame, sink(live, out), tmp_path / "checkpoint")
    forget_last_commit(tmp_path / "checkpoint")
    with caplog.at_level(logging.INFO, "leafcuttr.spark"):
        run(frame, sink(live, out), tmp_path / "checkpoint")
    assert "is written already: skipped" in caplog.text
    until_stored(spark, live, out, list(range(90)))
    fill(live, wide, 90, 120)
    run(frame, sink(live, out), tmp_path / "checkpoint")
    until_stored(spark, live, out, list(range(120)))


def test_a_new_checkpoint_is_another_query(
    spark: Any, live: BrokerProcess, wide: str, out: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fill(live, wide, 0, 30)
    frame = source(spark, live, wide)
    run(frame, sink(live, out), tmp_path / "checkpoint")
    shutil.rmtree(tmp_path / "checkpoint")
    run(frame, sink(live, out), tmp_path / "checkpoint")
    until_stored(spark, live, out, sorted([*range(30), *range(30)]))
    (line,) = [record.message for record in caplog.records if "is fenced now" in record.message]
    assert "skips nothing" in line


def test_a_checkpoint_from_a_backup_is_refused(
    spark: Any, live: BrokerProcess, wide: str, out: str, tmp_path: Path
) -> None:
    frame = source(spark, live, wide)
    fill(live, wide, 0, 30)
    run(frame, sink(live, out), tmp_path / "checkpoint")
    shutil.copytree(tmp_path / "checkpoint", tmp_path / "backup")
    fill(live, wide, 30, 60)
    run(frame, sink(live, out), tmp_path / "checkpoint")
    fill(live, wide, 60, 90)
    with pytest.raises(
        Exception, match="cannot be written: batch 1 was, and the checkpoint does not know of it"
    ):
        run(frame, sink(live, out), tmp_path / "backup")
    until_stored(spark, live, out, list(range(60)))
    run(frame, sink(live, out), tmp_path / "checkpoint")
    until_stored(spark, live, out, list(range(90)))


def test_a_task_that_fails_fails_the_batch_and_leaves_nothing(
    spark: Any, live: BrokerProcess, wide: str, out: str, tmp_path: Path
) -> None:
    """It is tried again once, which is refused; the query starts again, and writes all of it once."""
    from pyspark.sql import functions as f

    fill(live, wide, 0, 90)
    broken = tmp_path / "broken"
    broken.touch()

    @f.udf("binary")
    def fails(value: bytes) -> bytes:
        if bytes(value) == b"50" and broken.exists():
            raise RuntimeError("no")
        return value

    frame = source(spark, live, wide)
    frame = frame.select("key", fails("value").alias("value"))
    with pytest.raises(Exception, match="no"):
        run(frame, sink(live, out), tmp_path / "checkpoint")
    assert stored(spark, live, out) == []
    broken.unlink()
    run(frame, sink(live, out), tmp_path / "checkpoint")
    until_stored(spark, live, out, list(range(90)))


@pytest.mark.on_spark
def test_a_second_attempt_of_a_task_that_writes_is_refused(
    spark: Any, live: BrokerProcess, wide: str, out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from leafcuttr_spark.spark import sink as module

    # Within the test: what is pickled by its name has to be installed where tasks run.
    def fails_after_writing(options: Any, shared: Any, batches: Any) -> Any:
        from leafcuttr_spark.spark.sink import _write_task

        yield from _write_task(options, shared, batches)
        raise RuntimeError("after it was written")

    monkeypatch.setattr(module, "_write_task", fails_after_writing)
    fill(live, wide, 0, 30)
    said = r"RuntimeError: after it was written; Spark tried the task again, which spoils the transaction: the batch"
    with pytest.raises(Exception, match=said):
        run(source(spark, live, wide), sink(live, out), tmp_path / "checkpoint")
    assert stored(spark, live, out) == []
    assert len(stored(spark, live, out, "read_uncommitted")) <= 30


def test_a_stage_that_ran_again_is_refused(spark: Any) -> None:
    from leafcuttr_spark.spark.sink import SecondAttemptError, _check_stages, _jobs

    before = _jobs(spark.sparkContext)
    spark.range(10).repartition(2).collect()
    jobs = _jobs(spark.sparkContext) - before
    assert jobs
    _check_stages(spark.sparkContext, jobs)
    stages = {1: SimpleNamespace(currentAttemptId=0), 2: SimpleNamespace(currentAttemptId=1)}
    tracker = SimpleNamespace(
        getJobInfo=lambda job: SimpleNamespace(stageIds=[1, 2]), getStageInfo=stages.get
    )
    with pytest.raises(SecondAttemptError, match="Spark ran stage 2 of the batch again"):
        _check_stages(SimpleNamespace(statusTracker=lambda: tracker), jobs)


def test_a_batch_of_which_a_stage_ran_again_is_not_committed(
    spark: Any, live: BrokerProcess, wide: str, out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from leafcuttr_spark.spark import sink as module

    fill(live, wide, 0, 30)
    with monkeypatch.context() as patched:
        patched.setattr(module, "ran_again", lambda context, jobs: iter((7,)))
        with pytest.raises(Exception, match="Spark ran stage 7 of the batch again"):
            run(source(spark, live, wide), sink(live, out), tmp_path / "checkpoint")
    assert stored(spark, live, out) == []
    run(source(spark, live, wide), sink(live, out), tmp_path / "checkpoint")
    until_stored(spark, live, out, list(range(30)))


@pytest.mark.parametrize("way", ["stream", "batch"])
def test_speculation_is_refused(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the transactional id is taken over, which would end an earlier run: no cluster is asked for."""
    pytest.importorskip("pyspark")
    from leafcuttr_spark.options import OptionError
    from leafcuttr_spark.sink.marker import MicroBatch
    from leafcuttr_spark.spark import sink as module

    context = SimpleNamespace(getConf=lambda: {"spark.speculation": "true"})
    frame: Any = SimpleNamespace(sparkSession=SimpleNamespace(sparkContext=context, _jvm=None))
    monkeypatch.setattr(module, "micro_batch", lambda spark, batch: MicroBatch("query", batch, ""))
    given = {"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "t", "kafka.transactional.id": "t"}
    with pytest.raises(OptionError, match=r"spark\.speculation is true"):
        if way == "stream":
            module.TopicSink(given)(frame, 0)
        else:
            module.write_topics(frame, given)


def test_a_stream_s_sink_is_for_no_other_frame(spark: Any) -> None:
    from leafcuttr_spark.options import OptionError
    from leafcuttr_spark.spark.sink import TopicSink

    given = {"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "t", "kafka.transactional.id": "t"}
    with pytest.raises(OptionError, match="TopicSink is for writeStream"):
        TopicSink(given)(spark.range(1), 0)


def test_a_timeout_above_the_broker_s_is_refused_at_once(
    spark: Any, live: BrokerProcess, wide: str, out: str, tmp_path: Path
) -> None:
    fill(live, wide, 0, 3)
    with pytest.raises(
        Exception, match=r"2000000000 ms is not from 1 ms to the cluster's transaction\.max\.timeout\.ms"
    ):
        run(
            source(spark, live, wide),
            sink(live, out, **{"kafka.transaction.timeout.ms": "2000000000"}),
            tmp_path / "c",
        )


def test_rows_to_several_topics_in_one_transaction(
    spark: Any, live: BrokerProcess, wide: str, out: str
) -> None:
    from pyspark.sql import functions as f

    from leafcuttr_spark.spark.sink import write_topics

    rows = spark.range(200).select(
        f.when(f.col("id") % 2 == 0, wide).otherwise(out).alias("topic"),
        f.col("id").cast("string").alias("value"),
        f.when(f.col("id") % 5 == 0, f.lit(1)).alias("partition"),
        f.array(
            f.struct(f.lit("n").alias("key"), f.col("id").cast("string").cast("binary").alias("value"))
        ).alias("headers"),
    )
    given = {"kafka.bootstrap.servers": live.address, "includeHeaders": "true", "tasks": "3"}
    assert write_topics(rows, given) == {wide: 100, out: 100}
    until_stored(spark, live, wide, list(range(0, 200, 2)))
    until_stored(spark, live, out, list(range(1, 200, 2)))
    found = (
        spark.read.format("leafcuttr")
        .options(
            **{
                "kafka.bootstrap.servers": live.address,
                "subscribe": f"{wide},{out}",
                "includeHeaders": "true",
            }
        )
        .load()
        .collect()
    )
    for row in found:
        assert [(head["key"], bytes(head["value"])) for head in row["headers"]] == [
            ("n", bytes(row["value"]))
        ]
        assert row["partition"] == 1 or int(row["value"]) % 5


def test_a_batch_is_written_wholly_or_not_at_all(spark: Any, live: BrokerProcess, wide: str) -> None:
    from pyspark.sql import functions as f

    from leafcuttr_spark.spark.sink import write_topics

    rows = spark.range(100).select(f.col("id").cast("string").alias("value"))
    given = {"kafka.bootstrap.servers": live.address, "topic": wide}
    assert write_topics(rows, given) == {wide: 100}
    wrong = rows.withColumn("partition", f.when(f.col("value") == "77", f.lit(9)))
    with pytest.raises(Exception, match="a row is for partition 9, and the topic has 3"):
        write_topics(wrong, given)
    with pytest.raises(Exception, match="does not have the topics none"):
        write_topics(rows, {**given, "topic": "none"})
    with pytest.raises(Exception, match="rows have no column value"):
        write_topics(rows.select(f.lit("x").alias("key")), given)
    until_stored(spark, live, wide, list(range(100)))


@pytest.mark.usefixtures("spark")
def test_a_batch_places_its_rows_again_where_it_did_before() -> None:
    import pyarrow as pa

    from leafcuttr_spark.options import Query
    from leafcuttr_spark.sink.options import sink_options
    from leafcuttr_spark.spark.sink import _placer

    options = sink_options({"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "t"}, Query.BATCH)
    rows = pa.array(["t"] * 3), pa.nulls(3, pa.binary()), pa.nulls(3, pa.int32())
    for salt in (5, 6):
        for _ in range(3):
            place = _placer(options, {"t": 1000}, salt)
            assert place(*rows).to_pylist() == place(*rows).to_pylist() == [salt] * 3


def test_at_least_once_on_request(
    spark: Any, live: BrokerProcess, wide: str, out: str, tmp_path: Path
) -> None:
    from leafcuttr_spark.spark.sink import TopicSink

    fill(live, wide, 0, 60)
    given = {"kafka.bootstrap.servers": live.address, "topic": out, "delivery": "at-least-once"}
    run(source(spark, live, wide), TopicSink(given), tmp_path / "checkpoint")
    until_stored(spark, live, out, list(range(60)))
    forget_last_commit(tmp_path / "checkpoint")
    run(source(spark, live, wide), TopicSink(given), tmp_path / "checkpoint")
    until_stored(spark, live, out, sorted([*range(60), *range(60)]))


def forget_last_commit(checkpoint: Path) -> None:
    last = max((path for path in (checkpoint / "commits").glob("[0-9]*")), key=lambda path: int(path.name))
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink(missing_ok=True)
