"""What is called compatible is: every value of the old schema is one of the new one."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leafcuttr_registry.budget import Budget
from leafcuttr_registry.json_schema.compare.engine import MAX_REASONS, Comparison
from leafcuttr_registry.json_schema.compare.own import answer
from leafcuttr_registry.json_schema.format import JSON_SCHEMA
from leafcuttr_registry.json_schema.schema import JsonSchema
from leafcuttr_registry.json_schema.validators import validator
from leafcuttr_sdk.schemas import SchemaError
from registry.json_schema.judging import paths, types
from registry.json_schema.making import DIALECTS, VALUES, Maker
from support.gates_slice import sampled


def parsed(schema: Any) -> JsonSchema:
    return JSON_SCHEMA.parse(json.dumps(schema), {})


def valid(schema: JsonSchema) -> list[bool]:
    root = schema.graph.root
    if isinstance(root.value, bool):
        return [root.value] * len(VALUES)
    one = validator(root)
    return [one.is_valid(value) for value in VALUES]


@given(seed=st.integers(0, 2**32), draft=st.sampled_from(sorted(DIALECTS)))
@settings(max_examples=sampled(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_value_of_the_old_schema_is_refused_by_one_that_is_called_compatible(
    seed: int, draft: int
) -> None:
    chance = random.Random(seed)
    maker = Maker(chance, draft)
    old = maker.document()
    new = maker.changed(old) if chance.random() < 0.85 else maker.document()
    try:
        writer, reader = parsed(old), parsed(new)
    except SchemaError as error:
        assert "refers to itself" in str(error) or "regular expression" in str(error)
        return
    if JSON_SCHEMA.differences(reader, writer):
        return
    refused = [
        value for value, was, now in zip(VALUES, valid(writer), valid(reader), strict=True) if was and not now
    ]
    assert not refused, (old, new)


@given(seed=st.integers(0, 2**32), draft=st.sampled_from(sorted(DIALECTS)))
@settings(max_examples=sampled(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_schema_is_compatible_with_itself_and_with_all_that_is_allowed(seed: int, draft: int) -> None:
    one = Maker(random.Random(seed), draft).document()
    assert types(one, one) == []
    assert types(one, {"$schema": DIALECTS[draft]}) == []


@pytest.mark.long
def test_most_refusals_have_a_value_that_is_refused() -> None:
    with_value = without = 0
    for seed in range(150):
        chance = random.Random(seed)
        maker = Maker(chance, chance.choice(sorted(DIALECTS)))
        old = maker.document()
        try:
            writer, reader = parsed(old), parsed(maker.changed(old))
        except SchemaError:
            continue
        if JSON_SCHEMA.differences(reader, writer):
            pairs = zip(valid(writer), valid(reader), strict=True)
            found = any(was and not now for was, now in pairs)
            with_value, without = with_value + found, without + (not found)
    assert with_value > 20
    assert without <= with_value / 4


def test_recursion() -> None:
    tree = {
        "$ref": "#/definitions/n",
        "definitions": {"n": {"properties": {"l": {"$ref": "#/definitions/n"}}}},
    }
    wider = json.loads(json.dumps(tree))
    wider["definitions"]["n"]["properties"]["v"] = True
    narrower = json.loads(json.dumps(tree))
    narrower["definitions"]["n"]["required"] = ["l"]
    assert types(tree, wider) == types(wider, tree) == []
    assert paths(tree, narrower) == [("REQUIRED_ATTRIBUTE_ADDED", "/required/l")]
    assert types(narrower, tree) == []


def test_a_change_deep_in_a_circle_of_schemas_is_found_on_every_way() -> None:
    def pair(kind: str) -> dict[str, Any]:
        a = {"properties": {"b": {"$ref": "#/definitions/b"}, "c": {"$ref": "#/definitions/c"}}}
        b = {"properties": {"a": {"$ref": "#/definitions/a"}, "c": {"$ref": "#/definitions/c"}}}
        c = {
            "properties": {
                "a": {"$ref": "#/definitions/a"},
                "b": {"$ref": "#/definitions/b"},
                "x": {"type": kind},
            }
        }
        return {"$ref": "#/definitions/a", "definitions": {"a": a, "b": b, "c": c}}

    found = paths(pair("integer"), pair("string"))
    assert ("TYPE_CHANGED", "/properties/c/properties/x") in found
    assert ("TYPE_CHANGED", "/properties/b/properties/c/properties/x") in found
    assert types(pair("integer"), pair("number")) == []


def test_what_was_taken_for_granted_is_forgotten_when_it_turns_out_wrong() -> None:
    """The second branch of the union relies on the circle that the first one has shown to be broken."""

    def schema(limit: int) -> dict[str, Any]:
        node = {"properties": {"next": {"$ref": "#/definitions/n"}, "v": {"maxLength": limit}}}
        holder = {
            "anyOf": [{"properties": {"n": {"$ref": "#/definitions/n"}}, "required": ["n"]}, {"type": "null"}]
        }
        return {
            "definitions": {"n": node},
            "properties": {"first": holder, "second": holder, "third": {"$ref": "#/definitions/n"}},
        }

    assert (
        len(
            [
                one
                for one in paths(schema(5), schema(3))
                if one[1].startswith(("/properties/first", "/properties/second"))
            ]
        )
        == 2
    )
    assert types(schema(3), schema(5)) == []


def test_reasons_are_bounded() -> None:
    levels: dict[str, Any] = {
        f"a{n}": {
            "properties": {"x": {"$ref": f"#/definitions/a{n + 1}"}, "y": {"$ref": f"#/definitions/a{n + 1}"}}
        }
        for n in range(60)
    }
    old = {"$ref": "#/definitions/a0", "definitions": levels | {"a60": {"type": "string"}}}
    new = {"$ref": "#/definitions/a0", "definitions": levels | {"a60": {"type": "number"}}}
    assert len(types(old, new)) == MAX_REASONS


def test_more_steps_than_allowed_is_an_error() -> None:
    one = parsed({"properties": {name: {"maxLength": 1} for name in "abcdefgh"}})
    other = parsed({"properties": {name: {"maxLength": 2} for name in "abcdefgh"}})
    run = Comparison(frozenset(), one.graph, answer, budget=Budget(100))
    with pytest.raises(SchemaError, match="too complex"):
        run.run(run.question([one.graph.root], other.graph.root))


def filled(schema: Any, value: Any) -> Any:
    """What a reader makes of a value that fills defaults in, as Confluent's does."""
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        return [filled(schema["items"], one) for one in value]
    if not isinstance(value, dict):
        return value
    made = dict(value)
    for name, one in schema.get("properties", {}).items():
        if isinstance(one, dict) and "default" in one:
            made.setdefault(name, one["default"])
    return {name: filled(schema.get("properties", {}).get(name, {}), one) for name, one in made.items()}


