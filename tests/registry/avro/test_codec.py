"""Data of one schema: checked, decoded and encoded, and hostile ones."""

from __future__ import annotations

import io
import json
import time
import tracemalloc
from random import Random
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leafcuttr_sdk.schemas import DataError, SchemaError
from support.avro_schemas import datum, make
from support.avro_types import array, enum, fixed, map_of, record, schema_of
from support.gates_slice import sampled

ORDER = record(
    ("id", "long"),
    ("note", ["null", "string"]),
    ("lines", array(record(("sku", "string"), ("n", "int"), name="Line"))),
    ("kind", enum("A", "B")),
    ("hash", fixed(4)),
    ("tags", map_of(["int", "double"])),
    ("parent", ["null", "R"]),
)
HOSTILE: list[Any] = [
    *("null", "boolean", "int", "long", "float", "double", "bytes", "string"),
    *(array("null"), array("int"), map_of("string"), array(array("null")), map_of(record())),
    *(fixed(0), fixed(3), enum("A"), ["null", "int"], [], record(), record(("r", "R")), ORDER),
    record(("next", ["null", "R"])),
    record(("next", array("R"))),
    array(record(("a", "null"), ("b", record(("c", "null"), name="Q")))),
]


def agree(codec: Any, data: bytes) -> Any:
    """`check` and `decode` refuse the same data; the value if they do not."""
    try:
        value = codec.decode(data)
    except DataError as error:
        with pytest.raises(DataError) as raised:
            codec.check(data)
        assert str(raised.value) == str(error) and "\n" not in str(error)
        return None
    codec.check(data)
    return value


@settings(max_examples=sampled(150), deadline=None)
@given(st.randoms(use_true_random=False))
def test_a_value_comes_back(random: Random) -> None:
    made = make(random)
    try:
        schema = schema_of(json.dumps(made))
        value = datum(random, schema.parsed.root)
    except (SchemaError, RecursionError):
        return
    codec = schema.codec()
    data = codec.encode(value)
    assert agree(codec, data) == value
    with pytest.raises(DataError, match=r"1 bytes follow the value"):
        codec.decode(data + b"\x00")
    for at in range(len(data)):
        with pytest.raises(DataError):
            codec.check(data[:at])


@settings(max_examples=sampled(60), deadline=None)
@given(st.sampled_from(range(len(HOSTILE))), st.binary(max_size=40))
def test_bytes_of_anyone(at: int, data: bytes) -> None:
    agree(schema_of(json.dumps(HOSTILE[at])).codec(), data)


@given(st.binary(max_size=60))
@settings(max_examples=sampled(200), deadline=None)
def test_bytes_of_anyone_for_a_large_schema(data: bytes) -> None:
    agree(CODEC, data)


@given(st.data())
@settings(max_examples=sampled(100), deadline=None)
def test_data_that_were_changed(data: st.DataObject) -> None:
    random = data.draw(st.randoms(use_true_random=False))
    raw = bytearray(CODEC.encode(datum(random, SCHEMA.parsed.root, 4)))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    value = agree(CODEC, bytes(raw))
    if value is not None:
        assert CODEC.decode(CODEC.encode(value)) == value


SCHEMA = schema_of(ORDER)
CODEC = SCHEMA.codec()


@settings(max_examples=sampled(100), deadline=None)
@given(st.randoms(use_true_random=False))
def test_fastavro_reads_the_same(random: Random) -> None:
    """Each branch of a union within a record of its own, for which fastavro gives what Avro's JSON encoding has."""
    raw = CODEC.encode(datum(random, SCHEMA.parsed.root, 4))
    wrapped = json.loads(json.dumps(ORDER), object_hook=wrap)
    read = fastavro.schemaless_reader(io.BytesIO(raw), fastavro.parse_schema(wrapped))
    read = json.loads(json.dumps(read, default=lambda one: one.decode("latin-1")))
    assert json.loads(json.dumps(CODEC.decode(raw)), parse_constant=float) == special(read)


