"""What of a JSON Schema can have tags: objects, and their properties. Paths are Confluent's: `object.a` is the property
a, `object.a.object.b` one within it; `array` leads to items, `oneof.0` to the first of several schemas, in the order of
their kinds.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from leafcuttr_registry.inline_tags import FIELD, RECORD, TaggedPlace

_COMBINED: Final = {"allOf": "allof", "anyOf": "anyof", "oneOf": "oneof"}
_CONDITIONS: Final = ("if", "then", "else")
_NUMBERS: Final = ("integer", "number")
_TYPES: Final = "types"
"""Several types, which Confluent's registry takes for as many schemas."""
_DEFINITIONS: Final = ("definitions", "$defs")


def places(
    schema: Any, scope: str = "", *, of_field: bool = False
) -> Iterator[tuple[TaggedPlace, dict[str, Any]]]:
    """Each with the part of the schema that has its tags. `of_field`: it is a property's own schema, whose tags are the
    property's."""
    if not isinstance(schema, dict):
        return
    facets = sorted(_facets(schema), key=lambda facet: facet[0])  # of one kind they stay in their order
    if len(facets) == 1:
        yield from _of_facet(schema, facets[0][1], scope, of_field)
        return
    for at, (_, facet) in enumerate(facets):
        yield from _of_facet(schema, facet, f"{scope}allof.{at}.", False)


def _of_facet(
    schema: dict[str, Any], facet: str, scope: str, of_field: bool
) -> Iterator[tuple[TaggedPlace, dict[str, Any]]]:
    if facet == "object":
        yield from _of_object(schema, f"{scope}object", of_field)
    elif facet == "array":
        yield from places(schema.get("items"), f"{scope}array.")
    elif facet == _TYPES:
        for at, kind in enumerate(sorted("number" if each in _NUMBERS else each for each in schema["type"])):
            if kind in ("object", "array"):
                yield from _of_facet(schema, kind, f"{scope}anyof.{at}.", False)
    elif facet in _COMBINED:
        for at, each in enumerate(sorted(schema[facet], key=_order)):
            yield from places(each, f"{scope}{_COMBINED[facet]}.{at}.")
    elif facet == "conditional":
        for word in _CONDITIONS:
            yield from places(schema.get(word), f"{scope}conditional.{word}.")
    elif facet == "not":
        yield from places(schema["not"], f"{scope}not.")


def _of_object(
    schema: dict[str, Any], path: str, of_field: bool
) -> Iterator[tuple[TaggedPlace, dict[str, Any]]]:
    if not of_field:
        yield (RECORD, path), schema
    for name, each in _members(schema, "properties"):
        if isinstance(each, dict):
            yield (FIELD, f"{path}.{name}"), each
            yield from places(each, f"{path}.{name}.", of_field=True)
    for word in _DEFINITIONS:
        for name, each in _members(schema, word):
            yield from places(each, f"{path}.{word}.{name}.")


def _members(schema: Mapping[str, Any], word: str) -> Iterator[tuple[str, Any]]:
    found = schema.get(word)
    if isinstance(found, dict):
        yield from found.items()


def _facets(schema: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What a schema asks for, as the kinds of schemas that Confluent's registry makes of it, with its own word. A
    `$ref` leads elsewhere."""
    if "$ref" in schema:
        yield "REFERENCE", "reference"
        return
    for word in _COMBINED:
        if isinstance(schema.get(word), list):
            yield "COMBINED", word
    if any(word in schema for word in _CONDITIONS):
        yield "CONDITIONAL", "conditional"
    if "not" in schema:
        yield "NOT", "not"
    kind = schema.get("type")
    if isinstance(kind, list):
        yield "COMBINED", _TYPES
    elif kind is not None:
        yield ("NUMBER" if kind in _NUMBERS else str(kind).upper()), str(kind)
    elif isinstance(schema.get("properties"), dict):
        yield "OBJECT", "object"
    elif "items" in schema:
        yield "ARRAY", "array"


def _order(schema: Any) -> tuple[str, str, str, str]:
    """By kind, title, description and default."""
    if not isinstance(schema, dict):
        return ("FALSE" if schema is False else "TRUE"), "", "", ""
    kinds = [kind for kind, _ in _facets(schema)]
    kind = kinds[0] if len(kinds) == 1 else "COMBINED" if kinds else "EMPTY"
    if "enum" in schema or "const" in schema:
        kind = "ENUM" if "enum" in schema else "CONST"
    default = schema.get("default")
    return kind, str(schema.get("title", "")), str(schema.get("description", "")), str(default or "")
