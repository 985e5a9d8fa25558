"""The keys that say how keys and values of records are read and written, and kinds that several parts have."""

from collections.abc import Mapping
from typing import Any, Final

from leafcuttr_spark.pipelines import model
from leafcuttr_spark.pipelines.reading.kinds import (
    Anything,
    At,
    Choice,
    Ddl,
    FilePath,
    Key,
    Named,
    Part,
    Text,
    Texts,
)
from leafcuttr_spark.pipelines.reading.yaml_nodes import Node

FIELD_FORMATS: Final = ("json", "avro", "json-schema", "protobuf")
"""Formats whose values have fields."""
FORMATS: Final = ("bytes", "text", *FIELD_FORMATS)
FILE_FORMATS: Final = ("csv", "json", "parquet", "orc", "text")
SCHEMA_IDS: Final = ("any", "payload", "header", "none")
NAME: Final = r"[A-Za-z0-9._-]+"

EXPRESSION: Final = Text("an expression of Spark SQL")
EXPRESSIONS: Final = Named(EXPRESSION, "names with expressions of Spark SQL")
REFERENCE: Final = Text("package.module:name", r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
ARGUMENTS: Final = Named(Anything(), "names with values", empty=True)
CLUSTER: Final = Key("cluster", Text("a name of `clusters`"), "Which cluster, of several.", model.MAIN)
TOPIC_NAME: Final = Text(
    "the name of a topic: letters, digits, `.`, `_` and `-`, at most 249", r"[A-Za-z0-9._-]{1,249}"
)


def _make_decoding(values: Mapping[str, Any], node: Node, at: At) -> model.Decoding:
    format = values["format"]
    _only_for(values, node, format, at)
    if "columns" in values and format != "json":
        at.within("columns").wrong(node.line, f"is for json; the columns of {format} are those of its schema")
    return model.Decoding(
        format=format,
        columns=values.get("columns"),
        schema=values.get("schema"),
        subject=values.get("subject"),
        schema_id=values.get("id"),
        message=values.get("message"),
        as_=values.get("as"),
    )


def _only_for(values: Mapping[str, Any], node: Node, format: str, at: At) -> None:
    allowed = {
        "schema": ("avro", "json-schema", "protobuf"),
        "subject": ("avro", "json-schema", "protobuf"),
        "id": ("avro", "json-schema", "protobuf"),
        "message": ("protobuf",),
    }
    for name, formats in allowed.items():
        if name in values and format not in formats:
            at.within(name).wrong(node.line, f"is for {' and '.join(formats)}, not for {format}")


_FORMAT_KEYS: Final = (
    Key(
        "schema",
        FilePath(),
        "A file with the schema: .avsc, a JSON Schema, or of protobuf a descriptor set (`protoc --descriptor_set_out`)."
        " Without it the latest schema of the subject counts.",
    ),
    Key("subject", Text("the name of a subject"), "Whose latest schema counts.", "TOPIC-value, TOPIC-key"),
    Key(
        "id",
        Choice(SCHEMA_IDS),
        "Where Confluent's framing has the id of a record's schema: `any` is a header, or else the payload; `none` is"
        " for records that are not framed.",
        "any with a registry, otherwise none",
    ),
    Key(
        "message", Text("the full name of a message"), "Of protobuf: which message of the file.", "the first"
    ),
)


def decoding(name: str, what: str, formats: tuple[str, ...]) -> Part:
    return Part(
        name,
        what,
        (
            Key("format", Choice(formats), "How it is read.", required=True),
            Key("columns", Ddl(), "Of json: its fields with their types. Others are left out."),
            *_FORMAT_KEYS,
            Key("as", Text("the name of a column"), "One column of this name for the whole."),
        ),
        _make_decoding,
        short=Choice(formats),
        short_key="format",
        example="{format: avro, schema: orders.avsc}",
    )


def _make_encoding(values: Mapping[str, Any], node: Node, at: At) -> model.Encoding:
    format = values.get("format", "text" if "expression" in values else "json")
    _only_for(values, node, format, at)
    if "columns" in values and "expression" in values:
        at.wrong(node.line, "columns and expression exclude each other")
    return model.Encoding(
        format=format,
        columns=values.get("columns", ()),
        expression=values.get("expression"),
        schema=values.get("schema"),
        subject=values.get("subject"),
        schema_id=values.get("id"),
        message=values.get("message"),
    )


_ENCODING_KEYS: Final = (
    Key("columns", Texts("a column, or a list of columns"), "Which columns are its fields."),
    Key("expression", EXPRESSION, "One value instead of columns."),
    *_FORMAT_KEYS,
)

ENCODED_VALUE: Final = Part(
    "value-of-a-sink",
    "How the value of records is made: the name of a format, or a mapping.",
    (
        Key("format", Choice(FORMATS), "How it is written.", "json; with expression text"),
        *_ENCODING_KEYS,
    ),
    _make_encoding,
    short=Choice(FORMATS),
    short_key="format",
    example="{format: avro, schema: totals.avsc}",
)


def _make_key(values: Mapping[str, Any], node: Node, at: At) -> model.Encoding:
    made = _make_encoding({"format": "json" if "columns" in values else "text", **values}, node, at)
    if not made.columns and made.expression is None:
        at.wrong(node.line, "the key needs expression or columns")
    return made


ENCODED_KEY: Final = Part(
    "key-of-a-sink",
    "How the key of records is made: a column or an expression, written as text, or a mapping.",
    (
        Key("format", Choice(FORMATS), "How it is written.", "text; with columns json"),
        *_ENCODING_KEYS,
    ),
    _make_key,
    short=EXPRESSION,
    short_key="expression",
    example="{columns: [region, day], format: json}",
)
