# PySpark is not installed where types are checked.
# pyright: reportMissingImports=false, reportCallIssue=false, reportArgumentType=false
"""Global tables: whole on each executor, so that a lookup needs no shuffle, as Kafka Streams' GlobalKTable. Rows see
them as they are, not as of their own time.

Spark keeps what it has read of the table, and sends it to each task that joins; after the time that the source says it
is read anew, between two batches.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as f

from leafcuttr_spark.pipelines.model import FileOrigin, Source
from leafcuttr_spark.pipelines.operations import Lookup
from leafcuttr_spark.running.rows import DELETED, HIDDEN, OFFSET, TIME, column, user_columns
from leafcuttr_spark.running.stateful.joins import right_columns
from leafcuttr_spark.running.stateful.stores import KEY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ROW, _PLACE = "_lc_row", "_lc_place"
_HOW: Final = {"inner": "inner", "left": "left"}


def looked_up_everywhere(operation: Lookup, stream: "DataFrame", table: "DataFrame") -> "DataFrame":
    """The stream's rows with those of a table that is no stream."""
    kept = right_columns(stream, table, operation.on)
    keys = [f"{KEY}{number}" for number in range(len(operation.on))]
    side = table.select(
        *(column(each).alias(key) for key, each in zip(keys, operation.on.values(), strict=True)),
        *map(column, kept),
    )
    same = [column(each) == f.col(key) for key, each in zip(keys, operation.on, strict=True)]
    condition = same[0]
    for each in same[1:]:
        condition = condition & each
    found = stream.join(f.broadcast(side), condition, _HOW[operation.kind])
    hidden = [each for each in HIDDEN if each in stream.columns]
    return found.select(*(column(each) for each in (*user_columns(stream), *kept, *hidden)))


def last_rows(frame: "DataFrame", key: "tuple[str, ...]") -> "DataFrame":
    """Of a changelog that is read as a batch: the last row of each key, without those that were deleted."""
    names = user_columns(frame)
    kept = [*names, *([DELETED] if DELETED in frame.columns else [])]
    places = [f.col(each) for each in (TIME, OFFSET) if each in frame.columns]
    row = f.struct(*map(column, kept))
    # Files have no order of rows: there a key stands once.
    last = f.max_by(row, f.struct(*places)) if places else f.last(row)
    found = frame.groupBy(*map(column, key)).agg(last.alias(_ROW)).select(f"{_ROW}.*")
    if DELETED in kept:
        found = found.where(~f.coalesce(f.col(DELETED), f.lit(False)))
    return found.select(*map(column, names))


class GlobalTables:
    """The global tables of one run: kept by Spark, and read anew when it is time."""

    def __init__(self, folder: Path = Path(), clock: Callable[[], float] = time.monotonic) -> None:
        self._folder = folder
        self._clock = clock
        self._tables: list[tuple[Source, Any, float]] = []

    def add(self, frame: "DataFrame", source: Source) -> "DataFrame":
        """The table of what was read of its changelog. Spark keeps its rows from the first use on."""
        table = last_rows(frame, source.table.key).cache() if source.table is not None else frame.cache()
        self._tables.append((source, table, self._clock()))
        return table

    def refresh(self) -> None:
        """Forget what is too old: the next batch reads it. For the end of a batch."""
        for number, (source, table, since) in enumerate(self._tables):
            refresh_ms = source.table.refresh_ms if source.table is not None else None
            if refresh_ms is None or self._clock() - since < refresh_ms / 1000:
                continue
            self._tables[number] = (source, table, self._clock())
            if isinstance(source.origin, FileOrigin):
                # The frame keeps a list of its files.
                path = source.origin.path
                path = path if "://" in path else str(self._folder / path)
                table.sparkSession.catalog.refreshByPath(path)
            table.unpersist(blocking=False)
            table.cache()

    def close(self) -> None:
        for _, table, _ in self._tables:
            table.unpersist(blocking=False)
        self._tables.clear()
