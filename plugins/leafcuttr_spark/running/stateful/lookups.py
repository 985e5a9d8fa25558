# ruff: noqa: N802, N803 - PySpark calls methods and arguments by these names
# PySpark is not installed where types are checked.
# mypy: disable-error-code="misc"
# pyright: reportMissingImports=false, reportCallIssue=false, reportArgumentType=false
"""Rows with the row of a table for their key.

A stream with a table: each row sees the table as it was at the row's time. The state of a key has the rows of the table
with the times from which they hold, as long as a row of the stream may still be so old; within a batch, the table's
records count first. A row of the stream does not wait for records of the table that come in a later batch. Spark finds
out the ends of sources in the order in which the plan names them: the stream stands first, so what was written to the
table before the stream's last row is in the batch.

A table with a table: `tables`. A table that is whole on each executor: `everywhere`.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Row
from pyspark.sql import functions as f
from pyspark.sql.streaming import StatefulProcessor
from pyspark.sql.types import ArrayType, LongType, StructField, StructType

from leafcuttr_spark.pipelines.errors import PipelineRefusedError
from leafcuttr_spark.pipelines.operations import Lookup
from leafcuttr_spark.running.rows import DELETED, HIDDEN, OFFSET, TIME, column, user_columns
from leafcuttr_spark.running.stateful.event_time import as_time, delay_of
from leafcuttr_spark.running.stateful.everywhere import looked_up_everywhere
from leafcuttr_spark.running.stateful.joins import right_columns
from leafcuttr_spark.running.stateful.portable import packed, packed_type, unpacked, with_portable
from leafcuttr_spark.running.stateful.stores import KEY, check_store
from leafcuttr_spark.running.stateful.tables import joined_tables
from leafcuttr_spark.state.versions import Change, Version, as_of, changed, remembered

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from leafcuttr_spark.running.compiling import StepContext

AT, PLACE = "_lc_at", "_lc_place"
_RECORD, _TABLE, _IS_TABLE = "_lc_stream", "_lc_table", "_lc_is_table"
_LONG: Final = LongType()


def lookup(operation: Lookup, frames: "Sequence[DataFrame]", context: "StepContext") -> "DataFrame":
    stream, table = (context.good(frame) for frame in frames)
    if not table.isStreaming:
        return looked_up_everywhere(operation, stream, table)
    check_store(context.pipeline, "a lookup")
    if DELETED in stream.columns:
        return joined_tables(operation, stream, table, context.step.name)
    return _as_of(operation, stream, table, context.step.name)


def _as_of(operation: Lookup, stream: "DataFrame", table: "DataFrame", name: str) -> "DataFrame":
    kept = right_columns(stream, table, operation.on)
    rows, of_table = packed_type(stream, stream.columns), packed_type(table, kept)
    records = stream.select(
        *(column(each).alias(f"{KEY}{number}") for number, each in enumerate(operation.on)),
        f.lit(False).alias(_IS_TABLE),
        _at(stream, operation.as_of).alias(AT),
        place_of(stream).alias(PLACE),
        packed(stream, stream.columns).alias(_RECORD),
        f.lit(None).cast(of_table).alias(_TABLE),
    )
    deleted = f.col(DELETED) if DELETED in table.columns else f.lit(False)
    changes = table.select(
        *(column(each).alias(f"{KEY}{number}") for number, each in enumerate(operation.on.values())),
        f.lit(True).alias(_IS_TABLE),
        _at(table, None).alias(AT),
        place_of(table).alias(PLACE),
        f.lit(None).cast(rows).alias(_RECORD),
        f.when(~deleted, packed(table, kept)).alias(_TABLE),
    )
    both = records.unionByName(changes)
    keys = [each for each in both.columns if each.startswith(KEY)]
    output = StructType([StructField(_RECORD, rows), StructField(_TABLE, of_table)])
    processor = AsOf(operation.kind == "inner", of_table, name, delay_of(stream).shift)
    found = (
        with_portable(both, keys).groupBy(*keys).transformWithState(processor, output, "append", "EventTime")
    )
    return found.select(
        *unpacked(f.col(_RECORD), stream, stream.columns), *unpacked(f.col(_TABLE), table, kept)
    ).select(*_ordered(stream, kept))


def _at(frame: "DataFrame", name: str | None) -> "Column":
    """The row's time in ms. A row without one sees the table as it is at the start, before any record."""
    if name is None and TIME not in frame.columns:
        raise PipelineRefusedError("a lookup needs the time of rows: name a column of it, as as-of: at")
    time = f.col(TIME) if name is None else as_time(column(name), frame.schema[name].dataType)
    return f.unix_millis(time)


def place_of(frame: "DataFrame") -> "Column":
    """The order of rows with the same time."""
    return f.coalesce(f.col(OFFSET), f.lit(-1)) if OFFSET in frame.columns else f.lit(-1).cast("bigint")


def _ordered(stream: "DataFrame", kept: Sequence[str]) -> "list[Column]":
    """The user's columns of both, then the hidden ones of the stream."""
    hidden = [each for each in HIDDEN if each in stream.columns]
    return [column(each) for each in (*user_columns(stream), *kept, *hidden)]


class AsOf(StatefulProcessor):
    """Of one key: the rows that the table has had. Rows of the stream may be older than the watermark by `shift`."""

    def __init__(self, is_inner: bool, row: StructType, name: str, shift: int = 0) -> None:
        self._shift = shift
        self._is_inner = is_inner
        self._name = name
        version = StructType([StructField("since", _LONG), StructField("row", row)])
        self._type = StructType([StructField("versions", ArrayType(version))])

    def init(self, handle: Any) -> None:
        self._handle = handle
        self._state = handle.getValueState(self._name, self._type)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:
        records, changes = [], []
        for row in rows:
            if not row[_IS_TABLE]:
                records.append((row[AT], row[_RECORD]))
            elif row[AT] is not None and None not in key:
                # As in Kafka Streams, nothing has the row of a table without a key. The rows go up to here, for a
                # filter before would be pushed below the watermark, which they move.
                changes.append(Change(row[AT], row[PLACE], row[_TABLE]))
        found = self._state.get()
        versions = [Version(*each) for each in found[0]] if found else []
        now = changed(versions, changes)
        given = Row(_RECORD, _TABLE)
        for at, record in records:
            seen = as_of(now, at) if at is not None else None
            if seen is not None or not self._is_inner:
                yield given(record, seen)
        self._keep(versions, now, timerValues.getCurrentWatermarkInMs())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        found = self._state.get()
        versions = [Version(*each) for each in found[0]] if found else []
        self._keep(versions, versions, timerValues.getCurrentWatermarkInMs())
        return iter(())

    def close(self) -> None:
        pass

    def _keep(self, before: Sequence[Any], now: Sequence[Any], watermark: int) -> None:
        left = remembered(now, watermark - self._shift)
        if left and left != before:
            self._state.update(([tuple(each) for each in left],))
            if left[-1].row is None:
                # A key that was deleted is forgotten once no row can see what it had before.
                self._handle.registerTimer(left[-1].since + self._shift)
        elif not left and before:
            self._state.clear()
