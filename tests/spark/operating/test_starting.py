"""Whether a run may begin, where, and how it is ended from outside."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from leafcuttr_spark.operating.checkpoint import Checkpoint
from leafcuttr_spark.operating.history import HISTORY, History, Point
from leafcuttr_spark.operating.starting import (
    FINGERPRINT,
    CheckpointTakenError,
    EditError,
    begun_at,
    check_edit,
    locked,
    read_start,
    start_as_json,
)
from leafcuttr_spark.operating.stopping import NotRunningError, holder, stop_run
from leafcuttr_spark.pipelines.model import (
    FileOrigin,
    Pipeline,
    Sink,
    Source,
    Start,
    Step,
    Table,
    TopicOrigin,
    TopicTarget,
)
from leafcuttr_spark.pipelines.operations import Count

HOLDS = """
import signal, sys, time
from pathlib import Path
from leafcuttr_spark.operating.starting import locked
if sys.argv[2] == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
with locked(Path(sys.argv[1])):
    print("locked", flush=True)
    time.sleep(600)
"""


@contextmanager
def holding(own: Path, how: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """A process that has the lock."""
    command = [sys.executable, "-c", HOLDS, str(own), how or "hears"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"locked\n"
            yield process
        finally:
            process.kill()


def test_one_run_has_the_checkpoint(tmp_path: Path) -> None:
    own = tmp_path / "checkpoint" / "leafcuttr"
    assert holder(own) is None
    with holding(own) as process:
        assert holder(own) == process.pid
        line = rf"another run has the checkpoint {tmp_path}/checkpoint \(process {process.pid}\)"
        with pytest.raises(CheckpointTakenError, match=line), locked(own):
            pass
    assert holder(own) is None
    with locked(own):
        assert holder(own) == os.getpid()
        # What it starts does not have the lock too.
        child = subprocess.Popen(["sleep", "600"])
    try:
        assert holder(own) is None
    finally:
        child.kill()
        child.wait()


def test_a_run_is_stopped(tmp_path: Path) -> None:
    with pytest.raises(NotRunningError):
        stop_run(tmp_path, 1)
    with holding(tmp_path) as process:
        assert stop_run(tmp_path, 30) == process.pid
        assert process.wait() == -signal.SIGTERM
    with pytest.raises(NotRunningError):
        stop_run(tmp_path, 1)


def test_a_run_that_takes_longer(tmp_path: Path) -> None:
    with (
        holding(tmp_path, "deaf") as process,
        pytest.raises(TimeoutError, match=f"process {process.pid} has not ended"),
    ):
        stop_run(tmp_path, 0.1)


ORDERS = Source(TopicOrigin(("orders",), start=Start("latest")))
PIPELINE = Pipeline(
    "p",
    {"orders": ORDERS, "file": Source(FileOrigin("in/"))},
    [Step("counted", Count(("id",)), from_="orders")],
    {"out": Sink("counted", TopicTarget("t"))},
)
OTHER = replace(PIPELINE, steps=[Step("counted", Count(("name",)), from_="orders")])
BEGUN = Checkpoint("id", 0)


def test_an_edit_that_the_checkpoint_does_not_allow(tmp_path: Path) -> None:
    own = tmp_path / "leafcuttr"
    own.mkdir()
    check_edit(PIPELINE, Checkpoint(""), own)
    check_edit(PIPELINE, BEGUN, own)
    kept = (own / FINGERPRINT).read_text()
    with pytest.raises(EditError) as failed:
        check_edit(OTHER, BEGUN, own)
    assert str(failed.value) == (
        f'Spark cannot go on from the checkpoint {tmp_path}: step counted: by was ["id"] and is ["name"].'
        " Undo the edit, or begin anew: leafcuttr spark replay FILE --from earliest, or another checkpoint in the file"
    )
    assert (own / FINGERPRINT).read_text() == kept
    # Before anything was read it may be any other one.
    check_edit(OTHER, Checkpoint(""), own)
    check_edit(OTHER, BEGUN, own)
    assert [path.name for path in own.iterdir()] == [FINGERPRINT]


def test_a_checkpoint_without_a_fingerprint_gets_one(tmp_path: Path) -> None:
    check_edit(PIPELINE, BEGUN, tmp_path)
    with pytest.raises(EditError):
        check_edit(OTHER, BEGUN, tmp_path)


def test_an_edit_with_a_checkpoint_that_is_elsewhere(tmp_path: Path) -> None:
    address = "s3a://bucket/orders"
    # Before a batch was done it may be any other one.
    check_edit(replace(OTHER, checkpoint=address), None, tmp_path)
    check_edit(replace(PIPELINE, checkpoint=address), None, tmp_path)
    History(tmp_path / HISTORY).add(Point(1, 0, 1, 1.0))
    check_edit(replace(PIPELINE, checkpoint=address), None, tmp_path)
    for _ in range(2):
        with pytest.raises(
            EditError, match=f"{address}: step counted: by was .* with another checkpoint in the file$"
        ):
            check_edit(replace(OTHER, checkpoint=address), None, tmp_path)


@pytest.mark.parametrize(
    "start",
    [Start("earliest"), Start("timestamp", 5), Start("offsets", offsets={"a": {0: 1, 1: 2}, "b": {0: 3}})],
)
def test_a_start_is_kept(tmp_path: Path, start: Start) -> None:
    path = tmp_path / "start.json"
    path.write_text(start_as_json(start))
    assert read_start(path) == start


def test_a_start_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "start.json"
    assert read_start(path) is None
    for text in ("", "{}", "[]", '{"at": "earliest", "timestamp_ms": null, "offsets": 7}'):
        path.write_text(text)
        assert read_start(path) is None


def test_where_sources_begin_then() -> None:
    now = begun_at(PIPELINE, Start("timestamp", 5))
    assert now.sources["orders"].origin == TopicOrigin(("orders",), start=Start("timestamp", 5))
    assert now.sources["file"] == PIPELINE.sources["file"]
    sources = {
        "a": Source(TopicOrigin(("one", "two"))),
        "b": Source(TopicOrigin(pattern="th.*")),
        "c": Source(TopicOrigin(("four",), start=Start("latest"))),
        "d": Source(TopicOrigin(pattern="(")),
        "e": TABLE,
    }
    offsets = {"one": {0: 1}, "two": {0: 2}, "three": {0: 3}, "other": {0: 9}}
    now = begun_at(replace(PIPELINE, sources=sources, steps=[]), Start("offsets", offsets=offsets))
    starts = {
        name: source.origin.start
        for name, source in now.sources.items()
        if isinstance(source.origin, TopicOrigin)
    }
    assert starts == {
        "a": Start("offsets", offsets={"one": {0: 1}, "two": {0: 2}}),
        "b": Start("offsets", offsets={"three": {0: 3}}),
        "c": Start("latest"),
        "d": Start("earliest"),
        "e": Start("earliest"),
    }


TABLE = Source(TopicOrigin(("one", "rates")), table=Table(("id",)))


@pytest.mark.parametrize(
    "start", [Start("latest"), Start("timestamp", 5), Start("offsets", offsets={"rates": {0: 7}})]
)
def test_a_table_begins_where_it_did(start: Start) -> None:
    now = begun_at(replace(PIPELINE, sources={"orders": ORDERS, "rates": TABLE}), start)
    assert now.sources["rates"] == TABLE
