"""Pipelines from topics to topics on a real Spark: exactly once, dead letters, limits, one line for what fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from leafcuttr_spark.pipelines.model import DeadLetters, Step
from leafcuttr_spark.pipelines.operations import Branch, Map, Select
from spark.running.pipes import fill, key_as, pipeline, records, run, sink, source
from support import librdkafka
from support.broker_process import BrokerProcess


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
