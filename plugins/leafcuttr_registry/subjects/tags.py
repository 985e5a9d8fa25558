"""Tags that stand in schemas, as requests and answers have them: `schemaEntity` and `tags`. What they do to a schema
says its format (`inline_tags`). Those of metadata are in `metadata`."""

from collections.abc import Mapping
from typing import Any, cast

from leafcuttr_registry.inline_tags import KINDS, Kind, TaggedPlace
from leafcuttr_registry.subjects.refusals import Refusal, invalid_schema


def read(body: Mapping[str, Any], name: str) -> dict[TaggedPlace, list[str]]:
    """By kind and path of what is tagged, its tags. Raises Refusal 42201."""
    found: dict[TaggedPlace, list[str]] = {}
    given = body.get(name) or []
    if not isinstance(given, list):
        raise _wrong(name)
    for each in given:
        entity = each.get("schemaEntity") if isinstance(each, dict) else None
        tags = each.get("tags") if isinstance(each, dict) else None
        if not isinstance(entity, dict) or not isinstance(tags, list):
            raise _wrong(name)
        kind, path = str(entity.get("entityType", "")).lower(), entity.get("entityPath")
        if kind not in KINDS or not isinstance(path, str) or not all(map(_is_text, tags)):
            raise _wrong(name)
        found.setdefault((cast("Kind", kind), path.removeprefix(".")), []).extend(tags)
    return found


def answer(found: Mapping[TaggedPlace, list[str]], asked: list[str]) -> list[dict[str, Any]]:
    """What has one of the tags that were asked for; `*` asks for all."""
    return [
        {"schemaEntity": {"entityPath": path, "entityType": kind}, "tags": tags}
        for (kind, path), tags in found.items()
        if "*" in asked or not set(asked).isdisjoint(tags)
    ]


def _wrong(name: str) -> Refusal:
    return invalid_schema(f"{name} has to be an array of schemaEntity (entityPath, entityType) and tags")


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value.isprintable()  # what is no Unicode is not
