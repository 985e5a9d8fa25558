"""The samples, after those that users of Kafka Streams know, are right as they stand there."""

from __future__ import annotations

from pathlib import Path

import pytest

from leafcuttr_spark.pipelines import operations as op
from leafcuttr_spark.pipelines.checking.whole import load_pipeline

SAMPLES = sorted((Path(__file__).parents[1] / "samples").glob("*.yaml"))
STREAMS = ("order-joins", "order-state", "order-topology", "order-windows")


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_a_sample_has_neither_faults_nor_notes(sample: Path) -> None:
    notes = load_pipeline(sample).notes
    # Counts and sums without a window, and branches that nothing takes, are what Streams has too.
    assert notes == []


def test_what_kafka_streams_can_is_in_them() -> None:
    used = {
        type(step.operation)
        for sample in SAMPLES
        if sample.stem in STREAMS
        for step in load_pipeline(sample)[0].steps
    }
    wanted = (op.Filter, op.Map, op.FlatMap, op.Branch, op.Count, op.Aggregate, op.Reduce, op.Join, op.Lookup)
    assert used == {*wanted}
    windows = {
        type(step.operation.window)
        for step in load_pipeline(next(one for one in SAMPLES if one.stem == "order-windows"))[0].steps
        if isinstance(step.operation, op.Count)
    }
    assert windows == {op.TumblingWindow, op.HoppingWindow, op.SlidingWindow, op.SessionWindow}
