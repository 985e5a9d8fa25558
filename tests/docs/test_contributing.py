"""What the page for contributors says is enough: the files it names exist, and its example is made in a copy."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
import urllib.request
from pathlib import Path

import pytest

from support.broker_process import clean_environ, running_broker

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "contributing.md"
METRIC = "leafcuttr_empty_partitions"
PAGE_TEST = "tests/docs/test_reference.py::test_metrics"
TESTS = (
    "tests/docs/test_reference.py",
    "tests/server/admin/test_metrics.py::test_every_declared_metric_and_no_other",
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
    """A copy of what git has, as it stands in the working tree."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, check=True,
    )  # fmt: skip
    for name in listed.stdout.decode().split("\0"):
        if name and (ROOT / name).is_file() and not name.startswith("tests/log/fixtures/"):
            target = tmp_path / "tree" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((ROOT / name).read_bytes())
    return tmp_path / "tree"


def environ_of(tree: Path) -> dict[str, str]:
    """With this tree's packages before those that are installed."""
    packages = os.pathsep.join(str(tree / part) for part in ("core", "sdk", "plugins", "tests"))
    return {**clean_environ(), "PYTHONPATH": packages}


def run_tests(tree: Path, *tests: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    return subprocess.run(
        command, cwd=tree, env=environ_of(tree), capture_output=True, text=True, timeout=250
    )


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")
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
