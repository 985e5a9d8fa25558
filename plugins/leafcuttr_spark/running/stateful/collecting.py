# ruff: noqa: N802, N803 - PySpark calls methods and arguments by these names
# PySpark is not installed where types are checked.
# mypy: disable-error-code="misc"
# pyright: reportMissingImports=false, reportCallIssue=false, reportArgumentType=false
"""Windows that Spark does not have, or does not give in the query's output mode: rows are kept by key, and come out
once for each of their windows, with all others of the window. Spark's own aggregate takes them from there.

A window comes out when the watermark has closed it (`final`), or whenever a batch has changed it (`update`), then with
a number of its own, so that the aggregate makes a new group of it. `state.windows` has the rules.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Row
from pyspark.sql import functions as f
from pyspark.sql.streaming import StatefulProcessor
from pyspark.sql.types import ArrayType, BooleanType, LongType, StructField, StructType

from leafcuttr_spark.pipelines.operations import WINDOW_COLUMNS, Emit, Window
from leafcuttr_spark.running.rows import TIME, column
from leafcuttr_spark.running.stateful.event_time import DUE, delay_of, due
from leafcuttr_spark.running.stateful.late import WATERMARK
from leafcuttr_spark.running.stateful.portable import back, packed, packed_type, portable, there, unpacked
from leafcuttr_spark.state.windows import NEVER, Timed, final, updates

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

EMISSION: Final = "_lc_emission"
GONE: Final = "_lc_gone"
"""Whether the window was given before, and is part of a longer session now: then all else of the row is null."""
_AT, _CLOSED, _ROW = "_lc_at", "_lc_closed", "_lc_row"
_LONG: Final = LongType()


def collected(
    frame: "DataFrame", by: Sequence[str], window: Window, grace_ms: int, emit: Emit, name: str
) -> "DataFrame":
    """Rows in time, with WATERMARK, once for each window: the frame's columns, those of the window as ms since 1970,
    EMISSION, GONE, and DUE, when the watermark closes the window, as event time. `name` is that of the state."""
    names = [each for each in frame.columns if each != WATERMARK and each not in by]
    waits = grace_ms + delay_of(frame).shift
    rows = frame.select(
        *(there(column(each), frame.schema[each].dataType).alias(each) for each in by),
        f.unix_millis(f.col(TIME)).alias(_AT),
        (f.col(WATERMARK) - f.lit(grace_ms)).alias(_CLOSED),
        packed(frame, names).alias(_ROW),
    )
    row = packed_type(frame, names)
    keys = [StructField(each, portable(frame.schema[each].dataType)) for each in by]
    numbers = [StructField(each, _LONG) for each in (*WINDOW_COLUMNS, DUE, EMISSION)]
    output = StructType([*keys, *numbers, StructField(GONE, BooleanType()), StructField(_ROW, row)])
    processor = Collector(window, emit, waits, row, name, tuple(output.names))
    found = rows.groupBy(*map(column, by)).transformWithState(processor, output, "append", "EventTime")
    return found.select(
        *(back(column(each), frame.schema[each].dataType).alias(each) for each in by),
        *map(f.col, (*WINDOW_COLUMNS, EMISSION, GONE)),
        due(f.timestamp_millis(f.col(DUE))),
        *unpacked(f.col(_ROW), frame, names),
    )


class Collector(StatefulProcessor):
    """Of one key."""

    def __init__(
        self, window: Window, emit: Emit, waits_ms: int, row: StructType, name: str, output: tuple[str, ...]
    ) -> None:
        self._window = window
        self._emit = emit
        self._waits_ms = waits_ms
        self._name = name
        self._output = output
        timed = StructType([StructField("time", _LONG), StructField("row", row)])
        self._type = StructType(
            [
                StructField("rows", ArrayType(timed)),
                StructField("closed", _LONG),
                StructField("emission", _LONG),
            ]
        )

    def init(self, handle: Any) -> None:
        self._handle = handle
        self._state = handle.getValueState(self._name, self._type)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:
        new, before = [], NEVER
        for row in rows:
            new.append(Timed(row[_AT], row[_ROW]))
            before = row[_CLOSED]
        yield from self._step(key, new, before, timerValues.getCurrentWatermarkInMs())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        yield from self._step(key, [], NEVER, timerValues.getCurrentWatermarkInMs())

    def close(self) -> None:
        pass

    def _step(self, key: Any, new: list[Timed[Any]], before: int, watermark: int) -> Iterable[Row]:
        found = self._state.get()
        kept = [Timed(*each) for each in found[0]] if found else []
        before = max(before, found[1]) if found else before
        emission = found[2] + 1 if found else 0
        now = watermark - self._waits_ms
        step = (final if self._emit == "final" else updates)(self._window, kept, new, before, now)
        if step.kept:
            self._state.update(([tuple(each) for each in step.kept], max(before, now), emission))
        elif found:
            self._state.clear()
        self._wake(step.wake_at)
        row = Row(*self._output)
        for bounds, members in step.given:
            last = bounds.closed_by + self._waits_ms
            for member in members:
                yield row(*key, bounds.start, bounds.end, last, emission, False, member)
        for bounds in step.gone:
            last = bounds.closed_by + self._waits_ms
            yield row(*key, bounds.start, bounds.end, last, emission, True, None)

    def _wake(self, at: int | None) -> None:
        """One timer a key: at the next end of a window."""
        wanted = None if at is None else at + self._waits_ms
        there = list(self._handle.listTimers())
        for each in there:
            if each != wanted:
                self._handle.deleteTimer(each)
        if wanted is not None and wanted not in there:
            self._handle.registerTimer(wanted)
