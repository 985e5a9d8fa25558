# PySpark is not installed where types are checked.
# pyright: reportMissingImports=false, reportCallIssue=false, reportArgumentType=false
"""Keys and values of a sink in the formats with a schema: Avro, JSON Schema and Protobuf. The schema is registered when
the pipeline starts."""

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql import functions as f

from leafcuttr_spark.formats.options import FormatName, FormatOptions, IdPlace, read_schema_file
from leafcuttr_spark.options import OptionError
from leafcuttr_spark.pipelines.errors import PipelineError, PipelineRefusedError
from leafcuttr_spark.pipelines.model import Encoding, Pipeline, TopicTarget
from leafcuttr_spark.running.attempts import Expression, expression
from leafcuttr_spark.running.rows import column
from leafcuttr_spark.spark.frames import encoded, planned_encoding

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

FORMATS: Final = ("avro", "json-schema", "protobuf")
_WHOLE: Final = "_lc_whole"


class Registered(NamedTuple):
    """A sink, and the headers that its records need because of their schemas."""

    target: TopicTarget
    pipeline: Pipeline
    ids: list[tuple[str, bytes]]


def by_schema(
    frame: "DataFrame", how: Encoding, columns: list[str], part: str, what: str, registered: Registered
) -> Expression:
    """The bytes of an object of the columns, or of one expression; null where all of them are null. Adds to the ids.
    Raises PipelineError."""
    target = registered.target
    if how.expression is not None:
        whole, said = f.expr(how.expression), how.expression
    elif columns:
        there = f.coalesce(*(f.when(column(name).isNotNull(), f.lit(True)) for name in columns))
        whole, said = f.when(there, f.struct(*map(column, columns))), f"{what} as {how.format}"
    else:
        raise PipelineRefusedError(f"the {what} has no columns", part)
    subject = how.subject or (f"{target.topic}-{what}" if target.topic is not None else None)
    if subject is None:
        raise PipelineRefusedError(f"the {what} needs a subject: its topic is in a column", part)
    try:
        options = _options(how, registered.pipeline)
        made = planned_encoding(frame.select(whole.alias(_WHOLE)), _WHOLE, options, subject, what)
    except OptionError as error:
        raise PipelineError(str(error), part) from None
    if made.header is not None:
        registered.ids.append(made.header)
    bytes_ = encoded(whole, made)
    plain = how.expression is None or expression(how.expression).is_safe
    return Expression(bytes_["data"], said, is_safe=plain, problem=bytes_["error"])


def _options(how: Encoding, pipeline: Pipeline) -> FormatOptions:
    """Raises OptionError."""
    schema = None
    if how.schema is not None:
        path = pipeline.folder / how.schema
        try:
            schema = read_schema_file(path)
        except OSError as error:
            raise OptionError(f"the schema {path} cannot be read: {error.strerror}") from None
    return FormatOptions(
        FormatName(how.format),
        schema,
        how.subject,
        IdPlace(how.schema_id or ("payload" if pipeline.registry else "none")),
        how.message,
        pipeline.registry or {},
    )


def id_headers(registered: Registered) -> "list[Column]":
    """Structs of key and value."""
    return [_header(name, value) for name, value in registered.ids]


def _header(name: str, value: bytes) -> "Column":
    literal: Any = bytearray(value)
    return f.struct(f.lit(name).alias("key"), f.lit(literal).alias("value"))
