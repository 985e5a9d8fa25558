# PySpark is not installed where types are checked.
# pyright: reportMissingImports=false, reportCallIssue=false, reportArgumentType=false
"""What is done with each micro-batch of a pipeline: its records in one transaction, the limits of dead letters, and its
other sinks before that is committed.

    records are written and flushed | limits | other sinks | the transaction commits | Spark commits the batch

A batch that fails before the commit is written anew: its transaction is aborted, and the other sinks replace what they
have of it. One that fails behind the commit is skipped.
"""

import logging
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from pyspark import StorageLevel
from pyspark.sql import functions as f

from leafcuttr_sdk.types import TopicPartition
from leafcuttr_spark.contracts import Sink, SinkBatch
from leafcuttr_spark.pipelines.model import FileTarget, Pipeline
from leafcuttr_spark.running.limits import Limits
from leafcuttr_spark.running.outputs import SINK, Outputs
from leafcuttr_spark.running.sources import read_metric
from leafcuttr_spark.running.stateful.event_time import needs_time
from leafcuttr_spark.running.stateful.everywhere import GlobalTables
from leafcuttr_spark.running.stateful.late import announce
from leafcuttr_spark.sink.marker import MicroBatch
from leafcuttr_spark.spark.sink import TopicSink, micro_batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOGGER: Final = logging.getLogger("leafcuttr.spark")
_KEPT: Final = 100


@dataclass(frozen=True)
class BatchReport:
    """What one batch has read and written."""

    batch: int
    read: Mapping[str, int]
    """Rows of each source; empty where Spark does not tell."""
    written: Mapping[str, int]
    """Records of each topic."""
    dead_letters: int
    seconds: float
    skipped: bool = False
    """Whether it was written already."""

    @property
    def records(self) -> int:
        """How many it has: as many as were written where Spark does not tell how many were read."""
        return max(sum(self.read.values()), sum(self.written.values()))


@dataclass
class BatchWriter:
    """For `foreachBatch`."""

    pipeline: Pipeline
    outputs: Outputs
    topics: TopicSink | None
    """None where no sink is a topic, and there are no dead letters."""
    custom: Mapping[str, Sink]
    """The sinks in Python."""
    limits: Limits
    tables: GlobalTables = field(default_factory=GlobalTables)
    """Read anew between batches."""
    reports: "deque[BatchReport]" = field(default_factory=lambda: deque(maxlen=_KEPT))
    error: BaseException | None = None
    """What the last batch failed with. Spark has it as a text alone."""

    def __call__(self, frame: "DataFrame", batch: int) -> None:
        self.error = None
        try:
            if needs_time(self.pipeline):
                announce(frame.sparkSession, batch)
            self._write(frame, batch)
            self.tables.refresh()
        except BaseException as error:
            self.error = error
            raise

    def close(self) -> None:
        """Of sinks in Python that have such a method. What one raises does not keep the next from it."""
        self.tables.close()
        close_sinks(self.pipeline, self.custom)

    def _write(self, frame: "DataFrame", batch: int) -> None:
        begun = time.monotonic()
        spark = frame.sparkSession
        if not self.outputs.columns:
            self._write_topics(frame, batch, begun)
            return
        # Each sink is a job of its own. They have the same rows, computed once.
        kept = frame.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            if self.topics is not None:
                self._write_topics(kept, batch, begun)
            else:
                this = micro_batch(spark, batch)
                self._write_others(kept, this)
                self.reports.append(self._report(spark, this, {}, begun))
        finally:
            kept.unpersist()

    def _write_topics(self, frame: "DataFrame", batch: int, begun: float) -> None:
        spark = frame.sparkSession
        report: BatchReport | None = None

        def flushed(this: MicroBatch, written: Mapping[TopicPartition, int]) -> None:
            nonlocal report
            checked = self._report(spark, this, written, begun)
            self.limits.check(checked.dead_letters, checked.records)
            self._write_others(frame, this)
            report = replace(checked, seconds=time.monotonic() - begun)

        assert self.topics is not None
        records = (
            frame.where(f.col("topic").isNotNull()).select(*self.outputs.records)
            if self.outputs.columns
            else frame.select(*self.outputs.records)
        )
        self.topics.write(records, batch, flushed)
        if report is None:
            report = BatchReport(batch, {}, {}, 0, time.monotonic() - begun, skipped=True)
        else:
            self.limits.add(report.dead_letters, report.records)
        self.reports.append(report)

    def _write_others(self, frame: "DataFrame", this: MicroBatch) -> None:
        for name, column in self.outputs.columns.items():
            target = self.pipeline.sinks[name].target
            rows = frame.where(f.col(SINK) == name).select(f"{column}.*")
            if isinstance(target, FileTarget):
                _write_files(rows, target, self.pipeline, this)
            else:
                self.custom[name].write(rows, SinkBatch(this.query, this.batch))

    def _report(
        self, spark: "SparkSession", this: MicroBatch, written: Mapping[TopicPartition, int], begun: float
    ) -> BatchReport:
        topics: dict[str, int] = {}
        for partition, records in written.items():
            topics[partition.topic] = topics.get(partition.topic, 0) + records
        read = _read(spark, this.query, self.pipeline)
        letters = topics.get(self.pipeline.dead_letters.topic, 0) if self.pipeline.dead_letters else 0
        return BatchReport(this.batch, read, topics, letters, time.monotonic() - begun)


def close_sinks(pipeline: Pipeline, custom: Mapping[str, Sink]) -> None:
    """Those in Python that have such a method. What one raises does not keep the next from it."""
    for name, sink in custom.items():
        close = getattr(sink, "close", None)
        if close is None:
            continue
        try:
            close()
        except Exception as error:
            LOGGER.warning("sinks.%s: it was not closed: %s", name, pipeline.secrets.hide(str(error)))


def _write_files(rows: "DataFrame", target: FileTarget, pipeline: Pipeline, this: MicroBatch) -> None:
    """Into a folder of the batch, which is replaced. The name has the query in it: one with another checkpoint has
    batches of the same numbers."""
    path = target.path if "://" in target.path else str((pipeline.folder / target.path).absolute())
    folder = f"{path}/batch={this.query[:8]}-{this.batch:09}"
    writer = rows.write.format(target.format).mode("overwrite").options(**target.options)
    if target.partition_by:
        writer = writer.partitionBy(*target.partition_by)
    writer.save(folder)


def _read(spark: Any, query: str, pipeline: Pipeline) -> dict[str, int]:
    """The rows that the batch that is being written has of each source."""
    if not hasattr(spark, "_jvm"):
        return {}
    virtual = spark._jvm
    running = (
        spark._jsparkSession.sharedState()
        .activeStreamingQueries()
        .get(virtual.java.util.UUID.fromString(query))
    )
    observed = running.lastExecution().observedMetrics()
    found = {}
    for name in pipeline.sources:
        row = observed.get(read_metric(name))
        if row.isDefined():
            found[name] = int(row.get().getLong(0))
    return found
