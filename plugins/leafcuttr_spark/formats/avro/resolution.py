# pyarrow makes the functions of its module `compute` when it is imported.
# pyright: reportAttributeAccessIssue=false
"""Columns of a writer's schema of Avro as those of a reader's, as the specification resolves them: fields by name or
alias, wider numbers, defaults. None where it has to be decided value by value, which fastavro does.

Source: "Schema Resolution" of https://avro.apache.org/docs/1.12.0/specification/
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa

from leafcuttr_spark.formats.avro.schema import PRIMITIVES, arrow_type, branches

Json = Any
Project = Callable[[pa.Array], pa.Array]
_WIDER: Final = {
    ("int", "long"): pa.int64(),
    ("int", "double"): pa.float64(),
    ("long", "double"): pa.float64(),
    ("float", "double"): pa.float64(),
    ("string", "bytes"): pa.binary(),
    ("bytes", "string"): pa.string(),
}


def projection(writer: Json, reader: Json) -> Project | None:
    """Both schemas are without references."""
    if isinstance(writer, list):
        return _of_nullable(writer, reader)
    if isinstance(reader, list):
        others = branches(reader)
        return projection(writer, others[0]) if len(others) == 1 and len(reader) == 2 else None
    if isinstance(writer, str) and isinstance(reader, str):
        if writer == reader:
            return lambda array: array
        wider = _WIDER.get((writer, reader))
        return (
            None if wider is None else lambda array: array.cast(wider, safe=not pa.types.is_floating(wider))
        )
    if not isinstance(writer, dict) or not isinstance(reader, dict):
        return None
    if writer["type"] != reader["type"] or writer.get("name") != reader.get("name"):
        return None
    if writer["type"] == "record":
        return _of_record(writer, reader)
    if writer["type"] == "enum":
        return (lambda array: array) if set(writer["symbols"]) <= set(reader["symbols"]) else None
    if writer["type"] == "fixed":
        return (lambda array: array) if writer["size"] == reader["size"] else None
    return None


def _of_nullable(writer: list[Json], reader: Json) -> Project | None:
    """A null for a reader without null is an error of that value."""
    if not isinstance(reader, list) or len(writer) != 2 or len(reader) != 2:
        return None
    ours, theirs = branches(writer), branches(reader)
    return projection(ours[0], theirs[0]) if len(ours) == len(theirs) == 1 else None


def _of_record(writer: Mapping[str, Json], reader: Mapping[str, Json]) -> Project | None:
    places = {field["name"]: (place, field["type"]) for place, field in enumerate(writer["fields"])}
    found: list[tuple[int, Project]] = []
    for field in reader["fields"]:
        names = [name for name in (field["name"], *_aliases(field)) if name in places]
        # Where several of its names are fields of the writer, which one is meant, the other reader decides.
        if len(names) > 1:
            return None
        if names:
            place, type_ = places[names[0]]
            project = projection(type_, field["type"])
            if project is None:
                return None
            found.append((place, project))
        elif "default" in field:
            made = _default(field["type"], field["default"])
            if made is None:
                return None
            found.append((-1, made))
        else:
            return None
    type_ = pa.struct([pa.field(field["name"], arrow_type(field["type"])) for field in reader["fields"]])

    def project_record(array: pa.Array) -> pa.Array:
        children = [project(array if place < 0 else array.field(place)) for place, project in found]
        mask = array.is_null() if array.null_count else None
        fields = [pa.field(field.name, child.type) for field, child in zip(type_, children, strict=True)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=mask)

    return project_record if found else None


def _aliases(field: Mapping[str, Json]) -> list[str]:
    given = field.get("aliases")
    return [each for each in given if isinstance(each, str)] if isinstance(given, list) else []


def _default(schema: Json, value: Json) -> Project | None:
    """As many of them as the record has rows; None for a default that is made of several values."""
    if isinstance(schema, list):
        if not schema or (schema[0] == "null") != (value is None):
            return None
        others = branches(schema)
        if len(others) != 1:
            return None
        if value is None:
            return lambda array: pa.nulls(len(array), arrow_type(others[0]))
        schema = others[0]
    kind = schema if isinstance(schema, str) else schema["type"]
    if kind in ("bytes", "fixed") and isinstance(value, str):
        value = value.encode("latin-1", "replace")
    elif kind in ("record", "array", "map") or (kind not in PRIMITIVES and kind != "enum"):
        return None
    try:
        scalar = pa.scalar(value, arrow_type(schema))
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return None
    return lambda array: pa.repeat(scalar, len(array))
