"""The file in which a run says how it goes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from leafcuttr_spark.operating.status import RunState, RunStatus, is_alive, read_status, write_status
from support.spark_runs import STATUS

OWN = replace(STATUS, pid=os.getpid())


def test_what_is_written_is_read(tmp_path: Path) -> None:
    full = replace(OWN, batch=3, lag_records=0, lag_s=0.5, watermark_ms=9, trouble="ü", rows_per_s=2.5)
    for status in (OWN, full):
        write_status(tmp_path / "status.json", status)
        assert read_status(tmp_path / "status.json") == status
    assert [path.name for path in tmp_path.iterdir()] == ["status.json"]


def test_where_it_cannot_be_written_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "status.json").mkdir()
    with pytest.raises(OSError):
        write_status(tmp_path / "status.json", OWN)
    assert [path.name for path in tmp_path.iterdir()] == ["status.json"]


@pytest.mark.parametrize(
    "change",
    [
        {"state": "dancing"},
        {"pid": "7"},
        {"rows": 1.5},
        {"rows": True},
        {"batch": "3"},
        {"lag_s": "x"},
        {"trouble": None},
    ],
)
def test_what_is_no_status_is_none(tmp_path: Path, change: dict[str, object]) -> None:
    path = tmp_path / "status.json"
    write_status(path, OWN)
    good = json.loads(path.read_text())
    path.write_text(json.dumps(good | change))
    assert read_status(path) is None


def test_a_file_of_another_version(tmp_path: Path) -> None:
    """What is not known is left out, what is not there has its default, but for what says which run it is."""
    path = tmp_path / "status.json"
    write_status(path, OWN)
    good = json.loads(path.read_text())
    path.write_text(json.dumps({**good, "later": 1, "lag_s": 3}))
    assert read_status(path) == replace(OWN, lag_s=3)
    del good["rows"]
    path.write_text(json.dumps(good))
    assert read_status(path) == OWN
    del good["run"]
    path.write_text(json.dumps(good))
    assert read_status(path) is None


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, b" " * ((1 << 20) + 1)])
def test_hostile_files(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "status.json"
    path.write_bytes(data)
    assert read_status(path) is None
    assert read_status(tmp_path / "none") is None


def test_whether_its_process_runs() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as over:
        over.wait()
    assert is_alive(OWN, "here")
    assert not is_alive(replace(OWN, state=RunState.FAILED), "here")
    assert not is_alive(replace(OWN, pid=over.pid), "here")
    assert is_alive(replace(OWN, pid=over.pid), "there")
    assert is_alive(replace(OWN, pid=1), "here")


@pytest.mark.parametrize(
    ("status", "failure", "trouble"),
    [
        (OWN, "", ""),
        (replace(OWN, trouble="it waits"), "", "it waits"),
        (replace(OWN, last_failure="why"), "why", "the run before has failed: why"),
        (replace(OWN, last_failure="why", trouble="it waits"), "why", "it waits"),
        (replace(OWN, last_failure="why", trouble="again", state=RunState.FAILED), "again", "again"),
    ],
)
def test_what_is_said_of_failures(status: RunStatus, failure: str, trouble: str) -> None:
    assert (status.failure, status.all_trouble) == (failure, trouble)
