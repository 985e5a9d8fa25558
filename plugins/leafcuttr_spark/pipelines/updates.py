"""Results that are given as updates: which steps give them, and what follows for the one query that a pipeline is."""

from typing import Literal, TypeAlias

from leafcuttr_spark.pipelines.model import Pipeline, Step
from leafcuttr_spark.pipelines.operations import Aggregate, Count, Lookup, Reduce

OutputMode: TypeAlias = Literal["append", "update"]


def output_mode(pipeline: Pipeline) -> OutputMode:
    """For `writeStream.outputMode`."""
    gives_updates = any(
        step.operation.emit == "update"
        for step in pipeline.steps
        if isinstance(step.operation, Aggregate | Count | Reduce)
    )
    return "update" if gives_updates else "append"


def updates_before(pipeline: Pipeline, step: Step) -> str | None:
    """The name of a step before this one whose results are given as updates: rows that replace earlier ones."""
    made_by = {frame: each for each in pipeline.steps for frame in each.frames}
    left = _rows_of(step)
    while left:
        found = made_by.get(left.pop())
        if found is None:
            continue
        if isinstance(found.operation, Aggregate | Count | Reduce) and found.operation.emit == "update":
            return found.name
        left += _rows_of(found)
    return None


def _rows_of(step: Step) -> list[str]:
    """The frames whose rows its own are made of. What a lookup adds to a row makes it no update."""
    return list(step.inputs[:1] if isinstance(step.operation, Lookup) else step.inputs)
