# PySpark is not installed where types are checked.
# pyright: reportMissingImports=false, reportCallIssue=false, reportArgumentType=false
"""The frames of sources: topics by our data source, files by Spark's formats, with the columns that `pipelines.model`
promises and the hidden ones.

Each frame counts its rows as the metric `read_metric(name)` of its batches.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as f

from leafcuttr_spark.options import Query
from leafcuttr_spark.pipelines.errors import PipelineError
from leafcuttr_spark.pipelines.model import (
    RECORD_TIME,
    Decoding,
    FileOrigin,
    Pipeline,
    Source,
    Start,
    TopicOrigin,
)
from leafcuttr_spark.running.rows import (
    DELETED,
    ERROR,
    OFFSET,
    RECORD,
    RECORD_DDL,
    TIME,
    failed,
    record_of,
)
from leafcuttr_spark.running.stateful.event_time import needs_time, tick_options, with_event_time
from leafcuttr_spark.source.cluster import ClusterView
from leafcuttr_spark.source.options import source_options
from leafcuttr_spark.spark.peers import peer_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_RECORD_FIELDS: Final = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
_CORRUPT: Final = "_lc_corrupt"
_EARLIEST: Final = -2


def read_metric(name: str) -> str:
    """The observed metric that counts the rows of a source."""
    return f"lc.read.{name}"


def source_frame(
    name: str, pipeline: Pipeline, spark: "SparkSession", *, catches: bool, keeps_records: bool
) -> "DataFrame":
    """The rows of a source. With `catches` those that cannot be decoded have an ERROR; otherwise the first one fails
    the batch. With `keeps_records` they have a RECORD. Raises PipelineError and what Spark raises."""
    source = pipeline.sources[name]
    if isinstance(source.origin, FileOrigin):
        frame = _files(source, source.origin, pipeline, spark, keeps_records=keeps_records)
    else:
        frame = _topics(f"sources.{name}", source, source.origin, pipeline, spark, catches, keeps_records)
    frame = with_event_time(frame, source, pipeline)
    return frame.observe(read_metric(name), f.count(f.lit(1)).alias("rows")) if frame.isStreaming else frame


# Files


def _files(
    source: Source, origin: FileOrigin, pipeline: Pipeline, spark: "SparkSession", *, keeps_records: bool
) -> "DataFrame":
    """Of a table as they are now; otherwise a stream of those that come."""
    reader: Any = spark.read if source.table is not None else spark.readStream
    reader = reader.format(origin.format).options(**origin.options)
    if origin.schema is not None:
        reader = reader.schema(origin.schema)
    path = origin.path if "://" in origin.path else str(pipeline.folder / origin.path)
    frame = reader.load(path)
    return frame.withColumn(RECORD, record_of(frame)) if keeps_records and source.table is None else frame


# Topics


def _topics(
    part: str,
    source: Source,
    origin: TopicOrigin,
    pipeline: Pipeline,
    spark: "SparkSession",
    catches: bool,
    keeps_records: bool,
) -> "DataFrame":
    reader: Any = spark.read if source.table is not None and source.table.is_global else spark.readStream
    read = reader.format(origin.via).options(**topic_options(source, origin, pipeline)).load()
    parts: dict[str, Column] = {}
    errors: list[Column] = []
    if origin.key.format != "none":
        parts |= _decoded(read, "key", origin.key, part, errors, catches)
    parts |= _decoded(read, "value", origin.value, part, errors, catches)
    parts |= {name: f.col(what) for name, what in origin.columns.items()}
    if source.time_column == RECORD_TIME and RECORD_TIME not in parts:
        parts[RECORD_TIME] = f.col("timestamp")
    hidden = {}
    if keeps_records or catches:
        hidden[RECORD] = f.struct(*_RECORD_FIELDS).cast(RECORD_DDL)
    if source.table is not None:
        hidden[DELETED] = f.col("value").isNull()
    if needs_time(pipeline):
        hidden |= {TIME: f.col("timestamp"), OFFSET: f.col("offset")}
    if catches and errors:
        hidden[ERROR] = f.coalesce(*errors)
    named = {**parts, **hidden}
    return read.select(*(each.alias(name) for name, each in named.items()))


def topic_options(source: Source, origin: TopicOrigin, pipeline: Pipeline) -> dict[str, str]:
    """The options of the data source."""
    options = {f"kafka.{name}": value for name, value in pipeline.clusters[origin.cluster].items()}
    if origin.pattern is not None:
        options["subscribePattern"] = origin.pattern
    else:
        options["subscribe"] = ",".join(origin.topics)
    options["columns" if origin.via == "leafcuttr" else "includeHeaders"] = (
        ",".join(_RECORD_FIELDS) if origin.via == "leafcuttr" else "true"
    )
    if source.table is None:
        streams = [
            each
            for each in pipeline.sources.values()
            if each.table is None and isinstance(each.origin, TopicOrigin)
        ]
        options["maxOffsetsPerTrigger"] = str(max(1, pipeline.records_per_batch // len(streams)))
    options |= _starting(origin.start, options)
    return {**options, **tick_options(source, pipeline), **origin.options}


def _starting(start: Start, options: Mapping[str, str]) -> dict[str, str]:
    if start.at == "timestamp":
        return {
            "startingTimestamp": str(start.timestamp_ms),
            "startingOffsetsByTimestampStrategy": "latest",
        }
    if start.at == "offsets":
        return {"startingOffsets": _all_offsets(start, options)}
    return {"startingOffsets": start.at}


def _all_offsets(start: Start, options: Mapping[str, str]) -> str:
    """Offsets of all partitions there are, as the option has to name them."""
    known = source_options({**options, "startingOffsets": "earliest"}, Query.STREAM)
    there = ClusterView(peer_of(known.client), committed=known.committed).required(known.subscription)
    offsets: dict[str, dict[str, int]] = {}
    for one in there.partitions:
        given = start.offsets.get(one.topic, {})
        offsets.setdefault(one.topic, {})[str(one.partition)] = given.get(one.partition, _EARLIEST)
    return json.dumps(offsets)


def _decoded(
    read: "DataFrame", name: str, decoding: Decoding, part: str, errors: "list[Column]", catches: bool
) -> "dict[str, Column]":
    bytes_ = f.col(name)
    if decoding.format == "bytes":
        return {decoding.as_ or name: bytes_}
    if decoding.format == "text":
        return {decoding.as_ or name: bytes_.cast("string")}
    if decoding.format != "json":
        raise PipelineError(f"the format {decoding.format} cannot be read yet", part)
    if decoding.columns is None:
        raise PipelineError("the format json needs columns", part)
    options = (
        {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT} if catches else {"mode": "FAILFAST"}
    )
    ddl = f"{decoding.columns}, {_CORRUPT} string" if catches else decoding.columns
    document = f.from_json(bytes_.cast("string"), ddl, options)
    if catches:
        errors.append(
            f.when(document[_CORRUPT].isNotNull(), failed(part, f"the {name} is no JSON of its columns"))
        )
    types = read.sparkSession.createDataFrame([], decoding.columns).columns
    if decoding.as_ is not None:
        return {
            decoding.as_: f.when(
                bytes_.isNotNull(), f.struct(*(document[each].alias(each) for each in types))
            )
        }
    return {each: document[each] for each in types}
