"""Avro values to columns: what is decoded many at a time is what fastavro reads, whatever the schemas and the bytes."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leafcuttr_sdk.schemas import SchemaError
from leafcuttr_spark.formats.avro.reading import AvroDecoder, expanded, unclear_union
from leafcuttr_spark.formats.avro.schema import AvroSchema, read_avro
from support.avro_schemas import change, datum, make
from support.avro_types import schema_of
from support.gates_slice import sampled


def written(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def decoder(writer: Any, reader: Any = None) -> AvroDecoder:
    return AvroDecoder(
        read_avro(json.dumps(writer)), read_avro(json.dumps(writer if reader is None else reader))
    )


def binary(*values: bytes) -> pa.Array:
    return pa.array(values, pa.binary())


def slowly(made: AvroDecoder) -> AvroDecoder:
    """The same without what decodes many at a time."""
    made._pieces._fast = None
    return made


def known(schema: Any) -> AvroSchema | None:
    """None for a schema that Spark has no type for."""
    try:
        found = read_avro(json.dumps(schema))
    except SchemaError:
        return None
    return None if unclear_union(expanded(found.plain, found.defined)) else found


@given(st.randoms(use_true_random=False), st.data())
@settings(max_examples=sampled(300))
def test_many_at_a_time_is_as_one_by_one(random: Random, data: st.DataObject) -> None:
    schema = make(random)
    writer = known(schema)
    changed = change(random, schema) if random.random() < 0.6 else schema
    reader = known(changed)
    if writer is None or reader is None:
        return
    kind = schema_of(json.dumps(schema)).parsed.root
    values = []
    codec = schema_of(json.dumps(schema)).codec()
    for _ in range(random.randrange(6)):
        try:
            values.append(codec.encode(datum(random, kind)))
        except (ValueError, RecursionError):  # of a union without a member there is no value
            continue
    for place in range(len(values)):
        if random.random() < 0.2 and values[place]:
            broken = bytearray(values[place])
            broken[random.randrange(len(broken))] ^= 1 << random.randrange(8)
            values[place] = bytes(broken) if random.random() < 0.5 else values[place] + b"\x00"
    try:
        made, slow = AvroDecoder(writer, reader), slowly(AvroDecoder(writer, reader))
    except SchemaError:
        return
    found, expected = made.decode(binary(*values)), slow.decode(binary(*values))
    assert found.errors == expected.errors
    assert repr(found.values.to_pylist()) == repr(expected.values.to_pylist())
    found.values.validate(full=True)
    assert found.values.type == made.type


ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {
            "name": "lines",
            "type": {"type": "array", "items": {"type": "long", "logicalType": "timestamp-micros"}},
        },
        {"name": "tags", "type": {"type": "map", "values": {"type": "int", "logicalType": "date"}}},
        {"name": "size", "type": {"type": "fixed", "name": "F", "size": 2}},
    ],
}
VALUE = {
    "id": 7,
    "name": None,
    "at": datetime(9999, 12, 31, 23, 59, 59, 999000, UTC),
    "local": datetime(1, 1, 1),
    "day": date(9999, 12, 31),
    "price": Decimal("-12.34"),
    "lines": [datetime(2024, 2, 29, tzinfo=UTC)],
    "tags": {"a": date(1, 1, 1)},
    "size": b"\0\1",
}


def test_values_have_spark_s_types() -> None:
    made = decoder(ORDER)
    found = made.decode(binary(written(ORDER, VALUE)))
    assert found.errors == {}
    assert found.values.to_pylist(maps_as_pydicts="strict") == [VALUE]
    assert (
        made.type
        == found.values.type
        == pa.struct(
            [
                ("id", pa.int64()),
                ("name", pa.string()),
                ("at", pa.timestamp("us", "UTC")),
                ("local", pa.timestamp("us")),
                ("day", pa.date32()),
                ("price", pa.decimal128(9, 2)),
                ("lines", pa.list_(pa.field("element", pa.timestamp("us", "UTC")))),
                ("tags", pa.map_(pa.string(), pa.date32())),
                ("size", pa.binary()),
            ]
        )
    )


@pytest.mark.parametrize("number", [253402300800000, -62135596800001, 2**63 - 1, -(2**63)])
def test_times_behind_the_year_9999_are_errors_of_their_records(number: int) -> None:
    schema = {"type": "record", "name": "T", "fields": [{"name": "at", "type": "long"}]}
    timed = json.loads(
        json.dumps(schema).replace('"long"', '{"type": "long", "logicalType": "timestamp-millis"}')
    )
    values = [written(schema, {"at": each}) for each in (0, number, 253402300799999)]
    found = decoder(timed).decode(binary(*values))
    assert found.errors == {1: "a time is outside of the years 1 to 9999"}
    assert found.values.is_null().to_pylist() == [False, True, False]


def test_a_day_behind_the_year_9999_too() -> None:
    schema = {"type": "int", "logicalType": "date"}
    found = decoder(schema).decode(binary(written("int", 2_932_896), written("int", 2_932_897)))
    assert found.values.to_pylist() == [date(9999, 12, 31), None]
    assert found.errors == {1: "a date is outside of the years 1 to 9999"}


@pytest.mark.parametrize("size", [None, 3, 16, 20])
def test_decimals(size: int | None) -> None:
    kind: Any = "bytes" if size is None else {"type": "fixed", "name": "F", "size": size}
    schema = {"type": kind, "logicalType": "decimal", "precision": 6, "scale": 2}
    if size is not None:
        schema = {**kind, "logicalType": "decimal", "precision": 6, "scale": 2}
    numbers = [Decimal("0.00"), Decimal("-0.01"), Decimal("1234.56"), Decimal("-9999.99")]
    width = size or 9
    values = [int(each * 100).to_bytes(width, "big", signed=True) for each in (*numbers, Decimal(10000))]
    physical = "bytes" if size is None else kind
    found = decoder(schema).decode(binary(*(written(physical, each) for each in values)))
    assert found.values.to_pylist() == [*numbers, None]
    assert list(found.errors) == [4]


def test_a_few_bad_ones_among_many() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "s", "type": "string"}]}
    values = [written(schema, {"s": str(number)}) for number in range(5000)]
    bad = {0, 7, 8, 2500, 4999}
    for place in bad:
        values[place] = b"\x08\xff\xff\xff\xff" if place % 2 else b"\x7f"
    found = decoder(schema).decode(binary(*values))
    assert found.errors.keys() == bad
    assert found.errors[0] == "it ends within a field of its schema" and "utf-8" in found.errors[7]
    assert [row and row["s"] for row in found.values.to_pylist()] == [
        None if number in bad else str(number) for number in range(5000)
    ]


def test_schemas_are_resolved() -> None:
    old = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "a", "type": "int"}, {"name": "gone", "type": "string"}],
    }
    new = {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "b", "aliases": ["a"], "type": "double"},
            {"name": "s", "type": ["null", "string"], "default": None},
            {"name": "x", "type": "bytes", "default": "\u00ff"},
            {"name": "m", "type": {"type": "map", "values": "int"}, "default": {"k": 1}},
        ],
    }
    found = decoder(old, new).decode(binary(written(old, {"a": 5, "gone": "x"})))
    assert found.values.to_pylist() == [{"b": 5.0, "s": None, "x": b"\xff", "m": [("k", 1)]}]
    assert found.errors == {}
    lacking = decoder(old, {**new, "fields": [{"name": "c", "type": "int"}]}).decode(binary(b"\x02\x00"))
    assert lacking.errors[0].startswith("No default value for field c")


def test_unions_of_several_types_have_a_member_for_each() -> None:
    a, b = ({"type": "record", "name": n, "fields": [{"name": n.lower(), "type": "int"}]} for n in ("A", "B"))
    schema = ["null", a, b, "string", "boolean"]
    values = [{"a": 1}, {"b": 2}, "text", None, True]
    found = decoder(schema).decode(binary(*(written(schema, each) for each in values)))
    empty = dict.fromkeys(("member0", "member1", "member2", "member3"))
    assert found.values.to_pylist() == [
        empty | {"member0": {"a": 1}},
        empty | {"member1": {"b": 2}},
        empty | {"member2": "text"},
        None,
        empty | {"member3": True},
    ]
    assert decoder(["int", "long"]).type == pa.int64()
    same = read_avro(json.dumps([a, {**a, "name": "C"}]))
    assert (
        unclear_union(expanded(same.plain, same.defined))
        == "two members of a union are alike for Python: dict"
    )


def test_symbols_and_names_that_a_reader_has_not() -> None:
    """What is decided value by value: a symbol that is not the reader's, and two fields that may be meant."""
    old: Any = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
    new = {**old, "symbols": ["B", "C"]}
    found = decoder(old, new).decode(binary(b"\x02", b"\x00"))
    assert found.values.to_pylist() == ["B", None] and list(found.errors) == [1]
    two = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "int"}],
    }
    one = {"type": "record", "name": "R", "fields": [{"name": "b", "aliases": ["a"], "type": "int"}]}
    values = binary(b"\x02\x04")
    assert decoder(two, one).decode(values) == slowly(decoder(two, one)).decode(values)


