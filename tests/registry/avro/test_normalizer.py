"""What `normalize=true` changes."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leafcuttr_sdk.schemas import SchemaError
from support.avro_schemas import make
from support.avro_types import array, enum, fixed, map_of, record, schema_of
from support.gates_slice import sampled

X = {"name": "x"}
CHANGES: list[tuple[Any, str]] = [
    (
        {"type": "int", "b": {"z": 1, "a": [{"d": 1, "c": 2}]}, "a": 1},
        '{"type":"int","a":1,"b":{"a":[{"c":2,"d":1}],"z":1}}',
    ),
    (
        {"type": "bytes", "a": 1, "scale": 0, "precision": 9, "logicalType": "decimal"},
        '{"type":"bytes","logicalType":"decimal","precision":9,"a":1,"scale":0}',
    ),
    (
        {"type": "bytes", "a": 1, "scale": 2, "precision": 9, "logicalType": "decimal"},
        '{"type":"bytes","logicalType":"decimal","precision":9,"scale":2,"a":1}',
    ),
    (
        {"type": "bytes", "precision": 0, "logicalType": "decimal"},
        '{"type":"bytes","logicalType":"decimal","precision":0}',
    ),
    (fixed(1, aliases=["c", "two.b", ".a"], namespace="one"), '"aliases":[".a","c","two.b"]'),
    (enum("B", "A", doc=""), '{"type":"enum","name":"E","symbols":["B","A"]}'),
    ({"type": "error", "name": "R", "fields": []}, '{"type":"record","name":"R","fields":[]}'),
    (
        record(("x", "int", {"doc": "", "aliases": ["c", "b"], "z": 1, "y": 2})),
        '"doc":"","aliases":["b","c"],"y":2,"z":1',
    ),
    (record(("x", "double", {"default": 1})), '"default":1.0'),
    (record(("x", "float", {"default": 0.123456789})), '"default":0.12345679'),
    (record(("x", "long", {"default": 1})), '"default":1}'),
    (record(("x", ["null", "double"], {"default": 1})), '"default":1.0'),
    (record(("x", ["null", "double"], {"default": None})), '"default":null'),
    (record(("x", ["int", "double"], {"default": 1})), '"default":1}'),
    (record(("x", array("double"), {"default": [1, 2]})), '"default":[1.0,2.0]'),
    (record(("x", map_of("double"), {"default": {"b": 1, "a": 2}})), '"default":{"a":2.0,"b":1.0}'),
    (
        record(("x", record(("d", "double"), ("b", "boolean"), name="Q"), {"default": {"d": 1, "b": True}})),
        '"default":{"b":true,"d":1.0}',
    ),
    (record(("x", ["null", enum("A")], {"default": "A"})), '"default":"A"'),
]


@pytest.mark.parametrize(("of", "part"), CHANGES, ids=range(len(CHANGES)))
def test_changes(of: Any, part: str) -> None:
    schema = schema_of(of)
    assert part in schema.normalized()
    assert part not in schema.canonical or of.get("precision") == 0 or part.endswith(("}", "null", '"A"'))


@settings(max_examples=sampled(100), deadline=None)
@given(st.randoms(use_true_random=False))
def test_it_is_a_schema_and_normal(random: Random) -> None:
    try:
        schema = schema_of(json.dumps(make(random)))
    except SchemaError:
        return
    normal = schema_of(schema.normalized())
    assert normal.canonical == normal.normalized() == schema.normalized()
