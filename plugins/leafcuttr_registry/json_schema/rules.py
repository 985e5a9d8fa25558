"""The rules of compatibility: names as in Confluent's registry, where that has one, and an example of each.

A rule that does not break is what another rule says in the other direction: its example breaks by `opposite` when old
and new change places, and `differences` says nothing of it. Names that are not Confluent's are marked `ours`.

It is a table, and as long as there are rules.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from leafcuttr_sdk.schemas import SchemaRule

if TYPE_CHECKING:
    from leafcuttr_registry.json_schema.compare.engine import Reason


class Rule(NamedTuple):
    """One row."""

    type: str
    summary: str
    old: Any
    new: Any
    opposite: str | None = None
    """For rules that do not break: the one that does, in the other direction; empty: none in either."""
    lenient: bool = False
    """Whether `compatibilityPolicy=LENIENT` lets it pass, as Confluent's does."""
    ours: bool = False

    @property
    def breaks(self) -> bool:
        return self.opposite is None


S: Final[dict[str, Any]] = {"type": "string"}
N: Final[dict[str, Any]] = {"type": "number"}
I: Final[dict[str, Any]] = {"type": "integer"}  # noqa: E741
_2020: Final = {"$schema": "https://json-schema.org/draft/2020-12/schema"}


def _limits(
    name: str, keyword: str, low: Any, high: Any, base: dict[str, Any], *, upper: bool, what: str
) -> list[Rule]:
    """The four rules of a limit."""
    tight, loose = ({keyword: low}, {keyword: high}) if upper else ({keyword: high}, {keyword: low})
    narrower, wider = ("DECREASED", "INCREASED") if upper else ("INCREASED", "DECREASED")
    return [
        Rule(f"{name}_ADDED", f"{what} is limited now.", base, base | tight),
        Rule(
            f"{name}_{narrower}",
            f"The limit of {what[0].lower() + what[1:]} is tighter.",
            base | loose,
            base | tight,
        ),
        Rule(f"{name}_REMOVED", f"{what} is not limited any more.", base | tight, base, f"{name}_ADDED"),
        Rule(
            f"{name}_{wider}",
            f"The limit of {what[0].lower() + what[1:]} is wider.",
            base | tight,
            base | loose,
            f"{name}_{narrower}",
        ),
    ]


def _object(named: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"type": "object", **({"properties": named} if named is not None else {}), **more}


def _closed(named: dict[str, Any], **more: Any) -> dict[str, Any]:
    return _object(named, additionalProperties=False, **more)