@pytest.mark.parametrize("more", [b"\x00", b"\xff" * 8])
def test_bytes_behind_the_last_field(more: bytes) -> None:
    """Where records are read one by one, too."""
    for schema, value in (("long", 5), ({"type": "array", "items": "int"}, [1, 2])):
        data = written(schema, value)
        found = decoder(schema).decode(binary(data, data + more))
        assert found.values.to_pylist() == [value, None]
        assert found.errors == {1: "it has bytes behind the last field of its schema"}


def long(number: int) -> bytes:
    return written("long", number)


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        ("bytes", long(2**62)),
        ("string", long(-1)),
        ({"type": "array", "items": "int"}, long(2**62)),
        ({"type": "array", "items": "int"}, long(-(2**62)) + long(2**62)),
        ({"type": "map", "values": "int"}, long(2**40) + long(2**40)),
        ({"type": "fixed", "name": "F", "size": 2**31 - 1}, b"\0"),
        (["null", "int"], long(2)),
        (["null", "int", "string"], long(-1)),
    ],
)
def test_what_is_merely_claimed_is_not_made(schema: Any, data: bytes) -> None:
    before = pa.default_memory_pool().max_memory()
    found = decoder(schema).decode(binary(data, data))
    assert found.errors.keys() == {0, 1}
    assert pa.default_memory_pool().max_memory() - before < 1 << 20


def test_values_of_ten_megabytes() -> None:
    """One at a time becomes objects."""
    schema = {"type": "array", "items": "string"}
    large = written(schema, ["x" * 5_000_000, "y" * 5_000_000])
    made = decoder(schema)
    built: list[int] = []
    build = made._pieces._build
    made._pieces._build = lambda objects: (built.append(len(objects)), build(objects))[1]
    found = made.decode(binary(large, large, written(schema, []), large[:-1]))
    assert list(found.errors) == [3]
    assert found.values.to_pylist()[:1] == [["x" * 5_000_000, "y" * 5_000_000]]
    assert built == [1, 1, 1, 1]
