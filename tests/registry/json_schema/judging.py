"""What tests of comparisons ask: the types of the differences between two schemas, written as values."""

from __future__ import annotations

import json
from typing import Any

from leafcuttr_registry.json_schema.format import JSON_SCHEMA


def types(old: Any, new: Any, *, lenient: bool = False) -> list[str]:
    """Why what `old` wrote cannot be read by `new`."""
    writer, reader = (JSON_SCHEMA.parse(json.dumps(one), {}) for one in (old, new))
    return [one.type for one in JSON_SCHEMA.differences(reader, writer, lenient=lenient)]


def paths(old: Any, new: Any) -> list[tuple[str, str]]:
    """The types with their places."""
    writer, reader = (JSON_SCHEMA.parse(json.dumps(one), {}) for one in (old, new))
    return [(one.type, one.path) for one in JSON_SCHEMA.differences(reader, writer)]
