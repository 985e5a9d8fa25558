"""Tags that stand in the schema itself, as Confluent's registry puts them there: `confluent:tags` of records and fields
of Avro. Those of metadata are in `metadata`."""

import json
from collections.abc import Mapping
from typing import Any, Final

from leafcuttr_registry.subjects.content import AVRO
from leafcuttr_registry.subjects.refusals import Refusal, invalid_schema

_TAGS: Final = "confluent:tags"
_KINDS: Final = ("sr_record", "sr_field")
_LONGEST: Final = 256 * 1024
"""A longer schema would hold the loop while it is read."""
_NAMED: Final = frozenset({"record", "error", "enum", "fixed"})


def read(body: Mapping[str, Any], name: str) -> dict[tuple[str, str], list[str]]:
    """By kind and path of what is tagged, its tags. Raises Refusal 42201."""
    found: dict[tuple[str, str], list[str]] = {}
    given = body.get(name) or []
    if not isinstance(given, list):
        raise _wrong(name)
    for each in given:
        entity = each.get("schemaEntity") if isinstance(each, dict) else None
        tags = each.get("tags") if isinstance(each, dict) else None
        if not isinstance(entity, dict) or not isinstance(tags, list):
            raise _wrong(name)
        kind, path = str(entity.get("entityType", "")).lower(), entity.get("entityPath")
        if kind not in _KINDS or not isinstance(path, str) or not all(isinstance(tag, str) for tag in tags):
            raise _wrong(name)
        found.setdefault((kind, path), []).extend(tags)
    return found


def changed(
    type: str,
    text: str,
    added: Mapping[tuple[str, str], list[str]],
    removed: Mapping[tuple[str, str], list[str]],
) -> str:
    """The text with these tags. Raises Refusal 42201 for a path that leads nowhere."""
    if not added and not removed:
        return text
    if type != AVRO:
        raise invalid_schema(
            f"Tags within schemas of type {type} are not changed here; metadata have tags too"
        )
    if len(text) > _LONGEST:
        raise invalid_schema(f"too complex: tags are changed in schemas of at most {_LONGEST} characters")
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError):
        raise invalid_schema("Invalid schema of type AVRO, details: it is no JSON") from None
    places: dict[tuple[str, str], dict[str, Any]] = {}
    _walk(schema, "", places)
    for which, sign in ((added, 1), (removed, -1)):
        for place, tags in which.items():
            if place not in places:
                raise invalid_schema(f"No matching path '{place[1]}' found in the schema")
            known = places[place].get(_TAGS)
            known = [each for each in known if isinstance(each, str)] if isinstance(known, list) else []
            known = sorted({*known, *tags}) if sign > 0 else [tag for tag in known if tag not in tags]
            places[place].pop(_TAGS, None)
            if known:
                places[place][_TAGS] = known
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


def _walk(schema: Any, namespace: str, places: dict[tuple[str, str], dict[str, Any]], depth: int = 0) -> None:
    if depth > 200:
        raise invalid_schema("too complex: more than 200 levels")
    if isinstance(schema, list):
        for each in schema:
            _walk(each, namespace, places, depth + 1)
    if not isinstance(schema, dict):
        return
    kind = schema.get("type")
    if isinstance(kind, dict | list):
        _walk(kind, namespace, places, depth + 1)
    for inner in ("items", "values"):
        _walk(schema.get(inner), namespace, places, depth + 1)
    name = schema.get("name")
    if not isinstance(kind, str) or kind not in _NAMED or not isinstance(name, str):
        return
    namespace = name.rpartition(".")[0] or str(schema.get("namespace") or namespace)
    full = name if "." in name or not namespace else f"{namespace}.{name}"
    places["sr_record", full] = schema
    fields = schema.get("fields")
    for field in fields if isinstance(fields, list) else ():
        if isinstance(field, dict):
            places["sr_field", f"{full}.{field.get('name')}"] = field
            _walk(field.get("type"), namespace, places, depth + 1)


def _wrong(name: str) -> Refusal:
    return invalid_schema(f"{name} has to be an array of schemaEntity (entityPath, entityType) and tags")
