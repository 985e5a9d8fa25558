"""`leafcuttr plugins new`: what it writes, and what it refuses. That the project works: tests/installed."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from packaging.requirements import Requirement

from leafcuttr import __version__
from leafcuttr.cli.plugins.new import render
from leafcuttr.cli.root import cli


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*words: str) -> Result:
    return CliRunner().invoke(cli, ["plugins", "new", *words])


def test_it_writes_a_project_of_that_name(tmp_path: Path) -> None:
    result = run("parcel-watch")
    assert result.exit_code == 0
    folder = tmp_path / "parcel-watch"
    written = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    assert written == [
        ".gitignore",
        "README.md",
        "pyproject.toml",
        "src/leafcuttr_parcel_watch/__init__.py",
        "src/leafcuttr_parcel_watch/command.py",
        "src/leafcuttr_parcel_watch/heartbeat.py",
        "src/leafcuttr_parcel_watch/py.typed",
        "src/leafcuttr_parcel_watch/size_limit.py",
        "tests/test_command.py",
        "tests/test_filter.py",
        "tests/test_service.py",
    ]
    assert result.output.startswith("wrote the plugin parcel-watch: 11 files in parcel-watch\n")
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    assert project["name"] == "leafcuttr-parcel-watch"
    assert project["entry-points"]["leafcuttr.plugins"] == {"parcel-watch": "leafcuttr_parcel_watch"}
    (needed,) = project["dependencies"]
    assert needed in (f"leafcuttr>={__version__}", f"leafcuttr>={__version__.rpartition('.')[0]}")
    assert Requirement(needed).specifier.contains(__version__)


def test_no_word_of_the_template_is_left() -> None:
    for path, text in render("a1-b2"):
        assert not re.search(r"@[a-z_]+@", path + text), path
        if path.endswith(".py"):
            ast.parse(text, path)


def test_its_code_imports_the_sdk_and_nothing_else_of_ours() -> None:
    for path, text in render("parcels"):
        if path.endswith(".py"):
            imported = {
                name
                for node in ast.walk(ast.parse(text))
                for name in (
                    [alias.name for alias in node.names]
                    if isinstance(node, ast.Import)
                    else [node.module or ""]
                    if isinstance(node, ast.ImportFrom)
                    else []
                )
            }
            assert not [name for name in imported if name.split(".")[0] == "leafcuttr"]


def test_json(tmp_path: Path) -> None:
    result = run("parcels", "--into", "somewhere/else", "--json")
    assert result.exit_code == 0
    said = json.loads(result.output)
    assert said["path"] == str(tmp_path / "somewhere" / "else")
    assert all((tmp_path / "somewhere" / "else" / file).is_file() for file in said["files"])


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Parcel_Watch", "did you mean parcel-watch?"),
        ("9lives", "did you mean lives?"),
        ("a--b", "did you mean a-b?"),
        ("a-", "did you mean a?"),
        ("größe", "lower-case letters, digits and single dashes"),
        ("../up", "did you mean up?"),
        ("leafcuttr-parcels", "did you mean parcels?"),
    ],
)
def test_a_name_that_cannot_be(name: str, says: str, tmp_path: Path) -> None:
    result = run(name)
    assert result.exit_code == 2
    assert says in result.output
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "parcels").mkdir()
    assert run("parcels").exit_code == 0
    (tmp_path / "parcels" / "README.md").write_text("mine")
    result = run("parcels")
    assert result.exit_code == 1
    assert result.output == "leafcuttr: parcels is not empty: choose another with --into, or empty it\n"
    assert (tmp_path / "parcels" / "README.md").read_text() == "mine"


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = run("parcels", "--into", "file/below")
    assert result.exit_code == 1
    assert "leafcuttr: cannot write file/below" in result.output
    assert "Traceback" not in result.output
