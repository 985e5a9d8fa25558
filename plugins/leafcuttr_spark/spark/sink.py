# PySpark is not installed where types are checked; where it is, its types do not know how it infers a function's kind.
# pyright: reportMissingImports=false, reportCallIssue=false, reportArgumentType=false
"""Writing topics from Spark: `TopicSink` for streams, `write_topics` for batches. Each record once, unless the option
`delivery` says otherwise.

    sink = TopicSink({"kafka.bootstrap.servers": "hub:9092", "topic": "sums", "kafka.transactional.id": "sums"})
    query = sums.writeStream.foreachBatch(sink).option("checkpointLocation", "...").start()

A micro-batch is one job and one transaction: see `leafcuttr_spark.sink`. Rows have the columns of Spark's Kafka sink:
`value`, and as they like `key`, `topic`, `partition`, `headers`, and `timestamp`.
"""

import hashlib
import logging
import random
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import functions as f

from leafcuttr_sdk.blocking_peers import BlockingPeer, SharedTransaction, TransactionOwner
from leafcuttr_sdk.types import TopicPartition
from leafcuttr_spark.options import OptionError, Query
from leafcuttr_spark.points import reach
from leafcuttr_spark.sink.marker import MicroBatch, is_done, last_done, mark
from leafcuttr_spark.sink.options import SinkOptions, sink_options
from leafcuttr_spark.sink.placing import PlacingError, placed
from leafcuttr_spark.sink.writing import write_rows
from leafcuttr_spark.spark.failed_tasks import (
    TASK_AGAIN,
    SecondAttemptError,
    explained,
    note_all,
    ran_again,
    stage_again,
)
from leafcuttr_spark.spark.peers import peer_of

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import Column, DataFrame, SparkSession

LOGGER: Final = logging.getLogger("leafcuttr.spark")

Written = dict[TopicPartition, int]
Flushed = Callable[[MicroBatch, Mapping[TopicPartition, int]], None]
"""Called with the batch, and how many records it has in each partition."""


def _nothing(this: MicroBatch, written: Mapping[TopicPartition, int]) -> None:
    pass


NO_STAGES: Final = (
    "Spark Connect does not say which query and stages a batch has, which a transaction needs to know: choose"
    " delivery=at-least-once, or a session that is not remote"
)
_WRITTEN_DDL: Final = "topic string, partition int, records bigint"

_UNKNOWN: Final = "unknown"
"""The query of a batch of Spark Connect, which does not say it."""


