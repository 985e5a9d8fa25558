# ruff: noqa: N802, N803 - PySpark calls methods and arguments by these names
# PySpark is not installed where types are checked.
# mypy: disable-error-code="misc"
# pyright: reportMissingImports=false, reportCallIssue=false, reportArgumentType=false
"""A table joined with a table by the key of both: a table again, with a row, or a deletion, for each change of either.
`state.pairs` has the rules."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Row
from pyspark.sql import functions as f
from pyspark.sql.streaming import StatefulProcessor
from pyspark.sql.types import BooleanType, LongType, StructField, StructType

from leafcuttr_spark.pipelines.operations import Lookup
from leafcuttr_spark.running.rows import DELETED, OFFSET, TIME, column, user_columns
from leafcuttr_spark.running.stateful.event_time import delay_of, has_watermark, time_column
from leafcuttr_spark.running.stateful.joins import right_columns
from leafcuttr_spark.running.stateful.portable import (
    back,
    packed,
    packed_type,
    portable,
    unpacked,
    with_portable,
)
from leafcuttr_spark.running.stateful.stores import KEY
from leafcuttr_spark.state.pairs import Change, Pair, joined

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_LEFT, _RIGHT, _IS_RIGHT, _AT, _PLACE = "_lc_left", "_lc_right", "_lc_is_right", "_lc_at", "_lc_place"
_LONG: Final = LongType()


def joined_tables(operation: Lookup, left: "DataFrame", right: "DataFrame", name: str) -> "DataFrame":
    """Columns of the left, then those of the right but its key; TIME is that of the change."""
    of_left = [each for each in user_columns(left) if each not in operation.on]
    of_right = right_columns(left, right, operation.on)
    types = packed_type(left, of_left), packed_type(right, of_right)
    both = _changes(left, operation.on.keys(), of_left, types, is_right=False).unionByName(
        _changes(right, operation.on.values(), of_right, types, is_right=True)
    )
    keys = [f"{KEY}{number}" for number in range(len(operation.on))]
    output = StructType(
        [
            *(StructField(each, portable(both.schema[each].dataType)) for each in keys),
            StructField(_AT, _LONG),
            StructField(_LEFT, types[0]),
            StructField(_RIGHT, types[1]),
            StructField(DELETED, BooleanType()),
        ]
    )
    processor = Pairs(operation.kind, types, name, tuple(output.names))
    rows = with_portable(both, keys)
    found = rows.groupBy(*keys).transformWithState(processor, output, "append", "EventTime")
    named = found.select(
        *(
            back(f.col(key), both.schema[key].dataType).alias(each)
            for key, each in zip(keys, operation.on, strict=True)
        ),
        *unpacked(f.col(_LEFT), left, of_left),
        *unpacked(f.col(_RIGHT), right, of_right),
        time_column(f.timestamp_millis(f.col(_AT)), delay_of(left), marked=has_watermark(left)),
        DELETED,
    )
    order = [*user_columns(left), *of_right, TIME, DELETED]
    return named.select(*map(column, order))


def _changes(
    frame: "DataFrame", on: Any, names: list[str], types: tuple[StructType, StructType], *, is_right: bool
) -> "DataFrame":
    deleted = f.col(DELETED) if DELETED in frame.columns else f.lit(False)
    row = f.when(~deleted, packed(frame, names))
    sides: list[Column] = [f.lit(None).cast(each) for each in types]
    sides[is_right] = row
    time = f.unix_millis(f.col(TIME)) if TIME in frame.columns else f.lit(0).cast("bigint")
    place = f.col(OFFSET) if OFFSET in frame.columns else f.lit(-1).cast("bigint")
    return frame.select(
        *(column(each).alias(f"{KEY}{number}") for number, each in enumerate(on)),
        f.lit(is_right).alias(_IS_RIGHT),
        f.coalesce(time, f.lit(0)).alias(_AT),
        f.coalesce(place, f.lit(-1)).alias(_PLACE),
        sides[0].alias(_LEFT),
        sides[1].alias(_RIGHT),
    )


class Pairs(StatefulProcessor):
    """Of one key: what both tables have."""

    def __init__(
        self, kind: Any, types: tuple[StructType, StructType], name: str, output: tuple[str, ...]
    ) -> None:
        self._kind = kind
        self._name = name
        self._output = output
        self._type = StructType([StructField("left", types[0]), StructField("right", types[1])])

    def init(self, handle: Any) -> None:
        self._state = handle.getValueState(self._name, self._type)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:
        if None in key:
            # As in Kafka Streams, a table has no row without a key.
            return
        changes = [
            Change(row[_AT], row[_PLACE], row[_IS_RIGHT], row[_RIGHT] if row[_IS_RIGHT] else row[_LEFT])
            for row in rows
        ]
        found = self._state.get()
        pair, given = joined(Pair(*found) if found else Pair(), changes, self._kind)
        if pair != Pair():
            self._state.update((pair.left, pair.right))
        elif found:
            self._state.clear()
        row = Row(*self._output)
        for each in given:
            yield row(*key, each.time, each.left, each.right, each.is_gone)

    def close(self) -> None:
        pass
