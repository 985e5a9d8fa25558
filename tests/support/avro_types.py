"""Avro schemas for tests, from JSON or from what JSON is made of."""

from __future__ import annotations

import json
from typing import Any

from leafcuttr_registry.avro.format import AvroFormat
from leafcuttr_registry.avro.schema import AvroSchema
from leafcuttr_registry.avro.types import AvroType

FORMAT = AvroFormat()


def schema_of(of: Any) -> AvroSchema:
    """Of a text, or of the value that the text has; the name of a type is a value."""
    text = of if isinstance(of, str) and of[:1] in ("{", "[", '"') else json.dumps(of)
    return FORMAT.parse(text, {})


def type_of(of: Any) -> AvroType:
    return schema_of(of).parsed.root


def record(*fields: Any, name: str = "R", **more: Any) -> dict[str, Any]:
    """Each field is (name, type) or (name, type, what else it says)."""
    made = [{"name": one[0], "type": one[1], **(one[2] if len(one) > 2 else {})} for one in fields]
    return {"type": "record", "name": name, "fields": made, **more}


def enum(*symbols: str, name: str = "E", **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": name, "symbols": list(symbols), **more}


def fixed(size: int, name: str = "F", **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": name, "size": size, **more}


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def map_of(values: Any) -> dict[str, Any]:
    return {"type": "map", "values": values}
