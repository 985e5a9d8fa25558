"""The pytest plugin as other test suites meet it, each in a process of its own: what it gives, what it costs them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.plugin_folders import install

PLUGIN = "leafcuttr_sdk.testing.pytest_plugin"


def run(folder: Path, *words: str, path: str = "", **files: str) -> subprocess.CompletedProcess[str]:
    """pytest in a folder with these files (`name=source` for name.py), with our plugin as its only one."""
    for name, source in files.items():
        (folder / f"{name}.py").write_text(source)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", PLUGIN, "-p", "no:cacheprovider", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
        env={
            **os.environ,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTEST_ADDOPTS": "",
            "PYTHONPATH": path,
        },
    )


def test_the_fixtures(tmp_path: Path) -> None:
    conftest = """
import pytest
@pytest.fixture(scope="session")
def leafcuttr_settings():
    return {"num.partitions": 4, "log.retention.hours": 3}
"""
    source = """
import asyncio
from types import ModuleType
import pytest
import trio
from leafcuttr_sdk import Plugin, RecordFilterSpec

pytestmark = pytest.mark.leafcuttr(settings={"log.retention.hours": 5, "num.partitions": 5})
seen = []

def partitions(broker, topic):
    broker.produce(topic, "x")
    async def count(inside):
        return inside.topics.partition_count(topic)
    return broker.call(count)

def test_of_the_module(leafcuttr_broker):
    seen.append(leafcuttr_broker.data_dir)
    assert partitions(leafcuttr_broker, "t") == 5

@pytest.mark.leafcuttr(settings={"num.partitions": 6})
class TestClass:
    def test_of_the_class(self, leafcuttr_broker):
        assert partitions(leafcuttr_broker, "t") == 6
        async def configs(inside):
            return inside.topics.configs("t")
        assert leafcuttr_broker.call(configs)["retention.ms"] == str(5 * 3600_000)

    @pytest.mark.leafcuttr(settings={"num.partitions": 7})
    def test_of_the_function(self, leafcuttr_broker):
        assert partitions(leafcuttr_broker, "t") == 7

def test_each_is_empty(leafcuttr_broker):
    assert leafcuttr_broker.consume("t") == []
    assert leafcuttr_broker.data_dir not in seen

def test_session_1(leafcuttr_broker_session):
    assert partitions(leafcuttr_broker_session, "shared") == 4

def test_session_2(leafcuttr_broker_session, leafcuttr_broker):
    assert len(leafcuttr_broker_session.consume("shared", 1)) == 1
    assert leafcuttr_broker.port != leafcuttr_broker_session.port

def test_asyncio(leafcuttr_broker):
    async def main():
        leafcuttr_broker.produce("t", "from asyncio")
        return await asyncio.to_thread(leafcuttr_broker.consume, "t", 1)
    assert asyncio.run(main())[0].value == b"from asyncio"

def test_trio(leafcuttr_broker):
    async def main():
        leafcuttr_broker.produce("t", "from trio")
        return leafcuttr_broker.consume("t", 1)
    assert trio.run(main)[0].value == b"from trio"

drops = ModuleType("drops")
drops.PLUGIN = Plugin("drops", 1, "a plugin that is not installed")
class Drop:
    def __init__(self, context): pass
    def filter(self, record):
        from leafcuttr_sdk import DROP
        return DROP
drops.leafcuttr_register_record_filters = lambda: [RecordFilterSpec("drop", "drops", Drop)]

@pytest.mark.leafcuttr(plugins=[drops])
def test_a_plugin_of_its_own(leafcuttr_broker):
    leafcuttr_broker.create_topic("gone", configs={"lc.filters": "drop"})
    leafcuttr_broker.produce("gone", "x")
    assert leafcuttr_broker.consume("gone") == []
"""
    done = run(tmp_path, "--strict-markers", conftest=conftest, test_fixtures=source)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "9 passed" in done.stdout


@pytest.mark.long
@pytest.mark.parametrize(
    "marker",
    ["leafcuttr({'num.partitions': 1})", "leafcuttr(setting={})"],
)
def test_a_marker_that_is_wrong(marker: str, tmp_path: Path) -> None:
    source = f"""
import pytest
@pytest.mark.{marker}
def test_it(leafcuttr_broker): pass
"""
    done = run(tmp_path, test_marker=source)
    assert done.returncode != 0
    assert "the marker leafcuttr takes plugins and settings by name" in done.stdout


@pytest.mark.long
def test_a_setting_that_is_wrong_fails_the_test_with_its_line(tmp_path: Path) -> None:
    source = """
