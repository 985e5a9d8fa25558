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
from leafcuttr_spark.spark.frames import topic_frame
from leafcuttr_spark.spark.peers import peer_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_RECORD_FIELDS: Final = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
_BYTES: Final = {"key": "keyBytes", "value": "valueBytes"}
"""The columns of the data source that have them as they came."""
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
    wanted = ["offset", "timestamp", "value"]
    wanted += ["key"] if origin.key.format != "none" else []
    wanted += [_BYTES.get(what, what) for what in origin.columns.values()]
    wanted += ["topic", "partition", "headers", *_BYTES.values()] if keeps_records else []
    wanted += ["valueBytes"] if source.table is not None else []
    catches = catches and not {origin.key.format, origin.value.format} <= {"bytes", "none"}
    wanted += ["error"] if catches else []
    options = topic_options(source, origin, pipeline) | {"columns": ",".join(dict.fromkeys(wanted))}
    is_global = source.table is not None and source.table.is_global
    read = topic_frame(spark, options, stream=not is_global, via=origin.via)
    parts: dict[str, Column] = {}
    if origin.key.format != "none":
        parts |= _columns(read, "key", origin.key.as_ or "key", is_apart=False)
    values = _columns(read, "value", origin.value.as_ or "value", is_apart=origin.value.as_ is None)
    if source.table is not None and origin.key.format != "none":
        values = {
            name: _or_key(read, name, each) if name in source.table.key else each
            for name, each in values.items()
        }
    parts |= values
    parts |= {name: f.col(_BYTES.get(what, what)) for name, what in origin.columns.items()}
    if source.time_column == RECORD_TIME and RECORD_TIME not in parts:
        parts[RECORD_TIME] = f.col("timestamp")
    if keeps_records:
        fields = (f.col(_BYTES.get(name, name)).alias(name) for name in _RECORD_FIELDS)
        parts[RECORD] = f.struct(*fields).cast(RECORD_DDL)
    if source.table is not None:
        parts[DELETED] = f.col("valueBytes").isNull()
    if needs_time(pipeline):
        parts |= {TIME: f.col("timestamp"), OFFSET: f.col("offset")}
    if catches:
        parts[ERROR] = f.when(f.col("error").isNotNull(), failed(part, f.col("error")))
    return read.select(*(each.alias(name) for name, each in parts.items()))


def _columns(read: "DataFrame", part: str, name: str, *, is_apart: bool) -> "dict[str, Column]":
    """What was decoded: a column, or one for each field."""
    kind: Any = read.schema[part].dataType
    if is_apart and kind.typeName() == "struct":
        return {each: f.col(part)[each] for each in kind.names}
    return {name: f.col(part)}


def _or_key(read: "DataFrame", name: str, value: "Column") -> "Column":
    """A column of a table's key: a record without a value has it in its key alone."""
    kind: Any = read.schema["key"].dataType
    if kind.typeName() == "struct":
        return f.coalesce(value, f.col("key")[name]) if name in kind.names else value
    whole = read.select(value.alias("value")).schema["value"].dataType
    key = f.col("key").cast("string") if kind.typeName() == "binary" else f.col("key")
    return f.coalesce(value, key.try_cast(whole))


def topic_options(source: Source, origin: TopicOrigin, pipeline: Pipeline) -> dict[str, str]:
    """The options of the data source."""
    options = {f"kafka.{name}": value for name, value in pipeline.clusters[origin.cluster].items()}
    if origin.pattern is not None:
        options["subscribePattern"] = origin.pattern
    else:
        options["subscribe"] = ",".join(origin.topics)
    options |= _decoding("key", origin.key, pipeline) | _decoding("value", origin.value, pipeline)
    options |= pipeline.registry or {}
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


def _decoding(part: str, decoding: Decoding, pipeline: Pipeline) -> dict[str, str]:
    """The options of the data source for keys or values."""
    if decoding.format == "none":
        return {}
    place = decoding.schema_id or ("any" if pipeline.registry else "none")
    schema = decoding.columns or (str(pipeline.folder / decoding.schema) if decoding.schema else None)
    given = {
        "format": decoding.format,
        "schema": schema,
        "subject": decoding.subject,
        "message": decoding.message,
        "id": place if decoding.format not in ("bytes", "text", "json") else None,
    }
    return {f"{part}.{name}": value for name, value in given.items() if value is not None}
