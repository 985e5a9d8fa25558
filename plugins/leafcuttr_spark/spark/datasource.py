# ruff: noqa: N802 - PySpark calls methods by these names
# It is not installed where types are checked.
# mypy: disable-error-code="misc"
# pyright: reportMissingImports=false
"""`format("leafcuttr")`: topics as batches and streams, by PySpark's interface for data sources.

Readers live in a process of Python beside the driver and are pickled for tasks: they hold options, and find their
cluster anew where they are. `pushFilters` is left out on purpose: with it Spark 4.2 and 4.3 give wrong results.
"""

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from leafcuttr_spark.options import OptionError, Query
from leafcuttr_spark.source.admission import Idleness, Patience, admitted
from leafcuttr_spark.source.cluster import ClusterView
from leafcuttr_spark.source.losses import Span, next_positions, reporter, spans_between
from leafcuttr_spark.source.offsets import Positions, positions_of
from leafcuttr_spark.source.options import SourceOptions, row_options, source_options
from leafcuttr_spark.source.ranges import divided
from leafcuttr_spark.source.reading import read_span
from leafcuttr_spark.source.rows import RowMaker, RowPlan, row_plan, tick_row
from leafcuttr_spark.source.starting import first_offsets, last_offsets
from leafcuttr_spark.spark.peers import peer_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


class SpanPartition(InputPartition):
    """What one task reads."""

    def __init__(self, span: Span) -> None:
        super().__init__(span)
        self.span = span


class TickPartition(InputPartition):
    """One row without a record, by which event time goes on."""

    def __init__(self, tick_ms: int) -> None:
        super().__init__(tick_ms)
        self.tick_ms = tick_ms


class TopicSource(DataSource):
    """Registered as `leafcuttr`. Raises OptionError for options that cannot be used, before anything is read."""

    _plan: RowPlan | None = None
    """Made by `schema`, and pickled with it: a schema of a registry is requested once for a query."""

    @classmethod
    def name(cls) -> str:
        return "leafcuttr"

    def schema(self) -> str:
        self._plan = row_plan(row_options(dict(self.options)))
        return self._plan.ddl

    def reader(self, schema: "StructType") -> "BatchReader":
        options = source_options(dict(self.options), Query.BATCH)
        return BatchReader(options, self._planned(schema, options))

    def streamReader(self, schema: "StructType") -> "StreamReader":
        options = source_options(dict(self.options), Query.STREAM)
        return StreamReader(options, self._planned(schema, options))

    def _planned(self, schema: "StructType", options: SourceOptions) -> RowPlan:
        if tuple(schema.names) != options.columns:
            raise OptionError(
                f"the source has the columns {', '.join(options.columns)}; the option columns chooses among them, a"
                " schema cannot be given"
            )
        return self._plan or row_plan(row_options(dict(self.options)))

    def writer(self, schema: "StructType", overwrite: bool) -> Any:
        raise OptionError(_NO_WRITER)

    def streamWriter(self, schema: "StructType", overwrite: bool) -> Any:
        raise OptionError(_NO_WRITER)


_NO_WRITER = (
    "the format leafcuttr only reads: to write, each record once, give a TopicSink of leafcuttr_spark.spark.sink to"
    " writeStream.foreachBatch, or call its method write"
)


class _Reader:
    """What both readers have."""

    def __init__(self, options: SourceOptions, plan: RowPlan) -> None:
        self.options = options
        self.plan = plan

    def cluster(self) -> ClusterView:
        return ClusterView(peer_of(self.options.client), committed=self.options.committed)

    def tasks(self, spans: Sequence[Span]) -> list[SpanPartition]:
        found = divided(spans, self.options.min_partitions, self.options.max_records)
        return [SpanPartition(span) for span in found]

    def rows(self, partition: Any) -> "Iterator[pa.RecordBatch]":
        if isinstance(partition, TickPartition):
            return iter((tick_row(self.plan, partition.tick_ms),))
        if not isinstance(partition, SpanPartition):
            # Where there are no partitions at all Spark makes one, of nothing.
            return iter(())
        span = partition.span
        columns = read_span(peer_of(self.options.client), span, self.options)
        return RowMaker(self.plan).batches(columns, span.partition)


class BatchReader(_Reader, DataSourceReader):
    """From the starting offsets to the ending ones, both found when the query is planned."""

    def partitions(self) -> Sequence[InputPartition]:
        cluster = self.cluster()
        found = cluster.required(self.options.subscription)
        ends = last_offsets(cluster, found, self.options)
        starts = first_offsets(cluster, found, self.options)
        begins = cluster.begins(found.partitions)
        report = reporter(self.options.fail_on_data_loss)
        before, after = Positions(starts, found.topic_ids), Positions(ends, found.topic_ids)
        return self.tasks(spans_between(before, after, begins, found.topic_ids, report))

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        return self.rows(partition)


class StreamReader(_Reader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One micro-batch after the other. The offsets are `Positions` as JSON."""

    def __init__(self, options: SourceOptions, plan: RowPlan) -> None:
        super().__init__(options, plan)
        self._last: Positions | None = None
        """With the trigger AvailableNow: where the stream ends."""
        self._patience = Patience(options.min_offsets, options.max_delay_s)
        self._idleness = Idleness(options.idle_s)

    def initialOffset(self) -> dict[str, Any]:
        cluster = self.cluster()
        found = cluster.required(self.options.subscription)
        return Positions(first_offsets(cluster, found, self.options), found.topic_ids).as_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        if self.options.max_offsets is not None:
            return ReadMaxRows(self.options.max_offsets)
        if self.options.min_offsets is not None:
            return ReadMinRows(self.options.min_offsets)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._last = self._now()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        before = positions_of(start)
        now = self._last or self._now()
        cluster = self.cluster()
        begins = cluster.begins(now.offsets)
        first = next_positions(before, now, begins, reporter(self.options.fail_on_data_loss))
        is_bounded = not isinstance(limit, ReadAllAvailable)
        if (
            is_bounded
            and self._last is None
            and self._patience.waits(first.offsets, now.offsets, time.monotonic())
        ):
            return start
        maximum = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        ends = admitted(first.offsets, now.offsets, maximum)
        is_idle = self._last is None and self._idleness.tick(ends != first.offsets, time.monotonic())
        tick_ms = time.time_ns() // 1_000_000 if is_idle else before.tick_ms
        return Positions(ends, now.topic_ids, tick_ms).as_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return (self._last or self._now()).as_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        before, after = positions_of(start), positions_of(end)
        cluster = self.cluster()
        there = cluster.subscribed(self.options.subscription)
        begins = cluster.begins(one for one in after.offsets if one in set(there.partitions))
        report = reporter(self.options.fail_on_data_loss)
        found: list[InputPartition] = [
            *self.tasks(spans_between(before, after, begins, there.topic_ids, report))
        ]
        if after.tick_ms is not None and after.tick_ms != before.tick_ms:
            found.append(TickPartition(after.tick_ms))
        return found

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        return self.rows(partition)

    def _now(self) -> Positions:
        cluster = self.cluster()
        found = cluster.subscribed(self.options.subscription)
        return Positions(cluster.ends(found.partitions), found.topic_ids)
