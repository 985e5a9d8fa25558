"""The pages for authors of plugins, run as they stand, where LeafCuttr is installed as for anybody."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from support.installed import Environment
from support.pages import run_page

pytestmark = pytest.mark.skipif(not shutil.which("bash"), reason="the commands are for bash")
PACKAGE = "## Make it a package"
"""From here on the tutorial installs a package; test_new_project.py does the same in the gate."""


@pytest.fixture(autouse=True)
def no_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs of a page inherit this process's environment."""
    monkeypatch.delenv("PYTHONPATH", raising=False)


@pytest.mark.long
def test_the_tutorial(installed: Environment, tmp_path: Path) -> None:
    programs = installed.folder / "bin"
    assert run_page("tutorial/plugin.md", tmp_path, until_heading=PACKAGE, programs=programs) >= 12


@pytest.mark.long
def test_the_tutorial_to_its_end(own: Environment, tmp_path: Path) -> None:
    assert run_page("tutorial/plugin.md", tmp_path, programs=own.folder / "bin") >= 19


@pytest.mark.long
def test_how_to_test_a_plugin(installed: Environment, tmp_path: Path) -> None:
    assert run_page("how-to/test-a-plugin.md", tmp_path, programs=installed.folder / "bin") == 2
