# PySpark is not installed where types are checked.
# pyright: reportMissingImports=false, reportCallIssue=false, reportArgumentType=false
"""A pipeline that runs: `start` makes one streaming query of it, `Running` is that query.

with_session = session_of(pipeline)
running = start(pipeline, with_session)
running.wait()
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from leafcuttr_spark.operating.places import checkpoint_of
from leafcuttr_spark.pipelines.checking.source_columns import columns_without_registry
from leafcuttr_spark.pipelines.checking.whole import check_all
from leafcuttr_spark.pipelines.errors import PipelineFaultsError, PipelineRefusedError
from leafcuttr_spark.pipelines.model import Pipeline, PythonTarget, TopicOrigin, TopicTarget
from leafcuttr_spark.pipelines.operations import Transform
from leafcuttr_spark.running.compilers import COMPILERS
from leafcuttr_spark.running.compiling import Compilation, compile_steps, live_frames
from leafcuttr_spark.running.failures import failure_of, translated
from leafcuttr_spark.running.limits import Limits
from leafcuttr_spark.running.outputs import has_timestamps, outputs_of
from leafcuttr_spark.running.paths import made_by_path
from leafcuttr_spark.running.sharing import SETTINGS
from leafcuttr_spark.running.sources import source_frame
from leafcuttr_spark.running.stateful.everywhere import GlobalTables
from leafcuttr_spark.running.stateful.modes import mode_settings, output_mode
from leafcuttr_spark.running.stateless.transforms import needs_record
from leafcuttr_spark.running.writing import BatchReport, BatchWriter, close_sinks
from leafcuttr_spark.spark.listener import GroupOffsets
from leafcuttr_spark.spark.sink import NO_STAGES, TopicSink, is_local

if TYPE_CHECKING:
    from collections import deque

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

LOGGER: Final = logging.getLogger("leafcuttr.spark")

_STORES: Final = {
    "rocksdb": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    "memory": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
}


@dataclass
class Running:
    """The query of a pipeline."""

    pipeline: Pipeline
    query: "StreamingQuery"
    spark: "SparkSession"
    _writer: BatchWriter
    _listeners: list[GroupOffsets]
    _closed: bool = False

    @property
    def reports(self) -> "deque[BatchReport]":
        """Of the last batches."""
        return self._writer.reports

    @property
    def dead_letters(self) -> int:
        """Of this run."""
        return self._writer.limits.dead

    def wait(self, timeout_s: float | None = None) -> bool:
        """Whether it has ended, within this time. Raises PipelineError if it failed."""
        try:
            ended = self.query.awaitTermination(timeout_s) if timeout_s is not None else self._ended()
        except Exception as error:
            self._close()
            raise failure_of(self._writer.error or error, self.pipeline) from error
        if ended:
            self._close()
        return bool(ended)

    def stop(self) -> None:
        """End it with the batch that is being written, which is lost or done as a whole. More than once is fine."""
        if self.query.isActive:
            self.query.stop()
        self._close()

    def _ended(self) -> bool:
        self.query.awaitTermination()
        return True

    def _close(self) -> None:
        if self._closed:
            return
        self._closed = True
        for listener in self._listeners:
            self.spark.streams.removeListener(listener)
        if self._writer.topics is not None:
            self._writer.topics.close()
        self._writer.close()


def start(pipeline: Pipeline, spark: "SparkSession") -> Running:
    """Compile it, and start the query in this session. Raises PipelineFaultsError with all that is wrong with the
    pipeline, and PipelineError for what Spark and clusters say of it."""
    # One of a file has been checked, and may have been changed since. A registry has no request for it.
    found, _ = check_all(pipeline, columns_without_registry)
    if faults := [fault for fault in found if not fault.note]:
        raise PipelineFaultsError(str(pipeline.file or ""), faults)
    with translated(pipeline):
        return _start(pipeline, spark)


def _start(pipeline: Pipeline, spark: "SparkSession") -> Running:
    _check_session(pipeline, spark)
    common = Compilation(pipeline, spark, catches=pipeline.dead_letters is not None)
    keeps_records = common.catches or any(
        isinstance(step.operation, Transform) and needs_record(step.operation) for step in pipeline.steps
    )

    tables = GlobalTables(pipeline.folder)
    custom: dict[str, Any] = {}

    def make(name: str) -> Any:
        source = pipeline.sources[name]
        with translated(pipeline, f"sources.{name}", source.line):
            frame = source_frame(name, pipeline, spark, catches=common.catches, keeps_records=keeps_records)
            return frame if frame.isStreaming else tables.add(frame, source)

    with (
        ExitStack() as opened,
        _settings(
            spark,
            {
                **SETTINGS,
                **mode_settings(pipeline),
                "spark.sql.streaming.stateStore.providerClass": _STORES[pipeline.state_store],
            },
        ),
    ):
        opened.callback(tables.close)
        opened.callback(close_sinks, pipeline, custom)
        sources = {name: (lambda name=name: make(name)) for name in pipeline.sources}
        frames = compile_steps(common, sources, COMPILERS)
        outputs = outputs_of(common, frames)
        topics = _topic_sink(pipeline)
        _open_custom(pipeline, custom)
        writer = BatchWriter(pipeline, outputs, topics, custom, Limits(pipeline.dead_letters), tables)
        listeners = _listeners(pipeline)
        for listener in listeners:
            spark.streams.addListener(listener)
            opened.callback(spark.streams.removeListener, listener)
        begun = (
            outputs.rows.writeStream.queryName(pipeline.name)
            .outputMode(output_mode(pipeline))
            .foreachBatch(writer)
            .option("checkpointLocation", checkpoint_of(pipeline))
            .trigger(**_trigger(pipeline))
        )
        running = Running(pipeline, begun.start(), spark, writer, listeners)
        # What runs closes it at its end.
        opened.pop_all()
        return running


def _open_custom(pipeline: Pipeline, custom: dict[str, Any]) -> None:
    """The sinks in Python. Raises PipelineError."""
    for name, sink in pipeline.sinks.items():
        if isinstance(sink.target, PythonTarget):
            with translated(pipeline, f"sinks.{name}", sink.line):
                custom[name] = made_by_path(sink.target.class_, sink.target.arguments, pipeline.folder)


def _trigger(pipeline: Pipeline) -> dict[str, Any]:
    if pipeline.trigger.available_now:
        return {"availableNow": True}
    return {"processingTime": f"{pipeline.trigger.every_ms} milliseconds"}


def _check_session(pipeline: Pipeline, spark: "SparkSession") -> None:
    if is_local(spark):
        return
    for name, sink in pipeline.sinks.items():
        if not isinstance(sink.target, TopicTarget):
            raise PipelineRefusedError(
                "Spark Connect does not say which query a batch is of, which files and sinks in Python need to know:"
                " choose a topic, or a session that is not remote",
                f"sinks.{name}",
                sink.line,
            )
        if sink.target.delivery == "exactly-once":
            raise PipelineRefusedError(NO_STAGES, f"sinks.{name}", sink.line)


def transactional_id(pipeline: Pipeline) -> str:
    """Of all that the pipeline writes to topics."""
    return f"{pipeline.name}-sinks"


def _topic_sink(pipeline: Pipeline) -> TopicSink | None:
    targets = [sink.target for sink in pipeline.sinks.values() if isinstance(sink.target, TopicTarget)]
    letters = pipeline.dead_letters
    if not targets and letters is None:
        return None
    cluster = targets[0].cluster if targets else letters.cluster  # type: ignore[union-attr]
    options = {f"kafka.{name}": value for name, value in pipeline.clusters[cluster].items()}
    options["includeHeaders"] = "true"
    for target in targets:
        options |= target.options
    options["includeTimestamps"] = str(has_timestamps(pipeline)).lower()
    if targets and targets[0].delivery == "at-least-once":
        options["delivery"] = "at-least-once"
    else:
        options.setdefault("kafka.transactional.id", transactional_id(pipeline))
    return TopicSink(options)


def _listeners(pipeline: Pipeline) -> list[GroupOffsets]:
    """What has been read, as the offsets of a group with the pipeline's name."""
    live = live_frames(pipeline)
    clusters = {
        source.origin.cluster
        for name, source in pipeline.sources.items()
        if name in live and isinstance(source.origin, TopicOrigin) and source.origin.via == "leafcuttr"
    }
    if len(clusters) > 1:
        # The progress of a query does not tell which cluster a source is of.
        LOGGER.info("%s reads several clusters: there is no group that shows its lag", pipeline.name)
        return []
    return [
        GroupOffsets(
            {
                **{f"kafka.{name}": value for name, value in pipeline.clusters[cluster].items()},
                "kafka.group.id": pipeline.name,
            },
            pipeline.name,
        )
        for cluster in clusters
    ]


@contextmanager
def _settings(spark: "SparkSession", values: Mapping[str, str]) -> Iterator[None]:
    """A query keeps the settings that its session has when it starts; the session gets its own back."""
    before = {name: spark.conf.get(name, None) for name in values}
    for name, value in values.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, value)
