"""Avro to columns beside fastavro, and damaged values."""

from __future__ import annotations

import io
import json
from itertools import count
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leafcuttr_spark.codec.avro import AvroColumns, AvroValueError, avro_columns
from spark.codec.records import binary
from support.gates_slice import sampled

PRIMITIVES: dict[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "bytes": st.binary(max_size=100),
    "string": st.text(max_size=40),
}
_NUMBERS = count()
"""Names of types, each of which is used once."""
FRONT = b"\0\0\0\0\7"


@st.composite
def types(draw: st.DrawFn, deep: int = 2) -> tuple[Any, st.SearchStrategy[Any]]:
    kind = draw(st.sampled_from([*PRIMITIVES, "enum", "fixed", "record", "nullable"]))
    number = next(_NUMBERS)
    if kind == "enum":
        symbols = ["a", "b", "c"][: draw(st.integers(1, 3))]
        return {"type": "enum", "name": f"E{number}", "symbols": symbols}, st.sampled_from(symbols)
    if kind == "fixed":
        size = draw(st.integers(1, 20))
        return {"type": "fixed", "name": f"F{number}", "size": size}, st.binary(min_size=size, max_size=size)
    if kind == "nullable" and deep:
        inner, values = draw(
            types(deep - 1).filter(lambda found: found[0] != "null" and not isinstance(found[0], list))
        )
        union = ["null", inner] if draw(st.booleans()) else [inner, "null"]
        return union, st.none() | values
    if kind == "record" and deep:
        return draw(records(deep - 1))
    kind = kind if kind in PRIMITIVES else "long"
    return kind, PRIMITIVES[kind]


@st.composite
def records(draw: st.DrawFn, deep: int = 2) -> tuple[Any, st.SearchStrategy[Any]]:
    fields = draw(st.lists(types(deep), min_size=1, max_size=5))
    schema = {
        "type": "record",
        "name": f"R{next(_NUMBERS)}",
        "fields": [{"name": f"f{number}", "type": type_} for number, (type_, _) in enumerate(fields)],
    }
    return schema, st.fixed_dictionaries({f"f{number}": values for number, (_, values) in enumerate(fields)})


def written(schema: Any, value: Any) -> bytes:
    out = io.BytesIO(FRONT)
    out.seek(len(FRONT))
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(json.dumps(schema))), value)
    return out.getvalue()


def columns(schema: Any) -> AvroColumns:
    found = avro_columns(schema)
    assert found is not None
    return found


@given(records(), st.data())
@settings(max_examples=sampled(80))
def test_values_are_those_of_fastavro(
    record: tuple[Any, st.SearchStrategy[Any]], data: st.DataObject
) -> None:
    schema, values = record
    some = data.draw(st.lists(st.none() | values, max_size=8))
    encoded = binary(None if value is None else written(schema, value) for value in some)
    found = columns(schema).decode(encoded, len(FRONT))
    found.validate(full=True)
    parsed = fastavro.parse_schema(schema)
    expected = [
        None if one is None else fastavro.schemaless_reader(io.BytesIO(one[len(FRONT) :]), parsed)
        for one in encoded.to_pylist()
    ]
    assert found.to_pylist() == expected
    assert columns(schema).decode(encoded.slice(1), len(FRONT)).to_pylist() == expected[1:]


@given(records(), st.data())
@settings(max_examples=sampled(80))
def test_damaged_values(record: tuple[Any, st.SearchStrategy[Any]], data: st.DataObject) -> None:
    """Either an error, or what fastavro reads of the same bytes."""
    schema, values = record
    value = bytearray(written(schema, data.draw(values)))
    if len(value) == len(FRONT):
        return
    at = data.draw(st.integers(len(FRONT), len(value) - 1))
    if data.draw(st.booleans()):
        value[at] ^= data.draw(st.integers(1, 255))
    else:
        del value[at:]
    around = binary([b"\x02" * 40, bytes(value), b"\x02" * 40]).slice(1, 1)
    try:
        found = columns(schema).decode(around, len(FRONT)).to_pylist()
    except AvroValueError:
        return
    rest = io.BytesIO(value[len(FRONT) :])
    # As texts: a number that is none is not equal to itself.
    assert repr(found) == repr([fastavro.schemaless_reader(rest, fastavro.parse_schema(schema))])
    assert not rest.read()


def test_times_and_dates() -> None:
    schema = {
        "type": "record",
        "name": "T",
        "fields": [
            {"name": "ms", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "us", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
            {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        ],
    }
    value = {"ms": 1_700_000_000_123, "us": 5, "day": 19_000}
    bare = json.loads(json.dumps(schema).replace('"logicalType"', '"was"'))
    found = columns(schema).decode(binary([written(bare, value)]), len(FRONT))
    assert [str(field.type) for field in found.type] == [
        "timestamp[ms, tz=UTC]",
        "timestamp[us, tz=UTC]",
        "date32[day]",
    ]
    assert found.cast(columns(bare).type).to_pylist() == [value]


@pytest.mark.parametrize(
    "field",
    [
        {"type": "array", "items": "int"},
        {"type": "map", "values": "int"},
        ["null", "int", "string"],
        ["int", "string"],
        ["null", "R"],
        {"type": "bytes", "logicalType": "decimal", "precision": 4},
        {"type": "string", "logicalType": "uuid"},
    ],
)
def test_other_schemas_are_left_to_another_reader(field: Any) -> None:
    assert avro_columns({"type": "record", "name": "R", "fields": [{"name": "a", "type": field}]}) is None
    assert avro_columns("long") is None


def test_a_name_may_come_again() -> None:
    side = {"type": "record", "name": "Side", "fields": [{"name": "x", "type": "int"}]}
    schema = {
        "type": "record",
        "name": "Pair",
        "fields": [{"name": "left", "type": side}, {"name": "right", "type": ["null", "Side"]}],
    }
    encoded = binary(
        [
            written(schema, {"left": {"x": 1}, "right": {"x": 2}}),
            written(schema, {"left": {"x": 3}, "right": None}),
        ]
    )
    assert columns(schema).decode(encoded, len(FRONT)).to_pylist() == [
        {"left": {"x": 1}, "right": {"x": 2}},
        {"left": {"x": 3}, "right": None},
    ]


def test_a_value_that_is_too_short() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}]}
    with pytest.raises(AvroValueError, match="shorter than 5 bytes"):
        columns(schema).decode(binary([b"\0\0"]), 5)
    assert columns(schema).decode(binary([]), 5).to_pylist() == []
    assert columns(schema).decode(pa.nulls(2, pa.binary()), 5).to_pylist() == [None, None]
