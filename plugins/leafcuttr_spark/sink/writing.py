"""What a task does with its rows: to batches of their partitions, and those to an appender. Without Spark's classes.

A row has the columns `topic`, `partition`, `key`, `value`, and `headers` and `timestamp` if they are written. Topic and
partition were found before the rows came to this task, so that all of a partition come to one.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from time import time
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from leafcuttr_sdk.blocking_peers import BlockingAppender
from leafcuttr_sdk.errors import PluginError
from leafcuttr_sdk.records import NewBatch
from leafcuttr_sdk.types import TopicPartition
from leafcuttr_spark.codec.encoding import Rows, encode
from leafcuttr_spark.codec.headers import HEADERS
from leafcuttr_spark.codec.varints import Longs
from leafcuttr_spark.sink.options import SinkOptions


class RowTimeError(PluginError):
    """A row with a timestamp that no record may have."""


WRITTEN: Final = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("records", pa.int64())])
"""What a task tells of each partition."""


def write_rows(
    batches: Iterable[pa.RecordBatch], appender: BlockingAppender, options: SinkOptions
) -> pa.RecordBatch:
    """Append all of them, and wait until they are acknowledged; how many each partition got. Raises BrokerError."""
    for batch in batches:
        for partition, rows in by_partition(batch, options):
            encoded = encode(rows, batch_bytes=options.batch_bytes, codec=options.codec)
            for one in encoded:
                appender.send([NewBatch(partition, one.data)])
    return as_batch(appender.flush())


def by_partition(batch: pa.RecordBatch, options: SinkOptions) -> Iterator[tuple[TopicPartition, Rows]]:
    """The rows of each partition, in their order. Raises RowTimeError."""
    if not batch.num_rows:
        return
    keys, values = _binary(batch.column("key")), _binary(batch.column("value"))
    headers = batch.column("headers").cast(HEADERS) if options.headers else None
    rows = Rows(keys, values, _times(batch, with_timestamps=options.timestamps), headers)
    topics = batch.column("topic").dictionary_encode()
    names, topic_of = topics.dictionary.to_pylist(), np.asarray(topics.indices, np.int64)
    partition_of = np.asarray(batch.column("partition"), np.int64)
    # Most tasks have one partition: nothing is moved then.
    place = topic_of << 32 | partition_of
    if (place == place[0]).all():
        yield TopicPartition(names[topic_of[0]], int(partition_of[0])), rows
        return
    order = np.argsort(place, kind="stable")
    ordered = place[order]
    edges = [0, *(np.flatnonzero(np.diff(ordered)) + 1).tolist(), len(ordered)]
    taken = _taken(rows, pa.array(order))
    for begin, end in pairwise(edges):
        topic, partition = divmod(int(ordered[begin]), 1 << 32)
        yield TopicPartition(names[topic], partition), taken.part(begin, end)


def _taken(rows: Rows, order: pa.Array) -> Rows:
    headers = None if rows.headers is None else rows.headers.take(order)
    return Rows(rows.keys.take(order), rows.values.take(order), rows.timestamps[np.asarray(order)], headers)


def _times(batch: pa.RecordBatch, *, with_timestamps: bool) -> Longs:
    """Milliseconds since 1970: what the rows say, of others now."""
    now = int(time() * 1000)
    if not with_timestamps:
        return np.full(batch.num_rows, now, np.int64)
    found: Longs = np.asarray(batch.column("timestamp").fill_null(now), np.int64)
    if (found < 0).any():
        # Kafka's brokers refuse the whole batch.
        raise RowTimeError(f"a row has the timestamp {found[found < 0][0]} ms, which is before 1970")
    return found


def _binary(column: Any) -> pa.Array:
    """Text and large columns as well, which Spark may send."""
    return column if column.type == pa.binary() else pc.cast(column, pa.binary())


def as_batch(written: Mapping[TopicPartition, int]) -> pa.RecordBatch:
    """What a task tells the driver."""
    names = sorted(written)
    return pa.RecordBatch.from_arrays(
        [
            pa.array([one.topic for one in names], pa.string()),
            pa.array([one.partition for one in names], pa.int32()),
            pa.array([written[one] for one in names], pa.int64()),
        ],
        schema=WRITTEN,
    )
