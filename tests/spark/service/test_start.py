"""What pipelines cost a broker's start: modules that it imports, with Spark installed. In seconds it is the machine's
speed; what extras cost in all is measured in tests/installed/test_cost_of_extras.py."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from plugins.test_cost import imports_of_a_start

OFF = {"leafcuttr_spark", "leafcuttr_spark.service", "leafcuttr_spark.service.settings"}
"""What says that there is such a plugin, and which settings it has."""
MOST_OF_ALL_PLUGINS, MOST_OF_OURS = 90, 12
"""Modules of the broker and the SDK that a plugin with a service, metrics and an admin path needs; and of this one."""


def others(imported: set[str]) -> set[str]:
    """Packages that are neither ours nor of Python."""
    known = {*sys.stdlib_module_names, "leafcuttr", "leafcuttr_sdk"}
    return {name.partition(".")[0] for name in imported} - known


@pytest.mark.long
def test_a_broker_without_pipelines_imports_three_small_modules_for_them(tmp_path: Path) -> None:
    off = imports_of_a_start(tmp_path / "off", {})
    without = imports_of_a_start(tmp_path / "without", {"lc.plugins.disabled": "spark"})
    assert off - without == OFF
    assert without - off == set()


@pytest.mark.long
@pytest.mark.skipif(importlib.util.find_spec("pyspark") is None, reason="Spark is not here")
def test_a_broker_with_pipelines_imports_nothing_of_spark(tmp_path: Path) -> None:
    """A pipeline is another process."""
    folder = tmp_path / "pipelines"
    folder.mkdir()
    (folder / "wrong.yaml").write_text("pipeline: wrong\n")
    off = imports_of_a_start(tmp_path / "off", {})
    on = imports_of_a_start(tmp_path / "on", {"lc.spark.pipelines": str(folder)})
    assert others(on) - others(off) == set()
    ours = {name for name in on if name.partition(".")[0] == "leafcuttr_spark"}
    assert ours > OFF and len(ours - OFF) <= MOST_OF_OURS, sorted(ours)
    assert not {
        name for name in ours if name.startswith(("leafcuttr_spark.pipelines", "leafcuttr_spark.running"))
    }
    assert len(on - off - ours) <= MOST_OF_ALL_PLUGINS, sorted(on - off - ours)
