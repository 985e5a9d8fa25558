"""What is known of a run while it goes on."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from leafcuttr_sdk.types import TopicPartition
from leafcuttr_spark.operating.history import History, Point, read_history
from leafcuttr_spark.operating.monitor import STALE_MS, RunMonitor
from leafcuttr_spark.operating.progress import BatchProgress, SourceProgress
from leafcuttr_spark.operating.status import RunState, RunStatus, read_status
from support.spark_runs import STATUS

ONE, TWO = TopicPartition("orders", 0), TopicPartition("orders", 1)


class Run:
    """A monitor, its clock and its files."""

    def __init__(self, folder: Path) -> None:
        self.now_ms = 100_000
        self.asked: list[Mapping[TopicPartition, int]] = []
        self.oldest: int | None = None
        self.files = (folder / "status.json", folder / "other.json")
        self.history = folder / "history.jsonl"
        self.monitor = RunMonitor(
            STATUS, self.files, History(self.history), lambda: self.now_ms, self._oldest
        )

    def _oldest(self, positions: Mapping[TopicPartition, int]) -> int | None:
        self.asked.append(positions)
        return self.oldest

    @property
    def written(self) -> RunStatus | None:
        first, second = map(read_status, self.files)
        assert first == second
        return first


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def batch(number: int, rows: int, read: int = 10, end: int = 10, **more: int) -> BatchProgress:
    sources = (SourceProgress({ONE: read, TWO: 5}, {ONE: end, TWO: 5}),)
    return BatchProgress(number, rows, 100.0 if rows else 0.0, 0.5, sources, **more)


def test_batches_are_counted_and_written(run: Run) -> None:
    run.oldest = 98_000
    run.monitor.told(batch(4, 20, end=15, state_rows=3, state_bytes=30, late_rows=1, watermark_ms=77))
    run.monitor.told(batch(5, 30, end=15, state_rows=4, state_bytes=40, late_rows=2))
    assert [one.batch for one in run.monitor.tick(dead_letters=6)] == [4, 5]
    expected = replace(
        STATUS, written_ms=100_000, batch=5, batches=2, rows=50, rows_per_s=100.0, lag_records=5, lag_s=2.0,
        watermark_ms=77, state_rows=4, state_bytes=40, late_rows=3, dead_letters=6,
    )  # fmt: skip
    assert run.written == expected == run.monitor.status
    assert run.asked == [{ONE: 10}]
    assert read_history(run.history) == [
        Point(100_000, 4, 20, 0.5, 5, 2.0, 3, 6),
        Point(100_000, 5, 30, 0.5, 5, 2.0, 4, 6),
    ]


def test_a_batch_without_rows_is_no_news(run: Run) -> None:
    run.monitor.told(batch(4, 20))
    run.monitor.tick()
    # Spark tells of the same batch again while nothing comes.
    run.monitor.told(batch(4, 0))
    assert run.monitor.tick() == []
    status = run.monitor.status
    assert (status.batches, status.rows, status.rows_per_s) == (1, 20, 100.0)
    assert (status.lag_records, status.lag_s) == (0, 0.0)
    assert len(read_history(run.history)) == 1
    assert run.asked == []


def test_it_is_written_once_in_a_while(run: Run) -> None:
    run.monitor.told(batch(0, 1, end=15))
    run.monitor.tick()
    first = run.written
    run.now_ms += STALE_MS - 1
    run.monitor.tick()
    assert run.written == first
    run.now_ms += 1
    run.oldest = run.now_ms - 9000
    run.monitor.tick()
    assert run.written == replace(run.monitor.status, written_ms=run.now_ms, lag_s=9.0)
    assert len(run.asked) == 2
    run.monitor.tick(dead_letters=1)
    assert run.written is not None and run.written.dead_letters == 1


def test_a_time_that_cannot_be_found_is_unknown(run: Run) -> None:
    run.monitor.told(batch(0, 1, end=15))
    run.monitor.tick()
    assert (run.monitor.status.lag_records, run.monitor.status.lag_s) == (5, None)
    run.monitor.told(BatchProgress(1, 1, 1.0, 1.0))
    run.monitor.tick()
    assert run.monitor.status.lag_records == 5  # what was known last


def test_states(run: Run) -> None:
    run.monitor.enter(RunState.FAILED, "it said why")
    assert run.written == replace(STATUS, state=RunState.FAILED, trouble="it said why", written_ms=100_000)


def test_a_failure_of_the_run_before_is_told_until_this_one_goes_on(run: Run) -> None:
    before = replace(STATUS, last_failure="it said why")
    run.monitor.status = before
    run.monitor.enter(RunState.RUNNING)
    run.monitor.tick(dead_letters=1)
    assert run.written is not None and run.written.last_failure == "it said why"
    run.monitor.goes_on()
    assert run.written is not None and run.written.last_failure == ""
    run.monitor.status = before
    run.monitor.told(batch(0, 1))
    run.monitor.tick()
    assert run.written is not None and run.written.last_failure == ""


def test_a_disk_that_takes_nothing_is_said_once(
    run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "leafcuttr.spark")
    for path in (*run.files, run.history):
        path.mkdir()
    for number in range(3):
        run.monitor.told(batch(number, 1))
        assert run.monitor.tick()
    assert len(caplog.messages) == 3
    assert f"{run.files[0]} cannot be written, the pipeline goes on: Is a directory" in caplog.messages
    run.files[0].rmdir()
    run.monitor.enter(RunState.RUNNING)
    assert read_status(run.files[0]) is not None
