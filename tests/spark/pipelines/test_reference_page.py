"""The committed page of keys is what the tables of the code say, and what the other page shows works."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from leafcuttr_spark.pipelines.reading.pipeline_parts import PIPELINE
from leafcuttr_spark.pipelines.reading.sink_parts import SINK
from leafcuttr_spark.pipelines.reading.source_parts import SOURCE
from leafcuttr_spark.pipelines.reading.step_parts import OPERATIONS
from leafcuttr_spark.pipelines.reading.transform_parts import TRANSFORMS
from leafcuttr_spark.pipelines.reference_page import page
from spark.pipelines.written import faults_of
from support.pages import run_page

DOCS = Path(__file__).parents[3] / "docs"


def test_the_committed_page_is_the_code_s() -> None:
    committed = (DOCS / "reference" / "spark-pipelines.md").read_text(encoding="utf-8")
    assert committed == page(), "see the docstring of leafcuttr_spark.pipelines.reference_page"


@pytest.mark.parametrize("part", [PIPELINE, SOURCE, SINK, *TRANSFORMS], ids=lambda part: part.name)
def test_each_key_is_on_it(part: object) -> None:
    for key in part.keys:
        assert f"| `{key.name}` |" in page()


def test_each_operation_is_on_it() -> None:
    for operation in OPERATIONS:
        assert f"### `{operation.name}`\n" in page()


@pytest.mark.long
def test_the_how_to_runs(tmp_path: Path) -> None:
    assert run_page("how-to/write-spark-pipelines.md", tmp_path) == 3


def test_the_parts_of_files_on_it_go_together() -> None:
    text = (DOCS / "how-to" / "write-spark-pipelines.md").read_text(encoding="utf-8")
    parts = [block.partition("```")[0] for block in text.split("```yaml\n")[1:]]
    whole = "pipeline: p\n" + "".join(parts)
    assert set(yaml.safe_load(whole)) >= {"sources", "steps", "sinks", "dead-letters", "late", "registry"}
    assert faults_of(whole) == []
