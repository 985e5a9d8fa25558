"""Pipelines for tests: from topics of a broker to topics of it, run to the end of what is there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from leafcuttr_sdk.blocking_peers import open_peer
from leafcuttr_spark.pipelines.model import (
    DeadLetters,
    Decoding,
    Encoding,
    Pipeline,
    Sink,
    Source,
    Step,
    TopicOrigin,
    TopicTarget,
    Trigger,
)
from support import librdkafka
from support.spark_patience import patiently
from support.waiting import until

ORDERS = "id STRING, amount BIGINT, tags ARRAY<STRING>, card STRUCT<number: STRING, owner: STRING>"


def source(topic: str, **given: Any) -> Source:
    given.setdefault("value", Decoding("json", columns=ORDERS))
    given.setdefault("key", Decoding("none"))
    return Source(TopicOrigin(topics=(topic,), **given))


def sink(from_: str, topic: str, **given: Any) -> Sink:
    return Sink(from_, TopicTarget(topic, **given))


def pipeline(
    address: str,
    folder: Path,
    sources: Mapping[str, Source],
    steps: Sequence[Step],
    sinks: Mapping[str, Sink],
    *,
    letters: DeadLetters | None = None,
    **more: Any,
) -> Pipeline:
    return Pipeline(
        more.pop("name", folder.name),
        sources,
        steps,
        sinks,
        clusters={"main": {"bootstrap.servers": address}},
        checkpoint=str(folder / "checkpoint"),
        trigger=Trigger(available_now=True),
        dead_letters=letters,
        state_store="memory",
        **more,
    )


def run(pipe: Pipeline, spark: Any) -> Any:
    """To the end of what is there."""
    from leafcuttr_spark.running.run import start

    def begin() -> Any:
        running = start(pipe, spark)
        try:
            assert running.wait(900), running.query.status
        finally:
            running.stop()
        return running

    return patiently(begin)


def fill(address: str, topic: str, values: Sequence[Any], **more: Any) -> None:
    """Each as JSON; bytes and None as they are."""
    texts = [each if isinstance(each, (bytes, type(None))) else json.dumps(each).encode() for each in values]
    librdkafka.send(address, topic, texts, **{"timestamp": 1_700_000_000_000, **more})


class Found:
    """A committed record."""

    def __init__(self, row: Any) -> None:
        self.key = None if row["key"] is None else bytes(row["key"])
        self.value = None if row["value"] is None else bytes(row["value"])
        self.partition = row["partition"]
        self.timestamp_ms = round(row["timestamp"].timestamp() * 1000)
        self.raw_headers = [(each["key"], bytes(each["value"] or b"")) for each in row["headers"] or ()]
        self.headers = {name: value.decode("utf-8", "replace") for name, value in self.raw_headers}

    @property
    def json(self) -> Any:
        assert self.value is not None
        return json.loads(self.value)


def records(spark: Any, address: str, topic: str, least: int = 0) -> list[Found]:
    """The committed ones, in their order within partitions; at least so many, for a commit is seen a moment later."""
    options = {"kafka.bootstrap.servers": address, "subscribe": topic, "includeHeaders": "true"}

    def read() -> list[Found]:
        rows = (
            spark.read.format("leafcuttr").options(**options).load().orderBy("partition", "offset").collect()
        )
        return [Found(row) for row in rows]

    if least:
        until(lambda: len(read()) >= least, f"{least} records of {topic}")
    return read()


def key_as(columns: str) -> Encoding:
    return Encoding("text", columns=(columns,))


def committed(address: str, group: str) -> int:
    """The sum of the offsets of a group."""
    with open_peer({"bootstrap.servers": address}) as peer:
        return sum(each.offset for each in peer.committed(group).values())
