"""What a keyword's value has to look like: the metaschemas of the drafts as a table, and one walk over a document.

The walk also makes the document that is worked with: numbers as Python has them, regular expressions translated.
Schemas are where the table says so; what is below unknown keywords is not checked before something refers to it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeAlias

from leafcuttr_registry.budget import Budget
from leafcuttr_registry.json_schema import patterns
from leafcuttr_registry.json_schema.dialects import DIALECTS, Dialect, dialect_of, pointer
from leafcuttr_registry.json_schema.text import shortened
from leafcuttr_sdk.schemas import SchemaError

Test: TypeAlias = Callable[[Any], bool]
Path: TypeAlias = tuple[str, ...]

TYPES: Final = ("array", "boolean", "integer", "null", "number", "object", "string")


def is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return is_number(value) and value >= 0 and value == math.floor(value)


def _is_count_of_4(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_strings(value: Any) -> bool:
    return (
        isinstance(value, list)
        and all(isinstance(one, str) for one in value)
        and len(set(value)) == len(value)
    )


def _is_types(value: Any) -> bool:
    return _is_type(value) or (_is_strings(value) and bool(value) and all(map(_is_type, value)))


def _is_type(value: Any) -> bool:
    return isinstance(value, str) and value in TYPES


def key_of(value: Any) -> Any:
    """Something that can be in a set, equal for values that are equal in JSON: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, bool) or value is None:
        return (value,)
    if isinstance(value, dict):
        return ("{", frozenset((key, key_of(one)) for key, one in value.items()))
    if isinstance(value, list):
        return ("[", *map(key_of, value))
    return value