class TopicSink:
    """Gives each micro-batch of one query to topics; for `foreachBatch`. Raises OptionError."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = sink_options(options, Query.STREAM)
        self._stack = ExitStack()
        self._owner: TransactionOwner | None = None
        self._last: MicroBatch | None = None

    def __call__(self, frame: "DataFrame", batch: int) -> None:
        self.write(frame, batch, _nothing)

    def write(self, frame: "DataFrame", batch: int, flushed: Flushed) -> None:
        """Write it, and call `flushed` once all records are acknowledged and before they are committed: what that
        raises aborts the transaction and fails the batch. It is not called for a batch that is skipped."""
        spark = frame.sparkSession
        if not self._options.exactly_once:
            this = micro_batch(spark, batch) if is_local(spark) else MicroBatch(_UNKNOWN, batch, "")
            flushed(this, _write(frame, self._options, None))
            return
        this = micro_batch(spark, batch)
        try:
            owner = self._owner_of(spark, this)
            if is_done(this, self._last):
                LOGGER.info("batch %d of query %s is written already: skipped", this.batch, this.query)
                return
            written = _in_transaction(frame, self._options, owner, this, flushed)
        except BaseException as error:
            self._forget(error)
            raise
        if written:
            self._last = this

    def close(self) -> None:
        """The sink is not used any more."""
        self._owner, self._last = None, None
        self._stack.close()

    def _owner_of(self, spark: "SparkSession", this: MicroBatch) -> TransactionOwner:
        """With the first batch the transactional id is taken over, which ends what an earlier run has left; only then
        is known what that one has committed."""
        if self._owner is None:
            _check_session(spark)
            assert self._options.transactional_id is not None
            peer = peer_of(self._options.client)
            self._owner = self._stack.enter_context(
                peer.owner(self._options.transactional_id, timeout_ms=self._options.timeout_ms)
            )
            self._last, other = last_done(peer.committed(self._options.transactional_id), this.query)
            if other is not None and self._last is None:
                LOGGER.warning(
                    "the transactional id %s was of query %s, which has written up to its batch %d and is fenced now;"
                    " query %s skips nothing",
                    self._options.transactional_id, other.query, other.batch, this.query,
                )  # fmt: skip
        return self._owner

    def _forget(self, error: BaseException) -> None:
        """The transaction is aborted; the next batch takes the transactional id over again."""
        self._owner, self._last = None, None
        stack, self._stack = self._stack, ExitStack()
        stack.__exit__(type(error), error, error.__traceback__)


def write_topics(frame: "DataFrame", options: Mapping[str, Any]) -> dict[str, int]:
    """Write all rows of a batch, or none; how many each topic got. Raises OptionError, PluginError, BrokerError."""
    checked = sink_options(options, Query.BATCH)
    if checked.exactly_once:
        _check_session(frame.sparkSession)
        transactional_id = checked.transactional_id or f"leafcuttr-spark-{uuid.uuid4()}"
        with peer_of(checked.client).owner(transactional_id, timeout_ms=checked.timeout_ms) as owner:
            written = _in_transaction(frame, checked, owner, None, _nothing)
    else:
        written = _write(frame, checked, None)
    totals: dict[str, int] = {}
    for partition, records in written.items():
        totals[partition.topic] = totals.get(partition.topic, 0) + records
    return totals


def _in_transaction(
    frame: "DataFrame",
    options: SinkOptions,
    owner: TransactionOwner,
    this: MicroBatch | None,
    flushed: Flushed,
) -> Written:
    shared = owner.begin()
    reach("transaction-begun")
    written = _write(frame, options, shared)
    reach("records-written")
    if this is not None:
        flushed(this, written)
        reach("sinks-written")
    if not written:
        owner.abort()
        return written
    if this is not None:
        owner.commit_offsets(shared.transactional_id, mark(this, {one.topic for one in written}))
        reach("batch-marked")
    owner.commit(written)
    reach("transaction-committed")
    return written


# On the driver


def _check_session(spark: "SparkSession") -> None:
    _check_local(spark)
    if str(spark.sparkContext.getConf().get("spark.speculation", "false")).lower() == "true":
        raise OptionError(
            "spark.speculation is true: a second copy of a task would spoil the transaction; set it to false, or"
            " delivery=at-least-once"
        )


def _check_local(spark: "SparkSession") -> None:
    if not is_local(spark):
        raise OptionError(NO_STAGES)


def is_local(spark: "SparkSession") -> bool:
    """Whether its JVM can be called, which that of Spark Connect cannot."""
    return hasattr(spark, "_jvm")


def micro_batch(spark: "SparkSession", batch: int) -> MicroBatch:
    """Within a function of `foreachBatch`: which batch of which query it is. Raises OptionError elsewhere, and with
    Spark Connect."""
    _check_local(spark)
    query = spark.sparkContext.getLocalProperty("sql.streaming.queryId")
    if query is None:
        raise OptionError("TopicSink is for writeStream.foreachBatch; write_topics writes a batch")
    return MicroBatch(query, batch, _digest(_offsets_of(spark, query, batch)))


def _offsets_of(spark: "SparkSession", query: str, batch: int) -> list[str]:
    """The lines of the checkpoint's file of this batch, which Spark writes before it begins: a version, the batch's
    watermark and time, and the offsets of each source."""
    java: Any = spark._jsparkSession
    virtual: Any = spark._jvm
    # The session of the batch is a copy, whose own list of queries is empty; this one is shared.
    running = java.sharedState().activeStreamingQueries().get(virtual.java.util.UUID.fromString(query))
    root = running.resolvedCheckpointRoot()
    path = virtual.org.apache.hadoop.fs.Path(f"{root}/offsets/{batch}")
    stream = path.getFileSystem(java.sessionState().newHadoopConf()).open(path)
    try:
        text = str(virtual.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
    finally:
        stream.close()
    return text.splitlines()


def _digest(lines: list[str]) -> str:
    """Of the sources' offsets alone."""
    return hashlib.sha256("\n".join(lines[2:]).encode()).hexdigest()[:16]


def _write(frame: "DataFrame", options: SinkOptions, shared: SharedTransaction | None) -> Written:
    """One job. With a transaction all rows of a partition go to one task."""
    rows = _with_partitions(_columns(frame, options), options)
    if shared is None:
        return _told(rows.mapInArrow(partial(_write_task, options, None), _WRITTEN_DDL))
    rows = _one_task_a_partition(rows, options)
    context = frame.sparkSession.sparkContext
    before = _jobs(context)
    try:
        written = _told(rows.mapInArrow(partial(_write_task, options, shared), _WRITTEN_DDL))
    except Exception as error:
        found = explained(error, context, lambda: _jobs(context) - before)
        if found is error:
            raise
        raise found from error
    note_all(context)
    _check_stages(context, _jobs(context) - before)
    return written


def _told(tasks: "DataFrame") -> Written:
    """What the tasks tell, which run by this."""
    told = tasks.collect()
    written: Written = {}
    for row in told:
        partition = TopicPartition(row["topic"], row["partition"])
        written[partition] = written.get(partition, 0) + row["records"]
    return written


def _jobs(context: "SparkContext") -> set[int]:
    """Those of this thread's group: in a stream, of the query."""
    return set(context.statusTracker().getJobIdsForGroup(context.getLocalProperty("spark.jobGroup.id")))


