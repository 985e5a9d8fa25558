"""The output mode of the one query that a pipeline is: which rows of a native aggregate Spark gives. Without Spark.

Spark has one mode for the whole query. `update` gives each group that a batch has changed; `append` each group once,
when the watermark has closed it. A pipeline whose aggregates differ runs with `update`, and windows that are to be
given once are collected before they are aggregated (`collecting`).
"""

from collections.abc import Mapping

from leafcuttr_spark.pipelines.model import Pipeline
from leafcuttr_spark.pipelines.operations import Join
from leafcuttr_spark.pipelines.updates import output_mode, updates_before

__all__ = ["mode_settings", "output_mode", "updates_before"]


def mode_settings(pipeline: Pipeline) -> Mapping[str, str]:
    """Of the session in which the query is started. Spark refuses joins of streams in a query with the mode `update`;
    inner ones work there as they do with `append`, if it does not check the query."""
    joins = any(isinstance(step.operation, Join) for step in pipeline.steps)
    if output_mode(pipeline) == "update" and joins:
        return {"spark.sql.streaming.unsupportedOperationCheck": "false"}
    return {}
