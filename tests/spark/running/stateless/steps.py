"""One step on a frame of a few rows, without a stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from leafcuttr_spark.pipelines.model import DeadLetters, Pipeline, Step

HERE = Path(__file__).parent


def context_of(spark: Any, operation: Any, *, catches: bool = True) -> Any:
    from leafcuttr_spark.running.compiling import Compilation, StepContext

    letters = DeadLetters("dead") if catches else None
    pipeline = Pipeline("p", {}, (Step("s", operation, "in"),), file=HERE / "p.yaml", dead_letters=letters)
    (step,) = pipeline.steps
    return StepContext(step, Compilation(pipeline, spark, catches), frozenset(step.frames))


def frame_of(spark: Any, rows: Sequence[Any], ddl: str, *, record: bool = False) -> Any:
    """With `record`: each row as the record 0, 1, ... of a topic `t-v1`, with its JSON as the value."""
    from pyspark.sql import functions as f

    from leafcuttr_spark.running.rows import RECORD, RECORD_DDL

    frame = spark.createDataFrame(list(rows), ddl).coalesce(1)
    if not record:
        return frame
    header = f.array(f.struct(f.lit("own").alias("key"), f.lit(b"x").alias("value")))
    parts = [
        f.lit("t-v1"), f.lit(3), f.monotonically_increasing_id(), f.timestamp_millis(f.lit(1_700_000_000_123)),
        f.lit(b"k"), f.to_json(f.struct("*")).cast("binary"), header,
    ]  # fmt: skip
    return frame.withColumn(RECORD, f.struct(*parts).cast(RECORD_DDL))


def compiled(spark: Any, operation: Any, *frames: Any, catches: bool = True) -> Any:
    from leafcuttr_spark.running.compilers import COMPILERS

    context = context_of(spark, operation, catches=catches)
    return COMPILERS[type(operation)](operation, list(frames), context)


def rows(frame: Any) -> list[Any]:
    """Good rows as dicts of the user's columns; of others the reason."""
    from leafcuttr_spark.running.rows import ERROR, user_columns

    names = user_columns(frame)
    found = []
    for row in frame.collect():
        error = row[ERROR] if ERROR in frame.columns else None
        found.append(error["reason"] if error is not None else _plain({name: row[name] for name in names}))
    return found


def _plain(value: Any) -> Any:
    if hasattr(value, "asDict"):
        return _plain(value.asDict())
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return bytes(value) if isinstance(value, bytearray) else value