DEFAULTS: list[tuple[Any, Any, bool]] = [
    ({"a": {}}, {"properties": {"a": {"default": 1}}, "required": ["a"]}, True),
    ({"a": {}}, {"properties": {"a": {"default": 1}}, "required": ["a"], "maxProperties": 2}, False),
    (
        {"a": {}},
        {"properties": {"a": {"default": 1}}, "required": ["a"], "propertyNames": {"maxLength": 0}},
        False,
    ),
    ({"a": {}}, {"properties": {"a": {"default": 1}}, "required": ["a"], "not": {"required": ["a"]}}, False),
    (
        {"a": {}},
        {
            "properties": {"a": {"default": 1}},
            "required": ["a"],
            "patternProperties": {"a": {"type": "null"}},
        },
        False,
    ),
    ({"a": {}}, {"items": {"properties": {"a": {"default": 1}}, "required": ["a"]}}, True),
    (
        {"a": {}},
        {"items": {"properties": {"a": {"default": 1}}, "required": ["a"]}, "uniqueItems": True},
        False,
    ),
    ({"a": {}}, {"allOf": [{"properties": {"a": {"default": 1}}, "required": ["a"]}]}, True),
    (
        {"a": {}},
        {"allOf": [{"properties": {"a": {"default": 1}}, "required": ["a"]}, {"maxProperties": 0}]},
        False,
    ),
    ({"a": {}}, {"if": {}, "then": {"properties": {"a": {"default": 1}}, "required": ["a"]}}, False),
]


@pytest.mark.parametrize(("named", "new", "compatible"), DEFAULTS)
def test_a_default_counts_where_a_reader_fills_it_in_and_nothing_else_sees_it(
    named: Any, new: Any, compatible: bool
) -> None:
    """Where it counts, each value of the old schema is valid once it is filled in."""
    inner = {"properties": named}
    old = {"items": inner, "uniqueItems": new.get("uniqueItems", False)} if "items" in new else inner
    assert (types(old, new) == []) is compatible
    if compatible and "allOf" not in new:
        reader, writer = parsed(new), parsed(old)
        after = [filled(new, value) for value in VALUES]
        check = validator(reader.graph.root)
        pairs = zip(after, valid(writer), strict=True)
        assert all(check.is_valid(value) for value, was in pairs if was)
