"""The table of shapes says what the metaschemas of the drafts say."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from leafcuttr_registry.json_schema.dialects import DIALECTS
from leafcuttr_registry.json_schema.format import JSON_SCHEMA
from leafcuttr_registry.json_schema.shapes import STRUCTURES, VALUES, key_of
from leafcuttr_sdk.schemas import SchemaError

VALIDATORS = {
    4: jsonschema.Draft4Validator,
    6: jsonschema.Draft6Validator,
    7: jsonschema.Draft7Validator,
    2019: jsonschema.Draft201909Validator,
    2020: jsonschema.Draft202012Validator,
}
META = {number: one(one.META_SCHEMA) for number, one in VALIDATORS.items()}
SAMPLES: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2.0,
        2.5,
        0.0,
        "",
        "a",
        "9",
        "a#b",
        "#",
        "a b",
        "string",
        "array",
        "strin",
    ),
    *(
        [],
        ["a"],
        ["a", "a"],
        ["string"],
        ["string", "array"],
        ["string", "string"],
        [1],
        [1, 1.0],
        [True],
        [{}],
        [[]],
    ),
    *(
        {},
        {"a": {}},
        {"a": True},
        {"a": 1},
        {"a": ["b"]},
        {"a": []},
        {"a": ["b", "b"]},
        {"a": [1]},
        {"a": "b"},
        [{}, 1],
    ),
)
IDENTIFIERS = ("$ref", "$recursiveRef", "$dynamicRef", "$id", "id", "$schema")


def accepted(schema: Any) -> bool:
    try:
        JSON_SCHEMA.parse(json.dumps(schema), {})
    except SchemaError:
        return False
    return True


@pytest.mark.one_in(2)
@pytest.mark.parametrize("number", VALIDATORS)
def test_each_keyword_has_the_values_that_the_metaschema_allows(number: int) -> None:
    uri = next(one.uri for one in DIALECTS if one.number == number)
    keywords = {
        *STRUCTURES[2019],
        *STRUCTURES[2020],
        *VALUES[4],
        *VALUES[2019],
        *VALUES[2020],
        "const",
        "x-own",
    }
    for keyword in sorted(keywords - set(IDENTIFIERS)):
        for sample in SAMPLES:
            beside = {"minimum": 1, "maximum": 2} if keyword not in ("minimum", "maximum") else {}
            schema = {"$schema": uri, **beside, keyword: sample}
            right = META[number].is_valid(schema)
            assert accepted(schema) == right, (keyword, sample)


@pytest.mark.parametrize("number", VALIDATORS)
def test_so_has_each_keyword_within_another_schema(number: int) -> None:
    uri = next(one.uri for one in DIALECTS if one.number == number)
    for inner in ({"type": 1}, {"maxLength": -1}, {"type": "string"}):
        for outer in ({"properties": {"a": inner}}, {"items": inner}, {"not": inner}, {"allOf": [inner]}):
            schema = {"$schema": uri, **outer}
            right = META[number].is_valid(schema)
            assert accepted(schema) == right, outer


def test_a_refusal_names_the_place_the_value_and_what_is_allowed() -> None:
    with pytest.raises(SchemaError) as refused:
        JSON_SCHEMA.parse('{"properties": {"a/b": {"maxLength": "x"}}}', {})
    assert refused.value.path == "/properties/a~1b/maxLength"
    assert str(refused.value) == (
        'maxLength has to be a whole number, 0 or more; at "/properties/a~1b/maxLength" is "x"'
    )


def test_values_are_equal_as_in_json() -> None:
    assert key_of(1) == key_of(1.0)
    assert key_of(True) != key_of(1)
    assert key_of([1, {"a": [2]}]) == key_of([1.0, {"a": [2.0]}])
    assert key_of([]) != key_of({})
    assert key_of("null") != key_of(None)
