"""The format that the registry calls AVRO."""

from __future__ import annotations

import io
import json
import pickle
from random import Random
from typing import Any

import fastavro
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from leafcuttr_registry.avro.format import AvroFormat
from leafcuttr_registry.avro.rules import RULES
from leafcuttr_sdk.schemas import DataError, ResolvedReference, SchemaError
from support.avro_schemas import change, datum, make
from support.avro_types import enum, record, schema_of
from support.gates_slice import sampled

FORMAT = AvroFormat()


def test_what_it_is() -> None:
    assert (FORMAT.name, FORMAT.rules) == ("AVRO", RULES)
    assert FORMAT.summary
    assert type(pickle.loads(pickle.dumps(FORMAT))) is AvroFormat


def test_parse_and_compare() -> None:
    old = FORMAT.parse(json.dumps(record(("x", "int"))), {})
    new = FORMAT.parse(json.dumps(record(("x", "E"))), {"E": ResolvedReference(json.dumps(enum("A")), {})})
    assert [one.type for one in FORMAT.differences(new, old)] == ["TYPE_MISMATCH"]
    assert FORMAT.differences(old, old) == []
    with pytest.raises(SchemaError, match="'E' is not defined"):
        FORMAT.parse(json.dumps(record(("x", "E"))), {})


def test_what_an_earlier_registry_accepted() -> None:
    text = json.dumps(record(("x", "int", {"default": "no int"}), name="größe"))
    with pytest.raises(SchemaError):
        FORMAT.parse(text, {})
    assert FORMAT.parse(text, {}, validate=False).record_name == "größe"


# Data, both ways


LOGICAL = ("logicalType", "precision", "scale")


def plain(node: Any, *without: str) -> Any:
    """Without logical types: fastavro makes dates and decimals of them, and not of all numbers. Without namespaces: it
    takes a name for another one than Java's library does. Without the keys that are named."""
    if isinstance(node, dict):
        left_out = (
            *LOGICAL,
            "namespace",
            *(without if "symbols" in node or "size" in node or "fields" in node else ()),
        )
        return {key: plain(one, *without) for key, one in node.items() if key not in left_out}
    if isinstance(node, list):
        return [plain(one, *without) for one in node]
    return node.rpartition(".")[2] if isinstance(node, str) else node


def fastavro_reads(data: bytes, writer: str, reader: str) -> None:
    named = [fastavro.parse_schema(json.loads(text)) for text in (writer, reader)]
    fastavro.schemaless_reader(io.BytesIO(data), *named)


@settings(
    max_examples=sampled(150),
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
@given(st.randoms(use_true_random=False))
def test_what_is_compatible_is_read(random: Random) -> None:
    # Of a union fastavro takes the first branch by name or alias: a type has the aliases of its change only.
    made = plain(make(random), "aliases")
    try:
        writer = schema_of(json.dumps(made))
        reader = schema_of(json.dumps(plain(change(random, made))))
        value = datum(random, writer.parsed.root)
    except (SchemaError, RecursionError):
        assume(False)
    differences = FORMAT.differences(reader, writer)
    assume(not differences)
    data = writer.codec().encode(value)
    try:
        fastavro_reads(data, writer.canonical, reader.canonical)
    except UnicodeDecodeError:
        # The specification has bytes read as a string, whatever they are.
        assert '"bytes"' in writer.canonical and '"string"' in reader.canonical


def test_what_is_refused_has_data_that_are_not_read() -> None:
    """Of what has one rule each: one of the data of the writer fails, in fastavro."""
    failed: dict[str, int] = {}
    for rule in RULES:
        if not rule.breaks:
            continue
        writer = schema_of(rule.old)
        for seed in range(40):
            data = writer.codec().encode(datum(Random(seed), writer.parsed.root))
            try:
                fastavro_reads(data, rule.old, rule.new)
            except Exception:
                failed[rule.type] = failed.get(rule.type, 0) + 1
    assert failed.keys() == {rule.type for rule in RULES if rule.breaks}


def test_another_path_of_a_message_is_ignored() -> None:
    codec = schema_of("int").codec((3, 1))
    assert codec.decode(b"\x02") == 1
    with pytest.raises(DataError):
        codec.decode(b"")
