"""Columns to Avro values: fastavro reads from them what the rows had, and `reading` too."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leafcuttr_sdk.schemas import SchemaError
from leafcuttr_spark.formats.avro.reading import AvroDecoder
from leafcuttr_spark.formats.avro.schema import read_avro
from leafcuttr_spark.formats.avro.writing import avro_writer
from leafcuttr_spark.formats.derived import avro_of
from leafcuttr_spark.formats.pieces import PieceError
from support.gates_slice import sampled


def write(schema: Any, array: pa.Array) -> pa.Array:
    return avro_writer(read_avro(json.dumps(schema)), array.type)(array)


def read(schema: Any, data: pa.Array) -> list[Any]:
    parsed = fastavro.parse_schema(schema)
    return [fastavro.schemaless_reader(io.BytesIO(one), parsed) for one in data.to_pylist()]


LEAVES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.bool_(), st.booleans()),
    (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.float64(), st.floats(allow_nan=False)),
    (pa.float32(), st.floats(allow_nan=False, width=32)),
    (pa.string(), st.text(max_size=6)),
    (pa.binary(), st.binary(max_size=6)),
    (pa.date32(), st.dates()),
    (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(UTC))),
    (pa.timestamp("us"), st.datetimes()),
    (pa.decimal128(9, 2), st.decimals(-9_999_999, 9_999_999, places=2)),
]


def columns(depth: int = 2) -> st.SearchStrategy[tuple[pa.DataType, st.SearchStrategy[Any]]]:
    """A type, and its values, some of them None."""
    leaf = st.sampled_from(LEAVES)
    if not depth:
        return leaf
    inner = columns(depth - 1)
    return st.one_of(
        leaf,
        inner.map(lambda of: (pa.list_(pa.field("element", of[0])), st.lists(st.none() | of[1], max_size=3))),
        inner.map(
            lambda of: (
                pa.map_(pa.string(), of[0]),
                st.dictionaries(st.text(max_size=3), st.none() | of[1], max_size=3).map(
                    lambda made: list(made.items())
                ),
            )
        ),
        st.lists(inner, min_size=1, max_size=3).map(structs),
    )


def structs(
    inner: list[tuple[pa.DataType, st.SearchStrategy[Any]]],
) -> tuple[pa.DataType, st.SearchStrategy[Any]]:
    fields = [(f"f{place}", of[0]) for place, of in enumerate(inner)]
    return pa.struct(fields), st.fixed_dictionaries(
        {f"f{place}": st.none() | of[1] for place, of in enumerate(inner)}
    )


@given(st.lists(columns(), min_size=1, max_size=4).map(structs), st.data())
@settings(max_examples=sampled(200), deadline=None)
def test_what_is_written_is_read(of: tuple[pa.DataType, st.SearchStrategy[Any]], data: st.DataObject) -> None:
    type_, values = of
    rows = data.draw(st.lists(values, max_size=6))
    array = pa.array([None, *rows], type_).slice(1)
    schema = read_avro(avro_of(type_, "orders-value"))
    made = avro_writer(schema, type_)(array)
    found = AvroDecoder(schema, schema).decode(made)
    assert found.errors == {}
    assert found.values.type == type_
    assert found.values.to_pylist() == array.to_pylist()
    # fastavro's writer writes the same bytes.
    if rows:
        parsed = fastavro.parse_schema(json.loads(avro_of(type_, "orders-value")))
        again = [fastavro.schemaless_reader(io.BytesIO(one), parsed) for one in made.to_pylist()]
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, again[0])
        assert out.getvalue() == made[0].as_py()


def test_a_schema_of_its_own() -> None:
    schema = {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "kind", "type": {"type": "enum", "name": "E", "symbols": ["B", "A"]}},
            {"name": "size", "type": {"type": "fixed", "name": "F", "size": 2}},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "price", "type": {"type": "fixed", "name": "D", "size": 4, "logicalType": "decimal",
                                       "precision": 6, "scale": 2}},
            {"name": "more", "type": "long", "default": 9},
            {"name": "day", "type": [{"type": "int", "logicalType": "date"}, "null"]},
            {"name": "n", "type": "double"},
        ],
    }  # fmt: skip
    row = {
        "n": 1.5,
        "kind": "A",
        "size": b"ab",
        "at": datetime(2024, 1, 1, tzinfo=UTC),
        "price": Decimal("-1.25"),
        "day": date(2024, 2, 29),
    }
    type_ = pa.struct(
        [
            ("n", pa.float32()),
            ("kind", pa.string()),
            ("size", pa.binary()),
            ("at", pa.timestamp("us", "UTC")),
            ("price", pa.decimal128(12, 2)),
            ("day", pa.date32()),
        ]
    )
    assert read(schema, write(schema, pa.array([row, {**row, "day": None}], type_))) == [
        {**row, "more": 9},
        {**row, "more": 9, "day": None},
    ]
    for wrong, said in (
        ({"kind": "C"}, "kind is 'C'; allowed is one of B, A"),
        ({"size": b"abc"}, "size has not the 2 bytes"),
        ({"at": None}, "at is null, which its schema does not have"),
        ({"price": Decimal("99999999.00")}, "Precision|rescale|fit"),
    ):
        with pytest.raises(PieceError, match=said):
            write(schema, pa.array([{**row, **wrong}], type_))


def test_a_default_is_of_the_type_that_its_field_has_in_its_own_record() -> None:
    """Another record has a field of the same name, whose default is equal in Python: 0 == 0.0 == False."""
    inner = [{"name": "x", "type": "double", "default": 0.0}, {"name": "y", "type": "string"}]
    schema = {
        "type": "record",
        "name": "A",
        "fields": [
            {"name": "x", "type": "int", "default": 0},
            {"name": "in", "type": {"type": "record", "name": "B", "fields": inner}},
            {"name": "last", "type": {"type": "record", "name": "C", "fields": [
                {"name": "x", "type": "boolean", "default": False}, {"name": "in", "type": "B"}]}},
        ],
    }  # fmt: skip
    b = {"y": "behind"}
    array = pa.array([{"in": b, "last": {"in": b}}])
    row = {"x": 0, "in": {"x": 0.0, **b}, "last": {"x": False, "in": {"x": 0.0, **b}}}
    made = write(schema, array)
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), row)
    assert made.to_pylist() == [out.getvalue()]
    assert read(schema, made) == [row]


@pytest.mark.parametrize(
    ("fields", "type_", "said"),
    [
        ([("a", "int")], {"a": pa.int64()}, "the column a is bigint, and its schema has int"),
        ([("a", "int")], {}, "the schema has a field a without a default"),
        ([("a", "int")], {"a": pa.int32(), "b": pa.int32()}, "the schema has no field for the column b"),
        ([("a", ["null", "string"])], {"a": pa.struct([("x", pa.int32())])}, "the column a is struct"),
        (
            [("a", {"type": "long", "logicalType": "timestamp-millis"})],
            {"a": pa.timestamp("us")},
            "the column a is timestamp_ntz",
        ),
    ],
)
def test_rows_that_are_not_of_the_schema(fields: Any, type_: dict[str, Any], said: str) -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": n, "type": t} for n, t in fields]}
    with pytest.raises(SchemaError, match=said):
        avro_writer(read_avro(json.dumps(schema)), pa.struct(list(type_.items())))


def test_unions_of_several_types() -> None:
    schema = ["null", "long", "string"]
    type_ = pa.struct([("member0", pa.int64()), ("member1", pa.string())])
    rows = [{"member0": 5}, {"member1": "x"}, None, {}]
    assert read(schema, write(schema, pa.array(rows, type_))) == [5, "x", None, None]
    with pytest.raises(PieceError, match="the value is null"):
        write(schema[1:], pa.array([{}], type_))
