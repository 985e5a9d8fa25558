"""What is read of Spark's progress of a batch."""

from __future__ import annotations

import json
from typing import Any

import pytest

from leafcuttr_sdk.types import TopicPartition
from leafcuttr_spark.operating.progress import BatchProgress, SourceProgress, progress_of

ORDERS = TopicPartition("orders", 0), TopicPartition("orders", 1)


def positions(first: int, second: int) -> dict[str, Any]:
    return {"version": 1, "offsets": {"orders": {"0": first, "1": second}}, "topics": {"orders": "id"}}


FULL: dict[str, Any] = {
    "id": "5d68",
    "runId": "77",
    "name": "q",
    "timestamp": "2026-11-26T16:00:00.000Z",
    "batchId": 17,
    "batchDuration": 1500,
    "numInputRows": 300,
    "eventTime": {"watermark": "1970-01-01T00:00:05.000Z"},
    "stateOperators": [
        {"numRowsTotal": 7, "memoryUsedBytes": 100, "numRowsDroppedByWatermark": 2},
        {"numRowsTotal": 5, "memoryUsedBytes": 50, "numRowsDroppedByWatermark": 0},
    ],
    "sources": [
        {"endOffset": positions(10, 20), "latestOffset": positions(15, 20)},
        {"endOffset": {"logOffset": 3}, "latestOffset": None},
    ],
    "observedMetrics": {"lc.late.totals": {"late": 3}, "other": {"late": 9}, "lc.late.none": None},
}


def test_all_that_operators_see() -> None:
    found = progress_of(json.dumps(FULL))
    source = SourceProgress(
        dict(zip(ORDERS, (10, 20), strict=True)), dict(zip(ORDERS, (15, 20), strict=True))
    )
    assert found == BatchProgress(17, 300, 200.0, 1.5, (source, SourceProgress({}, {})), 5000, 12, 150, 5)
    assert found.lag == {ORDERS[0]: 5}
    assert found.knows_lag


def test_offsets_as_text() -> None:
    sources = [{"endOffset": json.dumps(positions(1, 2)), "latestOffset": json.dumps(positions(1, 4))}]
    assert progress_of(json.dumps(FULL | {"sources": sources})).lag == {ORDERS[1]: 2}


def test_a_partition_that_was_not_read() -> None:
    sources = [{"endOffset": None, "latestOffset": positions(1, 0)}]
    assert progress_of(json.dumps(FULL | {"sources": sources})).lag == {ORDERS[0]: 1}


def test_little_is_enough() -> None:
    found = progress_of('{"batchId": 0}')
    assert found == BatchProgress(0, 0, 0.0, 0.0)
    assert not found.knows_lag
    odd = {
        "eventTime": {"watermark": "soon"},
        "stateOperators": [7],
        "sources": None,
        "observedMetrics": None,
    }
    assert progress_of(json.dumps({"batchId": 0, **odd})) == BatchProgress(0, 0, 0.0, 0.0)
    first = {"eventTime": {"watermark": "1970-01-01T00:00:00.000Z"}, "numInputRows": 5}
    assert progress_of(json.dumps({"batchId": 0, **first})) == BatchProgress(0, 5, 0.0, 0.0)


def test_rows_that_only_tell_the_time_are_no_rows() -> None:
    observed = {"lc.read.orders": {"rows": 4}, "lc.read.payments": {"rows": 2}}
    found = progress_of(json.dumps(FULL | {"observedMetrics": observed}))
    assert (found.rows, found.rows_per_s) == (6, 4.0)


@pytest.mark.parametrize(
    ("start", "end", "rows"),
    [
        (positions(1, 2), positions(1, 3), 300),
        (None, positions(1, 3), 300),
        ({"logOffset": 2}, {"logOffset": 3}, 300),
        ({"logOffset": 3}, {"logOffset": 3}, 0),
        (positions(1, 2), positions(1, 2) | {"tick": 7}, 0),
        (json.dumps(positions(1, 2) | {"tick": 6}), json.dumps(positions(1, 2) | {"tick": 7}), 0),
    ],
)
def test_where_metrics_count_nothing_the_rows_of_sources_that_moved_count(
    start: Any, end: Any, rows: int
) -> None:
    sources = [{"startOffset": start, "endOffset": end}]
    for observed in ({}, {"lc.read.orders": {"rows": 0}}):
        assert progress_of(json.dumps(FULL | {"observedMetrics": observed, "sources": sources})).rows == rows


@pytest.mark.parametrize("text", ["", "{}", "[]", "7", '{"batchId": null}'])
def test_what_is_none(text: str) -> None:
    with pytest.raises(ValueError):
        progress_of(text)
