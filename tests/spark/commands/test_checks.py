"""`leafcuttr spark check`: what is wrong with files, without Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import leafcuttr_spark as plugin
from leafcuttr_sdk.testing import CommandResult, run_command
from leafcuttr_spark.commands.files import TEMPLATES, template

RIGHT = "pipeline: p\nsources: {a: {topic: a}}\nsinks: {o: {topic: o}}\n"
WRONG = "pipeline: p\nsources: {a: {topic: a, value: avo}}\nsinks: {o: {topc: o}}\n"


def run(*words: str) -> CommandResult:
    (command,) = plugin.leafcuttr_register_cli_commands()
    return run_command(command, *words, plugin=plugin)


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    found = tmp_path / "right.yaml", tmp_path / "wrong.yaml"
    for file, text in zip(found, (RIGHT, WRONG), strict=True):
        file.write_text(text)
    return str(found[0]), str(found[1])


def test_a_file_that_is_right(files: tuple[str, str]) -> None:
    done = run("check", files[0])
    assert (done.status, done.out) == (0, f"{files[0]}: 1 source, 0 steps, 1 sink: nothing is wrong\n")


def test_each_fault_of_each_file_has_a_line(files: tuple[str, str]) -> None:
    done = run("check", files[1], files[0], str(Path(files[0]).parent / "none.yaml"))
    assert done.status == 1
    lines = done.out.splitlines()
    assert len(lines) == 4
    assert lines[0].startswith(
        f"{files[1]}:2: sources.a: value: 'avo' is not allowed: did you mean avro?; allowed: "
    )
    assert lines[1].startswith(f"{files[1]}:3: sinks.o: there is no key topc: did you mean topic?; allowed: ")
    assert lines[2].endswith("right.yaml: 1 source, 0 steps, 1 sink: nothing is wrong")
    assert lines[3].endswith("none.yaml: cannot be read: No such file or directory")


def test_json(files: tuple[str, str]) -> None:
    done = run("check", "--json", *files)
    assert done.status == 1
    right, wrong = json.loads(done.out)
    assert right == {"file": files[0], "ok": True, "faults": [], "notes": []}
    assert (wrong["file"], wrong["ok"], wrong["notes"]) == (files[1], False, [])
    assert [(one["line"], one["part"]) for one in wrong["faults"]] == [(2, "sources.a"), (3, "sinks.o")]
    assert wrong["faults"][1]["what"].startswith("there is no key topc")


def test_notes_are_shown_and_are_no_faults(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(
        RIGHT.replace("}}\nsinks", "}, b: {topic: b}}\nsinks").replace("{topic: o}", "{from: a, topic: o}")
    )
    done = run("check", str(file))
    assert done.status == 0
    assert done.out.splitlines()[0] == f"{file}:2: sources.b: no step and no sink reads it (note)"


def test_variables_are_set(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(RIGHT.replace("{topic: a}", '{topic: "${t}"}') + "variables: {t: }\n")
    assert "the variable t has no value: --set t=..." in run("check", str(file)).out
    assert run("check", "--set", "t=a=b", str(file)).status == 1
    assert run("check", "--set", "t=a", str(file)).status == 0
    assert run("check", "--set", "t", str(file)).status == 2


def test_secrets_are_not_needed_and_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(
        RIGHT + "cluster: {sasl.password: '${env:LC_TEST_SECRET}'}\nlate: '${env:LC_TEST_SECRET}'\n"
    )
    assert "the environment has no LC_TEST_SECRET" not in run("check", str(file)).err
    monkeypatch.setenv("LC_TEST_SECRET", "open-sesame")
    done = run("check", str(file))
    assert "late: '***' is not allowed" in done.out
    assert "sesame" not in done.out + done.err


def test_the_schema_for_editors() -> None:
    done = run("check", "--schema")
    assert done.status == 0
    assert json.loads(done.out)["$schema"].startswith("http://json-schema.org/")


def test_wrong_usage() -> None:
    assert run("check").status == 2
    assert run("check", "--nope", "x").status == 2


@pytest.mark.parametrize("name", TEMPLATES)
def test_each_template_is_right(name: str, tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(template(name))
    done = run("check", str(file))
    # A registry that is not there is noted.
    assert done.status == 0, done.out
    assert [line for line in done.out.splitlines() if not line.endswith("(note)")] == [
        done.out.splitlines()[-1]
    ]


WITHOUT_SPARK = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pyspark", "py4j", "pandas", "pyarrow", "numpy", "polars"):
            raise ImportError(f"{name} is refused")

sys.meta_path.insert(0, Refuse())
from leafcuttr.cli import main
sys.argv = ["leafcuttr", "spark", *sys.argv[1:]]
main()
"""


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "words",
    [
        ("init", "new.yaml"),
        ("check", "right.yaml"),
        ("plan", "right.yaml"),
        ("plan", "--mermaid", "right.yaml"),
    ],
    ids=" ".join,
)
def test_neither_spark_nor_what_it_needs_is_imported(words: tuple[str, ...], files: tuple[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_SPARK, *words],
        cwd=Path(files[0]).parent,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_where_the_packages_are_not_installed_a_line_says_so(files: tuple[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_SPARK.replace('"polars"', '"sqlglot"'), "check", files[0]],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert done.stderr == (
        "leafcuttr: it needs PyYAML and sqlglot, which are not installed: pip install 'leafcuttr[spark]'\n"
    )
