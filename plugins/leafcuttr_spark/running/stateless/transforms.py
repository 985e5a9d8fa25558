# PySpark is not installed where types are checked.
# pyright: reportMissingImports=false, reportCallIssue=false, reportArgumentType=false
"""Kafka Connect's transforms as Spark's expressions, with the options of `pipelines.reading.transform_parts`."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as f

from leafcuttr_spark.pipelines.errors import PipelineError, PipelineRefusedError
from leafcuttr_spark.pipelines.operations import Transform
from leafcuttr_spark.running.attempts import Expression
from leafcuttr_spark.running.compiling import Compiler, StepContext
from leafcuttr_spark.running.rows import (
    DELETED,
    HEADERS_DDL,
    RECORD,
    can_fail,
    chosen,
    column,
    is_good,
    user_columns,
)
from leafcuttr_spark.running.stateless.columns import rename_columns, with_columns
from leafcuttr_spark.running.stateless.fields import changed, kept, parts_of, type_of, value_of, without
from leafcuttr_spark.running.stateless.values import hashed, masked, text_of, time_read, time_written

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame

    Make = Callable[[DataFrame, Mapping[str, Any], StepContext], DataFrame]


def compile_transform(
    operation: Transform, frames: "Sequence[DataFrame]", context: StepContext
) -> "DataFrame":
    (frame,) = frames
    make = _MAKERS.get(operation.type)
    if make is None:
        raise PipelineRefusedError(f"there is no transform {operation.type}", context.part)
    return make(frame, operation.options, context)


def needs_record(operation: Transform) -> bool:
    """Whether it reads what the record has beside its value."""
    others = {"topic.field", "partition.field", "offset.field", "timestamp.field", "key.field"}
    return operation.type in ("route", "drop-tombstones", "header") or not others.isdisjoint(
        operation.options
    )


def _record(frame: "DataFrame", context: StepContext) -> "Column":
    if RECORD not in frame.columns:
        raise PipelineRefusedError(
            "it reads the record of a row, and here a row is made of several records", context.part
        )
    return f.col(RECORD)


# Columns and fields


def _extract(frame: "DataFrame", options: Mapping[str, Any], context: StepContext) -> "DataFrame":
    path = options["field"]
    value, kind = value_of(frame, path, context.part), type_of(frame, path, context.part)
    key = (
        [column("key")]
        if "key" in user_columns(frame) and parts_of(frame, path, context.part) != ("key",)
        else []
    )
    if kind.typeName() != "struct":
        return chosen(frame, [*key, value.alias("value")])
    names = [name for name in kind.names if not key or name != "key"]
    return chosen(frame, [*key, *(value[name].alias(name) for name in names)])


def _insert(frame: "DataFrame", options: Mapping[str, Any], context: StepContext) -> "DataFrame":
    new: dict[str, Expression] = {}
    for what in ("topic", "partition", "offset", "timestamp", "key"):
        if name := options.get(f"{what}.field"):
            new[name] = Expression(_record(frame, context)[what], what, is_safe=True)
    if name := options.get("static.field"):
        new[name] = Expression(f.lit(options["static.value"]), "static.value", is_safe=True)
    return with_columns(frame, new, context)


def _replace(frame: "DataFrame", options: Mapping[str, Any], context: StepContext) -> "DataFrame":
    include = [parts_of(frame, path, context.part) for path in options.get("include", ())]
    found = frame
    if include:

        def keep(at: tuple[str, ...]) -> bool | None:
            if any(at[: len(path)] == path for path in include):
                return True
            return None if any(path[: len(at)] == at for path in include) else False

        columns = [
            (name, kept(column(name), frame.schema[name].dataType, keep, (name,)))
            for name in user_columns(frame)
        ]
        found = chosen(frame, [each.alias(name) for name, each in columns if each is not None])
    for path in options.get("exclude", ()):
        if include and not _has(found, path):
            parts_of(frame, path, context.part)
            continue
        first, *others = parts_of(found, path, context.part)
        left = [
            (without(column(name), others).alias(name) if others else None) if name == first else column(name)
            for name in user_columns(found)
        ]
        found = chosen(found, [each for each in left if each is not None])
    if names := options.get("renames"):
        found = rename_columns(found, names, context)
    return found


def _has(frame: "DataFrame", path: str) -> bool:
    try:
        parts_of(frame, path, "")
    except PipelineError:
        return False
    return True


def _flatten(frame: "DataFrame", options: Mapping[str, Any], context: StepContext) -> "DataFrame":
    columns: dict[str, Column] = {}

    def add(name: str, value: "Column", kind: Any) -> None:
        if kind.typeName() == "struct":
            for each in kind.names:
                add(f"{name}{options['delimiter']}{each}", value[each], kind[each].dataType)
        elif name in columns:
            raise PipelineRefusedError(f"two columns would have the name {name}", context.part)
        else:
            columns[name] = value

    for name in user_columns(frame):
        add(name, column(name), frame.schema[name].dataType)
    return chosen(frame, [each.alias(name) for name, each in columns.items()])


# Values


def _change(
    frame: "DataFrame", paths: Sequence[str], context: StepContext, change: "Callable[..., Column]"
) -> "DataFrame":
    """The frame with the values at these paths changed, one after the other."""
    for path in paths:
        kind = type_of(frame, path, context.part)
        name, value = changed(frame, path, context.part, partial(change, kind=kind))
        frame = with_columns(frame, {name: Expression(value, path)}, context)
    return frame


def _mask(frame: "DataFrame", options: Mapping[str, Any], context: StepContext) -> "DataFrame":
    replacement = options.get("replacement")

    def change(value: "Column", kind: Any) -> "Column":
        return masked(value, kind, replacement, context.part)

    return _change(frame, options["fields"], context, change)


def _hash(frame: "DataFrame", options: Mapping[str, Any], context: StepContext) -> "DataFrame":
    def change(value: "Column", kind: Any) -> "Column":
        return hashed(text_of(value, kind), options["algorithm"], options.get("salt"))

    return _change(frame, options["fields"], context, change)


def _timestamp(frame: "DataFrame", options: Mapping[str, Any], context: StepContext) -> "DataFrame":
    format_, precision = options.get("format"), options["unix.precision"]

    def change(value: "Column", kind: Any) -> "Column":
        time = time_read(value, kind, format_, precision, context.part)
        return time_written(time, options["target.type"], format_, precision)

    return _change(frame, [options["field"]], context, change)


# Records


def _route(frame: "DataFrame", options: Mapping[str, Any], context: StepContext) -> "DataFrame":
    record = _record(frame, context)
    topic = record["topic"]
    if "regex" in options:
        whole = f"^(?:{options['regex']})$"
        changed_name = f.regexp_replace(topic, whole, options["replacement"])
        named = f.when(topic.rlike(whole), changed_name).otherwise(topic)
    else:
        time = f.date_format(record["timestamp"], options["timestamp.format"])
        with_topic = f.replace(f.lit(options["topic.format"]), f.lit("${topic}"), topic)
        named = f.replace(with_topic, f.lit("${timestamp}"), time)
    return with_columns(frame, {options["as"]: Expression(named, "route")}, context)


def _drop_tombstones(frame: "DataFrame", options: Mapping[str, Any], context: StepContext) -> "DataFrame":
    there = ~f.col(DELETED) if DELETED in frame.columns else _record(frame, context)["value"].isNotNull()
    return frame.where(there | ~is_good() if can_fail(frame) else there)


def _value_to_key(frame: "DataFrame", options: Mapping[str, Any], context: StepContext) -> "DataFrame":
    values = {path: value_of(frame, path, context.part) for path in options["fields"]}
    if len(values) == 1:
        (key,) = values.values()
    else:
        key = f.struct(*(value.alias(path) for path, value in values.items()))
    return with_columns(frame, {options["as"]: Expression(key, "key", is_safe=True)}, context)


def _header(frame: "DataFrame", options: Mapping[str, Any], context: StepContext) -> "DataFrame":
    name = options["as"]
    own = column(name) if name in user_columns(frame) else _record(frame, context)["headers"]
    found = f.coalesce(own, f.array().cast(HEADERS_DDL))
    if dropped := options["drop"]:
        found = f.filter(found, lambda each: ~each["key"].isin(*dropped))
    texts = {
        header: text_of(value_of(frame, path, context.part), type_of(frame, path, context.part))
        for path, header in zip(options["fields"], options["headers"], strict=True)
    }
    texts |= {header: f.lit(text) for header, text in options["insert"].items()}
    added = [
        f.struct(f.lit(header).alias("key"), text.cast("binary").alias("value"))
        for header, text in texts.items()
    ]
    if added:
        found = f.concat(found, f.array(*added).cast(HEADERS_DDL))
    done = with_columns(frame, {name: Expression(found, "headers")}, context)
    if options["operation"] == "move" and options["fields"]:
        return _replace(done, {"exclude": options["fields"]}, context)
    return done


_MAKERS: "Final[Mapping[str, Make]]" = {
    "extract": _extract,
    "insert": _insert,
    "replace": _replace,
    "mask": _mask,
    "hash": _hash,
    "flatten": _flatten,
    "timestamp": _timestamp,
    "route": _route,
    "drop-tombstones": _drop_tombstones,
    "value-to-key": _value_to_key,
    "header": _header,
}
COMPILERS: Final[Mapping[type[Any], Compiler]] = {Transform: compile_transform}
