# PySpark is not installed where types are checked.
# pyright: reportMissingImports=false, reportCallIssue=false, reportArgumentType=false
"""Rows of frames to records of topics: key, value, headers, topic and partition as expressions.

Text, bytes and JSON are Spark's own expressions.
"""

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as f

from leafcuttr_spark.pipelines.checking.columns import value_without
from leafcuttr_spark.pipelines.errors import PipelineRefusedError
from leafcuttr_spark.pipelines.model import Encoding, Pipeline, TopicTarget
from leafcuttr_spark.running.attempts import Expression, expression
from leafcuttr_spark.running.by_schema import Registered, by_schema, id_headers
from leafcuttr_spark.running.rows import DELETED, HEADERS_DDL, column, quoted, user_columns
from leafcuttr_spark.running.stateful.event_time import as_time

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

KEY: Final = "key"
_HEADERS_TYPE: Final = "array<struct<key:string,value:binary>>"


def record_fields(
    frame: "DataFrame", target: TopicTarget, part: str, pipeline: Pipeline
) -> dict[str, Expression]:
    """The columns topic, partition, key, value, headers and timestamp of a row. Raises PipelineError."""
    names = user_columns(frame)
    registered = Registered(target, pipeline, [])
    key, key_columns = _key(frame, target, part, registered)
    others = {*key_columns, *value_without(target)}
    left = [name for name in names if name not in others]
    value = _encoded(frame, target.value, list(target.value.columns) or left, part, "value", registered)
    if DELETED in frame.columns:
        kept = ~f.coalesce(f.col(DELETED), f.lit(False))
        problem = None if value.problem is None else f.when(kept, value.problem)
        value = value._replace(column=f.when(kept, value.column), problem=problem)
    return {
        "topic": _topic(target),
        "partition": _partition(target),
        "key": key,
        "value": value,
        "headers": _headers(frame, target, part, registered),
        "timestamp": _timestamp(frame, target),
    }


def _topic(target: TopicTarget) -> Expression:
    if target.topic is not None:
        return Expression(f.lit(target.topic), "topic", is_safe=True)
    assert target.topic_column is not None
    named = column(target.topic_column).cast("string")
    none = f.raise_error(f.lit(f"a row has no topic: its column {target.topic_column} is null"))
    return Expression(f.coalesce(named, none), f"topic: {target.topic_column}")


def _partition(target: TopicTarget) -> Expression:
    if target.partition is None:
        return Expression(f.lit(None).cast("int"), "partition", is_safe=True)
    found = expression(target.partition)
    return Expression(found.column.cast("int"), f"partition: {target.partition}")


def _timestamp(frame: "DataFrame", target: TopicTarget) -> Expression:
    if target.timestamp is None:
        return Expression(f.lit(None).cast("timestamp"), "timestamp", is_safe=True)
    found = expression(target.timestamp)
    kind = frame.select(found.column.alias("timestamp")).schema["timestamp"].dataType
    time = as_time(found.column, kind)
    wrong = found.column.isNotNull() & (time.isNull() | (f.unix_millis(time) < 0))
    text = f"timestamp: {target.timestamp}"
    none = f.raise_error(f.lit(f"{text} has to be of the years 1970 to 9999"))
    return Expression(f.when(wrong, none).otherwise(time), text)


def _key(
    frame: "DataFrame", target: TopicTarget, part: str, registered: Registered
) -> tuple[Expression, tuple[str, ...]]:
    """The key, and the columns that are not part of the value because of it."""
    if target.key is not None and target.key.format != "none":
        columns = target.key.columns
        found = target.key.expression
        if found is not None and found in user_columns(frame):
            columns = (found,)
        return _encoded(frame, target.key, list(target.key.columns), part, "key", registered), columns
    if target.key is None and KEY in user_columns(frame):
        kind = frame.schema[KEY].dataType.simpleString()
        how = (
            "json" if kind.startswith(("struct", "array", "map")) else "bytes" if kind == "binary" else "text"
        )
        whole = Encoding(how, expression=quoted(KEY))
        return _encoded(frame, whole, [], part, "key", registered), (KEY,)
    return Expression(f.lit(None).cast("binary"), "key", is_safe=True), ()


def _encoded(
    frame: "DataFrame", how: Encoding, columns: list[str], part: str, what: str, registered: Registered
) -> Expression:
    if how.format in ("text", "bytes"):
        return _plain(how, columns, part, what)
    if how.format == "json":
        return _json(frame, how, columns, part, what)
    return by_schema(frame, how, columns, part, what, registered)


def _plain(how: Encoding, columns: list[str], part: str, what: str) -> Expression:
    """One value as it is."""
    text = how.expression
    if text is None:
        if len(columns) != 1:
            said = ", ".join(columns) or "none"
            raise PipelineRefusedError(
                f"the {what} is {how.format}, which takes one column, and there are {said}: name one of them",
                part,
            )
        text = quoted(columns[0])
    found = expression(text)
    whole = found.column if how.format == "bytes" else found.column.cast("string")
    return Expression(whole.cast("binary"), f"{what}: {text}")


def _json(frame: "DataFrame", how: Encoding, columns: list[str], part: str, what: str) -> Expression:
    """An object of the columns; null, a tombstone, where all of them are null. Or the JSON of one expression."""
    options = {"ignoreNullFields": "false"}
    if how.expression is not None:
        found = expression(how.expression)
        wrapped = f.to_json(f.struct(found.column.alias("v")), options)
        # Spark writes objects, arrays and maps only: {"v":1} without what is around the 1.
        inner = f.substring(wrapped, 6, 1 << 30)
        bare = f.regexp_replace(inner, r"\}$", "")
        return Expression(f.when(found.column.isNotNull(), bare).cast("binary"), f"{what}: {how.expression}")
    if not columns:
        raise PipelineRefusedError(f"the {what} has no columns", part)
    whole = f.to_json(f.struct(*map(column, columns)), options)
    there = f.coalesce(*(f.when(column(name).isNotNull(), f.lit(True)) for name in columns))
    return Expression(f.when(there, whole).cast("binary"), f"{what} as JSON")


def _headers(frame: "DataFrame", target: TopicTarget, part: str, registered: Registered) -> Expression:
    """Those of the column of headers, then those of the sink."""
    name = target.headers_column
    if name is not None:
        known = user_columns(frame)
        kind = frame.schema[name].dataType.simpleString() if name in known else "missing"
        if kind != _HEADERS_TYPE:
            raise PipelineRefusedError(
                f"the column {name} is {kind}; a column of headers is {_HEADERS_TYPE}", part
            )
    added = [
        f.struct(f.lit(header).alias("key"), f.expr(text).cast("string").cast("binary").alias("value"))
        for header, text in target.headers.items()
    ] + id_headers(registered)
    own: Column = f.array(*added).cast(HEADERS_DDL) if added else f.lit(None).cast(HEADERS_DDL)
    if name is not None:
        given = f.coalesce(column(name), f.array().cast(HEADERS_DDL))
        own = f.concat(given, own) if added else column(name).cast(HEADERS_DDL)
    said = ", ".join(f"{header}: {text}" for header, text in target.headers.items())
    return Expression(own, f"headers: {said}", is_safe=not target.headers)
