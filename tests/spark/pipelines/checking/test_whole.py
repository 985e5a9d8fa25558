"""All checks together: lines, order, secrets, and files."""

from __future__ import annotations

from pathlib import Path

import pytest

from leafcuttr_spark.pipelines.checking.whole import load_pipeline
from leafcuttr_spark.pipelines.errors import PipelineFaultsError

TEXT = """\
pipeline: p
sources:
  orders:
    topic: orders
    value:
      format: json
      columns: {id: string, amount: double}
    time: att
steps:
  - name: more
    from: orders
    map:
      total: amount * 2
      wrong: amont * 2
  - name: totals
    aggregate:
      by: [idd]
      window:
        tumbling: 1m
      emit: final
      sum: sum(totl)
sinks:
  out:
    topic: out
    key:
      columns: [id, regin]
late: dead-letters
"""


def test_faults_have_the_lines_of_values_and_come_in_their_order(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(TEXT)
    with pytest.raises(PipelineFaultsError) as raised:
        load_pipeline(file)
    assert [(fault.line, fault.part) for fault in raised.value.faults] == [
        (8, "sources.orders"),
        (14, "steps[0] (more)"),
        (17, "steps[1] (totals)"),
        (18, "steps[1] (totals)"),
        (21, "steps[1] (totals)"),
        (26, "sinks.out"),
        (26, "sinks.out"),
        (27, "late"),
    ]
    assert (
        str(raised.value)
        .splitlines()[1]
        .startswith(f"{file}:14: steps[0] (more): map.wrong: there is no column")
    )


def test_a_secret_is_in_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_TEST_SECRET", "open_sesame")
    file = tmp_path / "p.yaml"
    file.write_text(
        'pipeline: p\nsources: {a: {topic: a}}\nsteps: [{filter: "${env:LC_TEST_SECRET} > 1"}]\n'
        "sinks: {o: {topic: o}}\n"
    )
    with pytest.raises(PipelineFaultsError) as raised:
        load_pipeline(file)
    assert "sesame" not in str(raised.value) + repr(raised.value)
    assert "there is no column ***" in str(raised.value)


def test_the_pipeline_of_a_file_with_its_notes(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text("pipeline: p\nsources: {a: {topic: a}, b: {topic: b}}\nsinks: {o: {from: a, topic: o}}\n")
    pipeline, notes, _ = load_pipeline(file)
    assert [note.text("p.yaml") for note in notes] == ["p.yaml:2: sources.b: no step and no sink reads it"]
    assert pipeline.name == "p" and pipeline.file == file


def test_load_raises_for_a_file_that_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(TEXT)
    with pytest.raises(PipelineFaultsError):
        load_pipeline(file)
    with pytest.raises(PipelineFaultsError, match="no variable of this name"):
        load_pipeline(file, {"x": "y"})
