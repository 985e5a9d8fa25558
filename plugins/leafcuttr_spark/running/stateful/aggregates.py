# PySpark is not installed where types are checked.
# pyright: reportMissingImports=false, reportCallIssue=false, reportArgumentType=false
"""Count, aggregate and reduce, with windows of all kinds.

Spark's own operators carry them out. What they cannot do in the query's output mode goes through `collecting` first:
sliding windows, sessions that give updates, and windows that are given once in a query with the mode `update`.

A watermark that has come to the end of a window and its grace closes it. Spark knows no grace: the column of event time
that its window is made of is later than the row by as much, and the window's edges are set back again.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as f

from leafcuttr_spark.pipelines.errors import PipelineRefusedError
from leafcuttr_spark.pipelines.operations import (
    WINDOW_COLUMNS,
    Aggregate,
    Count,
    Emit,
    HoppingWindow,
    Reduce,
    SessionWindow,
    SlidingWindow,
    TumblingWindow,
    Window,
)
from leafcuttr_spark.running.rows import DELETED, OFFSET, RECORD, TIME, column, user_columns
from leafcuttr_spark.running.stateful.collecting import EMISSION, GONE, collected
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
from leafcuttr_spark.running.stateful.modes import output_mode, updates_before
from leafcuttr_spark.running.stateful.stores import check_store, state_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from leafcuttr_spark.running.compiling import StepContext

_ROW: Final = "_lc_row"
_ONE: Final = "_lc_all"
_BY: Final = re.compile(r"(max_by|min_by)\s*\((.*)\)", re.DOTALL)


@dataclass(frozen=True)
class _Wanted:
    """What an operation makes of each group."""

    by: tuple[str, ...]
    aggregates: "Sequence[Column]"
    results: "Sequence[Column]"
    """Made of the aggregates."""
    window: Window | None
    grace_ms: int
    emit: Emit
    step: str

    def key(self, name: str) -> str:
        """The name that a column of the key has in the state."""
        return state_name(self.step, name)


def aggregate(operation: Aggregate, frames: "Sequence[DataFrame]", context: "StepContext") -> "DataFrame":
    columns = [f.expr(text).alias(name) for name, text in operation.columns.items()]
    return _compiled(operation, columns, list(map(column, operation.columns)), frames[0], context)


def count(operation: Count, frames: "Sequence[DataFrame]", context: "StepContext") -> "DataFrame":
    columns = [f.count(f.lit(1)).alias(operation.as_)]
    return _compiled(operation, columns, [column(operation.as_)], frames[0], context)


def reduce(operation: Reduce, frames: "Sequence[DataFrame]", context: "StepContext") -> "DataFrame":
    names = [name for name in user_columns(frames[0]) if name not in operation.by]
    row = _kept_row(operation.with_, f.struct(*map(column, names)), frames[0]).alias(_ROW)
    results = [f.col(_ROW)[name].alias(name) for name in names]
    return _compiled(operation, [row], results, frames[0], context)


def _kept_row(with_: str, row: "Column", frame: "DataFrame") -> "Column":
    """Of equal rows the first: by event time, then by its place in the partition."""
    times = [f.unix_micros(TIME)] if TIME in frame.columns else []
    places = [*times, *([f.col(OFFSET)] if OFFSET in frame.columns else [])]
    place = f.struct(*places) if places else f.lit(0)
    if with_.strip() == "first":
        return f.min_by(row, place)
    if with_.strip() == "last":
        return f.max_by(row, place)
    found = _BY.fullmatch(with_.strip())
    if found is None:
        raise PipelineRefusedError(
            f"{with_!r} is no way to reduce; allowed: max_by(EXPRESSION), min_by(EXPRESSION), first, last"
        )
    value = f.expr(found[2])
    if found[1] == "min_by":
        return f.min_by(row, f.when(value.isNotNull(), f.struct(value, *places)))
    return f.max_by(row, f.when(value.isNotNull(), f.struct(value, *(-each for each in places))))


def _compiled(
    operation: Aggregate | Count | Reduce,
    aggregates: "Sequence[Column]",
    results: "Sequence[Column]",
    frame: "DataFrame",
    context: "StepContext",
) -> "DataFrame":
    wanted = _Wanted(
        operation.by,
        aggregates,
        results,
        operation.window,
        operation.grace_ms,
        operation.emit,
        context.step.name,
    )
    _check(frame, context)
    rows = context.good(frame)
    if wanted.window is None:
        return _whole(rows.drop(RECORD), wanted)
    check_time(rows, "a window")
    delay = delay_of(rows)
    rows = in_time(rows, _closed_by(wanted.window, f.unix_millis(TIME)) + f.lit(wanted.grace_ms), context)
    rows = rows.drop(RECORD)
    mode = output_mode(context.pipeline)
    if _is_native(wanted, mode):
        return _native(unmarked(rows.drop(WATERMARK)), wanted, wanted.window, delay)
    check_store(context.pipeline, "this window, beside the other results of the pipeline,")
    return _collected(rows, wanted, wanted.window, delay)


def _check(frame: "DataFrame", context: "StepContext") -> None:
    """Rows that replace earlier ones would be counted beside them. Raises PipelineError."""
    before = updates_before(context.pipeline, context.step)
    if before is not None:
        raise PipelineRefusedError(
            f"the results of {before} are updates, which replace one another: give it emit: final, to aggregate them"
        )
    if DELETED in frame.columns:
        raise PipelineRefusedError("the records of a table replace one another: they cannot be aggregated")


def _is_native(wanted: _Wanted, mode: str) -> bool:
    if isinstance(wanted.window, SlidingWindow):
        return False
    fits = wanted.emit == "update" if mode == "update" else wanted.emit == "final"
    return fits and not (isinstance(wanted.window, SessionWindow) and mode == "update")


def _whole(rows: "DataFrame", wanted: _Wanted) -> "DataFrame":
    """A running result for each key."""
    if wanted.emit == "final":
        raise PipelineRefusedError("without a window there is no last result: emit: update, or a window")
    times = []
    if TIME in rows.columns:
        latest = f.max(f.col(TIME))
        times.append(
            time_column(latest, delay_of(rows), marked=False) if has_watermark(rows) else latest.alias(TIME)
        )
    keyed, keys = _keyed(unmarked(rows), wanted)
    grouped = keyed.groupBy(*keys).agg(*wanted.aggregates, *times)
    return grouped.select(*_back(wanted), *wanted.results, *([TIME] if times else []))


def _keyed(rows: "DataFrame", wanted: _Wanted) -> "tuple[DataFrame, list[Column]]":
    """The rows, with columns for the key under the names that the state shall have: Spark forgets a name that is given
    while it groups. Where all rows are one group there is a key of its own: a session window needs one beside it."""
    keys = {wanted.key(name): column(name) for name in wanted.by} or {wanted.key("all"): _same()}
    return rows.select("*", *(each.alias(name) for name, each in keys.items())), list(map(column, keys))


def _same() -> "Column":
    """The same for all rows. A literal would be optimized away."""
    return f.spark_partition_id() < 0


def _back(wanted: _Wanted) -> "list[Column]":
    """The columns of the key under their own names."""
    return [column(wanted.key(name)).alias(name) for name in wanted.by]


def _native(rows: "DataFrame", wanted: _Wanted, window: Window, delay: Delay) -> "DataFrame":
    waits = wanted.grace_ms + delay.shift
    timed = rows.withColumn(DUE, due(later(f.col(TIME), waits), name=DUE))
    keyed, keys = _keyed(timed, wanted)
    of = wanted.key("window")
    grouped = keyed.groupBy(*keys, _spark_window(window, waits).alias(of)).agg(*wanted.aggregates)
    start, end = (later(column(of)[each], -waits) for each in ("start", "end"))
    return _result(grouped, wanted, start, end, end, delay)


def _spark_window(window: Window, waits: int) -> "Column":
    match window:
        case TumblingWindow(size):
            return f.window(DUE, _duration(size), startTime=_duration(waits % size))
        case HoppingWindow(size, advance):
            return f.window(DUE, _duration(size), _duration(advance), _duration(waits % advance))
        case SessionWindow(gap):
            return f.session_window(DUE, _duration(gap))
    raise PipelineRefusedError(f"Spark has no {type(window).__name__}")


def _collected(rows: "DataFrame", wanted: _Wanted, window: Window, delay: Delay) -> "DataFrame":
    by = wanted.by
    if not by:
        rows, by = rows.withColumn(_ONE, _same()), (_ONE,)
    in_windows = collected(rows, by, window, wanted.grace_ms, wanted.emit, wanted.step)
    keyed, keys = _keyed(unmarked(in_windows), wanted)
    keys += map(f.col, (*WINDOW_COLUMNS, EMISSION, DUE))
    replaces = isinstance(window, SessionWindow) and wanted.emit == "update"
    gone = [f.max(GONE).alias(DELETED)] if replaces else []
    grouped = keyed.groupBy(*keys).agg(*wanted.aggregates, *gone)
    start, end = (f.timestamp_millis(f.col(each)) for each in WINDOW_COLUMNS)
    after = f.timestamp_millis(f.col(WINDOW_COLUMNS[1]) + f.lit(int(isinstance(window, SlidingWindow))))
    return _result(grouped, wanted, start, end, after, delay, [DELETED] if gone else [])


def _result(
    grouped: "DataFrame",
    wanted: _Wanted,
    start: "Column",
    end: "Column",
    after: "Column",
    delay: Delay,
    more: Sequence[str] = (),
) -> "DataFrame":
    """The time of a result is the last microsecond before `after`, the first time behind its window."""
    last = after - f.expr("INTERVAL '0.000001' SECOND")
    given = Delay(delay.lag + wanted.grace_ms + 1, delay.shift + wanted.grace_ms)
    return grouped.select(
        *_back(wanted),
        start.alias(WINDOW_COLUMNS[0]),
        end.alias(WINDOW_COLUMNS[1]),
        *wanted.results,
        time_column(last, given),
        *more,
    )


def _closed_by(window: Window, at: "Column") -> "Column":
    """The watermark, in ms, at which all windows of a row are closed that is `at` ms: `state.windows.closed_by_row`."""
    match window:
        case SlidingWindow(difference):
            return at + f.lit(difference + 1)
        case SessionWindow(gap):
            return at + f.lit(gap)
        case TumblingWindow(size):
            return at - f.pmod(at, f.lit(size)) + f.lit(size)
        case HoppingWindow(size, advance):
            return at - f.pmod(at, f.lit(advance)) + f.lit(size)


def _duration(milliseconds: int) -> str:
    return f"{milliseconds} milliseconds"
