# PySpark is not installed where types are checked.
# pyright: reportMissingImports=false, reportCallIssue=false, reportArgumentType=false
"""Late rows: those that Spark would drop without a word are counted, and become dead letters where the pipeline says
so.

The rule is Spark's own: a row is late by the watermark of the batch before its own. Tasks get it as a local property of
the batch's jobs, which `announce` reads out of the checkpoint.
"""

import json
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import functions as f

from leafcuttr_spark.running.rows import ERROR, RECORD, TIME, failed, record_of
from leafcuttr_spark.running.stateful.event_time import delay_of, has_watermark

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from leafcuttr_spark.running.compiling import StepContext

WATERMARK: Final = "_lc_watermark"
_LATE: Final = "_lc_late"
_PROPERTY: Final = "leafcuttr.watermark"
_NONE: Final = 0
"""Before the first watermark, as Spark has it."""


def late_metric(step: str) -> str:
    """The observed metric of a batch that counts the late rows of a step, as `rows`; of a join of streams there is one
    for each side, with `.left.` or `.right.` behind it."""
    return f"lc.late.{step}"


def announce(spark: "SparkSession", batch: int) -> None:
    """Tell the tasks of this batch of a stream its watermark. For the start of a function of foreachBatch. With Spark
    Connect there is no way to: late rows are dropped by Spark, and not counted."""
    if not hasattr(spark, "_jvm"):
        return
    context = spark.sparkContext
    query = context.getLocalProperty("sql.streaming.queryId")
    if query is not None:
        context.setLocalProperty(_PROPERTY, str(_watermark_before(spark, query, batch)))


def _watermark_before(spark: "SparkSession", query: str, batch: int) -> int:
    if batch == 0:
        return _NONE
    java: Any = spark._jsparkSession
    virtual: Any = spark._jvm
    running = java.sharedState().activeStreamingQueries().get(virtual.java.util.UUID.fromString(query))
    path = virtual.org.apache.hadoop.fs.Path(f"{running.resolvedCheckpointRoot()}/offsets/{batch - 1}")
    system = path.getFileSystem(java.sessionState().newHadoopConf())
    if not system.exists(path):
        return _NONE
    stream = system.open(path)
    try:
        lines = str(virtual.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")).splitlines()
    finally:
        stream.close()
    return int(json.loads(lines[1])["batchWatermarkMs"])


def _watermark(times: pa.Array) -> pa.Array:
    context = TaskContext.get()
    announced = context.getLocalProperty(_PROPERTY) if context is not None else None
    return pa.repeat(pa.scalar(int(announced or _NONE), pa.int64()), len(times))


def in_time(
    frame: "DataFrame", closed_by: "Column", context: "StepContext", *, part: str | None = None
) -> "DataFrame":
    """The rows that are not late, counted; the others become dead letters. `closed_by` is the watermark, in ms, at
    which a row is late. A row without a time is late too: no window takes it. The rows have the column WATERMARK: that
    of the batch before, in ms, as far as it concerns this frame."""
    seen = frame.withColumn(WATERMARK, _watermark_of(frame))
    late = f.col(TIME).isNull() | ((f.col(WATERMARK) > 0) & (closed_by <= f.col(WATERMARK)))
    told = seen.withColumn(_LATE, late).observe(
        late_metric(part or context.step.name), f.count_if(f.col(_LATE)).alias("rows")
    )
    if context.catches and context.pipeline.late == "dead-letters":
        told = context.shared(told)
        context.aside(_letters(told.where(f.col(_LATE)), context.part))
    return told.where(~f.col(_LATE)).drop(_LATE)


def _watermark_of(frame: "DataFrame") -> "Column":
    if not has_watermark(frame):
        return f.lit(_NONE).cast("bigint")
    return f.arrow_udf(_watermark, "bigint")(f.col(TIME)) - f.lit(delay_of(frame).lag)


def _letters(late: "DataFrame", part: str) -> "DataFrame":
    form = "yyyy-MM-dd'T'HH:mm:ss.SSSXXX"
    reason = f.when(f.col(TIME).isNull(), f.lit("it has no event time")).otherwise(
        f.concat(
            f.lit("it came late: its time is "),
            f.date_format(f.col(TIME), form),
            f.lit(", the watermark is at "),
            f.date_format(f.timestamp_millis(f.col(WATERMARK)), form),
        )
    )
    record = record_of(late.drop(_LATE, WATERMARK)).alias(RECORD)
    return late.select(record, failed(part, reason).alias(ERROR))
