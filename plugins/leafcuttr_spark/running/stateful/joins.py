# PySpark is not installed where types are checked.
# pyright: reportMissingImports=false, reportCallIssue=false, reportArgumentType=false
"""Two streams, joined within a time, by Spark's own operator.

A row waits for a partner until the watermark has passed its time, the width of the window and the grace. The time of a
joined row is the later one of both, as with Kafka Streams.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions as f

from leafcuttr_spark.pipelines.errors import PipelineRefusedError
from leafcuttr_spark.pipelines.operations import Join
from leafcuttr_spark.running.rows import RECORD, TIME, column, user_columns
from leafcuttr_spark.running.stateful.event_time import (
    DUE,
    Delay,
    check_time,
    delay_of,
    due,
    later,
    time_column,
    unmarked,
)
from leafcuttr_spark.running.stateful.late import WATERMARK, in_time
from leafcuttr_spark.running.stateful.modes import output_mode
from leafcuttr_spark.running.stateful.stores import state_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from leafcuttr_spark.running.compiling import StepContext

_HOW: Final = {"inner": "inner", "left": "left_outer", "full": "full_outer"}
_OF_RECORDS: Final = ("key", "headers", "timestamp")


class Sides(NamedTuple):
    """What the names of columns begin with while both sides are together."""

    left: str
    right: str


def join(operation: Join, frames: "Sequence[DataFrame]", context: "StepContext") -> "DataFrame":
    left, right = frames
    added = right_columns(left, right, operation.on)
    if operation.kind != "inner" and output_mode(context.pipeline) == "update":
        raise PipelineRefusedError(
            f"a {operation.kind} join of streams cannot be in one pipeline with results that are given as updates: give"
            " its aggregates windows and emit: final, or make two pipelines of it"
        )
    names = Sides(state_name(context.step.name, "left."), state_name(context.step.name, "right."))
    delays = [delay_of(left), delay_of(right)]
    sides = [
        _side(context.good(frame), prefix, operation.grace_ms, context)
        for frame, prefix in zip(frames, names, strict=True)
    ]
    both = sides[0].join(sides[1], _condition(operation, names, delays), _HOW[operation.kind])
    joined = [_of_left(name, operation.on, names) for name in user_columns(left)]
    joined += [column(names.right + name).alias(name) for name in added]
    waits = operation.within_ms + operation.grace_ms
    # Spark lets the watermark of the next operator stay behind by what a row waits.
    delay = Delay(max(each.lag for each in delays) + waits + 1, max(each.shift for each in delays))
    time = f.greatest(column(names.left + TIME), column(names.right + TIME))
    return both.select(*joined, time_column(time, delay))


def right_columns(left: "DataFrame", right: "DataFrame", on: Mapping[str, str]) -> list[str]:
    """The columns that the right side adds: not those of its key, nor what all records have, where the left has it.
    Raises PipelineError where both have another column of one name."""
    ours = user_columns(left)
    added = [
        name
        for name in user_columns(right)
        if name not in on.values() and not (name in _OF_RECORDS and name in ours)
    ]
    same = sorted(name for name in added if name in ours)
    if same:
        raise PipelineRefusedError(f"both sides have a column {same[0]}: rename or drop one of them before")
    return added


def _of_left(name: str, on: Mapping[str, str], names: Sides) -> "Column":
    """Of a row without a left side, the key is that of the right."""
    found = column(names.left + name)
    if name in on:
        found = f.coalesce(found, column(names.right + on[name]))
    return found.alias(name)


def _side(frame: "DataFrame", prefix: str, grace_ms: int, context: "StepContext") -> "DataFrame":
    """The rows in time, under names that only this side has."""
    check_time(frame, "a join of streams")
    waits = delay_of(frame).shift + grace_ms
    rows = in_time(frame, f.unix_millis(TIME) + f.lit(grace_ms), context, part=prefix)
    plain = unmarked(rows.drop(WATERMARK, RECORD))
    return plain.select(
        *(column(name).alias(prefix + name) for name in user_columns(plain)),
        f.col(TIME).alias(prefix + TIME),
        due(later(f.col(TIME), waits), name=prefix + DUE),
    )


def _condition(operation: Join, names: Sides, delays: "Sequence[Delay]") -> "Column":
    """Both dues have the grace; each has the shift of its own side."""
    left, right = column(names.left + DUE), column(names.right + DUE)
    between = delays[1].shift - delays[0].shift
    found = (right >= later(left, between - operation.within_ms)) & (
        right <= later(left, between + operation.within_ms)
    )
    for one, other in operation.on.items():
        found = found & (column(names.left + one) == column(names.right + other))
    return found
