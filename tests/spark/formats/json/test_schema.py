"""The types that JSON Schemas have."""

from __future__ import annotations

import json
from typing import Any

import pytest

from leafcuttr_sdk.schemas import ResolvedReference, SchemaError
from leafcuttr_spark.formats.json.schema import is_json_schema, type_of_json_schema
from leafcuttr_spark.formats.types import ddl


def type_(schema: Any, **references: ResolvedReference) -> str:
    return ddl(type_of_json_schema(json.dumps(schema), references)).removeprefix("struct<").removesuffix(">")


def of(schema: Any, **more: Any) -> str:
    return type_({"type": "object", "properties": {"a": schema}, **more}).removeprefix("`a` ")


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "integer"}, "bigint"),
        ({"type": "number"}, "double"),
        ({"type": "boolean"}, "boolean"),
        ({"type": "string"}, "string"),
        ({"type": "string", "format": "date-time"}, "timestamp"),
        ({"type": "string", "format": "date"}, "date"),
        ({"type": ["null", "integer"]}, "bigint"),
        ({"type": ["string", "integer"]}, "string"),
        ({"oneOf": [{"type": "null"}, {"type": "number"}]}, "double"),
        ({"anyOf": [{"type": "string"}, {"type": "number"}]}, "string"),
        ({"allOf": [{"type": "number"}]}, "double"),
        ({"type": "integer", "connect.type": "int8"}, "tinyint"),
        ({"type": "array", "items": {"type": "integer"}}, "array<bigint>"),
        ({"type": "array"}, "array<string>"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "map<string, bigint>"),
        ({"type": "object"}, "string"),
        ({"properties": {"b": {"type": "integer"}}}, "struct<`b` bigint>"),
        (True, "string"),
        ({"const": 5}, "string"),
        ({"$ref": "#/nowhere"}, "string"),
        ({"$ref": "#/$defs/x~1y"}, "double"),
    ],
)
def test_types(schema: Any, expected: str) -> None:
    assert of(schema, **{"$defs": {"x/y": {"type": "number"}}}) == expected


def test_other_documents_and_circles() -> None:
    other = ResolvedReference(json.dumps({"definitions": {"n": {"type": "integer"}}}), {})
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "other.json#/definitions/n"}, "b": {"$ref": "#"}},
    }
    assert type_(schema, **{"other.json": other}) == "`a` bigint, `b` string"
    with pytest.raises(SchemaError, match=r"the schema refers to other\.json"):
        type_(schema)


def test_bombs() -> None:
    doubled = {f"d{n}": {"type": "object", "properties": {x: {"$ref": f"#/$defs/d{n + 1}"} for x in "ab"}}
               for n in range(40)}  # fmt: skip
    with pytest.raises(SchemaError, match="the schema has more than 5000 fields"):
        type_({"$ref": "#/$defs/d0", "$defs": {**doubled, "d40": {"type": "integer"}}})
    with pytest.raises(SchemaError, match="the schema is no JSON"):
        type_of_json_schema("[" * 100_000)


def test_what_is_a_schema_rather_than_ddl() -> None:
    assert is_json_schema(' {"type": "object"}') and is_json_schema("true") and not is_json_schema("a INT")
