"""Schemas of Avro: one text with all that it refers to, as a plain tree, and the type that its values have in Arrow.

A plain schema has full names, each type defined where it is met first, and no logical types. What it has of these is
kept beside, because Spark's values differ from Avro's: `logical` has them.

Refused: types within themselves, which Spark does not have; arrays of items that take no bytes, of which a value of ten
bytes may claim any number; more than `MOST_FIELDS` fields.

Source: https://avro.apache.org/docs/1.12.0/specification/
"""

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import pyarrow as pa

from leafcuttr_sdk.schemas import ResolvedReference, SchemaError
from leafcuttr_spark.formats.types import (
    DEEPEST,
    MOST_DIGITS,
    MOST_FIELDS,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    list_of,
)

PRIMITIVES: Final[Mapping[str, pa.DataType]] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LEAST: Final = {"null": 0, "float": 4, "double": 8}
"""Bytes of a value; 1 of all others."""
_LOGICAL: Final[Mapping[tuple[str, str], pa.DataType]] = {
    ("int", "date"): pa.date32(),
    ("long", "timestamp-millis"): TIMESTAMP,
    ("long", "timestamp-micros"): TIMESTAMP,
    ("long", "local-timestamp-millis"): TIMESTAMP_NTZ,
    ("long", "local-timestamp-micros"): TIMESTAMP_NTZ,
}
_NUMBERS: Final = ({"int", "long"}, {"float", "double"})
Json = Any


class AvroSchema(NamedTuple):
    """A schema that was read."""

    plain: Json
    defined: Mapping[str, Json]
    """The plain definitions by their full names."""
    logical: Json
    """The same tree with logical types; references are definitions."""
    type: pa.DataType


def read_avro(text: str, references: Mapping[str, ResolvedReference] | None = None) -> AvroSchema:
    """Raises SchemaError."""
    reader = _Reader(_external(references or {}))
    plain, logical = reader.read(_json(text), "", 0)
    size = reader.fields(plain)
    if size > MOST_FIELDS:
        raise SchemaError(f"the schema has {size} fields, those of repeated types counted each time; at most"
                          f" {MOST_FIELDS} are decoded")  # fmt: skip
    return AvroSchema(plain, reader.defined, logical, arrow_type(logical))


def _json(text: str) -> Json:
    try:
        found: Json = json.loads(text)
    except (ValueError, RecursionError) as error:
        stripped = text.strip()
        if stripped in PRIMITIVES:
            return stripped
        raise SchemaError(f"the schema is no JSON: {error}") from None
    return found


def _external(references: Mapping[str, ResolvedReference]) -> dict[str, Json]:
    """Definitions that others may refer to, by their full names."""
    found: dict[str, Json] = {}
    left = list(references.values())
    while left:
        one = left.pop()
        left += one.references.values()
        schema = _json(one.text)
        if isinstance(schema, dict) and isinstance(schema.get("name"), str):
            found[_full(schema["name"], schema.get("namespace", ""))] = schema
    return found


