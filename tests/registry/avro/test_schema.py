"""One Avro schema, as the registry gets it."""

from __future__ import annotations

import pickle

import pytest

from leafcuttr_registry.avro.schema import AvroSchema
from leafcuttr_sdk.schemas import ResolvedReference, SchemaError
from support.avro_types import array, enum, record, schema_of

E = ResolvedReference('{"type": "enum", "name": "one.E", "symbols": ["A"]}', {})
M = ResolvedReference(
    '{"type": "record", "name": "one.M", "fields": [{"name": "e", "type": "E"}, {"name": "f", "type":'
    ' {"type": "fixed", "name": "F", "size": 1}}]}',
    {"E": E},
)
TEXT = '{"type": "record", "name": "two.R", "fields": [{"name": "m", "type": "one.M"}, {"name": "e", "type": "one.E"}]}'


def test_what_references_define_is_named_and_resolved_in_place() -> None:
    schema = AvroSchema(TEXT, {"M": M})
    named = (
        '{"type":"record","name":"R","namespace":"two","fields":[{"name":"m","type":"one.M"},'
        '{"name":"e","type":"one.E"}]}'
    )
    assert (
        schema.canonical == schema.normalized() == schema.formatted("") == schema.formatted("other") == named
    )
    assert (
        schema.formatted("resolved")
        == schema.formatted("RESOLVED")
        == (
            '{"type":"record","name":"R","namespace":"two","fields":[{"name":"m","type":{"type":"record","name":"M",'
            '"namespace":"one","fields":[{"name":"e","type":{"type":"enum","name":"E","symbols":["A"]}},'
            '{"name":"f","type":{"type":"fixed","name":"F","size":1}}]}},{"name":"e","type":"one.E"}]}'
        )
    )
    assert schema.codec().decode(b"\x00x\x00") == {"m": {"e": "A", "f": "x"}, "e": "A"}


def test_a_text_may_be_but_a_name() -> None:
    schema = AvroSchema('"one.E"', {"E": E})
    assert schema.canonical == '"one.E"'
    assert schema.formatted("resolved") == '{"type":"enum","name":"E","namespace":"one","symbols":["A"]}'


def test_names() -> None:
    assert schema_of(record(name="one.R")).record_name == "one.R"
    assert schema_of(enum("A")).record_name is None
    assert schema_of(enum("A")).name == "E"
    assert schema_of("int").record_name is None and schema_of("int").name is None
    assert schema_of([record(name="one.R")]).record_name is None


def test_it_can_be_sent_to_another_process() -> None:
    schema = AvroSchema(TEXT, {"M": M})
    again = pickle.loads(pickle.dumps(schema))
    assert again.canonical == schema.canonical
    old = AvroSchema('{"type": "record", "name": "é", "fields": []}', {}, validate=False)
    assert pickle.loads(pickle.dumps(old)).canonical == old.canonical


def test_a_message_is_short_whatever_the_text_is() -> None:
    with pytest.raises(SchemaError) as raised:
        schema_of(record(("x", "int", {"default": "a" * 5000}), name="N" * 5000))
    assert len(str(raised.value)) < 1100
    with pytest.raises(SchemaError) as raised:
        schema_of({"type": "record", "name": "N" * 5000})
    assert len(str(raised.value)) < 1100


def test_references_that_are_long_chains() -> None:
    """300 schemas, each within the next: deeper than one text may be."""
    inner = ResolvedReference(
        '{"type": "record", "name": "R0", "fields": [{"name": "x", "type": "int"}]}', {}
    )
    for at in range(1, 300):
        text = f'{{"type": "record", "name": "R{at}", "fields": [{{"name": "x", "type": "R{at - 1}"}}]}}'
        inner = ResolvedReference(text, {f"R{at - 1}": inner})
    schema = AvroSchema('"R299"', {"R299": inner})
    assert schema.formatted("resolved").count('"record"') == 300
    assert schema.canonical == '"R299"'
    assert schema.codec().decode(b"\x02")


def test_a_schema_of_nothing_but_names() -> None:
    assert schema_of(array(record(name="A"))).canonical == (
        '{"type":"array","items":{"type":"record","name":"A","fields":[]}}'
    )
