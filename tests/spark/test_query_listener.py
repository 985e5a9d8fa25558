"""A listener hears of the batches of its own query alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark")

from leafcuttr_spark.spark.progress import ProgressListener
from leafcuttr_spark.spark.query_listener import QueryListener


class Heard(QueryListener):
    def __init__(self, query: str) -> None:
        super().__init__(query)
        self.batches: list[Any] = []

    def progressed(self, progress: Any) -> None:
        self.batches.append(progress.batchId)


def done(query: str | None, batch: int, **more: Any) -> Any:
    return SimpleNamespace(progress=SimpleNamespace(name=query, batchId=batch, **more))


def test_other_queries_of_the_session_are_left_out() -> None:
    heard = Heard("orders")
    for query, batch in (("orders", 0), ("totals", 1), (None, 2), ("orders", 3)):
        heard.onQueryProgress(done(query, batch))
    assert heard.batches == [0, 3]
    for event in (heard.onQueryStarted, heard.onQueryIdle, heard.onQueryTerminated):
        event(SimpleNamespace())
    assert heard.batches == [0, 3]


def test_progress_that_cannot_be_read_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    told: list[Any] = []
    ProgressListener("orders", told.append).onQueryProgress(done("orders", 0, json="{"))
    assert told == []
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith("the progress of query orders cannot be read: ")
