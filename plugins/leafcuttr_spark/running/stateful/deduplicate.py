# PySpark is not installed where types are checked.
# pyright: reportMissingImports=false, reportCallIssue=false, reportArgumentType=false
"""The first row of each key, for ever or for a time, by Spark's own operators."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from leafcuttr_spark.pipelines.operations import Deduplicate
from leafcuttr_spark.running.rows import TIME, column
from leafcuttr_spark.running.stateful.event_time import (
    DUE,
    Delay,
    check_time,
    delay_of,
    due,
    has_watermark,
    later,
    time_column,
    unmarked,
)
from leafcuttr_spark.running.stateful.late import WATERMARK, in_time
from leafcuttr_spark.running.stateful.stores import state_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from leafcuttr_spark.running.compiling import StepContext


def deduplicate(operation: Deduplicate, frames: "Sequence[DataFrame]", context: "StepContext") -> "DataFrame":
    rows = context.good(frames[0])
    name = context.step.name
    delay, is_marked = delay_of(rows), has_watermark(rows)
    if operation.within_ms is None:
        found = _renamed(unmarked(rows), operation.by, name).dropDuplicates(_keys(operation, name))
        return _as_before(found, operation.by, name, delay, is_marked)
    check_time(rows, "deduplicate within a time")
    rows = in_time(rows, f.unix_millis(TIME), context).drop(WATERMARK)
    # Spark keeps a key for the watermark's delay, as the column of event time says it.
    is_due = due(later(f.col(TIME), delay.shift), within_ms=operation.within_ms)
    timed = _renamed(unmarked(rows).withColumn(DUE, is_due), operation.by, name)
    found = timed.dropDuplicatesWithinWatermark(_keys(operation, name)).drop(DUE)
    return _as_before(found, operation.by, name, delay, is_marked)


def _keys(operation: Deduplicate, name: str) -> list[str]:
    return [state_name(name, each) for each in operation.by]


def _renamed(rows: "DataFrame", by: Sequence[str], name: str) -> "DataFrame":
    """The columns of the key as the state shall name them."""
    named = {each: column(each).alias(state_name(name, each)) for each in by}
    return rows.select(*(named.get(each, column(each)) for each in rows.columns))


def _as_before(rows: "DataFrame", by: Sequence[str], name: str, delay: Delay, is_marked: bool) -> "DataFrame":
    named = {state_name(name, each): column(state_name(name, each)).alias(each) for each in by}
    if is_marked:
        named[TIME] = time_column(f.col(TIME), delay)
    return rows.select(*(named.get(each, column(each)) for each in rows.columns))
