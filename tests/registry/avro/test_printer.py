"""From types to text."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leafcuttr_registry.avro.equality import same
from leafcuttr_registry.budget import Budget
from leafcuttr_sdk.schemas import SchemaError
from support.avro_schemas import make
from support.avro_types import schema_of
from support.gates_slice import sampled

TEXTS = [
    ('"int"', '"int"'),
    ('{"type": "int"}', '"int"'),
    ('{"doc": "left out", "own": 1, "type": "int"}', '{"type":"int","own":1}'),
    ('{"items": "int", "type": "array"}', '{"type":"array","items":"int"}'),
    ('{"values": "int", "type": "map", "b": 1, "a": 2}', '{"type":"map","values":"int","b":1,"a":2}'),
    ('[ "null", {"type":"int"} ]', '["null","int"]'),
    (
        '{"symbols": ["A"], "aliases": ["X", "two.Y", ".Z"], "default": "A", "own": null, "doc": "",'
        ' "namespace": "one", "name": "E", "type": "enum"}',
        '{"type":"enum","name":"E","namespace":"one","doc":"","symbols":["A"],"default":"A","own":null,'
        '"aliases":["X","two.Y",".Z"]}',
    ),
    (
        '{"size": 4, "name": "one.F", "type": "fixed"}',
        '{"type":"fixed","name":"F","namespace":"one","size":4}',
    ),
    ('{"type": "error", "name": "E", "fields": []}', '{"type":"error","name":"E","fields":[]}'),
    (
        '{"type": "record", "name": "one.R", "fields": [{"order": "ascending", "aliases": ["y"], "own": 1,'
        ' "default": null, "doc": "d", "type": ["null", "R"], "name": "x"},'
        ' {"name": "z", "order": "IGNORE", "type": "one.R"}]}',
        '{"type":"record","name":"R","namespace":"one","fields":[{"name":"x","type":["null","R"],"doc":"d",'
        '"default":null,"aliases":["y"],"own":1},{"name":"z","type":"R","order":"ignore"}]}',
    ),
    (
        '{"type": "record", "name": "one.R", "fields": [{"name": "x", "type": {"type": "record", "name": ".Q",'
        ' "fields": [{"name": "y", "type": "one.R"}]}}, {"name": "z", "type": "Q"}]}',
        '{"type":"record","name":"R","namespace":"one","fields":[{"name":"x","type":{"type":"record","name":"Q",'
        '"namespace":"","fields":[{"name":"y","type":"one.R"}]}},{"name":"z","type":"Q"}]}',
    ),
]


@pytest.mark.parametrize(("text", "canonical"), TEXTS, ids=range(len(TEXTS)))
def test_the_canonical_text(text: str, canonical: str) -> None:
    assert schema_of(text).canonical == canonical
    assert schema_of(canonical).canonical == canonical


def shuffled(random: Random, node: Any) -> Any:
    """With the keys that the specification names in another order."""
    if isinstance(node, list):
        return [shuffled(random, one) for one in node]
    if not isinstance(node, dict):
        return node
    keys = list(node)
    named = [key for key in keys if key not in ("owner", "tags", "logicalType", "precision", "scale")]
    random.shuffle(named)
    rest = [key for key in keys if key not in named]
    return {
        key: node[key] if key in ("owner", "tags", "default") else shuffled(random, node[key])
        for key in [*named, *rest]
    }


@settings(max_examples=sampled(150), deadline=None)
@given(st.randoms(use_true_random=False))
def test_it_keeps_what_the_text_says(random: Random) -> None:
    made = make(random)
    try:
        schema = schema_of(json.dumps(made))
    except SchemaError:
        return
    again = schema_of(schema.canonical)
    assert again.canonical == schema.canonical
    assert same(again.parsed.root, schema.parsed.root, Budget())
    # White space and the order of named keys mean nothing.
    assert schema_of(json.dumps(shuffled(random, made), indent=2)).canonical == schema.canonical
    assert schema.formatted("resolved") == schema.canonical


def test_a_record_within_itself_is_no_other_of_its_simple_name() -> None:
    """Also where a type without a namespace has that name."""
    text = json.dumps(
        [
            {"type": "fixed", "name": "C", "size": 4},
            {
                "type": "record",
                "name": "C",
                "namespace": "one",
                "fields": [{"name": "next", "type": ["null", "one.C"], "default": None}],
            },
        ]
    )
    schema = schema_of(text)
    again = schema_of(schema.canonical)
    assert same(again.parsed.root, schema.parsed.root, Budget())
