"""Pipelines from topics to topics on a real Spark: exactly once, dead letters, limits, one line for what fails."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from leafcuttr_spark.pipelines.errors import (
    DeadLetterLimitError,
    PipelineError,
    PipelineFaultsError,
    PipelineRefusedError,
)
from leafcuttr_spark.pipelines.model import (
    DeadLetters,
    Decoding,
    Encoding,
    FileOrigin,
    FileTarget,
    PythonTarget,
    Secrets,
    Sink,
    Source,
    Start,
    Step,
    Table,
    TopicTarget,
)
from leafcuttr_spark.pipelines.operations import Apply, Branch, Filter, Lookup, Map, Select
from leafcuttr_spark.pipelines.reading.transform_parts import transform
from spark.running.pipes import committed, fill, key_as, pipeline, records, run, sink, source
from support import librdkafka, own_sinks
from support.broker_process import BrokerProcess
from support.waiting import until


@pytest.fixture
def out(live: BrokerProcess, wide: str) -> str:
    """Topics of two partitions: `out`, `out-b`, and `out-dead`."""
    for name in (f"{wide}-out", f"{wide}-out-b", f"{wide}-out-dead"):
        librdkafka.create(live.address, name, 2)
    return f"{wide}-out"


def orders(first: int, end: int) -> list[dict[str, Any]]:
    return [
        {"id": f"o{n}", "amount": n, "tags": ["a"] * (n % 3), "card": {"number": str(n), "owner": "x"}}
        for n in range(first, end)
    ]


@pytest.mark.on_spark
def test_a_pipeline_with_two_sinks_reads_once(
    spark: Any, live: BrokerProcess, wide: str, out: str, tmp_path: Path
) -> None:
    fill(live.address, wide, [*orders(0, 60), b"{no json"])
    steps = [
        Step("doubled", Map({"twice": "amount * 2"})),
        Step("split", Branch({"large": "amount >= 40"}, default="small")),
        Step("slim", Select(("id", "100 / (amount - 50) AS part")), from_="large"),
    ]
    sinks = {"a": sink("slim", out, key=key_as("id")), "b": sink("small", f"{out}-b")}
    pipe = pipeline(
        live.address, tmp_path, {"orders": source(wide)}, steps, sinks, letters=DeadLetters(f"{out}-dead")
    )
    running = run(pipe, spark)
    large = {f"o{n}": {"part": 100 / (n - 50)} for n in range(40, 60) if n != 50}
    found = records(spark, live.address, out, 19)
    assert {(one.key or b"").decode(): one.json for one in found} == large
    small = records(spark, live.address, f"{out}-b", 40)
    assert sorted(one.json["amount"] for one in small) == list(range(40))
    assert small[0].json == {**orders(0, 1)[0], "twice": 0}
    failed, undecodable = records(spark, live.address, f"{out}-dead", 2)
    assert failed.json == orders(50, 51)[0]
    assert undecodable.value == b"{no json"
    assert failed.headers == {
        "lc.dead.letter.reason": "this failed: 100 / (amount - 50) AS part",
        "lc.dead.letter.filter": pipe.name,
        "lc.dead.letter.step": "steps[2] (slim)",
        "lc.dead.letter.topic": wide,
        "lc.dead.letter.partition": "0",
        "lc.dead.letter.offset": "50",
        "lc.dead.letter.timestamp": "1700000000000",
    }
    (report,) = running.reports
    assert report.read == {"orders": 61}
    assert report.written == {out: 19, f"{out}-b": 40, f"{out}-dead": 2}
    assert running.dead_letters == report.dead_letters == 2
    # What Spark has read of the source, which is more where a plan reads it twice.
    assert running.query.lastProgress.numInputRows == 61


def test_files_and_a_sink_in_python_beside_a_topic(
    spark: Any, live: BrokerProcess, wide: str, out: str, tmp_path: Path
) -> None:
    """The first attempt fails behind all writes, before the commit: what is there afterwards is there once."""
    fill(live.address, wide, [*orders(0, 20), b"{"])
    place = tmp_path / "own"
    sinks = {
        "topic": sink("orders", out),
        "files": Sink("orders", FileTarget("files", "json", partition_by=("id",))),
        "own": Sink(
            "orders",
            PythonTarget("own_sinks:Folder", {"path": str(place), "fails_once": str(tmp_path / "failed")}),
        ),
    }
    pipe = replace(
        pipeline(
            live.address, tmp_path, {"orders": source(wide)}, [], sinks, letters=DeadLetters(f"{out}-dead")
        ),
        file=tmp_path / "pipe.yaml",
    )
    (tmp_path / "own_sinks.py").symlink_to(own_sinks.__file__)
    with pytest.raises(PipelineError, match="the disk is full"):
        run(pipe, spark)
    assert records(spark, live.address, out) == []
    running = run(pipe, spark)
    assert len(records(spark, live.address, out, 20)) == 20
    assert len(records(spark, live.address, f"{out}-dead", 1)) == 1
    found = spark.read.json(str(tmp_path / "files"))
    assert sorted(row["amount"] for row in found.collect()) == list(range(20))
    assert {"batch", "id"} <= set(found.columns), "folders of batches and of a column"
    (batch,) = place.glob("*-0")
    assert [row["amount"] for row in json.loads(batch.read_text())] == list(range(20))
    assert (place / "closed").exists()
    assert running.query.lastProgress.numInputRows == 21
    (report,) = running.reports
    assert report.read == {"orders": 21}
    fill(live.address, wide, orders(20, 25))
    run(pipe, spark)
    assert sorted(row["amount"] for row in spark.read.json(str(tmp_path / "files")).collect()) == list(
        range(25)
    )
    assert len(records(spark, live.address, out, 25)) == 25


def test_files_alone(spark: Any, live: BrokerProcess, wide: str, tmp_path: Path) -> None:
    fill(live.address, wide, orders(0, 5))
    sinks = {"files": Sink("orders", FileTarget(str(tmp_path / "files"), "parquet"))}
    pipe = pipeline(live.address, tmp_path, {"orders": source(wide)}, [], sinks)
    run(pipe, spark)
    (tmp_path / "checkpoint" / "commits" / "0").unlink()
    (tmp_path / "checkpoint" / "commits" / ".0.crc").unlink(missing_ok=True)
    run(pipe, spark)
    assert sorted(row["amount"] for row in spark.read.parquet(str(tmp_path / "files")).collect()) == list(
        range(5)
    )


def test_the_limit_of_dead_letters(
    spark: Any, live: BrokerProcess, wide: str, out: str, tmp_path: Path
) -> None:
    fill(live.address, wide, [b"{"] * 3)

    def pipe(**limits: Any) -> Any:
        letters = DeadLetters(f"{out}-dead", **limits)
        return pipeline(
            live.address, tmp_path, {"orders": source(wide)}, [], {"a": sink("orders", out)}, letters=letters
        )

    with pytest.raises(DeadLetterLimitError, match="3 dead letters in this run: stop-after is 3"):
        run(pipe(stop_after=3), spark)
    with pytest.raises(
        DeadLetterLimitError, match=r"3 of the last 200 records are dead letters: stop-above is 0\.01"
    ):
        run(pipe(stop_above=0.01, window=200), spark)
    assert records(spark, live.address, f"{out}-dead") == []
    assert run(pipe(stop_after=4, stop_above=0.02, window=200), spark).dead_letters == 3
    assert len(records(spark, live.address, f"{out}-dead", 3)) == 3


def test_a_batch_that_passes_the_limit_is_written_nowhere(
    spark: Any, live: BrokerProcess, wide: str, out: str, tmp_path: Path
) -> None:
    fill(live.address, wide, [*orders(0, 3), b"{"])
    sinks = {
        "files": Sink("orders", FileTarget(str(tmp_path / "files"), "json")),
        "own": Sink("orders", PythonTarget("own_sinks:Folder", {"path": str(tmp_path / "own")})),
    }
    (tmp_path / "own_sinks.py").symlink_to(own_sinks.__file__)
    letters = DeadLetters(f"{out}-dead", stop_after=1)
    pipe = pipeline(live.address, tmp_path, {"orders": source(wide)}, [], sinks, letters=letters)
    with pytest.raises(DeadLetterLimitError):
        run(replace(pipe, file=tmp_path / "pipe.yaml"), spark)
    assert not (tmp_path / "files").exists()
    assert [path.name for path in (tmp_path / "own").iterdir()] == ["closed"]


def test_a_batch_whose_commit_fails_is_not_counted(
    spark: Any, live: BrokerProcess, wide: str, out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from leafcuttr_spark.running.run import start
    from leafcuttr_spark.spark.sink import TopicSink

    fill(live.address, wide, [*orders(0, 3), b"{"])
    pipe = pipeline(
        live.address, tmp_path, {"orders": source(wide)}, [], {"a": sink("orders", out)},
        letters=DeadLetters(f"{out}-dead", stop_after=2),
    )  # fmt: skip
    write = TopicSink.write

    def fails(*given: Any) -> None:
        write(*given)
        raise RuntimeError("the commit failed")

    monkeypatch.setattr(TopicSink, "write", fails)
    running = start(pipe, spark)
    with pytest.raises(PipelineError, match="the commit failed"):
        running.wait(900)
    assert not running.reports
    assert running.dead_letters == 0


def test_what_two_expressions_have_in_common_fails_for_its_row_alone(
    spark: Any, live: BrokerProcess, wide: str, out: str, tmp_path: Path
) -> None:
    fill(live.address, wide, [b"4", b"0", b"x", b"2"])
    steps = [
        Step("n", Map({"x": "int(value)"})),
        Step("parts", Map({"a": "1 / x", "b": "1 / x + 1"})),
    ]
    lines = source(wide, value=Decoding("text"))
    pipe = pipeline(
        live.address, tmp_path, {"lines": lines}, steps, {"a": sink("parts", out)},
        letters=DeadLetters(f"{out}-dead"),
    )  # fmt: skip
    run(pipe, spark)
    assert {one.json["b"] for one in records(spark, live.address, out, 2)} == {1.25, 1.5}
    dead = records(spark, live.address, f"{out}-dead", 2)
    assert {one.value: one.headers["lc.dead.letter.reason"] for one in dead} == {
        b"0": "this failed: a: 1 / x",
        b"x": "this failed: x: int(value)",
    }


def test_what_was_opened_is_closed_where_a_pipeline_does_not_start(
    spark: Any, live: BrokerProcess, wide: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fill(live.address, wide, orders(0, 1))
    (tmp_path / "own_sinks.py").symlink_to(own_sinks.__file__)
    (tmp_path / "regions").mkdir()
    (tmp_path / "regions" / "one.csv").write_text("code,region\na,north\n")
    regions = Source(
        FileOrigin("regions", "csv", schema="code STRING, region STRING"),
        table=Table(("code",), is_global=True),
    )
    good = PythonTarget("own_sinks:Folder", {"path": str(tmp_path / "own"), "closing_fails": "hunter22"})
    sinks = {"good": Sink("with", good), "bad": Sink("with", PythonTarget("own_sinks:Nothing"))}
    pipe = replace(
        pipeline(
            live.address,
            tmp_path,
            {"orders": source(wide), "regions": regions},
            [Step("with", Lookup("regions", {"id": "code"}, "left"), "orders")],
            sinks,
        ),
        file=tmp_path / "pipe.yaml",
        secrets=Secrets(frozenset({"hunter22"})),
    )
    cached = spark._jsparkSession.sharedState().cacheManager()
    cached.clearCache()
    with pytest.raises(PipelineError, match="Nothing"):
        run(pipe, spark)
    assert (tmp_path / "own" / "closed").exists()
    assert cached.isEmpty()
    assert "sinks.good: it was not closed: ***" in caplog.text
    assert "hunter22" not in caplog.text


def test_what_needs_to_know_the_query_is_refused_with_spark_connect(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    from leafcuttr_spark.running.run import start

    others = [Sink("orders", target) for target in (FileTarget("files"), PythonTarget("own_sinks:Folder"))]
    for one in (sink("orders", "out"), *others):
        pipe = pipeline("127.0.0.1:1", tmp_path, {"orders": source("in")}, [], {"a": one})
        with pytest.raises(PipelineRefusedError, match=r"^sinks\.a: Spark Connect does not say which query"):
            start(pipe, SimpleNamespace())  # type: ignore[arg-type]


def test_what_is_wrong_with_it_is_said_before_it_starts(tmp_path: Path) -> None:
    """All of it, as `check` says it of a file."""
    pytest.importorskip("pyspark")
    from leafcuttr_spark.running.run import start

    steps = [Step("n", Map({"n": "amont + 1"})), Step("some", Filter("amount >"))]
    sinks = {"a": sink("some", "out"), "b": sink("smoe", "out")}
    pipe = pipeline("127.0.0.1:1", tmp_path, {"orders": source("in")}, steps, sinks)
    with pytest.raises(PipelineFaultsError) as caught:
        start(pipe, SimpleNamespace())  # type: ignore[arg-type]
    assert [fault.text("").partition(";")[0] for fault in caught.value.faults] == [
        "sinks.b: there is no frame smoe: did you mean some?",
        "steps[0] (n): map.n: there is no column amont: did you mean amount?",
        "steps[1] (some): filter: 'amount >' is no SQL: it ends too early",
    ]
    with pytest.raises(PipelineFaultsError, match=r"^sinks: there is no sink$"):
        start(replace(pipe, steps=(), sinks={}), SimpleNamespace())  # type: ignore[arg-type]


def test_a_batch_has_as_many_records_as_were_written_where_spark_tells_of_none() -> None:
    pytest.importorskip("pyspark")
    from leafcuttr_spark.running.writing import BatchReport

    assert BatchReport(0, {}, {"a": 3, "dead": 1}, 1, 0.0).records == 4
    assert BatchReport(0, {"in": 9}, {"a": 3}, 0, 0.0).records == 9


FAILING = [
    ({}, [], b"{", "sources.orders", "-0: the record at offset 0 cannot be decoded: value:"),
    ({}, [Step("n", Map({"n": "1 / (amount - amount)"}))], {"amount": 1}, "steps[0] (n)", "Division by zero"),
    # Behind a function the columns are not known before Spark knows them.
    (
        {},
        [Step("any", Apply(lambda frame: frame)), Step("n", Map({"n": "amont + 1"}))],
        None,
        "steps[1] (n)",
        "`amont` cannot be resolved.*amount",
    ),
    (
        {},
        [Step("n", Apply(lambda frame: frame.select(raising("id"))))],
        {"id": "a"},
        "steps[0] (n)",
        "^ValueError: no such thing$",
    ),
    ({"start": Start("offsets", offsets={"x": {0: 1}})}, [], {"id": "a"}, None, None),
]


def raising(column: str) -> Any:
    from pyspark.sql import functions as f

    def fails(value: str) -> str:
        raise ValueError("no such thing")

    return f.udf(fails, "string")(column)


@pytest.mark.parametrize(("given", "steps", "value", "part", "said"), FAILING, ids=range(len(FAILING)))
def test_what_fails_is_one_line_with_its_step(
    spark: Any, live: BrokerProcess, wide: str, out: str, tmp_path: Path,
    given: dict[str, Any], steps: list[Step], value: Any, part: str | None, said: str | None,
) -> None:  # fmt: skip
    fill(live.address, wide, [value or {"id": "a", "amount": 1}])
    last = steps[-1].name if steps else "orders"
    pipe = pipeline(live.address, tmp_path, {"orders": source(wide, **given)}, steps, {"a": sink(last, out)})
    if said is None:
        run(pipe, spark)
        return
    with pytest.raises(PipelineError) as caught:
        run(pipe, spark)
    error = caught.value
    print(error)
    assert "\n" not in str(error)
    assert len(str(error)) < 600
    assert re.search(said, error.message), error
    assert error.step == part


def test_the_line_of_a_task_that_was_tried_twice_says_why_the_first_one_failed(
    spark: Any, live: BrokerProcess, wide: str, tmp_path: Path
) -> None:
    librdkafka.create(live.address, f"{wide}-small", 1, max_message_bytes="2000")
    fill(live.address, wide, [{"id": "a" * 5000, "amount": 1}])
    pipe = pipeline(
        live.address, tmp_path, {"orders": source(wide)}, [], {"a": sink("orders", f"{wide}-small")}
    )
    with pytest.raises(PipelineError) as caught:
        run(pipe, spark)
    print(caught.value)
    assert caught.value.step == "sinks.a"
    assert re.fullmatch(
        rf"{wide}-small-0: [^\n;]*too large[^\n;]*; Spark tried the task again, which spoils the transaction: the batch"
        " fails",
        caught.value.message,
        re.IGNORECASE,
    )


def test_topics_that_are_not_there(
    spark: Any, live: BrokerProcess, wide: str, out: str, tmp_path: Path
) -> None:
    fill(live.address, wide, orders(0, 1))
    with pytest.raises(
        PipelineError, match=r"^127\.0\.0\.1:[0-9]+ does not have the topics nowhere: create them first$"
    ):
        run(
            pipeline(live.address, tmp_path, {"orders": source(wide)}, [], {"a": sink("orders", "nowhere")}),
            spark,
        )
    with pytest.raises(PipelineError, match=r"does not have nothing$"):
        run(
            pipeline(live.address, tmp_path, {"orders": source("nothing")}, [], {"a": sink("orders", out)}),
            spark,
        )


def test_records_by_columns(spark: Any, live: BrokerProcess, wide: str, out: str, tmp_path: Path) -> None:
    """Key, headers, topic and partition of a row; a row without a topic, and a tombstone."""
    fill(live.address, wide, [*orders(0, 4), None], key=b"k")
    steps = [
        Step("with", transform("header", {"fields": ["id"], "headers": ["id"], "insert": {"more": "x"}})),
        Step(
            "to",
            Map(
                {"to": f"case when amount = 3 then null when amount % 2 = 0 then '{out}' else '{out}-b' end"}
            ),
        ),
    ]
    target = TopicTarget(
        topic_column="to",
        key=Encoding("json", columns=("id", "amount")),
        value=Encoding("json", columns=("tags",)),
        headers={"twice": "amount * 2"},
        headers_column="headers",
        partition="if(amount = 0, 1, 0)",
    )
    pipe = pipeline(
        live.address, tmp_path, {"orders": source(wide)}, steps, {"a": Sink("to", target)},
        letters=DeadLetters(f"{out}-dead"),
    )  # fmt: skip
    run(pipe, spark)
    two, zero = sorted(records(spark, live.address, out, 2), key=lambda one: one.partition)
    assert (zero.key, zero.value, zero.partition) == (b'{"id":"o0","amount":0}', b'{"tags":[]}', 1)
    assert zero.headers == {"id": "o0", "more": "x", "twice": "0"}
    assert (two.partition, two.json) == (0, {"tags": ["a", "a"]})
    (one, tombstone) = records(spark, live.address, f"{out}-b", 2)
    assert one.json == {"tags": ["a"]}
    assert tombstone.value is None
    (dead,) = records(spark, live.address, f"{out}-dead", 1)
    assert (dead.key, dead.json["amount"]) == (b"k", 3)
    assert dead.headers["lc.dead.letter.reason"] == "this failed: topic: to"
    assert dead.headers["lc.dead.letter.step"] == "sinks.a"


def test_timestamps_of_records(spark: Any, live: BrokerProcess, wide: str, out: str, tmp_path: Path) -> None:
    """A time, or milliseconds; null is now. One before 1970 or behind 9999 is a dead letter."""
    fill(live.address, wide, orders(0, 5))
    first, last = 1_700_000_000_000, 253_402_300_800_000
    made = f"case amount when 0 then {first} when 1 then 0 when 2 then null when 3 then -1 else {last} end"
    timed = TopicTarget(out, timestamp="made")
    other = TopicTarget(f"{out}-b", timestamp="timestamp_millis(made) + interval 1 day")
    pipe = pipeline(
        live.address, tmp_path, {"orders": source(wide)},
        [Step("with", Map({"made": made})), Step("few", Filter("amount < 2"), "with")],
        {"a": Sink("with", timed), "b": Sink("few", other)},
        letters=DeadLetters(f"{out}-dead"),
    )  # fmt: skip
    before = time.time() * 1000
    run(pipe, spark)
    found = {one.json["amount"]: one.timestamp_ms for one in records(spark, live.address, out, 3)}
    assert found.keys() == {0, 1, 2}
    assert (found[0], found[1]) == (first, 0)
    assert before - 1 <= found[2] <= time.time() * 1000
    later = {one.json["amount"]: one.timestamp_ms for one in records(spark, live.address, f"{out}-b", 2)}
    assert later == {0: first + 86_400_000, 1: 86_400_000}
    dead = records(spark, live.address, f"{out}-dead", 2)
    assert {one.json["amount"] for one in dead} == {3, 4}
    assert {one.headers["lc.dead.letter.reason"] for one in dead} == {"this failed: timestamp: made"}
    assert all(before - 1 <= one.timestamp_ms for one in dead)


def test_offsets_of_a_group_show_what_was_read(
    spark: Any, live: BrokerProcess, wide: str, out: str, tmp_path: Path
) -> None:
    fill(live.address, wide, orders(0, 7))
    pipe = pipeline(
        live.address, tmp_path, {"orders": source(wide)}, [], {"a": sink("orders", out)}, name=wide
    )
    from leafcuttr_spark.running.run import start

    running = start(pipe, spark)
    assert running.wait(900)
    until(lambda: committed(live.address, wide) == 7, "the offsets of the group")
