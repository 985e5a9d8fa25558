"""The drafts: how a schema names its own, which keywords it has, and where these have schemas within.

Which values a keyword may have is what the metaschemas of the drafts say; `shapes` has it as a table, because a schema
of 10,000 properties is not validated against a metaschema of 2020-12 within seconds. A test compares both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple


class At(Enum):
    """Where a keyword's value has schemas, and to what they apply (JSON Schema Core 2020-12, 10)."""

    SAME = "a schema, for the instance itself"
    SAME_LIST = "schemas, for the instance itself"
    SAME_MAP = "schemas by names, for the instance itself"
    CHILD = "a schema, for members or items"
    CHILD_LIST = "schemas, for items"
    CHILD_MAP = "schemas by names, for members"
    ITEMS = "a schema or a list of them, for items"
    DEPENDENCIES = "schemas or lists of names by names, for the instance itself"
    NOWHERE = "schemas by names that apply where they are referred to"
    ANNOTATION = "a schema that validates nothing"


_OF_4: Final[dict[str, At]] = {
    "additionalItems": At.CHILD,
    "additionalProperties": At.CHILD,
    "allOf": At.SAME_LIST,
    "anyOf": At.SAME_LIST,
    "definitions": At.NOWHERE,
    "dependencies": At.DEPENDENCIES,
    "items": At.ITEMS,
    "not": At.SAME,
    "oneOf": At.SAME_LIST,
    "patternProperties": At.CHILD_MAP,
    "properties": At.CHILD_MAP,
}
_OF_6: Final = _OF_4 | {"contains": At.CHILD, "propertyNames": At.CHILD}
_OF_7: Final = _OF_6 | {"if": At.SAME, "then": At.SAME, "else": At.SAME}
_OF_2019: Final = {key: at for key, at in _OF_7.items() if key != "dependencies"} | {
    "$defs": At.NOWHERE,
    "contentSchema": At.ANNOTATION,
    "dependentSchemas": At.SAME_MAP,
    "unevaluatedItems": At.CHILD,
    "unevaluatedProperties": At.CHILD,
}
_OF_2020: Final = {key: at for key, at in _OF_2019.items() if key != "additionalItems"} | {
    "items": At.CHILD,
    "prefixItems": At.CHILD_LIST,
}


class Dialect(NamedTuple):
    """One draft."""

    name: str
    uri: str
    """Of its metaschema."""
    number: int
    """To compare: 4, 6, 7, 2019, 2020."""
    id_keyword: str
    places: Mapping[str, At]

    @property
    def ref_is_alone(self) -> bool:
        """Whether members beside `$ref` are ignored (draft-07 Core, 8.3)."""
        return self.number <= 7


DRAFT_4: Final = Dialect("draft-04", "http://json-schema.org/draft-04/schema", 4, "id", _OF_4)
DRAFT_6: Final = Dialect("draft-06", "http://json-schema.org/draft-06/schema", 6, "$id", _OF_6)
DRAFT_7: Final = Dialect("draft-07", "http://json-schema.org/draft-07/schema", 7, "$id", _OF_7)
DRAFT_2019: Final = Dialect("2019-09", "https://json-schema.org/draft/2019-09/schema", 2019, "$id", _OF_2019)
DRAFT_2020: Final = Dialect("2020-12", "https://json-schema.org/draft/2020-12/schema", 2020, "$id", _OF_2020)
DIALECTS: Final = (DRAFT_4, DRAFT_6, DRAFT_7, DRAFT_2019, DRAFT_2020)
DEFAULT: Final = DRAFT_7
"""Of schemas without `$schema`, or with one that is none of these: Confluent's choice."""

_BY_URI: Final = {
    f"{scheme}://{one.uri.partition('://')[2]}": one for one in DIALECTS for scheme in ("http", "https")
} | {f"{scheme}://json-schema.org/schema": DRAFT_4 for scheme in ("http", "https")}


def dialect_of(schema: Any, default: Dialect = DEFAULT) -> Dialect:
    """The dialect that a schema says it is of; `default` where it says none that is known."""
    if isinstance(schema, dict):
        uri = schema.get("$schema")
        if isinstance(uri, str):
            return _BY_URI.get(uri.removesuffix("#"), default)
    return default


def aliases() -> Iterator[tuple[str, Dialect]]:
    """The other URIs by which metaschemas are known."""
    return ((uri, one) for uri, one in _BY_URI.items() if uri != one.uri)


_LISTS: Final = frozenset({At.SAME_LIST, At.CHILD_LIST, At.ITEMS})
_MAPS: Final = frozenset({At.SAME_MAP, At.CHILD_MAP, At.DEPENDENCIES, At.NOWHERE})
_SINGLE: Final = frozenset({At.SAME, At.CHILD, At.ITEMS, At.ANNOTATION})


def subschemas(schema: Mapping[str, Any], dialect: Dialect) -> Iterator[tuple[At, tuple[str, ...], Any]]:
    """The schemas within one, without those within these: where each applies, its path, the schema itself. What has
    another shape than a schema is left out."""
    if dialect.ref_is_alone and isinstance(schema.get("$ref"), str):
        definitions = schema.get("definitions")
        pairs: list[tuple[str, Any]] = [("definitions", definitions)] if isinstance(definitions, dict) else []
    else:
        pairs = list(schema.items())
    for key, value in pairs:
        at = dialect.places.get(key)
        if at is None:
            continue
        several: list[tuple[str, Any]] = []
        match value:
            case list() if at in _LISTS:
                several = [(str(n), one) for n, one in enumerate(value)]
            case dict() if at in _MAPS:
                several = list(value.items())
            case dict() | bool() if at in _SINGLE:
                yield at, (key,), value
        yield from ((at, (key, name), one) for name, one in several if isinstance(one, dict | bool))


def pointer(path: tuple[str, ...] | list[str]) -> str:
    """RFC 6901."""
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in path)
