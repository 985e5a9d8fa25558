"""Points at which a test may end a process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from leafcuttr_spark.points import DRIVER, POINTS, VARIABLE, WORKER, armed

PROGRAM = """
from leafcuttr_spark.points import reach
for _ in range(2):
    reach("batch-marked")
    print("passed", flush=True)
"""


def test_without_a_point_nothing_happens() -> None:
    assert armed(None) is armed("") is None
    assert len(POINTS) == len(DRIVER) + len(WORKER)


def test_a_point_that_is_none() -> None:
    with pytest.raises(ValueError, match="LEAFCUTTR_SPARK_CRASH_POINT=nowhere: allowed are batch-marked, "):
        armed("nowhere")


@pytest.mark.parametrize(("point", "passed"), [("batch-marked", 0), ("batch-marked:2", 1), ("task-begun", 2)])
def test_the_process_ends_there(point: str, passed: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=os.environ | {VARIABLE: point}, capture_output=True, text=True
    )
    assert done.stdout == "passed\n" * passed
    assert done.returncode == (0 if passed == 2 else -signal.SIGKILL), done.stderr
