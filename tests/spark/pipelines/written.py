"""Pipelines as texts, for tests: what is made of one, and what is said of one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from leafcuttr_spark.pipelines.checking.whole import check_pipeline
from leafcuttr_spark.pipelines.errors import Fault, PipelineFaultsError
from leafcuttr_spark.pipelines.model import Pipeline
from leafcuttr_spark.pipelines.reading.loading import parse_pipeline

HEAD = "pipeline: p\n"
SOURCE = """\
sources:
  orders:
    topic: orders
    key: text
    value:
      format: json
      columns:
        id: string
        customer: string
        amount: double
        count: int
        items: array<struct<name:string,price:decimal(10,2)>>
        address: struct<street:string,city:string>
    watermark: 10s
"""
SINK = "sinks: {out: {topic: out}}\n"


def read(
    text: str,
    variables: Mapping[str, str] | None = None,
    *,
    folder: Path = Path(),
    needs_secrets: bool = True,
) -> Pipeline:
    """The pipeline of a text; what is wrong with it is raised."""
    return parse_pipeline(text.encode(), folder / "p.yaml", variables, needs_secrets=needs_secrets)[0]


def faults_of(text: str, variables: Mapping[str, str] | None = None, *, folder: Path = Path()) -> list[str]:
    """What reading says of it, in lines."""
    try:
        read(text, variables, folder=folder)
    except PipelineFaultsError as error:
        return [fault.text("p.yaml") for fault in error.faults]
    return []


def checked(text: str) -> list[Fault]:
    """What checks say of it, notes too."""
    return check_pipeline(read(text))


def with_steps(*steps: str, source: str = SOURCE, sink: str = SINK) -> str:
    """A whole file with these steps, each one line of YAML."""
    return HEAD + source + "steps:\n" + "".join(f"  - {step}\n" for step in steps) + sink


def step_faults(*steps: str, source: str = SOURCE, sink: str = SINK) -> list[str]:
    """What checks say of steps, without notes and places."""
    return [fault.what for fault in checked(with_steps(*steps, source=source, sink=sink)) if not fault.note]