def _full(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


class _Reader:
    def __init__(self, external: Mapping[str, Json]) -> None:
        self._external = external
        self._open: set[str] = set()
        self.defined: dict[str, Json] = {}
        self._logical: dict[str, Json] = {}
        self._sizes: dict[str, int] = {}
        self._leasts: dict[str, int] = {}
        self._nodes = 0

    def read(self, schema: Json, namespace: str, depth: int) -> tuple[Json, Json]:
        """The plain schema, and the one with logical types."""
        self._nodes += 1
        if depth > 2 * DEEPEST or self._nodes > 4 * MOST_FIELDS:
            raise SchemaError("the schema is nested too deep, or has too many types")
        if isinstance(schema, str):
            return self._by_name(schema, namespace, depth)
        if isinstance(schema, list):
            found = [self.read(each, namespace, depth + 1) for each in schema]
            return self._union([plain for plain, _ in found]), [logical for _, logical in found]
        if not isinstance(schema, dict) or "type" not in schema:
            raise SchemaError(
                f"{str(schema)[:40]} is no schema: an object with a type, a name or a list is expected"
            )
        kind = schema["type"]
        if isinstance(kind, dict | list):
            return self.read(kind, namespace, depth + 1)
        if kind in ("record", "error", "enum", "fixed"):
            return self._named(schema, namespace, depth)
        if kind == "array":
            plain, logical = self.read(schema.get("items"), namespace, depth + 1)
            if not self._least(plain):
                raise SchemaError(
                    "it has an array of items that take no bytes: any number of them may be claimed"
                )
            return {"type": "array", "items": plain}, {"type": "array", "items": logical}
        if kind == "map":
            plain, logical = self.read(schema.get("values"), namespace, depth + 1)
            return {"type": "map", "values": plain}, {"type": "map", "values": logical}
        plain, logical = self.read(kind, namespace, depth + 1)
        if isinstance(plain, str) and plain in PRIMITIVES:
            return plain, _with_logical(plain, schema)
        return plain, logical

    def _by_name(self, name: str, namespace: str, depth: int) -> tuple[Json, Json]:
        if name in PRIMITIVES:
            return name, name
        full = _full(name, namespace)
        if full not in self.defined and full not in self._open and full not in self._external:
            full = name
        if full in self._open:
            raise SchemaError(f"the type {full} has itself within it, which Spark does not have")
        if full in self.defined:
            return full, self._logical[full]
        if full in self._external:
            return self.read(self._external[full], "", depth + 1)
        raise SchemaError(f"the type {name[:100]} is not defined")

    def _named(self, schema: Mapping[str, Json], namespace: str, depth: int) -> tuple[Json, Json]:
        name, space = schema.get("name"), schema.get("namespace", namespace)
        if not isinstance(name, str) or not isinstance(space, str) or not name:
            raise SchemaError(f"a {schema['type']} has no name")
        full = _full(name, space)
        if full in self.defined or full in self._open:
            raise SchemaError(f"the type {full} is defined twice")
        space = full.rpartition(".")[0]
        plain: dict[str, Json] = {
            "type": "record" if schema["type"] == "error" else schema["type"],
            "name": full,
        }
        if isinstance(schema.get("aliases"), list):
            plain["aliases"] = [_full(each, space) for each in schema["aliases"] if isinstance(each, str)]
        logical = plain
        if plain["type"] == "enum":
            plain["symbols"] = _symbols(schema)
            if isinstance(schema.get("default"), str):
                plain["default"] = schema["default"]
        elif plain["type"] == "fixed":
            size = schema.get("size")
            if type(size) is not int or not 0 <= size < 1 << 31:
                raise SchemaError(f"the fixed {full} has no size")
            plain["size"] = size
            logical = _with_logical(plain, schema)
        else:
            self._open.add(full)
            plain["fields"], fields = self._fields(full, schema, space, depth)
            self._open.discard(full)
            logical = {**plain, "fields": fields}
        self.defined[full] = plain
        self._logical[full] = logical
        return plain, logical

    def _fields(
        self, full: str, schema: Mapping[str, Json], space: str, depth: int
    ) -> tuple[list[Json], list[Json]]:
        plain_fields, logical_fields = [], []
        names: set[str] = set()
        if not isinstance(schema.get("fields"), list):
            raise SchemaError(f"the record {full} has no fields")
        for field in schema["fields"]:
            name = field.get("name") if isinstance(field, dict) else None
            if not isinstance(name, str) or "type" not in field or name in names:
                raise SchemaError(
                    f"a field of the record {full} has no name or type, or one that comes twice"
                )
            names.add(name)
            plain, logical = self.read(field["type"], space, depth + 1)
            # A logical type may stand beside the type of a field as well.
            if isinstance(plain, str) and plain in PRIMITIVES and logical == plain:
                logical = _with_logical(plain, field)
            kept = {key: field[key] for key in ("default", "aliases") if key in field}
            plain_fields.append({"name": name, "type": plain, **kept})
            logical_fields.append({"name": name, "type": logical, **kept})
        return plain_fields, logical_fields

    def _union(self, plain: list[Json]) -> list[Json]:
        if any(isinstance(each, list) for each in plain):
            raise SchemaError("a union is directly within a union")
        return plain

    def _least(self, plain: Json) -> int:
        """Bytes that a value takes at least."""
        if isinstance(plain, str):
            if plain in PRIMITIVES:
                return _LEAST.get(plain, 1)
            if plain not in self._leasts:
                self._leasts[plain] = self._least(self.defined[plain])
            return self._leasts[plain]
        if isinstance(plain, list) or plain["type"] in ("array", "map", "enum"):
            return 1
        if plain["type"] == "fixed":
            return int(plain["size"])
        return sum(self._least(field["type"]) for field in plain["fields"][:MOST_FIELDS])

    def fields(self, plain: Json) -> int:
        """How many there are, those of a type that comes again counted each time."""
        if isinstance(plain, str):
            if plain in PRIMITIVES:
                return 1
            if plain not in self._sizes:
                self._sizes[plain] = self.fields(self.defined[plain])
            return self._sizes[plain]
        if isinstance(plain, list):
            return 1 + sum(map(self.fields, plain))
        if plain["type"] == "record":
            return 1 + sum(self.fields(field["type"]) for field in plain["fields"])
        return 1 + sum(self.fields(plain[key]) for key in ("items", "values") if key in plain)


def _symbols(schema: Mapping[str, Json]) -> list[str]:
    symbols = schema.get("symbols")
    if not isinstance(symbols, list) or not all(isinstance(each, str) for each in symbols):
        raise SchemaError(f"the enum {schema['name']} has no symbols")
    return symbols


def _with_logical(plain: Json, schema: Mapping[str, Json]) -> Json:
    """With its logical type, where Spark has one for it; other ones are ignored, as Avro says."""
    name = schema.get("logicalType")
    kind = plain if isinstance(plain, str) else plain["type"]
    if name == "decimal" and kind in ("bytes", "fixed"):
        digits, scale = schema.get("precision"), schema.get("scale", 0)
        if type(digits) is int and type(scale) is int and 0 < digits <= MOST_DIGITS and 0 <= scale <= digits:
            whole = {"type": plain} if isinstance(plain, str) else plain
            return {**whole, "logicalType": name, "precision": digits, "scale": scale}
    elif (kind, name) in _LOGICAL:
        return {"type": plain, "logicalType": name}
    return plain


def arrow_type(schema: Json) -> pa.DataType:
    """Of a schema without references: with logical types as Spark has them, else as Avro has them."""
    if isinstance(schema, str):
        return PRIMITIVES[schema]
    if isinstance(schema, list):
        return _union_type(schema)
    kind = schema["type"]
    name = schema.get("logicalType")
    if name == "decimal":
        return pa.decimal128(schema["precision"], schema["scale"])
    if name is not None:
        return _LOGICAL[kind, name]
    if kind == "record":
        return pa.struct([pa.field(field["name"], arrow_type(field["type"])) for field in schema["fields"]])
    if kind == "array":
        return list_of(arrow_type(schema["items"]))
    if kind == "map":
        return pa.map_(pa.string(), arrow_type(schema["values"]))
    return pa.string() if kind == "enum" else pa.binary()


def branches(union: list[Json]) -> list[Json]:
    """Those that are not null."""
    return [each for each in union if each != "null"]


def merged(union: list[Json]) -> Json | None:
    """The one schema that a union's values have, null aside; None where they have several."""
    others = branches(union)
    if not others:
        return "null"
    if len(others) == 1:
        return others[0]
    if all(isinstance(each, str) for each in others):
        for numbers in _NUMBERS:
            if set(others) == numbers:
                return "long" if "long" in numbers else "double"
    return None


def _union_type(union: list[Json]) -> pa.DataType:
    """Of several types: a struct with a member for each, as Spark's own."""
    one = merged(union)
    if one is not None:
        return arrow_type(one)
    members = [pa.field(f"member{place}", arrow_type(each)) for place, each in enumerate(branches(union))]
    return pa.struct(members)
