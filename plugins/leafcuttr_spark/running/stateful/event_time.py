# PySpark is not installed where types are checked.
# pyright: reportMissingImports=false, reportCallIssue=false, reportArgumentType=false
"""Event time: the hidden column TIME, and how far behind the watermark the rows of a frame may be.

The watermark is set once, where the frame of a source is made. Spark knows the column of event time of a stateful
operator by its metadata, closes what is at or before the watermark, and drops rows that are at or before the watermark
of the batch before. Each step gives its operator such a column of its own, DUE: the time of the row and the grace. TIME
itself carries the metadata only to say that there is a watermark.

Rows that a step gives later than their time, when a window closes, would be late for the next step. So TIME says in its
metadata how long after their time rows may be given: `lag` against the watermark of the query, `shift` against the one
that Spark computes for the next operator.
"""

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql import functions as f
from pyspark.sql.types import ByteType, IntegerType, LongType, ShortType, TimestampType

from leafcuttr_spark.pipelines.errors import PipelineRefusedError
from leafcuttr_spark.pipelines.model import Pipeline, Source, TopicOrigin
from leafcuttr_spark.pipelines.operations import (
    Aggregate,
    Count,
    Deduplicate,
    Join,
    Lookup,
    Process,
    Reduce,
)
from leafcuttr_spark.running.rows import OFFSET, TIME, column

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

DUE: Final = "_lc_due"
_DELAY: Final = "spark.watermarkDelayMs"
"""What Spark marks a column of event time with: EventTimeWatermark.delayKey."""
_LAG, _SHIFT = "leafcuttr.lag", "leafcuttr.shift"
_KEPT_MS: Final = 3_600_000
"""Where no source has a watermark: after which event time lookups forget what a table had before."""

_FIRST_MS: Final = -62_135_596_800_000
_END_MS: Final = 253_402_300_800_000
"""The years 1 to 9999. Far beyond them the arithmetic of windows overflows, which fails the batch of one such row."""

_STATEFUL: Final = (Aggregate, Count, Reduce, Deduplicate, Join, Lookup, Process)


class Delay(NamedTuple):
    """How long after their time rows of a frame may come, in ms."""

    lag: int = 0
    shift: int = 0


def needs_time(pipeline: Pipeline) -> bool:
    """Whether frames of sources need TIME and OFFSET: whether a step has state."""
    return any(isinstance(step.operation, _STATEFUL) for step in pipeline.steps)


def with_event_time(frame: "DataFrame", source: Source, pipeline: Pipeline) -> "DataFrame":
    """TIME and the watermark of a source. A frame of topics comes with TIME, the record's timestamp, and OFFSET. Its
    rows by which it moves the watermark while there are no records, which have a timestamp and no offset, end here."""
    if not needs_time(pipeline):
        return frame
    if source.time is not None:
        time = as_time(column(source.time), frame.schema[source.time].dataType)
        if TIME in frame.columns:
            time = f.when(f.col(OFFSET).isNull(), f.col(TIME)).otherwise(time)
        frame = frame.withColumn(TIME, time)
    elif TIME in frame.columns:
        frame = frame.withColumn(TIME, as_time(f.col(TIME), frame.schema[TIME].dataType))
    delay = _watermark_ms(source, pipeline)
    if delay is None or not frame.isStreaming or TIME not in frame.columns:
        return frame
    marked = frame.withWatermark(TIME, f"{delay} milliseconds")
    if not isinstance(source.origin, TopicOrigin):
        return marked
    # The condition names TIME, or the optimizer would filter before the watermark sees the row.
    return marked.where(f.col(OFFSET).isNotNull() | f.col(TIME).isNull())


def tick_options(source: Source, pipeline: Pipeline) -> dict[str, str]:
    """The option of our data source by which a source without records moves the watermark after a while."""
    idle = pipeline.idle_ms if source.idle_ms is None else source.idle_ms
    is_ours = isinstance(source.origin, TopicOrigin) and source.origin.via == "leafcuttr"
    is_global = source.table is not None and source.table.is_global
    if not idle or not is_ours or is_global or pipeline.trigger.available_now:
        return {}
    if not needs_time(pipeline) or _watermark_ms(source, pipeline) is None:
        return {}
    return {"idleAfter": f"{idle}ms"}


def as_time(value: "Column", kind: Any) -> "Column":
    """Numbers are milliseconds since 1970, as Kafka has them. Null for what is no time of the years 1 to 9999, as
    nanoseconds are that were taken for milliseconds."""
    if isinstance(kind, (ByteType, ShortType, IntegerType, LongType)):
        return f.timestamp_millis(f.when((value >= _FIRST_MS) & (value < _END_MS), value))
    time = value if isinstance(kind, TimestampType) else value.try_cast("timestamp")
    first, end = (f.timestamp_millis(f.lit(each)) for each in (_FIRST_MS, _END_MS))
    return f.when((time >= first) & (time < end), time)


def _watermark_ms(source: Source, pipeline: Pipeline) -> int | None:
    if source.watermark_ms is not None:
        return source.watermark_ms
    if any(each.watermark_ms is not None for each in pipeline.sources.values()):
        return None
    return _KEPT_MS if any(isinstance(step.operation, Lookup) for step in pipeline.steps) else None


def has_watermark(frame: "DataFrame") -> bool:
    return TIME in frame.columns and _DELAY in frame.schema[TIME].metadata


def delay_of(frame: "DataFrame") -> Delay:
    """As the last step with state left it."""
    metadata = frame.schema[TIME].metadata if TIME in frame.columns else {}
    return Delay(int(metadata.get(_LAG, 0)), int(metadata.get(_SHIFT, 0)))


def time_column(time: "Column", delay: Delay, *, marked: bool = True) -> "Column":
    """TIME of a step's result. Without a mark there is no watermark that it could be late by."""
    metadata: dict[str, Any] = {_LAG: delay.lag, _SHIFT: delay.shift}
    if marked:
        metadata[_DELAY] = 0
    return time.alias(TIME, metadata=metadata)


def unmarked(frame: "DataFrame") -> "DataFrame":
    """TIME as a column of which Spark's operators know nothing."""
    if not has_watermark(frame):
        return frame
    plain = f.col(TIME).alias(TIME, metadata={_LAG: 0})
    return frame.select(*(plain if name == TIME else column(name) for name in frame.columns))


def due(time: "Column", *, name: str = DUE, within_ms: int = 0) -> "Column":
    """A column of event time for one operator of Spark. `within_ms` is what it takes for the watermark's delay."""
    return time.alias(name, metadata={_DELAY: within_ms})


def later(time: "Column", milliseconds: int) -> "Column":
    """The time so much later, or earlier."""
    if not milliseconds:
        return time
    return time + f.expr(f"INTERVAL '{milliseconds / 1000:.3f}' SECOND")


def check_time(frame: "DataFrame", what: str) -> None:
    """Raises PipelineError where rows have no event time, or no watermark."""
    if TIME not in frame.columns:
        raise PipelineRefusedError(f"{what} needs event time, and the rows of this frame have none")
    if not isinstance(frame.schema[TIME].dataType, TimestampType):
        raise PipelineRefusedError(
            f"the event time is {frame.schema[TIME].dataType.simpleString()}, not a timestamp"
        )
    if not has_watermark(frame):
        raise PipelineRefusedError(f"{what} needs a watermark: give its source one, as watermark: 10s")
