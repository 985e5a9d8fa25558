# PySpark is not installed where types are checked.
# pyright: reportMissingImports=false, reportCallIssue=false, reportArgumentType=false
"""All that a pipeline writes as one data set, so that nothing is computed or read twice:

sink         which one; DEAD_LETTERS for dead letters
topic, partition, key, value, headers       of records; null for other sinks
rows_NUMBER  a struct of the columns, for each sink that is no topic
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as f

from leafcuttr_spark.pipelines.model import Pipeline, Sink, TopicTarget
from leafcuttr_spark.running.attempts import Expression, attempted
from leafcuttr_spark.running.compiling import Compilation
from leafcuttr_spark.running.encoding import record_fields
from leafcuttr_spark.running.failures import translated
from leafcuttr_spark.running.rows import (
    ERROR,
    HEADERS_DDL,
    can_fail,
    column,
    is_good,
    record_of,
    user_columns,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SINK: Final = "sink"
DEAD_LETTERS: Final = "dead letters"
PREFIX: Final = "lc.dead.letter."
"""Of the headers of a dead letter, as the broker's own have them."""

_TYPES: Final = {
    SINK: "string",
    "topic": "string",
    "partition": "int",
    "key": "binary",
    "value": "binary",
    "headers": HEADERS_DDL,
}
_OUTPUT: Final = "_lc_output"


def has_timestamps(pipeline: Pipeline) -> bool:
    """Whether a sink says which timestamp its records have."""
    targets = (sink.target for sink in pipeline.sinks.values())
    return any(isinstance(each, TopicTarget) and each.timestamp is not None for each in targets)


def _types(pipeline: Pipeline) -> dict[str, str]:
    return {**_TYPES, "timestamp": "timestamp"} if has_timestamps(pipeline) else _TYPES


@dataclass(frozen=True)
class Outputs:
    """The data set, which columns of it make records, and in which one the rows of each sink are that is no topic."""

    rows: "DataFrame"
    records: tuple[str, ...]
    columns: Mapping[str, str]


def outputs_of(common: Compilation, frames: "Mapping[str, DataFrame]") -> Outputs:
    """All sinks, and dead letters. Raises PipelineError."""
    pipeline = common.pipeline
    others = [name for name, sink in pipeline.sinks.items() if not isinstance(sink.target, TopicTarget)]
    columns = {name: f"rows_{number}" for number, name in enumerate(others)}
    parts = []
    for frame_name in dict.fromkeys(sink.from_ for sink in pipeline.sinks.values()):
        sinks = {name: sink for name, sink in pipeline.sinks.items() if sink.from_ == frame_name}
        parts.append(_of_frame(frames[frame_name], sinks, columns, common))
    parts += [_aside(each, pipeline) for each in common.asides]
    whole = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)
    return Outputs(whole, tuple(name for name in _types(pipeline) if name != SINK), columns)


def _of_frame(
    frame: "DataFrame", sinks: Mapping[str, Sink], columns: Mapping[str, str], common: Compilation
) -> "DataFrame":
    """The rows of all sinks of one frame: each of its rows is taken once, and becomes one for each sink. A row that one
    of them cannot take goes to none of them."""
    fields: dict[str, dict[str, Expression]] = {}
    for name, sink in sinks.items():
        if isinstance(sink.target, TopicTarget):
            part = f"sinks.{name}"
            with translated(common.pipeline, part, sink.line):
                found = record_fields(frame, sink.target, part, common.pipeline)
                fields[name] = {what: each._replace(part=part) for what, each in found.items()}
    flat = [each for found in fields.values() for each in found.values()]
    done, results = attempted(frame, "", flat, catches=common.catches)
    left = iter(results)
    records = {name: dict(zip(found, left, strict=False)) for name, found in fields.items()}
    own = [columns[name] for name in sinks if name in columns]
    types = _types(common.pipeline)
    whole, kind = f.lit(None), None
    if own:
        whole = f.struct(*map(column, user_columns(frame)))
        kind = frame.select(whole.alias("row")).schema["row"].dataType

    def output(name: str, values: "Mapping[str, Column]") -> "Column":
        given = {SINK: f.lit(name), **values}
        typed = [given.get(what, f.lit(None)).cast(type_).alias(what) for what, type_ in types.items()]
        rows = [(whole if columns.get(name) == each else f.lit(None).cast(kind)).alias(each) for each in own]
        return f.struct(*typed, *rows)

    structs = [output(name, records.get(name, {})) for name in sinks]
    if can_fail(done):
        dead = output(DEAD_LETTERS, _dead_letter(done, common.pipeline))
        structs = [f.when(is_good(), each) for each in structs]
        structs[0] = f.coalesce(structs[0], dead)
    if len(structs) > 1:
        one = f.explode(f.array_compact(f.array(*structs)))
    else:
        (one,) = structs
    return done.select(one.alias(_OUTPUT)).select(f"{_OUTPUT}.*")


def _dead_letter(frame: "DataFrame", pipeline: Pipeline) -> "dict[str, Column]":
    """The record of a row with an error as it came, with what is wrong with it in its headers."""
    letters = pipeline.dead_letters
    assert letters is not None
    record = record_of(frame)
    error = f.col(ERROR)
    said = {
        "reason": error["reason"],
        # In the broker's own dead letters it is the name of the filter that gave the reason.
        "filter": f.lit(pipeline.name),
        "step": error["step"],
        "topic": record["topic"],
        "partition": record["partition"],
        "offset": record["offset"],
        "timestamp": f.unix_millis(record["timestamp"]),
    }
    added = [
        f.struct(f.lit(f"{PREFIX}{name}").alias("key"), value.cast("string").cast("binary").alias("value"))
        for name, value in said.items()
    ]
    none = f.array().cast(HEADERS_DDL)
    own = f.filter(f.coalesce(record["headers"], none), lambda each: ~each["key"].startswith(PREFIX))
    headers = f.concat(
        own, f.filter(f.array(*added), lambda each: each["value"].isNotNull()).cast(HEADERS_DDL)
    )
    return {"topic": f.lit(letters.topic), "key": record["key"], "value": record["value"], "headers": headers}


def _aside(frame: "DataFrame", pipeline: Pipeline) -> "DataFrame":
    given = {SINK: f.lit(DEAD_LETTERS), **_dead_letter(frame, pipeline)}
    return frame.select(
        *(given.get(what, f.lit(None)).cast(type_).alias(what) for what, type_ in _types(pipeline).items())
    )