def _check_stages(context: "SparkContext", jobs: set[int]) -> None:
    """A stage that ran again, because an executor with its results was lost, may have dealt rows to other tasks than
    before, of which some had written already. Raises SecondAttemptError."""
    for stage in ran_again(context, jobs):
        raise stage_again(context, jobs, stage)


def _columns(frame: "DataFrame", options: SinkOptions) -> "DataFrame":
    types = dict(frame.dtypes)
    needed = [
        "value",
        *(["topic"] if options.topic is None else []),
        *(["headers"] if options.headers else []),
        *(["timestamp"] if options.timestamps else []),
    ]
    for name in needed:
        if name not in types:
            raise OptionError(f"rows have no column {name}; they have {', '.join(types)}")
    for name in ("key", "value"):
        if types.get(name, "binary") not in ("binary", "string", "void"):
            raise OptionError(f"the column {name} is {types[name]}; it has to be binary or string")
    if options.timestamps and types["timestamp"] not in ("timestamp", "void"):
        raise OptionError(f"the column timestamp is {types['timestamp']}; it has to be a timestamp")

    def column(name: str, type_: str) -> "Column":
        return (f.col(name) if name in types else f.lit(None)).cast(type_).alias(name)

    topic = f.lit(options.topic) if options.topic is not None else f.col("topic")
    chosen = [topic.cast("string").alias("topic"), column("partition", "int"), column("key", "binary")]
    chosen.append(column("value", "binary"))
    if options.headers:
        chosen.append(column("headers", "array<struct<key: string, value: binary>>"))
    if options.timestamps:
        chosen.append(f.unix_millis(column("timestamp", "timestamp")).alias("timestamp"))
    return frame.select(*chosen)


def _with_partitions(rows: "DataFrame", options: SinkOptions) -> "DataFrame":
    counts = {} if options.topic is None else _counts(peer_of(options.client), {options.topic})
    # Of the batch: a function that places a row elsewhere when it is called again is not deterministic.
    place = f.arrow_udf(_placer(options, counts, random.randrange(1 << 30)), "int")
    return rows.withColumn("partition", place(f.col("topic"), f.col("key"), f.col("partition")))


def _one_task_a_partition(rows: "DataFrame", options: SinkOptions) -> "DataFrame":
    if options.topic is not None:
        partitions = _counts(peer_of(options.client), {options.topic})[options.topic]
        return rows.repartitionById(partitions, f.col("partition"))
    tasks = options.tasks or int(rows.sparkSession.conf.get("spark.sql.shuffle.partitions") or 200)
    task = f.pmod(f.crc32(f.col("topic").cast("binary")) + f.col("partition"), f.lit(tasks)).cast("int")
    return rows.repartitionById(tasks, task)


def _counts(peer: BlockingPeer, topics: set[str]) -> dict[str, int]:
    found = peer.topics(sorted(topics))
    if missing := topics - found.keys():
        raise PlacingError(
            f"{peer.name} does not have the topics {', '.join(sorted(missing))}: create them first"
        )
    return {name: topic.partitions for name, topic in found.items()}


# In tasks


def _placer(
    options: SinkOptions, counts: Mapping[str, int], salt: int
) -> Callable[[pa.Array, pa.Array, pa.Array], pa.Array]:
    known = dict(counts)

    def place(topics: pa.Array, keys: pa.Array, chosen: pa.Array) -> pa.Array:
        if topics.null_count:
            raise PlacingError("a row has no topic")
        names = topics.dictionary_encode()
        unknown = {name for name in names.dictionary.to_pylist() if name not in known}
        if unknown:
            known.update(_counts(peer_of(options.client), unknown))
        context = TaskContext.get()
        own = salt + (context.partitionId() * 7919 if context is not None else 0)
        return _places(names, keys.cast(pa.binary()), chosen, known, own)

    return place


def _places(
    names: pa.Array, keys: pa.Array, chosen: pa.Array, counts: Mapping[str, int], salt: int
) -> pa.Array:
    topics = names.dictionary.to_pylist()
    if len(topics) == 1:
        return pa.array(placed(keys, chosen, counts[topics[0]], salt), pa.int32())
    found = pa.array([0] * len(keys), pa.int32()).to_numpy(zero_copy_only=False).copy()
    of = names.indices.to_numpy(zero_copy_only=False)
    for number, topic in enumerate(topics):
        rows = (of == number).nonzero()[0]
        order = pa.array(rows)
        found[rows] = placed(keys.take(order), chosen.take(order), counts[topic], salt)
    return pa.array(found, pa.int32())


def _write_task(
    options: SinkOptions, shared: SharedTransaction | None, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    peer = peer_of(options.client)
    if shared is None:
        with peer.appender() as appender:
            yield write_rows(batches, appender, options)
        return
    context = TaskContext.get()
    if context is not None and context.attemptNumber() > 0:
        raise SecondAttemptError(TASK_AGAIN)
    with peer.join(shared) as appender:
        reach("task-begun")
        written = write_rows(batches, appender, options)
        reach("task-written")
        yield written
