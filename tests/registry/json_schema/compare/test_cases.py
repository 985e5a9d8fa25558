"""The documented rules as a table: what changes, what is said of it, and where."""

from __future__ import annotations

import json
from typing import Any

import pytest

from registry.json_schema.judging import paths, types

S: dict[str, Any] = {"type": "string"}
N: dict[str, Any] = {"type": "number"}
I: dict[str, Any] = {"type": "integer"}  # noqa: E741
B: dict[str, Any] = {"type": "boolean"}
NULL: dict[str, Any] = {"type": "null"}
D19 = {"$schema": "https://json-schema.org/draft/2019-09/schema"}
D20 = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
D4 = {"$schema": "http://json-schema.org/draft-04/schema#"}
D6 = {"$schema": "http://json-schema.org/draft-06/schema#"}


def obj(_closed: Any = None, _required: Any = None, **named: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "object", "properties": named}
    if _closed is not None:
        made["additionalProperties"] = _closed
    return made | ({"required": _required} if _required else {})


def alt(keyword: str, *parts: Any) -> dict[str, Any]:
    return {keyword: list(parts)}


def ref(target: Any, key: str = "definitions") -> dict[str, Any]:
    return {"$ref": f"#/{key}/r", key: {"r": target}}


CASES: list[tuple[str, Any, Any, list[tuple[str, str]]]] = [
    # Nothing is said
    ("the empty schema takes all", obj(a=S), {}, []),
    ("true takes all", obj(a=S), True, []),
    ("false gives nothing", False, S, []),
    (
        "identifier, title, description, default",
        {"$id": "a", "title": "t"} | S,
        {"$id": "b", "default": ""} | S,
        [],
    ),
    ("integer to number", I, N, []),
    ("a type to a union with it", S, {"type": ["string", "null"]}, []),
    ("a union in another order", {"type": ["string", "null"]}, {"type": ["null", "string"]}, []),
    ("from a definition", ref(S), S, []),
    ("to a definition", S, ref(S), []),
    ("a const to an enum with it", {"const": 1}, {"enum": [2, 1]}, []),
    ("an enum to the type of all of it", {"enum": ["a", "b"]}, S, []),
    ("a boolean to its values", B, {"enum": [True, False]}, []),
    ("enum values within the limits", {"enum": [1, 2]}, {"minimum": 1, "maximum": 2}, []),
    (
        "a longer exclusive bound of integers",
        {"type": "integer", "exclusiveMaximum": 5},
        {"type": "integer", "maximum": 4},
        [],
    ),
    ("a multiple of a multiple", {"multipleOf": 6}, {"multipleOf": 0.3}, []),
    ("integers are multiples of one", I, {"multipleOf": 1}, []),
    ("what is required gives a least number", obj(None, ["a", "b"]), {"minProperties": 2}, []),
    ("closed objects have no more members", obj(False, a=S, b=S), {"maxProperties": 2}, []),
    ("names of closed objects", obj(False, a=S, bb=S), {"propertyNames": {"maxLength": 2}}, []),
    ("a closed tuple has no more items", {"items": [S, S], "additionalItems": False}, {"maxItems": 2}, []),
    ("enough items of it contain it", {"type": "array", "items": I, "minItems": 1}, {"contains": N}, []),
    ("parts of allOf come together", alt("allOf", obj(a=S), obj(b=N)), obj(a=S, b=N), []),
    ("parts of allOf taken apart", obj(a=S, b=N), alt("allOf", obj(a=S), obj(b=N)), []),
    ("a singleton of any kind", alt("oneOf", S), alt("allOf", S), []),
    ("each type to an alternative", {"type": ["string", "null"]}, alt("anyOf", NULL, S), []),
    (
        "alternatives to a type",
        alt("anyOf", {"maxLength": 3} | S, {"maxLength": 5} | S),
        {"maxLength": 5} | S,
        [],
    ),
    (
        "two alternatives into one",
        alt("anyOf", {"maxLength": 3} | S, {"maxLength": 5} | S),
        alt("anyOf", {"maxLength": 5} | S, N),
        [],
    ),
    ("an alternative more, of another type", alt("oneOf", NULL, S), alt("oneOf", NULL, S, N), []),
    (
        "an alternative more, told apart by a const",
        alt("oneOf", obj(None, ["t"], t={"const": 1})),
        alt("oneOf", obj(None, ["t"], t={"const": 1}), obj(None, ["t"], t={"const": 2})),
        [],
    ),
    (
        "unevaluated as additional",
        D20 | obj(False, a=S),
        D20 | {"type": "object", "properties": {"a": S}, "unevaluatedProperties": False},
        [],
    ),
    (
        "unevaluated over a reference",
        D20 | {"$ref": "#/$defs/r", "$defs": {"r": obj(a=S)}, "unevaluatedProperties": False},
        D20 | {"$ref": "#/$defs/r", "$defs": {"r": obj(a=S, b=N)}, "unevaluatedProperties": False},
        [],
    ),
    (
        "a tuple by another keyword",
        {"items": [S], "additionalItems": N},
        D20 | {"prefixItems": [S], "items": N},
        [],
    ),
    (
        "dependencies by other keywords",
        {"dependencies": {"a": ["b"], "c": obj(None, ["d"])}},
        D19 | {"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"c": {"required": ["d"]}}},
        [],
    ),
    ("what cannot be there needs nothing", obj(False, b=S), {"dependencies": {"a": ["c"]}}, []),
    ("a dependency on what all have", obj(None, ["b"]), {"dependencies": {"a": ["b", "a"]}}, []),
    ("more contained of one that is more", D20 | {"contains": I}, D20 | {"contains": N}, []),
    ("a condition that is met before", {"maxLength": 3} | S, {"if": S, "then": {"maxLength": 3}}, []),
    ("a condition that never applies", N, {"if": S, "then": {"maxLength": 3}}, []),
    ("a wider branch", {"if": S, "then": {"maxLength": 3}}, {"if": S, "then": {"maxLength": 5}}, []),
    ("forbidding what never was", S, {"not": N}, []),
    ("a required member with a default", obj(a=S), obj(None, ["a"], a=S | {"default": ""}), []),
    ("additionalItems beside no items", {"additionalItems": True}, {"additionalItems": False}, []),
    ("no value at all", obj(False, ["b"], a=S), obj(False, ["b"], a=N), []),
    ("draft-04 exclusive bounds", D4 | {"maximum": 3, "exclusiveMaximum": True}, {"exclusiveMaximum": 3}, []),
    # Types and values
    ("object to array", {"type": "object"}, {"type": "array"}, [("TYPE_CHANGED", "")]),
    ("to false", S, False, [("TYPE_CHANGED", "")]),
    ("a type less", {"type": ["string", "null"]}, {"type": ["string"]}, [("SUM_TYPE_NARROWED", "")]),
    ("a union to a type", {"type": ["string", "null"]}, S, [("TYPE_CHANGED", "")]),
    ("any to a type", {}, S, [("TYPE_CHANGED", "")]),
    ("integer is less in draft-04", I, D4 | I, [("TYPE_NARROWED", "")]),
    (
        "another const",
        obj(a={"const": 1}),
        obj(a={"const": 2}),
        [("ENUM_ARRAY_CHANGED", "/properties/a/const")],
    ),
    ("an enum added", S, S | {"enum": ["a"]}, [("ENUM_ARRAY_NARROWED", "/enum")]),
    ("1 is not true", {"const": 1}, {"const": True}, [("ENUM_ARRAY_CHANGED", "/const")]),
    # Limits
    (
        "exclusive instead",
        N | {"maximum": 5},
        N | {"exclusiveMaximum": 5},
        [("EXCLUSIVE_MAXIMUM_ADDED", "/exclusiveMaximum")],
    ),
    (
        "draft-04 exclusive",
        D4 | N | {"minimum": 1},
        D4 | N | {"minimum": 1, "exclusiveMinimum": True},
        [("EXCLUSIVE_MINIMUM_ADDED", "/exclusiveMinimum")],
    ),
    (
        "several at once",
        S | {"maxLength": 5},
        S | {"maxLength": 3, "minLength": 1, "pattern": "a"},
        [
            ("MAX_LENGTH_DECREASED", "/maxLength"),
            ("MIN_LENGTH_ADDED", "/minLength"),
            ("PATTERN_ADDED", "/pattern"),
        ],
    ),
    ("tenths", N | {"multipleOf": 0.1}, N | {"multipleOf": 0.3}, [("MULTIPLE_OF_EXPANDED", "/multipleOf")]),
    # Objects
    (
        "required of another name",
        obj(None, ["a"], a=S),
        obj(None, ["b"], a=S),
        [("REQUIRED_ATTRIBUTE_ADDED", "/required/b")],
    ),
    (
        "a default that is none",
        obj(a=S),
        obj(None, ["a"], a=S | {"default": 1}),
        [("REQUIRED_ATTRIBUTE_ADDED", "/required/a")],
    ),
    (
        "a default below anyOf is not filled in",
        alt("anyOf", obj(a=S)),
        alt("anyOf", obj(None, ["a"], a=S | {"default": ""})),
        [("COMBINED_TYPE_SUBSCHEMAS_CHANGED", "")],
    ),
    (
        "removed from one, added to the other",
        obj(a=S),
        obj(b=S),
        [("OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", "/properties/b")],
    ),
    (
        "added under a pattern",
        {"patternProperties": {"^x": I}, "additionalProperties": False},
        {"patternProperties": {"^x": I}, "additionalProperties": False, "properties": {"xa": S}},
        [
            ("TYPE_CHANGED", "/properties/xa"),
            ("PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", "/properties/xa"),
        ],
    ),
    (
        "removed to a pattern",
        obj(False, xa=S),
        {"patternProperties": {"^x": I}, "additionalProperties": False},
        [
            ("TYPE_CHANGED", "/properties/xa"),
            ("PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", "/properties/xa"),
        ],
    ),
    (
        "a pattern for what is named",
        obj(False, xa=S),
        obj(False, xa=S) | {"patternProperties": {"^x": {"maxLength": 3}}},
        [("MAX_LENGTH_ADDED", "/properties/xa/maxLength")],
    ),
    (
        "a pattern changed below",
        {"patternProperties": {"^\\d": S}},
        {"patternProperties": {"^\\d": N}},
        [("TYPE_CHANGED", "/patternProperties/^\\d")],
    ),
    (
        "further members of another type",
        obj(S, a=S),
        obj(N, a=S),
        [("TYPE_CHANGED", "/additionalProperties")],
    ),
    (
        "required with a default, open",
        obj(a=S),
        obj(None, ["b"], a=S, b=N | {"default": 0}),
        [("REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL", "/properties/b")],
    ),
    ("two levels deep", obj(a=obj(b=S)), obj(a=obj(b=N)), [("TYPE_CHANGED", "/properties/a/properties/b")]),
    (
        "a dependency of another member",
        {"dependencies": {"a": ["b"]}},
        {"dependencies": {"b": ["a"]}},
        [("DEPENDENCY_ARRAY_ADDED", "/dependencies/b")],
    ),
    (
        "dependentRequired",
        D20 | {"dependentRequired": {"a": ["b"]}},
        D20 | {"dependentRequired": {"a": ["b", "c"]}},
        [("DEPENDENCY_ARRAY_EXTENDED", "/dependentRequired/a")],
    ),
    (
        "dependentSchemas below",
        D20 | {"dependentSchemas": {"a": {"maxProperties": 5}}},
        D20 | {"dependentSchemas": {"a": {"maxProperties": 3}}},
        [("MAX_PROPERTIES_DECREASED", "/dependentSchemas/a/maxProperties")],
    ),
    (
        "unevaluated members of a part",
        D20 | alt("anyOf", obj(a=S)) | {"unevaluatedProperties": False},
        D20 | alt("anyOf", obj(a=S)) | {"unevaluatedProperties": False, "required": ["a"]},
        [
            ("REQUIRED_ATTRIBUTE_ADDED", "/required/a"),
        ],
    ),
    # Arrays
    (
        "items of another type",
        {"type": "array", "items": S},
        {"type": "array", "items": N},
        [("TYPE_CHANGED", "/items")],
    ),
    ("a place of another type", {"items": [S]}, {"items": [N]}, [("TYPE_CHANGED", "/items/0")]),
    (
        "a place of another type, 2020-12",
        D20 | {"prefixItems": [S]},
        D20 | {"prefixItems": [N]},
        [("TYPE_CHANGED", "/prefixItems/0")],
    ),
    (
        "further items narrower",
        {"items": [S], "additionalItems": N},
        {"items": [S], "additionalItems": I},
        [("TYPE_NARROWED", "/additionalItems")],
    ),
    (
        "fewer contained",
        D20 | {"contains": S, "maxContains": 3},
        D20 | {"contains": S, "maxContains": 2},
        [("MAX_CONTAINS_DECREASED", "/maxContains")],
    ),
    (
        "none has to be contained",
        D20 | {"contains": S, "minContains": 0},
        D20 | {"contains": S},
        [("MIN_CONTAINS_ADDED", "/minContains")],
    ),
    (
        "contains in draft-06",
        D6 | {"contains": {"type": ["string", "null"]}},
        D6 | {"contains": S},
        [("CONTAINS_CHANGED", "/contains")],
    ),
    (
        "unevaluated items",
        D20 | {"prefixItems": [S], "unevaluatedItems": N},
        D20 | {"prefixItems": [S], "unevaluatedItems": I},
        [("TYPE_NARROWED", "/unevaluatedItems")],
    ),
    (
        "items of another type contain none",
        {"type": "array", "items": S, "minItems": 1},
        {"contains": N},
        [("CONTAINS_ADDED", "/contains")],
    ),
    (
        "limits that touch",
        N | {"maximum": 3},
        alt("oneOf", N | {"maximum": 3}, N | {"minimum": 3}),
        [("SUM_TYPE_OVERLAPS", "")],
    ),
    (
        "limits that do not",
        N | {"maximum": 3},
        alt("oneOf", N | {"maximum": 3}, N | {"exclusiveMinimum": 3}),
        [],
    ),
    (
        "what a part evaluates is left open",
        D20 | alt("allOf", {"additionalProperties": True}) | {"unevaluatedProperties": False},
        D20 | {"additionalProperties": False},
        [("ADDITIONAL_PROPERTIES_REMOVED", "/additionalProperties")],
    ),
    # Combined
    ("another part of oneOf", alt("oneOf", S), alt("oneOf", N), [("COMBINED_TYPE_SUBSCHEMAS_CHANGED", "")]),
    ("one alternative fewer", alt("oneOf", N, S), alt("anyOf", S), [("SUM_TYPE_NARROWED", "")]),
    ("any of two to one of one", alt("anyOf", N, S), alt("oneOf", S), [("COMBINED_TYPE_CHANGED", "")]),
    ("any to all", alt("anyOf", S), alt("allOf", N, S), [("COMBINED_TYPE_CHANGED", "")]),
    (
        "a part of allOf more",
        alt("allOf", S),
        alt("allOf", S, {"enum": ["a"]}),
        [("PRODUCT_TYPE_EXTENDED", "")],
    ),
    (
        "another part of allOf",
        alt("allOf", S, {"maxLength": 5}),
        alt("allOf", N, {"maxLength": 5}),
        [("COMBINED_TYPE_SUBSCHEMAS_CHANGED", "")],
    ),
    ("a type to alternatives without it", S, alt("anyOf", N, B), [("TYPE_CHANGED", "")]),
    (
        "overlapping alternatives",
        alt("oneOf", I, S),
        alt("oneOf", N, S, {"minimum": 3} | N),
        [("SUM_TYPE_OVERLAPS", "")],
    ),
    (
        "any to one of overlapping",
        alt("anyOf", {"maxLength": 3} | S, {"minLength": 2} | S),
        alt("oneOf", {"maxLength": 3} | S, {"minLength": 2} | S),
        [("SUM_TYPE_OVERLAPS", "")],
    ),
    ("forbidden is more", {"not": I}, {"not": N}, [("NOT_TYPE_EXTENDED", "/not")]),
    ("something is forbidden", S, S | {"not": {"maxLength": 3}}, [("NOT_TYPE_EXTENDED", "/not")]),
    (
        "a narrower branch",
        {"if": S, "else": {"minimum": 3}},
        {"if": S, "else": {"minimum": 5}},
        [("CONDITION_CHANGED", "/if")],
    ),
    ("another condition", {"if": S, "then": False}, {"if": N, "then": False}, [("CONDITION_CHANGED", "/if")]),
    (
        "a condition that fewer meet",
        {"if": S, "else": N},
        {"if": S | {"maxLength": 3}, "else": N},
        [("CONDITION_CHANGED", "/if")],
    ),
    ("through a definition", ref(obj(a=S)), ref(obj(a=N)), [("TYPE_CHANGED", "/properties/a")]),
    (
        "through $defs",
        D20 | ref(obj(a=S), "$defs"),
        D20 | ref(obj(a=N), "$defs"),
        [("TYPE_CHANGED", "/properties/a")],
    ),
]


@pytest.mark.parametrize(
    ("old", "new", "found"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_case(old: Any, new: Any, found: list[tuple[str, str]]) -> None:
    assert paths(old, new) == found


def test_each_case_is_there_once() -> None:
    assert len({case[0] for case in CASES}) == len(CASES) > 90
    assert len({json.dumps(case[1:3]) for case in CASES}) == len(CASES)


DYNAMIC = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": "http://example.com/strict",
    "$dynamicAnchor": "node",
    "$ref": "tree",
    "$defs": {
        "tree": {
            "$id": "tree",
            "$dynamicAnchor": "node",
            "type": "object",
            "properties": {"children": {"type": "array", "items": {"$dynamicRef": "#node"}}, "v": {}},
        }
    },
}


def test_a_dynamic_reference_leads_to_the_outermost_anchor() -> None:
    strict = DYNAMIC | {"required": ["v"]}
    assert types(strict, DYNAMIC) == []
    assert ("REQUIRED_ATTRIBUTE_ADDED", "/properties/children/items/required/v") in paths(
        {**DYNAMIC, "required": ["v"], "$dynamicAnchor": "other"}, strict
    )


def test_what_a_branch_may_evaluate_is_not_left_to_unevaluated() -> None:
    open_branch = D20 | {
        "type": "object",
        "anyOf": [{"properties": {"a": S}}, {}],
        "unevaluatedProperties": N,
    }
    assert "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL" in types(open_branch, D20 | obj(N))
    assert types(D20 | {"type": "object", "unevaluatedProperties": N}, D20 | obj(N)) == []


def test_one_schema_in_two_dynamic_scopes_is_two() -> None:
    def schema(**strict: Any) -> dict[str, Any]:
        anchor = {"$dynamicAnchor": "node"}
        below = {"type": "array", "items": {"$dynamicRef": "#node"}}
        return D20 | {
            "$id": "http://example.com/both",
            "properties": {"loose": {"$ref": "tree"}, "strict": {"$ref": "strict"}},
            "$defs": {
                "tree": {"$id": "tree", **anchor, "properties": {"children": below, "v": {}}},
                "strict": {"$id": "strict", **anchor, "$ref": "tree", **strict},
            },
        }

    found = paths(schema(), schema(required=["v"]))
    assert ("REQUIRED_ATTRIBUTE_ADDED", "/properties/strict/properties/children/items/required/v") in found
    assert not [path for _, path in found if path.startswith("/properties/loose")]
