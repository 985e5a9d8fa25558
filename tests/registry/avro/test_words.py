"""Types in messages."""

from __future__ import annotations

from typing import Any

import pytest

from leafcuttr_registry.avro.types import EnumType
from leafcuttr_registry.avro.words import an, cut, listed, shown, symbols
from support.avro_types import array, enum, fixed, map_of, record, type_of


@pytest.mark.parametrize(
    ("of", "text"),
    [
        ("int", "int"),
        (record(name="one.R"), "record one.R"),
        (enum("A"), "enum E"),
        (fixed(4), "fixed F of 4 bytes"),
        (array(map_of("int")), "array of map of int"),
        (["null", record(name="one.R")], "union of null and one.R"),
        (array(["int"]), "array of union of int"),
        ([], "union of nothing"),
    ],
)
def test_a_type(of: Any, text: str) -> None:
    assert shown(type_of(of)) == text


def test_articles_and_lists() -> None:
    assert [an("int"), an("array of int"), an("string"), an("union of int")] == [
        *("an int", "an array of int", "a string", "a union of int")
    ]
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert listed(["a"] * 25).endswith("a and 5 more")


def test_all_is_short() -> None:
    assert len(cut("x" * 5000)) == 300 and cut("x") == "x"
    deep: Any = "int"
    for _ in range(150):
        deep = array(deep)
    many = type_of(enum(*(f"S{at}" * 5 for at in range(1000)), name="N" * 1000))
    assert isinstance(many, EnumType)
    assert len(shown(type_of(deep))) <= 300
    assert len(shown(many)) <= 300
    assert len(symbols(many)) <= 300