def _tuple(*items: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": list(items), **more}


_A: Final = {"type": "array"}
_O: Final = {"type": "object"}
_PAIR: Final = {"a": S, "b": N}

ROWS: Final[tuple[Rule, ...]] = (
    Rule("ID_CHANGED", "The identifier differs; it has no effect on data.", {"$id": "a"}, {"$id": "b"}, ""),
    Rule("TITLE_CHANGED", "The title differs; it has no effect on data.", {"title": "a"}, {"title": "b"}, ""),
    Rule("DESCRIPTION_CHANGED", "The description differs.", {"description": "a"}, {"description": "b"}, ""),
    Rule(
        "DEFAULT_CHANGED", "The default differs; data are not validated by it.", S | {"default": "a"}, S, ""
    ),
    Rule(
        "FORMAT_CHANGED", "The format differs; it is an annotation.", S | {"format": "date"}, S, "", ours=True
    ),
    # Types and values
    Rule("TYPE_CHANGED", "A type is not allowed any more.", S, N),
    Rule("TYPE_NARROWED", "Only integers of all numbers are allowed now.", N, I),
    Rule("TYPE_EXTENDED", "All numbers are allowed, not integers only.", I, N, "TYPE_NARROWED"),
    Rule("ENUM_ARRAY_NARROWED", "Fewer values are allowed.", {"enum": ["a", "b"]}, {"enum": ["a"]}),
    Rule(
        "ENUM_ARRAY_CHANGED",
        "Other values are allowed, and not all of before.",
        {"enum": ["a"]},
        {"enum": ["b"]},
    ),
    Rule(
        "ENUM_ARRAY_EXTENDED",
        "More values are allowed.",
        {"enum": ["a"]},
        {"enum": ["a", "b"]},
        "ENUM_ARRAY_NARROWED",
    ),
    # Strings
    *_limits("MAX_LENGTH", "maxLength", 3, 5, S, upper=True, what="The length of strings"),
    *_limits("MIN_LENGTH", "minLength", 3, 5, S, upper=False, what="The length of strings"),
    Rule("PATTERN_ADDED", "Strings have to match a pattern now.", S, S | {"pattern": "^a"}),
    Rule(
        "PATTERN_CHANGED",
        "Strings have to match another pattern.",
        S | {"pattern": "^a"},
        S | {"pattern": "^b"},
    ),
    Rule(
        "PATTERN_REMOVED",
        "Strings need not match a pattern any more.",
        S | {"pattern": "^a"},
        S,
        "PATTERN_ADDED",
    ),
    # Numbers
    *_limits("MAXIMUM", "maximum", 3, 5, N, upper=True, what="The size of numbers"),
    *_limits("MINIMUM", "minimum", 3, 5, N, upper=False, what="The size of numbers"),
    *_limits("EXCLUSIVE_MAXIMUM", "exclusiveMaximum", 3, 5, N, upper=True, what="The size of numbers"),
    *_limits("EXCLUSIVE_MINIMUM", "exclusiveMinimum", 3, 5, N, upper=False, what="The size of numbers"),
    Rule("MULTIPLE_OF_ADDED", "Numbers have to be multiples now.", N, N | {"multipleOf": 5}),
    Rule(
        "MULTIPLE_OF_EXPANDED",
        "Numbers have to be multiples of more.",
        N | {"multipleOf": 5},
        N | {"multipleOf": 10},
    ),
    Rule(
        "MULTIPLE_OF_CHANGED",
        "Numbers have to be other multiples.",
        N | {"multipleOf": 5},
        N | {"multipleOf": 7},
    ),
    Rule(
        "MULTIPLE_OF_REMOVED", "Numbers need not be multiples.", N | {"multipleOf": 5}, N, "MULTIPLE_OF_ADDED"
    ),
    Rule(
        "MULTIPLE_OF_REDUCED",
        "Numbers have to be multiples of less.",
        N | {"multipleOf": 10},
        N | {"multipleOf": 5},
        "MULTIPLE_OF_EXPANDED",
    ),
    # Objects: required members
    Rule(
        "REQUIRED_ATTRIBUTE_ADDED",
        "A property that was optional is required.",
        _object(_PAIR),
        _object(_PAIR, required=["a"]),
    ),
    Rule(
        "REQUIRED_ATTRIBUTE_REMOVED",
        "A property that was required is optional.",
        _object(_PAIR, required=["a"]),
        _object(_PAIR),
        "REQUIRED_ATTRIBUTE_ADDED",
    ),
    Rule(
        "REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED",
        "A property that was optional is required, and has a default, which readers fill in.",
        _object({"a": S}),
        _object({"a": S | {"default": ""}}, required=["a"]),
        "",
    ),
    # Objects: properties and content models
    Rule(
        "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
        "A property is new, and objects could have one of that name with any value.",
        _object({"a": S}),
        _object(_PAIR),
        lenient=True,
    ),
    Rule(
        "REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
        "A property is new and required, and objects need not have one of that name.",
        _object({"a": S}),
        _object(_PAIR, required=["b"]),
    ),
    Rule(
        "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL",
        "A property is new and required; it has a default, but objects could have one of that name with any value.",
        _object({"a": S}),
        _object({"a": S, "b": N | {"default": 0}}, required=["b"]),
        lenient=True,
    ),
    Rule(
        "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL",
        "A property is new and required.",
        _closed({"a": S}),
        _closed(_PAIR, required=["b"]),
    ),
    Rule(
        "PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL",
        "A property is new, and its value may be anything.",
        _object({}),
        _object({"a": True}),
        "",
    ),
    Rule(
        "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL",
        "A property is new and required, no object could have one of that name, and readers fill its default in.",
        _closed({"a": S}),
        _closed({"a": S, "b": N | {"default": 0}}, required=["b"]),
        "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL",
    ),
    Rule(
        "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL",
        "A property is new, and no object could have one of that name.",
        _closed({"a": S}),
        _closed(_PAIR),
        "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL",
    ),
    Rule(
        "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "A property is gone, and objects must not have others than those that are named.",
        _closed(_PAIR),
        _closed({"a": S}),
        lenient=True,
    ),
    Rule(
        "PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "A property is gone that no object could have.",
        _closed({"a": S, "b": False}),
        _closed({"a": S}),
        "",
    ),
    Rule(
        "PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL",
        "A property is gone, and objects may have others than those that are named.",
        _object(_PAIR),
        _object({"a": S}),
        "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
    ),
    Rule(
        "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "A property is new, and objects could have one of that name whose value it does not allow.",
        _object({"a": S}, additionalProperties=S),
        _object(_PAIR, additionalProperties=S),
        lenient=True,
    ),
    Rule(
        "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "A property is gone, and what is said of other members does not allow its values.",
        _closed(_PAIR),
        _object({"a": S}, additionalProperties=S),
        lenient=True,
    ),
    Rule(
        "PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "A property is new, and allows all values that a member of that name could have.",
        _object({"a": S}, additionalProperties=I),
        _object(_PAIR, additionalProperties=I),
        "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    ),
    Rule(
        "PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "A property is gone, and what is said of other members allows its values.",
        _closed({"a": S, "b": I}),
        _object({"a": S}, additionalProperties=N),
        "ADDITIONAL_PROPERTIES_REMOVED",
    ),
    Rule(
        "PATTERN_PROPERTY_ADDED",
        "Members whose names match a pattern are restricted now.",
        _O,
        _object(patternProperties={"^x": S}),
        ours=True,
    ),
    Rule(
        "PATTERN_PROPERTY_REMOVED",
        "Members whose names match a pattern are restricted as all others now.",
        _closed({}, patternProperties={"^x": S}),
        _closed({}),
        ours=True,
    ),
    Rule(
        "ADDITIONAL_PROPERTIES_REMOVED",
        "Objects must not have members any more that are not named.",
        _object({"a": S}),
        _closed({"a": S}),
        lenient=True,
    ),
    Rule(
        "ADDITIONAL_PROPERTIES_NARROWED",
        "Members that are not named must not have any value.",
        _O,
        _object(additionalProperties=S),
        lenient=True,
    ),
    Rule(
        "ADDITIONAL_PROPERTIES_ADDED",
        "Objects may have members that are not named.",
        _closed({"a": S}),
        _object({"a": S}),
        "ADDITIONAL_PROPERTIES_REMOVED",
    ),
    Rule(
        "ADDITIONAL_PROPERTIES_EXTENDED",
        "Members that are not named may have any value.",
        _object(additionalProperties=S),
        _O,
        "ADDITIONAL_PROPERTIES_NARROWED",
    ),
    Rule(
        "UNEVALUATED_PROPERTIES_REMOVED",
        "Objects must not have members any more that no part of the schema names.",
        _2020 | _O,
        _2020 | _object(unevaluatedProperties=False),
        lenient=True,
    ),
    Rule(
        "UNEVALUATED_PROPERTIES_NARROWED",
        "Members that no part of the schema names must not have any value.",
        _2020 | _O,
        _2020 | _object(unevaluatedProperties=S),
        lenient=True,
    ),
    Rule(
        "UNEVALUATED_PROPERTIES_ADDED",
        "Objects may have members that no part of the schema names.",
        _2020 | _object(unevaluatedProperties=False),
        _2020 | _O,
        "UNEVALUATED_PROPERTIES_REMOVED",
    ),
    Rule(
        "UNEVALUATED_PROPERTIES_EXTENDED",
        "Members that no part of the schema names may have any value.",
        _2020 | _object(unevaluatedProperties=S),
        _2020 | _O,
        "UNEVALUATED_PROPERTIES_NARROWED",
    ),
    *_limits("MAX_PROPERTIES", "maxProperties", 3, 5, _O, upper=True, what="The number of members"),
    *_limits("MIN_PROPERTIES", "minProperties", 3, 5, _O, upper=False, what="The number of members"),
    Rule(
        "PROPERTY_NAMES_ADDED",
        "Names of members are restricted now.",
        _O,
        _object(propertyNames={"maxLength": 3}),
        ours=True,
    ),
    Rule(
        "PROPERTY_NAMES_CHANGED",
        "Names of members are restricted otherwise.",
        _object(propertyNames={"maxLength": 5}),
        _object(propertyNames={"maxLength": 3}),
        ours=True,
    ),
    Rule(
        "DEPENDENCY_ARRAY_ADDED",
        "A member needs others beside it now.",
        _O,
        _object(dependencies={"a": ["b"]}),
    ),
    Rule(
        "DEPENDENCY_ARRAY_EXTENDED",
        "A member needs more others beside it.",
        _object(dependencies={"a": ["b"]}),
        _object(dependencies={"a": ["b", "c"]}),
    ),
    Rule(
        "DEPENDENCY_ARRAY_CHANGED",
        "A member needs different others beside it.",
        _object(dependencies={"a": ["b"]}),
        _object(dependencies={"a": ["c"]}),
    ),
    Rule(
        "DEPENDENCY_ARRAY_REMOVED",
        "A member needs no others beside it any more.",
        _object(dependencies={"a": ["b"]}),
        _O,
        "DEPENDENCY_ARRAY_ADDED",
    ),
    Rule(
        "DEPENDENCY_ARRAY_NARROWED",
        "A member needs fewer others beside it.",
        _object(dependencies={"a": ["b", "c"]}),
        _object(dependencies={"a": ["b"]}),
        "DEPENDENCY_ARRAY_EXTENDED",
    ),
    Rule(
        "DEPENDENCY_SCHEMA_ADDED",
        "Objects with a member have to be of a schema now.",
        _O,
        _object(dependencies={"a": {"required": ["b"]}}),
    ),
    Rule(
        "DEPENDENCY_SCHEMA_REMOVED",
        "Objects with a member need not be of a schema any more.",
        _object(dependencies={"a": {"required": ["b"]}}),
        _O,
        "DEPENDENCY_SCHEMA_ADDED",
    ),
    # Arrays
    Rule("SCHEMA_ADDED", "Items must not be anything any more.", _A, _A | {"items": S}),
    Rule("SCHEMA_REMOVED", "Items may be anything.", _A | {"items": S}, _A, "SCHEMA_ADDED"),
    *_limits("MAX_ITEMS", "maxItems", 3, 5, _A, upper=True, what="The number of items"),
    *_limits("MIN_ITEMS", "minItems", 3, 5, _A, upper=False, what="The number of items"),
    Rule("UNIQUE_ITEMS_ADDED", "Items have to differ from one another now.", _A, _A | {"uniqueItems": True}),
    Rule("UNIQUE_ITEMS_REMOVED", "Items may be equal.", _A | {"uniqueItems": True}, _A, "UNIQUE_ITEMS_ADDED"),
    Rule(
        "CONTAINS_ADDED", "One of the items has to be of a schema now.", _A, _A | {"contains": S}, ours=True
    ),
    Rule(
        "CONTAINS_CHANGED",
        "One of the items has to be of another schema.",
        _A | {"contains": N},
        _A | {"contains": S},
        ours=True,
    ),
    *(
        rule
        for rule in (
            *_limits(
                "MAX_CONTAINS",
                "maxContains",
                3,
                5,
                _2020 | {"contains": S},
                upper=True,
                what="The number of such items",
            ),
            *_limits(
                "MIN_CONTAINS",
                "minContains",
                3,
                5,
                _2020 | {"contains": S},
                upper=False,
                what="The number of such items",
            ),
        )
        if rule.type not in ("MIN_CONTAINS_ADDED", "MIN_CONTAINS_REMOVED")
    ),
    Rule(
        "MIN_CONTAINS_ADDED",
        "Some items have to be of a schema, where none had to.",
        _2020 | {"contains": S, "minContains": 0},
        _2020 | {"contains": S, "minContains": 2},
    ),
    Rule(
        "MIN_CONTAINS_REMOVED",
        "One item has to be of a schema, not several.",
        _2020 | {"contains": S, "minContains": 2},
        _2020 | {"contains": S},
        "MIN_CONTAINS_INCREASED",
    ),
    Rule(
        "ITEM_ADDED_TO_OPEN_CONTENT_MODEL",
        "An item by its place is new, and could be anything.",
        _tuple(S),
        _tuple(S, N),
    ),
    Rule(
        "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "An item by its place is new, and could be what it does not allow.",
        _tuple(S, additionalItems=S),
        _tuple(S, N, additionalItems=S),
    ),
    Rule(
        "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "An item by its place is gone, and there must not be further ones.",
        _tuple(S, N, additionalItems=False),
        _tuple(S, additionalItems=False),
    ),
    Rule(
        "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "An item by its place is gone, and what is said of further ones does not allow it.",
        _tuple(S, N, additionalItems=S),
        _tuple(S, additionalItems=S),
    ),
    Rule(
        "ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL",
        "An item by its place is new, and may be anything.",
        _tuple(S),
        _tuple(S, True),
        "",
    ),
    Rule(
        "ITEM_ADDED_TO_CLOSED_CONTENT_MODEL",
        "An item by its place is new, and there was none before.",
        _tuple(S, additionalItems=False),
        _tuple(S, N, additionalItems=False),
        "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL",
    ),
    Rule(
        "ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL",
        "An item by its place is gone, and may be anything.",
        _tuple(S, N),
        _tuple(S),
        "ITEM_ADDED_TO_OPEN_CONTENT_MODEL",
    ),
    Rule(
        "ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "An item by its place is gone that no array could have.",
        _tuple(S, False, additionalItems=False),
        _tuple(S, additionalItems=False),
        "",
    ),
    Rule(
        "ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "An item by its place is new, and allows all that it could be.",
        _tuple(S, additionalItems=I),
        _tuple(S, N, additionalItems=I),
        "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    ),
    Rule(
        "ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "An item by its place is gone, and what is said of further ones allows it.",
        _tuple(S, I, additionalItems=N),
        _tuple(S, additionalItems=N),
        "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    ),
    Rule(
        "ADDITIONAL_ITEMS_REMOVED",
        "There must not be items any more after those by their places.",
        _tuple(S),
        _tuple(S, additionalItems=False),
    ),
    Rule(
        "ADDITIONAL_ITEMS_NARROWED",
        "Items after those by their places must not be anything.",
        _tuple(S),
        _tuple(S, additionalItems=N),
    ),
    Rule(
        "ADDITIONAL_ITEMS_ADDED",
        "There may be items after those by their places.",
        _tuple(S, additionalItems=False),
        _tuple(S),
        "ADDITIONAL_ITEMS_REMOVED",
    ),
    Rule(
        "ADDITIONAL_ITEMS_EXTENDED",
        "Items after those by their places may be anything.",
        _tuple(S, additionalItems=N),
        _tuple(S),
        "ADDITIONAL_ITEMS_NARROWED",
    ),
    Rule(
        "UNEVALUATED_ITEMS_REMOVED",
        "There must not be items any more of which no part of the schema says something.",
        _2020 | _A,
        _2020 | _A | {"unevaluatedItems": False},
    ),
    Rule(
        "UNEVALUATED_ITEMS_NARROWED",
        "Items of which no part of the schema says something must not be anything.",
        _2020 | _A,
        _2020 | _A | {"unevaluatedItems": S},
    ),
    Rule(
        "UNEVALUATED_ITEMS_ADDED",
        "There may be items of which no part of the schema says something.",
        _2020 | _A | {"unevaluatedItems": False},
        _2020 | _A,
        "UNEVALUATED_ITEMS_REMOVED",
    ),
    Rule(
        "UNEVALUATED_ITEMS_EXTENDED",
        "Items of which no part of the schema says something may be anything.",
        _2020 | _A | {"unevaluatedItems": S},
        _2020 | _A,
        "UNEVALUATED_ITEMS_NARROWED",
    ),
    # Combined schemas
    Rule(
        "PRODUCT_TYPE_EXTENDED",
        "`allOf` has more parts, and not all values are of these.",
        {"allOf": [S]},
        {"allOf": [S, {"maxLength": 3}]},
    ),
    Rule(
        "PRODUCT_TYPE_NARROWED",
        "`allOf` has fewer parts.",
        {"allOf": [S, {"maxLength": 3}]},
        {"allOf": [S]},
        "PRODUCT_TYPE_EXTENDED",
    ),
    Rule("SUM_TYPE_NARROWED", "There are fewer alternatives.", {"oneOf": [S, N]}, {"oneOf": [S]}),
    Rule(
        "SUM_TYPE_EXTENDED",
        "There are more alternatives.",
        {"oneOf": [S]},
        {"oneOf": [S, N]},
        "SUM_TYPE_NARROWED",
    ),
    Rule(
        "SUM_TYPE_OVERLAPS",
        "A value that was of one alternative of `oneOf` may be of two now, which is not allowed.",
        {"oneOf": [S, N]},
        {"oneOf": [S, N, I]},
        ours=True,
    ),
    Rule(
        "COMBINED_TYPE_CHANGED",
        "The parts are combined by another keyword, which allows less.",
        {"anyOf": [S, N]},
        {"allOf": [S, {"maxLength": 3}]},
    ),
    Rule(
        "COMBINED_TYPE_EXTENDED",
        "The parts are combined by another keyword, which allows as much.",
        {"allOf": [S]},
        {"anyOf": [S, N]},
        "COMBINED_TYPE_CHANGED",
    ),
    Rule(
        "COMBINED_TYPE_SUBSCHEMAS_CHANGED",
        "A part changed, and none of the new ones allows all that it did.",
        {"oneOf": [S, N]},
        {"oneOf": [S, {"type": "boolean"}]},
    ),
    Rule("NOT_TYPE_EXTENDED", "More is forbidden.", {"not": I}, {"not": N}),
    Rule("NOT_TYPE_NARROWED", "Less is forbidden.", {"not": N}, {"not": I}, "NOT_TYPE_EXTENDED"),
    Rule(
        "CONDITION_ADDED",
        "Values that meet a condition, or do not, are restricted now.",
        {},
        {"if": S, "then": {"maxLength": 3}},
        ours=True,
    ),
    Rule(
        "CONDITION_CHANGED",
        "Values that meet a condition, or do not, are restricted otherwise.",
        {"if": S, "then": {"maxLength": 5}},
        {"if": S, "then": {"maxLength": 3}},
        ours=True,
    ),
)

LENIENT: Final = frozenset(row.type for row in ROWS if row.lenient)
"""What `compatibilityPolicy=LENIENT` lets pass."""


@cache
def by_type() -> dict[str, Rule]:
    return {row.type: row for row in ROWS}


@cache
def schema_rules() -> tuple[SchemaRule, ...]:
    """The table as the SDK has it."""
    return tuple(
        SchemaRule(row.type, row.summary, row.breaks, json.dumps(row.old), json.dumps(row.new))
        for row in ROWS
    )


def sentence(found: Reason) -> str:
    """For a person: what the rule says, where, what was there and what is now."""
    from leafcuttr_registry.json_schema.compare.engine import shown
    from leafcuttr_registry.json_schema.dialects import pointer

    place = pointer(found.path) or "the root"
    old, new = shown(found.old, 80), shown(found.new, 80)
    if old is None and new is None:
        values = ""
    elif old is None:
        values = f", now {new}"
    else:
        values = f", was {old}" if new is None else f", was {old}, now {new}"
    summary = by_type()[found.type].summary.removesuffix(".")
    return f"{summary} (at {place}{values}){found.detail}"
