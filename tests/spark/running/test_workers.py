"""Workers of Python on this machine have the installed PySpark, whose bytecode is there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from leafcuttr_spark.running import workers

LIB = "/opt/spark/python/lib"
WRITES = "import os, sys; print(os.environ['PYTHONPATH'], sys.executable, sys.argv[1:])"


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A machine that seems to have PySpark, and its folder for temporary files."""
    monkeypatch.setattr(workers, "find_spec", lambda name: ModuleSpec(name, None, origin=__file__))
    monkeypatch.setattr(workers.tempfile, "tempdir", str(tmp_path))
    workers.worker_python.cache_clear()
    yield tmp_path
    workers.worker_python.cache_clear()


@pytest.mark.parametrize(
    ("path", "left"),
    [
        (
            f"{LIB}/pyspark.zip:{LIB}/py4j-0.10.9.9-src.zip:/opt/spark/jars/x.jar:/home/me",
            "/opt/spark/jars/x.jar:/home/me",
        ),
        (f"/a b:/*:{LIB}/pyspark.zip", "/a b:/*"),
        (f"{LIB}/pyspark.zip", ""),
        ("/my/pyspark.zip:/my/py4j.zip", "/my/pyspark.zip:/my/py4j.zip"),
    ],
)
def test_the_zips_of_spark_are_left_out(fresh: Path, path: str, left: str) -> None:
    python = workers.worker_python()
    assert Path(python).parent.parent == fresh and workers.worker_python() == python
    done = subprocess.run(
        [python, "-c", WRITES, "a b", "$HOME"],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.stdout == f"{left} {sys.executable} ['a b', '$HOME']\n", done.stderr


def test_where_it_is_not_installed_or_no_script_runs_it_is_this_python(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(
            workers, "find_spec", lambda name: ModuleSpec(name, None, origin=f"{LIB}/pyspark.zip/x.py")
        )
        assert workers.worker_python() == sys.executable
    for error in (PermissionError(13, "noexec"), subprocess.CalledProcessError(1, "python")):
        workers.worker_python.cache_clear()

        def run(*words: object, error: Exception = error, **more: object) -> None:
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(workers.subprocess, "run", run)
            assert workers.worker_python() == sys.executable
    workers.worker_python.cache_clear()
    monkeypatch.setattr(workers.tempfile, "tempdir", str(fresh / "nowhere"))
    assert workers.worker_python() == sys.executable


def test_the_script_goes_with_the_process(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    program = (
        "from leafcuttr_spark.running.workers import worker_python; print(open(worker_python()).read()[:9])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "#!/bin/sh\n", done.stderr
    assert list(tmp_path.iterdir()) == []
