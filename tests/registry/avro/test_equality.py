"""Whether two types say the same."""

from __future__ import annotations

from typing import Any

import pytest

from leafcuttr_registry.avro.equality import equal, same
from leafcuttr_registry.budget import Budget
from support.avro_types import array, enum, fixed, map_of, record, type_of

NODE = record(("next", ["null", "R"]), ("x", "int"))
ALIKE: list[tuple[Any, Any]] = [
    ("int", {"type": "int"}),
    (NODE, NODE),
    (enum("A", doc="one", aliases=["B"]), enum("A", doc="two")),
    (record(("x", "int", {"doc": "one", "aliases": ["y"]})), record(("x", "int"))),
    ({"type": "int", "own": {"a": 1, "b": [2]}}, {"type": "int", "own": {"b": [2], "a": 1}}),
]
OTHER: list[tuple[Any, Any]] = [
    ("int", "long"),
    ({"type": "int", "own": 1}, {"type": "int", "own": 1.0}),
    ({"type": "int", "own": 1}, {"type": "int", "own": True}),
    ({"type": "int", "own": [1]}, {"type": "int", "own": [1, 2]}),
    ({"type": "int", "own": 1}, "int"),
    (enum("A"), enum("B")),
    (enum("A"), enum("A", name="G")),
    (enum("A"), fixed(1, name="E")),
    (fixed(1), fixed(2)),
    (array("int"), array("long")),
    (array("int"), map_of("int")),
    (["int", "null"], ["null", "int"]),
    (["int"], ["int", "null"]),
    (NODE, record(("next", ["null", "R"]), ("x", "long"))),
    (record(("x", "int")), record(("y", "int"))),
    (record(("x", "int")), record(("x", "int"), ("y", "int"))),
    (record(("x", "int", {"default": 1})), record(("x", "int"))),
    (record(("x", "int", {"default": 1})), record(("x", "int", {"default": 2}))),
    (record(("x", "int", {"order": "ignore"})), record(("x", "int"))),
    (record(("x", "int", {"own": 1})), record(("x", "int"))),
]


@pytest.mark.parametrize(("one", "other"), ALIKE, ids=range(len(ALIKE)))
def test_the_same(one: Any, other: Any) -> None:
    assert same(type_of(one), type_of(other), Budget())


@pytest.mark.parametrize(("one", "other"), OTHER, ids=range(len(OTHER)))
def test_another(one: Any, other: Any) -> None:
    assert not same(type_of(one), type_of(other), Budget())
    assert not same(type_of(other), type_of(one), Budget())


def test_values() -> None:
    nan = float("nan")
    assert equal({"a": [nan, None]}, {"a": [float("nan"), None]})
    assert not equal({"a": 1}, {"b": 1})
    assert not equal(None, False)
