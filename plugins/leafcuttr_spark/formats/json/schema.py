"""The type that values of a JSON Schema have in Arrow. What has several types, refers to itself, or says nothing, is a
`string`, which takes any value as its text.

Nothing is validated: a schema says which columns there are. Source: https://json-schema.org/draft/2020-12.
"""

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa

from leafcuttr_sdk.schemas import ResolvedReference, SchemaError
from leafcuttr_spark.formats.types import DEEPEST, MOST_FIELDS, TIMESTAMP, list_of

Json = Any
_FORMATS: Final = {"date": pa.date32(), "date-time": TIMESTAMP}
_SIMPLE: Final = {"boolean": pa.bool_(), "integer": pa.int64(), "number": pa.float64()}
_CONNECT: Final = {
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "bytes": pa.binary(),
}
"""What Connect's converter adds, as `connect.type`."""


def is_json_schema(text: str) -> bool:
    """Rather than Spark's DDL."""
    return text.lstrip()[:1] in ("{", "[") or text.strip() in ("true", "false")


def type_of_json_schema(text: str, references: Mapping[str, ResolvedReference] | None = None) -> pa.DataType:
    """Raises SchemaError."""
    return _Reader(text, references or {}).read()


class _Reader:
    def __init__(self, text: str, references: Mapping[str, ResolvedReference]) -> None:
        self._root = _json(text)
        self._others: dict[str, Json] = {}
        left = list(references.items())
        while left:
            name, one = left.pop()
            self._others[name] = _json(one.text)
            left += one.references.items()
        self._fields = 0

    def read(self) -> pa.DataType:
        return self._type(self._root, self._root, frozenset(), 0)

    def _type(self, schema: Json, root: Json, open_: frozenset[int], depth: int) -> pa.DataType:
        self._fields += 1
        if self._fields > MOST_FIELDS:
            raise SchemaError(
                f"the schema has more than {MOST_FIELDS} fields, those it refers to counted each time"
            )
        if not isinstance(schema, dict) or id(schema) in open_ or depth > DEEPEST:
            return pa.string()
        open_ |= {id(schema)}
        if isinstance(schema.get("$ref"), str):
            found = self._referred(schema["$ref"], root)
            return pa.string() if found is None else self._type(*found, open_, depth + 1)
        for word in ("oneOf", "anyOf"):
            if isinstance(schema.get(word), list):
                others = [each for each in schema[word] if not _is_null(each)]
                return self._type(others[0], root, open_, depth + 1) if len(others) == 1 else pa.string()
        if isinstance(schema.get("allOf"), list) and len(schema["allOf"]) == 1 and "properties" not in schema:
            return self._type(schema["allOf"][0], root, open_, depth + 1)
        return self._plain(schema, root, open_, depth)

    def _plain(
        self, schema: Mapping[str, Json], root: Json, open_: frozenset[int], depth: int
    ) -> pa.DataType:
        kind = schema.get("type")
        if isinstance(kind, list):
            some = [each for each in kind if each != "null"]
            kind = some[0] if len(some) == 1 else None
        if kind is None and "properties" in schema:
            kind = "object"
        if (connect := _CONNECT.get(str(schema.get("connect.type")))) is not None:
            return connect
        if kind == "string":
            return _FORMATS.get(str(schema.get("format")), pa.string())
        if kind == "array":
            return list_of(self._type(schema.get("items"), root, open_, depth + 1))
        if kind == "object":
            return self._object(schema, root, open_, depth)
        return _SIMPLE.get(str(kind), pa.string())

    def _object(
        self, schema: Mapping[str, Json], root: Json, open_: frozenset[int], depth: int
    ) -> pa.DataType:
        properties = schema.get("properties")
        if isinstance(properties, dict) and properties:
            return pa.struct(
                [
                    pa.field(name, self._type(each, root, open_, depth + 1))
                    for name, each in properties.items()
                ]
            )
        more = schema.get("additionalProperties")
        if isinstance(more, dict):
            return pa.map_(pa.string(), self._type(more, root, open_, depth + 1))
        return pa.string()

    def _referred(self, reference: str, root: Json) -> tuple[Json, Json] | None:
        """What it refers to, and the document which that is in."""
        name, _, fragment = reference.partition("#")
        if name:
            if name not in self._others:
                raise SchemaError(
                    f"the schema refers to {name[:100]}, which the registry does not give with it"
                )
            root = self._others[name]
        found = root
        for step in fragment.split("/")[1:]:
            step = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict) and step in found:
                found = found[step]
            elif isinstance(found, list) and step.isdecimal() and int(step) < len(found):
                found = found[int(step)]
            else:
                return None
        return found, root


def _is_null(schema: Json) -> bool:
    return isinstance(schema, dict) and (schema.get("type") == "null" or schema.get("const", 0) is None)


def _json(text: str) -> Json:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"the schema is no JSON: {error}") from None