def _is_unique(value: Any) -> bool:
    return isinstance(value, list) and len(set(map(key_of, value))) == len(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_boolean(value: Any) -> bool:
    return isinstance(value, bool)


def _matches(pattern: str) -> Test:
    compiled = re.compile(pattern)
    return lambda value: isinstance(value, str) and compiled.search(value) is not None


def _is_map_of(test: Test) -> Test:
    return lambda value: isinstance(value, dict) and all(map(test, value.values()))


_COUNT: Final = ("a whole number, 0 or more", _is_count)
_TEXT: Final = ("a string", _is_text)
_NUMBER: Final = ("a number", is_number)
_BOOLEAN: Final = ("true or false", _is_boolean)
_STRINGS: Final = ("a list of different strings", _is_strings)
_COUNTS: Final = ("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties")
_ANCHOR_2019: Final = ("a name of letters, digits and - _ . :", _matches(r"^[A-Za-z][-A-Za-z0-9.:_]*$"))
_ANCHOR_2020: Final = ("a name of letters, digits and - _ .", _matches(r"^[A-Za-z_][-A-Za-z0-9._]*$"))

Shape: TypeAlias = tuple[str, Test]
_EACH: Final[dict[str, Shape]] = {
    "$schema": _TEXT,
    "title": _TEXT,
    "description": _TEXT,
    "format": _TEXT,
    "pattern": _TEXT,
    "minimum": _NUMBER,
    "maximum": _NUMBER,
    "multipleOf": ("a number above 0", lambda value: is_number(value) and value > 0),
    "uniqueItems": _BOOLEAN,
    "required": _STRINGS,
    "type": (f"one of {', '.join(TYPES)}, or a list of different ones", _is_types),
    **dict.fromkeys(_COUNTS, _COUNT),
}
_OF_4: Final = _EACH | {
    "id": _TEXT,
    "exclusiveMinimum": _BOOLEAN,
    "exclusiveMaximum": _BOOLEAN,
    "required": (f"{_STRINGS[0]}, one or more", lambda value: _is_strings(value) and bool(value)),
    "enum": ("a list of different values, one or more", lambda value: _is_unique(value) and bool(value)),
    **dict.fromkeys(_COUNTS, (_COUNT[0], _is_count_of_4)),
}
_OF_6: Final = _EACH | {
    "$id": _TEXT,
    "$ref": _TEXT,
    "exclusiveMinimum": _NUMBER,
    "exclusiveMaximum": _NUMBER,
    "examples": ("a list", _is_list),
    "enum": ("a list", _is_list),
}
_OF_7: Final = _OF_6 | {
    "$comment": _TEXT,
    "readOnly": _BOOLEAN,
    "contentMediaType": _TEXT,
    "contentEncoding": _TEXT,
}
_OF_2019: Final = _OF_7 | {
    "$id": ("a string without a fragment", _matches(r"^[^#]*#?$")),
    "$anchor": _ANCHOR_2019,
    "$recursiveRef": _TEXT,
    "$recursiveAnchor": _BOOLEAN,
    "$vocabulary": ("true or false by URIs", _is_map_of(_is_boolean)),
    "minContains": _COUNT,
    "maxContains": _COUNT,
    "dependentRequired": ("lists of different strings by names", _is_map_of(_is_strings)),
    "deprecated": _BOOLEAN,
    "writeOnly": _BOOLEAN,
}
_OF_2020: Final = _OF_2019 | {
    "$anchor": _ANCHOR_2020,
    "$dynamicRef": _TEXT,
    "$dynamicAnchor": _ANCHOR_2020,
    "$recursiveAnchor": _ANCHOR_2020,
}
VALUES: Final[Mapping[int, Mapping[str, Shape]]] = {
    4: _OF_4,
    6: _OF_6,
    7: _OF_7,
    2019: _OF_2019,
    2020: _OF_2020,
}

_SCHEMA: Final = "a schema"
_OR_BOOLEAN: Final = "a schema, true or false"
_LIST: Final = "a list of schemas, one or more"
_MAP: Final = "schemas by names"
_ITEMS: Final = "a schema, or a list of schemas, one or more"
_DEPENDENCIES: Final = "schemas or lists of different strings, by names"
_DEPENDENCIES_OF_4: Final = "schemas or lists of different strings, one or more, by names"
_STRUCTURE_OF_4: Final = {
    **dict.fromkeys(("not",), _SCHEMA),
    **dict.fromkeys(("additionalItems", "additionalProperties"), _OR_BOOLEAN),
    **dict.fromkeys(("allOf", "anyOf", "oneOf"), _LIST),
    **dict.fromkeys(("definitions", "properties", "patternProperties"), _MAP),
    "dependencies": _DEPENDENCIES_OF_4,
    "items": _ITEMS,
}
_STRUCTURE_OF_6: Final = (
    _STRUCTURE_OF_4 | {"dependencies": _DEPENDENCIES} | dict.fromkeys(("contains", "propertyNames"), _SCHEMA)
)
_STRUCTURE_OF_7: Final = _STRUCTURE_OF_6 | dict.fromkeys(("if", "then", "else"), _SCHEMA)
_STRUCTURE_OF_2019: Final = (
    _STRUCTURE_OF_7
    | dict.fromkeys(("unevaluatedItems", "unevaluatedProperties", "contentSchema"), _SCHEMA)
    | dict.fromkeys(("$defs", "dependentSchemas"), _MAP)
)
_STRUCTURE_OF_2020: Final = {
    key: shape for key, shape in _STRUCTURE_OF_2019.items() if key != "additionalItems"
} | {"items": _SCHEMA, "prefixItems": _LIST}
STRUCTURES: Final[Mapping[int, Mapping[str, str]]] = {
    4: _STRUCTURE_OF_4,
    6: _STRUCTURE_OF_6,
    7: _STRUCTURE_OF_7,
    2019: _STRUCTURE_OF_2019,
    2020: _STRUCTURE_OF_2020,
}
assert {one.number for one in DIALECTS} == set(VALUES) == set(STRUCTURES)


class Values(list[Any]):
    """The values of an `enum`."""

    @cached_property
    def keys(self) -> frozenset[Any]:
        return frozenset(map(key_of, self))


class Known(NamedTuple):
    """What is remembered of schemas that were prepared."""

    schemas: set[int]
    """Their identities."""
    patterns: dict[str, str]
    """Their regular expressions as they were written, by their translations; those that are not the same."""


def prepare(tree: Any, dialect: Dialect, budget: Budget, known: Known) -> Any:
    """The schema as it is worked with, after all schemas in it were checked. Raises SchemaError with the place."""
    made: list[Any] = [None]
    todo: list[tuple[Any, Any, Any, Path, Dialect]] = [(tree, made, 0, (), dialect)]
    while todo:
        value, holder, key, path, dialect = todo.pop()
        budget.spend()
        if isinstance(value, bool) and dialect.number > 4:
            holder[key] = value
        elif isinstance(value, dict):
            copy: dict[str, Any] = {}
            holder[key] = copy
            known.schemas.add(id(copy))
            # A schema with an identifier may be of another draft (Core 2020-12, 8.1.1).
            dialect = dialect_of(value, dialect) if path else dialect
            _prepare_object(value, copy, path, dialect, budget, todo, known)
        else:
            allowed = "an object" if dialect.number == 4 else "an object, true or false"
            raise _refused(path, value, f"a schema of {dialect.name} is {allowed}")
    return made[0]


def _prepare_object(
    value: dict[str, Any],
    copy: dict[str, Any],
    path: Path,
    dialect: Dialect,
    budget: Budget,
    todo: list[Any],
    known: Known,
) -> None:
    structure, values = STRUCTURES[dialect.number], VALUES[dialect.number]
    for key, member in value.items():
        budget.spend()
        place = (*path, key)
        if key in structure:
            for target, name, one, where in _parts(key, member, structure[key], copy, place):
                if key == "patternProperties":
                    name = _translated(name, where, known)
                if name in target and isinstance(target, dict):
                    raise _refused(where, one, "two names are the same regular expression")
                target[name] = None
                if (isinstance(one, list) and structure[key] in (_DEPENDENCIES, _DEPENDENCIES_OF_4)) or (
                    isinstance(one, bool) and structure[key] == _OR_BOOLEAN
                ):
                    target[name] = one
                else:
                    todo.append((one, target, name, where, dialect))
            continue
        shape = values.get(key)
        if shape is not None and not shape[1](member):
            raise _refused(place, member, f"{key} has to be {shape[0]}")
        if key == "pattern":
            copy[key] = _translated(member, place, known)
        elif key == "enum" and shape is not None:
            copy[key] = Values(plain(member, budget))
        else:
            copy[key] = plain(member, budget)
    if dialect.number == 4:
        for bound in ("minimum", "maximum"):
            exclusive = f"exclusive{bound.capitalize()}"
            if exclusive in value and bound not in value:
                raise _refused(path, value, f"{exclusive} needs {bound}")


def _parts(
    key: str, member: Any, shape: str, copy: dict[str, Any], place: Path
) -> Iterable[tuple[Any, Any, Any, Path]]:
    """The schemas of one member: where the copy goes, the schema, its path."""
    if shape in (_MAP, _DEPENDENCIES, _DEPENDENCIES_OF_4):
        if not isinstance(member, dict):
            raise _refused(place, member, f"{key} has to be {shape}")
        target = copy[key] = {}
        # Lists first: `referencing` takes all for schemas where the first one is.
        for name, one in sorted(member.items(), key=lambda each: not isinstance(each[1], list)):
            if (
                shape in (_DEPENDENCIES, _DEPENDENCIES_OF_4)
                and isinstance(one, list)
                and not _is_dependency(one, shape)
            ):
                raise _refused((*place, name), one, f"{key} has to be {shape}")
            yield target, name, one, (*place, name)
    elif shape == _LIST or (shape == _ITEMS and isinstance(member, list)):
        if not isinstance(member, list) or not member:
            raise _refused(place, member, f"{key} has to be {shape}")
        copy[key] = [None] * len(member)
        for n, one in enumerate(member):
            yield copy[key], n, one, (*place, str(n))
    else:
        yield copy, key, member, place


def _is_dependency(value: list[Any], shape: str) -> bool:
    return _is_strings(value) and (bool(value) or shape == _DEPENDENCIES)


def _translated(pattern: str, path: Path, known: Known) -> str:
    try:
        translated = patterns.translate(pattern)
    except patterns.PatternError as error:
        raise _refused(path, pattern, str(error).replace("\n", "\\n")) from None
    if translated != pattern:
        known.patterns[translated] = pattern
    return translated


def plain(value: Any, budget: Budget | None = None) -> Any:
    """The value with floats for decimals. Its depth is bounded by the reader of texts."""
    if budget is not None:
        budget.spend()
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, dict):
        return {key: plain(one, budget) for key, one in value.items()}
    if isinstance(value, list):
        return [plain(one, budget) for one in value]
    return value


def _refused(path: Path, value: Any, what: str) -> SchemaError:
    shown = pointer(path)
    place = f"at {shortened(shown)}" if path else "at the root"
    found = type_of(value)
    if isinstance(value, str | int | float | Decimal) and not isinstance(value, bool):
        found = shortened(value if isinstance(value, str) else str(value))
    return SchemaError(f"{what}; {place} is {found}", path=shown)


def type_of(value: Any) -> str:
    """The name of JSON for the type of a value, with its article."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, list):
        return "a list"
    return "an object" if isinstance(value, dict) else "a number"
