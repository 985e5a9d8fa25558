"""The modules that tasks of Spark name are imported where the packages of commands and brokers are not."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from imports.graph import modules
from support.spark_tasks import NOT_THERE, of_tasks

pytest.importorskip("pyspark")

PROGRAM = """
import importlib, json, sys

missing, names = json.load(sys.stdin)
sys.modules.update(dict.fromkeys(missing))
for name in names:
    importlib.import_module(name)
print(len(names))
"""


@pytest.mark.long
def test_executors_can_import_what_tasks_name() -> None:
    names = of_tasks(modules())
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps([NOT_THERE, [*names, "pyspark_leafcuttr"]]),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (0, f"{len(names) + 1}\n"), done.stderr
