"""The places in which Spark reads sources: those that the fingerprint of a pipeline has, in the same order."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leafcuttr_spark.operating.fingerprint import fingerprint_of
from leafcuttr_spark.pipelines.errors import PipelineError
from leafcuttr_spark.pipelines.model import Pipeline, Step
from leafcuttr_spark.pipelines.operations import Sql
from spark.running.pipes import fill, pipeline, run, sink, source
from support import librdkafka
from support.broker_process import BrokerProcess

SIDES = ("one", "two")
QUERY = "WITH more AS (SELECT * FROM two) SELECT * FROM one UNION ALL SELECT * FROM {} UNION ALL SELECT * FROM more"


def made(address: str, folder: Path) -> Pipeline:
    """Of new topics."""
    names = {side: f"{folder.name}-{side}" for side in (*SIDES, "out")}
    for number, topic in enumerate(names.values()):
        librdkafka.create(address, topic, 1)
        if number < 2:
            fill(address, topic, [{"id": topic, "amount": number}], partition=0)
    steps = [Step("queried", Sql(QUERY.format("one"), SIDES))]
    sinks = {"out": sink("queried", names["out"]), "copy": sink("one", names["out"])}
    return pipeline(address, folder, {side: source(names[side]) for side in SIDES}, steps, sinks)


def kept(pipe: Pipeline) -> list[str]:
    """The sides whose offsets Spark has kept, in its order."""
    _, _, *offsets = (Path(pipe.checkpoint) / "offsets" / "0").read_text().splitlines()
    return [next(iter(json.loads(one)["offsets"])).rpartition("-")[2] for one in offsets]


def test_they_are_those_of_the_checkpoint(spark: Any, live: BrokerProcess, tmp_path: Path) -> None:
    pipe = made(live.address, tmp_path)
    run(pipe, spark)
    found = fingerprint_of(pipe)
    assert [found.sources[place]["source"] for place in found.places] == kept(pipe)
    assert kept(pipe) == ["two", "one", "one", "one"]
    # Spark alone would go on from the offsets of the other topic.
    other = replace(pipe, steps=[Step("queried", Sql(QUERY.format("two"), SIDES))])
    with pytest.raises(PipelineError, match="do not exist any more"):
        run(other, spark)
