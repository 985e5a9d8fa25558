"""`leafcuttr spark init`: a file to begin with."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

import leafcuttr_spark as plugin
from leafcuttr_sdk.testing import CommandResult, run_command
from leafcuttr_spark.commands.files import SCHEMA_FILE, TEMPLATES


def run(*words: str) -> CommandResult:
    (command,) = plugin.leafcuttr_register_cli_commands()
    return run_command(command, *words, plugin=plugin)


@pytest.mark.parametrize("name", TEMPLATES)
def test_what_is_written_is_right_and_its_schema_stands_beside_it(name: str, tmp_path: Path) -> None:
    file = tmp_path / "new" / "p.yaml"
    done = run("init", "--template", name, str(file))
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines()[-1] == f"next: leafcuttr spark check {file}"
    text = file.read_text()
    assert text.startswith(f"# yaml-language-server: $schema={SCHEMA_FILE}\n")
    assert run("check", str(file)).status == 0
    schema = json.loads((file.parent / SCHEMA_FILE).read_text())
    jsonschema.Draft7Validator(schema).validate(yaml.safe_load(text.replace(" on:", ' "on":')))


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text("mine")
    done = run("init", str(file))
    assert (done.status, done.err) == (1, f"leafcuttr: {file} is there; --force writes over it\n")
    assert file.read_text() == "mine"
    assert run("init", "--force", str(file)).status == 0
    assert file.read_text() != "mine"


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    done = run("init", str(tmp_path / "x" / "p.yaml"))
    assert done.status == 1 and done.err.startswith("leafcuttr: ") and done.err.count("\n") == 1


def test_a_template_that_is_not_there() -> None:
    assert run("init", "--template", "nope", "x.yaml").status == 2
