# PySpark is not installed where types are checked.
# pyright: reportMissingImports=false, reportCallIssue=false, reportArgumentType=false
"""State of the user's own: a class made of Spark's StatefulProcessor, with its timers."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as f
from pyspark.sql.streaming import StatefulProcessor

from leafcuttr_spark.pipelines.errors import PipelineRefusedError
from leafcuttr_spark.pipelines.operations import Process
from leafcuttr_spark.running.paths import made_by_path
from leafcuttr_spark.running.rows import ERROR, can_fail, column, failed, user_columns
from leafcuttr_spark.running.stateful.event_time import check_time, unmarked
from leafcuttr_spark.running.stateful.portable import beyond_python
from leafcuttr_spark.running.stateful.stores import check_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from leafcuttr_spark.running.compiling import StepContext

_TIMES: Final = {"none": "None", "processing": "ProcessingTime", "event": "EventTime"}


def process(operation: Process, frames: "Sequence[DataFrame]", context: "StepContext") -> "DataFrame":
    """The class gets the user's columns, and gives rows with those of `output`. With timers of event time it gets the
    watermark, and late rows as well: it decides about them. A row with a time that Python cannot hold becomes a dead
    letter."""
    rows = context.good(_with_what_python_cannot_hold(frames[0], context))
    check_store(context.pipeline, "state of your own")
    if operation.timers == "event":
        check_time(rows, "a timer of event time")
    folder = context.pipeline.folder
    processor = made_by_path(operation.class_, operation.arguments, folder)
    if not isinstance(processor, StatefulProcessor):
        raise PipelineRefusedError(
            f"{operation.class_} is not made of pyspark.sql.streaming.StatefulProcessor"
        )
    _send_along(processor, folder)
    plain = unmarked(rows).select(*map(column, user_columns(rows)))
    return plain.groupBy(*map(column, operation.by)).transformWithState(
        processor, operation.output, "append", _TIMES[operation.timers]
    )


def _with_what_python_cannot_hold(frame: "DataFrame", context: "StepContext") -> "DataFrame":
    """Rows with a time that no `datetime` holds have an error: Spark makes an object of Python of each, and where it
    cannot the batch fails. Without dead letters it does."""
    if not context.catches:
        return frame
    for name in user_columns(frame):
        beyond = beyond_python(column(name), frame.schema[name].dataType)
        if beyond is not None:
            problem = f.when(beyond, failed(context.part, f"Python cannot hold the time in {name}"))
            frame = frame.withColumn(ERROR, f.coalesce(f.col(ERROR), problem) if can_fail(frame) else problem)
    return frame


def _send_along(processor: Any, folder: Path) -> None:
    """Tasks find modules that are installed; one in the pipeline's folder goes to them with the class."""
    from pyspark import cloudpickle

    module = sys.modules[type(processor).__module__]
    path = getattr(module, "__file__", None)
    if path is not None and Path(path).is_relative_to(folder.absolute()):
        cloudpickle.register_pickle_by_value(module)
