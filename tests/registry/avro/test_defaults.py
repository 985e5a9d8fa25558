"""Whether a default is one of its field's type."""

from __future__ import annotations

import math
from typing import Any

import pytest

from leafcuttr_registry.avro.defaults import number_in, valid
from leafcuttr_registry.avro.types import NO_DEFAULT
from leafcuttr_registry.budget import Budget
from leafcuttr_sdk.schemas import SchemaError
from support.avro_types import array, enum, fixed, map_of, record, type_of

NESTED = record(("a", "int"), ("b", "string", {"default": "x"}))
VALUES: list[tuple[Any, list[Any], list[Any]]] = [
    ("null", [None], [0, False, "null", []]),
    ("boolean", [True, False], [0, 1, "true", None]),
    ("int", [0, -(1 << 31), (1 << 31) - 1], [1 << 31, -(1 << 31) - 1, 1.0, True, "1", None]),
    ("long", [1 << 31, -(1 << 63), (1 << 63) - 1], [1 << 63, -(1 << 63) - 1, 1.0, False]),
    ("float", [0, 1.5, math.nan, 1 << 70], ["1", True, None]),
    ("double", [0, 1.5, -math.inf], ["1", True, None]),
    ("bytes", ["", "\x00\xff"], ["Ā", 1, None]),
    ("string", ["", "Ā"], [1, None]),
    (enum("A", "B"), ["A", "B"], ["C", "", 0, None]),
    (fixed(2), ["ab", "\xff\xff"], ["a", "abc", "aĀ", 2]),
    (array("int"), [[], [1, 2]], [[1, "a"], {}, None]),
    (map_of("int"), [{}, {"a": 1}], [{"a": "b"}, [], None]),
    (["null", "int"], [None, 1], ["a", True]),
    (array(["null", "int"]), [[None, 1]], [["a"]]),
    (NESTED, [{"a": 1}, {"a": 1, "b": "y"}, {"a": 1, "c": 3}], [{}, {"a": "x"}, {"a": 1, "b": 2}, [], None]),
    ([], [], [None]),
]


@pytest.mark.parametrize(("of", "good", "bad"), VALUES, ids=range(len(VALUES)))
def test_values_of_a_type(of: Any, good: list[Any], bad: list[Any]) -> None:
    found = type_of(of)
    assert [one for one in good if not valid(one, found, Budget())] == []
    assert [one for one in [*bad, NO_DEFAULT] if valid(one, found, Budget())] == []


def test_a_record_whose_default_needs_itself_ends() -> None:
    of = type_of(record(("a", "R", {"default": None})).copy() | {"name": "Q"} | {"fields": []})
    assert valid({}, of, Budget())
    with pytest.raises(SchemaError, match="too complex: defaults are nested"):
        type_of(record(("a", "R", {"default": {}})))


@pytest.mark.long
def test_branches_that_fail_late_are_counted() -> None:
    """Each level would be tried with each branch."""
    names = [f"R{at}" for at in range(10)]
    branches: list[Any] = [record(("x", [*names, "null"]), name=name) for name in names]
    value: Any = {"x": 1}
    for _ in range(12):
        value = {"x": value}
    with pytest.raises(SchemaError, match="too complex"):
        type_of(record(("all", branches, {"default": value}), name="All"))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1", 1.0),
        ("-1.5e3", -1500.0),
        (".5", 0.5),
        ("5.", 5.0),
        (" 1f ", 1.0),
        ("2D", 2.0),
        ("Infinity", math.inf),
    ],
)
def test_numbers_in_texts(text: str, number: float) -> None:
    assert number_in(text) == number


def test_what_is_no_number_in_a_text() -> None:
    assert number_in("-Infinity") == -math.inf
    assert math.isnan(number_in("NaN") or 0)
    assert [number_in(text) for text in ("", "one", "1_0", "inf", "nan", "1.5.5", "e5", "0x10")] == [None] * 8
