"""Schemas for columns that have none: what is registered where a sink names no schema. All fields may be null."""

import json
import re
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as kinds

from leafcuttr_sdk.schemas import SchemaError
from leafcuttr_spark.formats.types import ddl

_NAME: Final = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_AVRO: Final[dict[Any, Any]] = {
    pa.bool_(): "boolean",
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.timestamp("us", "UTC"): {"type": "long", "logicalType": "timestamp-micros"},
    pa.timestamp("us"): {"type": "long", "logicalType": "local-timestamp-micros"},
}
_JSON: Final[dict[Any, dict[str, Any]]] = {
    pa.bool_(): {"type": "boolean"},
    pa.int8(): {"type": "integer"},
    pa.int16(): {"type": "integer"},
    pa.int32(): {"type": "integer"},
    pa.int64(): {"type": "integer"},
    pa.float32(): {"type": "number"},
    pa.float64(): {"type": "number"},
    pa.string(): {"type": "string"},
    pa.binary(): {"type": "string", "contentEncoding": "base64"},
    pa.date32(): {"type": "string", "format": "date"},
    pa.timestamp("us", "UTC"): {"type": "string", "format": "date-time"},
    pa.timestamp("us"): {"type": "string"},
}
_PROTOBUF: Final[dict[Any, str]] = {
    pa.bool_(): "bool",
    pa.int8(): "int32",
    pa.int16(): "int32",
    pa.int32(): "int32",
    pa.int64(): "int64",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
    pa.timestamp("us", "UTC"): "google.protobuf.Timestamp",
}


def _checked(name: str, format_: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise SchemaError(f"the column {name!r} has no name of {format_}: rename it, or give a schema")
    return name


def _words(text: str) -> str:
    """A name of a type, made of that of a subject."""
    made = "".join(part[:1].upper() + part[1:] for part in re.split("[^A-Za-z0-9]+", text))
    return made if made[:1].isalpha() else f"Type{made}"


def avro_of(type_: pa.DataType, name: str) -> str:
    """Raises SchemaError."""
    return json.dumps(_avro(type_, _words(name)))


def _avro(type_: pa.DataType, name: str) -> Any:
    if kinds.is_struct(type_):
        fields = []
        for field in type_:
            inner = _avro(field.type, f"{name}_{_checked(field.name, 'Avro')}")
            fields.append({"name": field.name, "type": ["null", inner], "default": None})
        return {"type": "record", "name": name, "fields": fields}
    if kinds.is_list(type_):
        return {"type": "array", "items": ["null", _avro(type_.value_type, f"{name}_element")]}
    if kinds.is_map(type_) and type_.key_type == pa.string():
        return {"type": "map", "values": ["null", _avro(type_.item_type, f"{name}_value")]}
    if kinds.is_decimal(type_):
        return {"type": "bytes", "logicalType": "decimal", "precision": type_.precision, "scale": type_.scale}
    if type_ not in _AVRO:
        raise SchemaError(f"Avro has no type for {ddl(type_)}: give a schema")
    return _AVRO[type_]


def json_schema_of(type_: pa.DataType, name: str) -> str:
    """Raises SchemaError."""
    made = {"$schema": "http://json-schema.org/draft-07/schema#", "title": _words(name), **_json(type_)}
    return json.dumps(made)


def _json(type_: pa.DataType) -> dict[str, Any]:
    if kinds.is_struct(type_):
        properties = {field.name: {"oneOf": [{"type": "null"}, _json(field.type)]} for field in type_}
        return {"type": "object", "properties": properties}
    if kinds.is_list(type_):
        return {"type": "array", "items": {"oneOf": [{"type": "null"}, _json(type_.value_type)]}}
    if kinds.is_map(type_):
        return {
            "type": "object",
            "additionalProperties": {"oneOf": [{"type": "null"}, _json(type_.item_type)]},
        }
    if kinds.is_decimal(type_):
        return {"type": "number"}
    if type_ not in _JSON:
        raise SchemaError(f"JSON has no type for {ddl(type_)}: give a schema")
    return _JSON[type_]


def proto_of(type_: pa.DataType, name: str) -> str:
    """Raises SchemaError."""
    if not kinds.is_struct(type_):
        raise SchemaError("a message of Protobuf has fields: give a struct")
    lines = ['syntax = "proto3";']
    body = _message(type_, _words(name), "")
    if any("google.protobuf.Timestamp" in line for line in body):
        lines.append('import "google/protobuf/timestamp.proto";')
    return "\n".join([*lines, *body]) + "\n"


def _message(type_: pa.DataType, name: str, indent: str) -> list[str]:
    lines = [f"{indent}message {name} {{"]
    inside = indent + "  "
    for number, field in enumerate(type_, 1):
        _checked(field.name, "Protobuf")
        inner, label = field.type, "optional "
        nested = f"{_words(field.name)}Value"
        if kinds.is_list(inner):
            inner, label = inner.value_type, "repeated "
        if kinds.is_map(inner) and label == "optional ":
            if inner.key_type != pa.string():
                raise SchemaError(f"the keys of the column {field.name} are no texts")
            value = _proto(inner.item_type, nested, inside, lines, field.name)
            lines.append(f"{inside}map<string, {value}> {field.name} = {number};")
            continue
        kind = _proto(inner, nested, inside, lines, field.name)
        lines.append(f"{inside}{label}{kind} {field.name} = {number};")
    return [*lines, f"{indent}}}"]


def _proto(type_: pa.DataType, nested: str, indent: str, lines: list[str], name: str) -> str:
    if kinds.is_struct(type_):
        lines += _message(type_, nested, indent)
        return nested
    if type_ not in _PROTOBUF:
        raise SchemaError(f"the column {name} is {ddl(type_)}, which Protobuf does not have: cast it")
    return _PROTOBUF[type_]
