"""What plugins cost that nobody has switched on: light modules, and nothing heavy in a broker that has them installed.

How much longer a start takes and how much larger a broker is with every extra installed is measured in
tests/installed/test_cost_of_extras.py.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from leafcuttr.plugins import entry_points
from leafcuttr.plugins.finding import Choice, find_plugins
from leafcuttr.plugins.loaded import Loaded
from support.broker_process import clean_environ, running_broker

BUNDLED = [one for one in entry_points.candidates() if one.origin.bundled]
MOST_MS = 3.0
OF_SPARK = {
    "fastavro",
    "google",
    "numpy",
    "pandas",
    "polars",
    "py4j",
    "pyarrow",
    "pyspark",
    "sqlglot",
    "yaml",
}
"""No plugin names these as its modules: what runs pipelines may be another environment."""
LATER = ("authentication", "filters", "formats", "peek", "records", "schemas")
TRIES = 20

_IMPORT = """
import sys, time
import leafcuttr_sdk.plugin, leafcuttr_sdk.services, leafcuttr_sdk.settings, leafcuttr_sdk.hooks
import importlib
began = time.process_time()
importlib.import_module(sys.argv[1])
print((time.process_time() - began) * 1000)
"""

_MODULES = """
import importlib, inspect, json, sys
import leafcuttr_sdk.hooks
before = set(sys.modules)
module = importlib.import_module(sys.argv[1])
for name, hook in inspect.getmembers(module, inspect.isfunction):
    if name.startswith("leafcuttr_register_") and not inspect.signature(hook).parameters:
        list(hook())
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def in_a_fresh_process(program: str, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        capture_output=True,
        text=True,
        timeout=120,
        env=clean_environ(),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def bundled() -> list[Loaded]:
    return [one for one in find_plugins(Choice()).all if one.origin.bundled]


def test_there_are_bundled_plugins_and_all_are_off() -> None:
    """Else the tests here would test nothing: `pip install -e .` makes the entry points known."""
    assert BUNDLED
    found = bundled()
    assert {one.state.value for one in found} == {"off"}
    for one in found:
        assert one.plugin is not None and one.hooks is not None
        assert one.plugin.enabled_by or not one.hooks.names  # one without hooks brings nothing into a broker
        assert bool(one.plugin.extra) is bool(one.plugin.modules)
    assert any(one.plugin is not None and one.plugin.extra for one in found)


@pytest.mark.alone
@pytest.mark.parametrize("candidate", BUNDLED, ids=lambda one: one.name)
def test_the_module_that_an_entry_point_names_is_imported_in_three_milliseconds(
    candidate: entry_points.Candidate,
) -> None:
    """The time that the processor works on it, in a process that has the SDK already; the best of several, because
    whatever else goes on there can only add to it."""
    assert candidate.module is not None
    took: list[float] = []
    while not took or (min(took) > MOST_MS and len(took) < TRIES):
        took.append(float(in_a_fresh_process(_IMPORT, candidate.module)))
    assert min(took) <= MOST_MS


@pytest.mark.parametrize("candidate", BUNDLED, ids=lambda one: one.name)
def test_it_and_its_hooks_import_the_sdk_and_the_standard_library_only(
    candidate: entry_points.Candidate,
) -> None:
    assert candidate.module is not None
    modules = json.loads(in_a_fresh_process(_MODULES, candidate.module))
    own = ("leafcuttr_sdk", candidate.module.partition(".")[0])
    assert candidate.module in modules
    assert [name for name in modules if name.partition(".")[0] not in (*own, *sys.stdlib_module_names)] == []


def imports_of_a_start(folder: Path, settings: dict[str, str]) -> set[str]:
    """The modules that `leafcuttr serve` imports until it is stopped."""
    with running_broker(folder, settings, environ={"PYTHONVERBOSE": "1"}) as broker:
        pass
    return set(re.findall(r"^import '([^']+)' # ", broker.log, re.MULTILINE))


def test_a_start_with_nothing_switched_on_imports_nothing_that_an_extra_brings(tmp_path: Path) -> None:
    imported = imports_of_a_start(tmp_path, {})
    assert "leafcuttr.plugins.registration" in imported  # plugins were looked for
    heavy = {name for one in bundled() if one.plugin for name in one.plugin.modules}
    assert heavy
    assert {name for name in imported if name.partition(".")[0] in heavy | OF_SPARK} == set()
    # The package `crc32c` would bring this, and with it email and zipfile: see leafcuttr_sdk.batches.checksum.
    assert "leafcuttr_sdk.batches.checksum" in imported and "importlib.metadata" not in imported
    # What plugins count and show is needed by a scrape only.
    assert "leafcuttr.metrics.added" not in imported
    # Neither does it pay for what only the command line needs of plugins.
    assert (
        "leafcuttr.cli.common.installed" not in imported
        and "leafcuttr.cli.common.records.formats" not in imported
    )


def test_a_start_with_nothing_switched_on_imports_only_what_declares_settings(tmp_path: Path) -> None:
    imported = imports_of_a_start(tmp_path, {})
    assert "leafcuttr_sdk.settings" in imported and "leafcuttr_registry.validation.settings" in imported
    # Classes of things that no plugin brings yet.
    assert {f"leafcuttr_sdk.{name}" for name in LATER} & imported == set()
    assert {name for name in imported if name.startswith("leafcuttr_spark.")} == {
        "leafcuttr_spark.service",
        "leafcuttr_spark.service.settings",
    }
    # No plugin gets the broker.
    assert {"leafcuttr.plugins.activation", "leafcuttr.plugins.facade.view"} & imported == set()
    # What checks values: there are none but the defaults, which tests/plugins/test_bundled.py checks.
    checks = {
        "leafcuttr_mqtt.mapping.templates",
        "leafcuttr_mqtt.mapping.kafka_names",
        "leafcuttr_mqtt.bridge.options",
    }
    assert checks & imported == set()


def test_a_start_imports_nothing_that_only_a_stop_or_unusual_settings_need(tmp_path: Path) -> None:
    imported = imports_of_a_start(tmp_path, {"num.partitions": "1"})
    assert {"leafcuttr.net.binding", "leafcuttr.log.upkeep.clean_stop"} <= imported
    # For a name of a host that is not ASCII, for more than one log to be synced at a stop, and for the settings of a
    # plugin that is on.
    later = ("encodings.idna", "stringprep", "concurrent.futures", "leafcuttr.plugins.settings_views")
    assert {*later} & imported == set()


def test_discovery_does_without_importlib_metadata() -> None:
    program = """
import sys
from leafcuttr.plugins.entry_points import candidates
print(len(candidates()), "importlib.metadata" in sys.modules)
"""
    count, with_metadata = in_a_fresh_process(program).split()
    assert int(count) >= len(BUNDLED)
    assert with_metadata == "False"


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "words", [("topics", "--help"), ("serve", "--help"), ("config", "check", "/dev/null")]
)
def test_a_command_of_ours_does_not_look_for_plugins_on_the_command_line(words: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "leafcuttr", *words],
        capture_output=True,
        text=True,
        timeout=120,
        env=clean_environ({"PATH": os.environ["PATH"]}),
    )
    assert done.returncode == 0
    assert "leafcuttr.cli.common.installed" not in done.stderr
