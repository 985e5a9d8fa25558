"""Every rule of the table does what the table says of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from leafcuttr_registry.json_schema.format import JSON_SCHEMA
from leafcuttr_registry.json_schema.rules import LENIENT, ROWS, Rule
from registry.json_schema.judging import types
from registry.json_schema.making import VALUES

NOT_COMPARED = {
    # Of Confluent's names: what is left out here, and why.
    "PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL": "deprecated there",
    "RESERVED_PROPERTY_REMOVED": "of metadata, which a format does not see",
    "RESERVED_PROPERTY_CONFLICTS_WITH_PROPERTY": "of metadata, which a format does not see",
}
CONFLUENT = [
    "ID_CHANGED",
    "DESCRIPTION_CHANGED",
    "TITLE_CHANGED",
    "DEFAULT_CHANGED",
    "SCHEMA_ADDED",
    "SCHEMA_REMOVED",
    "TYPE_EXTENDED",
    "TYPE_NARROWED",
    "TYPE_CHANGED",
    "PATTERN_ADDED",
    "PATTERN_REMOVED",
    "PATTERN_CHANGED",
    "MULTIPLE_OF_ADDED",
    "MULTIPLE_OF_REMOVED",
    "MULTIPLE_OF_EXPANDED",
    "MULTIPLE_OF_REDUCED",
    "MULTIPLE_OF_CHANGED",
    "UNIQUE_ITEMS_ADDED",
    "UNIQUE_ITEMS_REMOVED",
    "REQUIRED_ATTRIBUTE_ADDED",
    "REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED",
    "REQUIRED_ATTRIBUTE_REMOVED",
    "DEPENDENCY_ARRAY_ADDED",
    "DEPENDENCY_ARRAY_REMOVED",
    "DEPENDENCY_ARRAY_EXTENDED",
    "DEPENDENCY_ARRAY_NARROWED",
    "DEPENDENCY_ARRAY_CHANGED",
    "DEPENDENCY_SCHEMA_ADDED",
    "DEPENDENCY_SCHEMA_REMOVED",
    "ENUM_ARRAY_EXTENDED",
    "ENUM_ARRAY_NARROWED",
    "ENUM_ARRAY_CHANGED",
    "COMBINED_TYPE_EXTENDED",
    "COMBINED_TYPE_CHANGED",
    "PRODUCT_TYPE_EXTENDED",
    "PRODUCT_TYPE_NARROWED",
    "SUM_TYPE_EXTENDED",
    "SUM_TYPE_NARROWED",
    "COMBINED_TYPE_SUBSCHEMAS_CHANGED",
    "NOT_TYPE_EXTENDED",
    "NOT_TYPE_NARROWED",
]
LIMITS = (
    "MAX_LENGTH MIN_LENGTH MAXIMUM MINIMUM EXCLUSIVE_MAXIMUM EXCLUSIVE_MINIMUM MAX_PROPERTIES MIN_PROPERTIES "
)
LIMITS += "MAX_ITEMS MIN_ITEMS MAX_CONTAINS MIN_CONTAINS"


@pytest.mark.one_in(2)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.type)
def test_each_rule_has_an_example_that_it_applies_to(row: Rule) -> None:
    found = types(row.old, row.new)
    if row.breaks:
        # What is said of the parts comes first where a content model does not cover a member.
        assert row.type in found
        assert set(found) <= {row.type, "TYPE_CHANGED"} and ("NOT_COVERED" in row.type or found == [row.type])
    else:
        assert found == []
        if row.opposite:
            assert row.opposite in types(row.new, row.old)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("row", [row for row in ROWS if row.breaks], ids=lambda row: row.type)
def test_each_that_breaks_has_a_value_that_is_refused_now(row: Rule) -> None:
    old, new = (JSON_SCHEMA.parse(json.dumps(one), {}).codec() for one in (row.old, row.new))
    values: list[Any] = [
        *VALUES,
        3,
        3.5,
        4,
        5,
        7,
        10,
        "abcd",
        "b",
        "abc",
        ["a"] * 4,
        ["a"] * 5,
        [1] * 4,
        list("abcd"),
    ]
    values += [
        dict.fromkeys("abcd", 1),
        {"abcd": 1},
        {"a": 1, "b": 2},
        {"x": 1},
        {"x": "a"},
        [1, "a", "b"],
        ["a", 1],
    ]
    assert any(_is_valid(old, one) and not _is_valid(new, one) for one in values), row.type


def _is_valid(codec: Any, value: Any) -> bool:
    from leafcuttr_sdk.schemas import DataError

    try:
        codec.encode(value)
    except DataError:
        return False
    return True


def test_the_table_has_each_name_once_and_confluents_names() -> None:
    names = [row.type for row in ROWS]
    assert len(set(names)) == len(names)
    assert set(CONFLUENT) <= set(names)
    for limit in LIMITS.split():
        assert {f"{limit}_{change}" for change in ("ADDED", "REMOVED", "INCREASED", "DECREASED")} <= set(
            names
        )
    assert not set(NOT_COMPARED) & set(names)


def test_lenient_lets_pass_what_its_rules_say() -> None:
    assert len(LENIENT) == 9
    for row in ROWS:
        if row.lenient:
            found = types(row.old, row.new, lenient=True)
            assert row.type not in found
            assert set(found) <= {"TYPE_CHANGED"}


def test_the_sdk_has_the_table() -> None:
    rules = JSON_SCHEMA.rules
    assert [rule.type for rule in rules] == [row.type for row in ROWS]
    assert all(rule.summary.endswith(".") and json.loads(rule.old) != json.loads(rule.new) for rule in rules)
    assert sum(rule.breaks for rule in rules) > 60


def test_a_sentence_says_what_where_what_was_and_what_is() -> None:
    old, new = {"properties": {"a/b": {"maxLength": 5}}}, {"properties": {"a/b": {"maxLength": 3}}}
    reader, writer = (JSON_SCHEMA.parse(json.dumps(one), {}) for one in (new, old))
    (found,) = JSON_SCHEMA.differences(reader, writer)
    assert found == (
        "MAX_LENGTH_DECREASED",
        "/properties/a~1b/maxLength",
        "5",
        "3",
        "The limit of the length of strings is tighter (at /properties/a~1b/maxLength, was 5, now 3)",
    )
