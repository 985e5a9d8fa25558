"""`leafcuttr spark plan`: the graph of a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import leafcuttr_spark as plugin
from leafcuttr_sdk.testing import CommandResult, run_command

TEXT = """\
pipeline: p
cluster: {sasl.password: "${env:LC_TEST_SECRET}"}
sources:
  orders: {topic: orders, value: {format: json, columns: {id: string, amount: double}}, watermark: 10s}
  regions: {file: regions.csv, table: code}
steps:
  - branch: {large: amount > 100, small: "amount > 0 AND id <> '${env:LC_TEST_SECRET}'"}
  - {name: totals, from: large, aggregate: {by: id, window: {tumbling: 1m}, total: sum(amount)}}
sinks:
  totals: {topic: totals, key: id}
  small: {from: small, topic: "small"}
  archive: {from: regions, file: out/}
dead-letters: dead
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("LC_TEST_SECRET", "open-sesame")
    file = tmp_path / "p.yaml"
    file.write_text(TEXT)
    return str(file)


def run(*words: str) -> CommandResult:
    (command,) = plugin.leafcuttr_register_cli_commands()
    done = run_command(command, "plan", *words, plugin=plugin)
    assert "sesame" not in done.out + done.err
    return done


def test_as_text(file: str) -> None:
    assert (
        run(file).out
        == """\
source orders: topic orders, value json, key bytes, watermark 10s
    (key binary, id string, amount double, timestamp timestamp)
table regions: csv regions.csv, key (code)
    (...)
step branch_1: branch large = amount > 100, small = amount > 0 AND id <> '***'
    <- orders
    large (key binary, id string, amount double, timestamp timestamp)
    small (key binary, id string, amount double, timestamp timestamp)
step totals: aggregate by (id), tumbling 1m, update: total = sum(amount)
    <- large
    (id string, window_start timestamp, window_end timestamp, total double)
sink totals: topic totals, value json, key text id, exactly-once
    <- totals
sink small: topic small, value json, exactly-once
    <- small
sink archive: parquet out/
    <- regions
sink dead letters: topic dead
"""
    )


def test_as_a_diagram(file: str) -> None:
    lines = run("--mermaid", file).out.splitlines()
    assert lines[0] == "flowchart LR"
    assert (
        "    n2[\"branch_1<br/>branch large = amount #gt; 100, small = amount #gt; 0 AND id #lt;#gt; '***'\"]"
        in lines
    )
    assert lines[-5:] == [
        "    n0 --> n2",
        "    n2 -->|large| n3",
        "    n3 --> n4",
        "    n2 -->|small| n5",
        "    n1 --> n6",
    ]


def test_as_json(file: str) -> None:
    boxes = json.loads(run("--json", file).out)
    assert [(box["kind"], box["name"], box["inputs"]) for box in boxes] == [
        ("source", "orders", []),
        ("table", "regions", []),
        ("step", "branch_1", ["orders"]),
        ("step", "totals", ["large"]),
        ("sink", "totals", ["totals"]),
        ("sink", "small", ["small"]),
        ("sink", "archive", ["regions"]),
        ("sink", "dead letters", []),
    ]
    assert boxes[1]["frames"] == {"regions": {"columns": [], "open": True}}
    assert boxes[3]["frames"]["totals"]["columns"][3] == {"name": "total", "type": "double"}
    assert [*boxes[2]["frames"]] == ["large", "small"]


def test_a_file_that_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text("pipeline: p\nsources: {a: {topic: a, time: x}}\nsinks: {o: {topic: o, key: y}}\n")
    done = run(str(file))
    assert (done.status, done.out) == (1, "")
    assert done.err.splitlines() == [
        f"leafcuttr: {file}:2: sources.a: time: there is no column x; there are key, value",
        f"leafcuttr: {file}:3: sinks.o: key: there is no column y; there are key, value",
    ]


def test_wrong_usage(file: str) -> None:
    assert run("--json", "--mermaid", file).status == 2
