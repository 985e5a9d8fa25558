"""The output mode of the one query that a pipeline is: which rows of a native aggregate Spark gives. Without Spark.

Spark has one mode for the whole query. `update` gives each group that a batch has changed; `append` each group once,
when the watermark has closed it. A pipeline whose aggregates differ runs with `update`, and windows that are to be
given once are collected before they are aggregated (`collecting`).
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias

from leafcuttr_spark.pipelines.model import Pipeline, Step
from leafcuttr_spark.pipelines.operations import Aggregate, Count, Join, Lookup, Reduce

OutputMode: TypeAlias = Literal["append", "update"]


def output_mode(pipeline: Pipeline) -> OutputMode:
    """For `writeStream.outputMode`."""
    gives_updates = any(
        step.operation.emit == "update"
        for step in pipeline.steps
        if isinstance(step.operation, Aggregate | Count | Reduce)
    )
    return "update" if gives_updates else "append"


def mode_settings(pipeline: Pipeline) -> Mapping[str, str]:
    """Of the session in which the query is started. Spark refuses joins of streams in a query with the mode `update`;
    inner ones work there as they do with `append`, if it does not check the query."""
    joins = any(isinstance(step.operation, Join) for step in pipeline.steps)
    if output_mode(pipeline) == "update" and joins:
        return {"spark.sql.streaming.unsupportedOperationCheck": "false"}
    return {}


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
