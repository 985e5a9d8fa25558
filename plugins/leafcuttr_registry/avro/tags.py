"""What of an Avro schema can have tags: records, by their full names, and their fields."""

import json
from collections.abc import Iterator
from typing import Any, Final

from leafcuttr_registry.inline_tags import FIELD, RECORD, TaggedPlace

_RECORDS: Final = frozenset({"record", "error"})
_NAMED: Final = _RECORDS | {"enum", "fixed"}


def read(text: str) -> Any:
    """A canonical text."""
    return json.loads(text)


def written(schema: Any) -> str:
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


def places(schema: Any, namespace: str = "") -> Iterator[tuple[TaggedPlace, dict[str, Any]]]:
    """Each with the part of the schema that has its tags."""
    if isinstance(schema, list):
        for each in schema:
            yield from places(each, namespace)
    if not isinstance(schema, dict):
        return
    kind = schema.get("type")
    if isinstance(kind, dict | list):
        yield from places(kind, namespace)
    for inner in ("items", "values"):
        yield from places(schema.get(inner), namespace)
    name = schema.get("name")
    if not isinstance(kind, str) or kind not in _NAMED or not isinstance(name, str):
        return
    namespace = name.rpartition(".")[0] or str(schema.get("namespace") or namespace)
    full = name if "." in name or not namespace else f"{namespace}.{name}"
    if kind not in _RECORDS:
        return
    yield (RECORD, full), schema
    for field in schema["fields"]:
        yield (FIELD, f"{full}.{field['name']}"), field
        yield from places(field["type"], namespace)
