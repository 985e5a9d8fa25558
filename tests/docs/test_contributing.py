"""What the page for contributors says is enough: the files it names exist, and its example is made in a copy."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import textwrap
import urllib.request
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from support.broker_process import running_broker
from support.gates_slice import divided
from support.tree_copy import ROOT, copy_tree, environ_of, run_tests

PAGE = ROOT / "docs" / "contributing.md"
METRIC = "leafcuttr_empty_partitions"
PAGE_TEST = "tests/docs/test_reference.py::test_metrics"
TESTS = (
    "tests/docs/test_reference.py",
    "tests/server/admin/test_readings.py::test_every_declared_metric_and_no_other",
    "tests/server/admin/test_readings.py::test_empty_partitions",
)


def section(title: str) -> str:
    found = re.search(
        rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    assert found is not None, title
    return found[1]


def blocks(language: str) -> list[str]:
    found = re.findall(
        rf"^( *)```{language}\n(.*?)^ *```$", section("Add a metric"), re.DOTALL | re.MULTILINE
    )
    return [textwrap.dedent(text) for _, text in found]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return copy_tree(tmp_path / "tree")


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")
@pytest.mark.long
def test_a_metric_is_added_as_the_page_says(tree: Path, tmp_path: Path) -> None:
    for diff in blocks("diff"):
        done = subprocess.run(
            ["git", "apply", "--recount", "--unidiff-zero", "-"],
            cwd=tree,
            input=diff,
            text=True,
            capture_output=True,
        )
        assert done.returncode == 0, done.stderr + diff
    before = run_tests(tree, PAGE_TEST)
    assert "run: python -m leafcuttr.metrics.reference" in before.stdout, before.stdout
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command in blocks("sh"):
        subprocess.run(["sh", "-ec", command], cwd=tree, env={**environ_of(tree), "PATH": path}, check=True)
    assert f"| `{METRIC}` | gauge |" in (tree / "docs" / "reference" / "metrics.md").read_text()
    after = run_tests(tree, *TESTS)
    assert after.returncode == 0, after.stdout
    with (
        running_broker(tmp_path / "broker", environ=environ_of(tree)) as broker,
        urllib.request.urlopen(f"http://{broker.about['metrics']}/metrics", timeout=30) as answer,
    ):
        shown = answer.read().decode()
    assert f"# HELP {METRIC} Partitions without records.\n" in shown
    assert re.search(rf"^{METRIC} \d+\.0$", shown, re.MULTILINE), shown


def test_the_files_it_names_exist() -> None:
    named = set(re.findall(r"`((?:core|sdk|plugins|tests|docs)/[^`]*)`", PAGE.read_text(encoding="utf-8")))
    assert len(named) > 20
    general = {name for name in named if re.search(r"NAME|THEME", name)}
    assert [name for name in sorted(named - general) if not (ROOT / name).exists()] == []
    for name in general:
        pattern = re.sub(r"leafcuttr_NAME|NAME|THEME", "*", name.rstrip("/"))
        assert list(ROOT.glob(pattern)), name


class Case:
    """What a slice looks at of a test."""

    def __init__(self, test: str, index: int | None = None, **marks: int) -> None:
        self.nodeid = test if index is None else f"{test}[{index}]"
        self._marks = marks
        if index is not None:
            self.callspec = SimpleNamespace(indices={"case": index})

    def get_closest_marker(self, name: str) -> SimpleNamespace | None:
        return SimpleNamespace(args=(self._marks[name],)) if name in self._marks else None


def test_the_gates_slice_is_the_same_in_every_order() -> None:
    """Every third case, all without a mark, none that is long."""
    cases: list[Any] = [Case("a::one", index, one_in=3) for index in range(8)]
    cases += [Case("a::two", index, one_in=3) for index in range(2)]
    cases += [Case("b::plain"), Case("b::long", long=1), Case("b::both", 0, one_in=3, long=1)]
    for seed in range(5):
        random.Random(seed).shuffle(cases)
        kept, left_out = divided(cases)
        assert {case.nodeid for case in kept} == {
            *("a::one[0]", "a::one[3]", "a::one[6]", "a::two[0]", "b::plain"),
        }
        assert sorted(map(id, (*kept, *left_out))) == sorted(map(id, cases))
        assert kept == [case for case in cases if case in kept]