def wrap(node: dict[str, Any]) -> dict[str, Any]:
    """For the unions of ORDER."""
    for key in ("type", "values"):
        if isinstance(node.get(key), list):
            node[key] = [
                branch
                if branch == "null"
                else {
                    "type": "record",
                    "name": f"B{id(node)}_{branch}",
                    "fields": [{"name": branch, "type": branch}],
                }
                for branch in node[key]
            ]
    return node


def special(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: special(one) for key, one in value.items()}
    if isinstance(value, list):
        return [special(one) for one in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), -float("inf"))):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    return value


def huge(value: int) -> bytes:
    left, out = value << 1, bytearray()
    while left > 127:
        out.append(left & 127 | 128)
        left >>= 7
    return bytes(out) + bytes([left])


MANY = huge((1 << 62) - 1)


@pytest.mark.alone
@pytest.mark.parametrize(
    ("of", "data"),
    [
        (array("null"), MANY + b"\x00"),
        (array("int"), MANY + b"\x00"),
        (map_of("null"), MANY + b"\x00"),
        (array(record()), MANY + b"\x00"),
        ("string", MANY),
        ("bytes", MANY),
        (fixed((1 << 31) - 9), b"x"),
        (array(array("null")), huge(1000) + (huge(90_000) + b"\x00") * 1000 + b"\x00"),
        (record(("next", ["null", "R"])), b"\x02" * 1_000_000),
        (record(("next", array("R"))), b"\x02" * 1_000_000),
        (record(("next", map_of("R"))), b"\x02\x00" * 500_000),
        (record(("r", "R")), b""),
        (array(record(("r", "Q"), name="Q")), b"\x02\x00"),
    ],
    ids=range(13),
)
def test_hostile_data_take_neither_memory_nor_time(of: Any, data: bytes) -> None:
    codec = schema_of(of).codec()
    agree(codec, b"\xff" * 20)
    tracemalloc.start()
    started = time.process_time()
    try:
        with pytest.raises(DataError):
            codec.check(data)
        assert tracemalloc.get_traced_memory()[1] < 40_000_000
    finally:
        tracemalloc.stop()
    assert time.process_time() - started < 2


def test_a_codec_is_as_good_after_bad_data() -> None:
    codec = schema_of(record(("next", ["null", "R"]))).codec()
    for _ in range(3):
        with pytest.raises(DataError, match="too deep"):
            codec.check(b"\x02" * 5000)
        codec.check(b"\x02" * 190 + b"\x00")


def test_good_data_are_checked_without_making_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after bad ones, and where values of no bytes were counted."""
    codec = schema_of(record(("next", ["null", "R"]), ("nulls", array("null")))).codec()
    with pytest.raises(DataError):
        codec.check(b"\x02" * 5000)

    def fail(data: bytes, at: int) -> Any:
        raise AssertionError

    monkeypatch.setattr(codec, "_decode", fail)
    for _ in range(3):
        codec.check(b"\x02" * 150 + b"\x00" + (huge(600) + b"\x00") * 151)


def test_as_many_values_of_no_bytes_as_are_allowed() -> None:
    codec = schema_of(array("null")).codec()
    assert codec.decode(huge(100_000) + b"\x00") == [None] * 100_000
    with pytest.raises(DataError, match="take no bytes"):
        codec.check(huge(100_001) + b"\x00")


def test_a_root_of_no_bytes() -> None:
    codec = schema_of(record(("a", "null"))).codec()
    codec.check(b"")
    assert codec.decode(b"") == {"a": None}
    with pytest.raises(DataError, match="1 bytes follow"):
        codec.check(b"\x00")


def test_the_deepest_schema_has_a_codec() -> None:
    made: Any = "int"
    for at in range(200):
        made = record(("x", made), name=f"R{at}")
    codec = schema_of(made).codec()
    value = codec.decode(b"\x02")
    assert codec.encode(value) == b"\x02"
    codec.check(b"\x02")


def test_wide_schemas() -> None:
    codec = schema_of(record(*((f"f{at}", "int") for at in range(10_000)))).codec()
    data = b"\x02" * 10_000
    codec.check(data)
    assert codec.encode(codec.decode(data)) == data