import pytest
@pytest.mark.leafcuttr(settings={"num.partitions": "many"})
def test_it(leafcuttr_broker): pass
"""
    done = run(tmp_path, test_setting=source)
    assert done.returncode == 1
    assert "ConfigError: " in done.stdout
    assert "num.partitions" in done.stdout


@pytest.mark.long
def test_it_costs_other_suites_nothing(tmp_path: Path) -> None:
    """Of ours four small modules are imported, nothing of the broker, and nothing else that pytest has not."""
    source = """
import sys
def test_it():
    ours = sorted(name for name in sys.modules if name.partition(".")[0] in ("leafcuttr", "leafcuttr_sdk"))
    assert ours == [
        "leafcuttr_sdk",
        "leafcuttr_sdk._described",
        "leafcuttr_sdk.testing",
        "leafcuttr_sdk.testing.pytest_plugin",
        "leafcuttr_sdk.types",
    ]
    assert "trio" not in sys.modules
    assert "click" not in sys.modules
"""
    done = run(tmp_path, test_cost=source)
    assert done.returncode == 0, done.stdout + done.stderr
    bare = (
        "import sys, pytest; before = set(sys.modules); import {0}; print(*sorted(set(sys.modules) - before))"
    )
    new = subprocess.run(
        [sys.executable, "-c", bare.format(PLUGIN)], capture_output=True, text=True, timeout=120, check=True
    ).stdout.split()
    assert new == [
        "leafcuttr_sdk",
        "leafcuttr_sdk._described",
        "leafcuttr_sdk.testing",
        PLUGIN,
        "leafcuttr_sdk.types",
    ]


@pytest.mark.long
def test_the_fixtures_are_listed_with_what_they_do(tmp_path: Path) -> None:
    done = run(tmp_path, "--fixtures", "--markers", test_none="def test_none(): pass")
    assert "@pytest.mark.leafcuttr(settings={...}, plugins=[...])" in done.stdout
    done = run(tmp_path, "--fixtures", test_none="def test_none(): pass")
    for name in ("leafcuttr_broker ", "leafcuttr_broker_session", "leafcuttr_settings", "leafcuttr_plugins"):
        assert name in done.stdout


@pytest.mark.long
def test_the_plugins_of_the_project_run_and_no_other(tmp_path: Path) -> None:
    """Those that its pyproject.toml names, as they are installed; a test and a conftest.py can say otherwise."""
    for name in ("mine", "other"):
        install(tmp_path / "site", name)
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "x"\n[project.entry-points."leafcuttr.plugins"]\nmine = "mine_plugin"\ngone = "gone"\n'
    )
    source = """
import pytest

def on(broker):
    async def found(inside):
        return {one.name for one in inside._core.plugged.found if one.became == "enabled"}
    return broker.call(found)

def test_by_default(leafcuttr_broker, leafcuttr_broker_session):
    assert on(leafcuttr_broker) == {"mine"} == on(leafcuttr_broker_session)

@pytest.mark.leafcuttr(plugins=["other"])
def test_one_more(leafcuttr_broker):
    assert on(leafcuttr_broker) == {"mine", "other"}

@pytest.mark.leafcuttr(settings={"lc.plugins.disabled": ("mine",)})
def test_all_but_one(leafcuttr_broker):
    assert on(leafcuttr_broker) == {"other"}

class TestOfNone:
    @pytest.fixture(scope="session")
    def leafcuttr_plugins(self):
        return ["other"]

    def test_another(self, leafcuttr_broker):
        assert on(leafcuttr_broker) == {"other"}
"""
    done = run(tmp_path, test_plugins=source, path=str(tmp_path / "site"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout


@pytest.mark.long
def test_a_registry_in_the_broker(tmp_path: Path) -> None:
    source = """
import json
import urllib.request

def ask(url, body=None):
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, {"content-type": "application/json"})) as answer:
        return json.load(answer)

def test_with_one(leafcuttr_broker, leafcuttr_registry):
    assert ask(leafcuttr_registry + "/subjects") == []
    assert ask(leafcuttr_registry + "/subjects/a/versions", {"schema": '"int"'})["id"] == 1
    assert len(leafcuttr_broker.consume("_schemas")) >= 1

def test_each_is_empty(leafcuttr_registry):
    assert ask(leafcuttr_registry + "/subjects") == []

def test_without_one(leafcuttr_broker):
    assert "lc.schema.registry" not in leafcuttr_broker.listeners
"""
    ran = run(tmp_path, test_registry=source)
    assert ran.returncode == 0, ran.stdout
    assert "3 passed" in ran.stdout
