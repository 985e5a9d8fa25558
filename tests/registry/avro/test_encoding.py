"""From values of JSON to what fastavro writes."""

from __future__ import annotations

from typing import Any

import pytest

from leafcuttr_sdk.schemas import DataError
from support.avro_types import array, enum, fixed, map_of, record, schema_of

GOOD: list[tuple[Any, Any, bytes]] = [
    ("null", None, b""),
    ("boolean", True, b"\x01"),
    ("int", -1, b"\x01"),
    ("int", 2.0, b"\x04"),
    ("long", (1 << 63) - 1, b"\xfe" + b"\xff" * 8 + b"\x01"),
    ("float", 1, b"\x00\x00\x80\x3f"),
    ("float", 3.4028235e38, b"\xff\xff\x7f\x7f"),
    ("double", "NaN", b"\x00" * 6 + b"\xf8\x7f"),
    ("double", "-INF", b"\x00" * 6 + b"\xf0\xff"),
    ("bytes", "\x00\xff", b"\x04\x00\xff"),
    ("string", "é", b"\x04\xc3\xa9"),
    (fixed(2), "\x00\xff", b"\x00\xff"),
    (fixed(0), "", b""),
    (enum("A", "B"), "B", b"\x02"),
    (["null", "int"], None, b"\x00"),
    (["null", "int"], {"int": 1}, b"\x02\x02"),
    (["int", "long", "float", "double"], {"long": 1}, b"\x02\x02"),
    (["string", "bytes", enum("A"), fixed(1)], {"E": "A"}, b"\x04\x00"),
    (
        [record(("x", "int"), name="A"), record(("x", "int"), name="one.B"), map_of("int")],
        {"one.B": {"x": 1}},
        b"\x02\x02",
    ),
    ([record(("x", "int"), name="A"), map_of("int")], {"map": {"x": 1}}, b"\x02\x02\x02x\x02\x00"),
    (array(["null", array("int")]), [None, {"array": [1]}], b"\x04\x00\x02\x02\x02\x00\x00"),
    (record(("a", "int"), ("b", "string")), {"b": "x", "a": 1}, b"\x02\x02x"),
    (record(("next", ["null", "R"])), {"next": {"R": {"next": None}}}, b"\x02\x00"),
    (record(("a", fixed(1)), ("b", "F"), ("c", ["F"])), {"a": "x", "b": "y", "c": {"F": "z"}}, b"xy\x00z"),
]


@pytest.mark.parametrize(("of", "value", "data"), GOOD, ids=range(len(GOOD)))
def test_values(of: Any, value: Any, data: bytes) -> None:
    assert schema_of(of).codec().encode(value) == data


@pytest.mark.parametrize(
    ("of", "value", "words"),
    [
        ("null", 0, "0 is no null"),
        ("boolean", 1, "1 is no boolean"),
        ("int", 1 << 31, "is no int"),
        ("int", 1.5, "1.5 is no int"),
        ("int", True, "True is no int"),
        ("int", "1", "'1' is no int"),
        ("long", 1 << 63, "is no long"),
        ("float", 1e39, "out of range"),
        ("float", 3.4028237e38, "out of range"),
        ("double", 10**400, "out of range"),
        ("double", "1", "is no number"),
        ("double", False, "is no number"),
        ("bytes", "Ā", "'Ā' is no byte"),
        ("bytes", [1], "list is no bytes"),
        ("string", 1, "is no string"),
        ("string", "\ud800", "lone surrogate"),
        (fixed(2), "a", "1 bytes, and the fixed has 2"),
        (enum("A"), "B", "'B' is no symbol of the enum E"),
        (enum("A"), 0, "0 is no symbol"),
        (["null", "int"], 1, "1 is no value of a union"),
        (["int"], None, "None is no value of a union"),
        (["null", "int"], {}, "dict is no value of a union"),
        (["null", "int"], {"int": 1, "long": 1}, "is no value of a union"),
        (["null", "int"], {"long": 1}, "'long' is no branch of the union: int"),
        (["null", "int"], {"int": "a"}, "/int: 'a' is no int"),
        (array("int"), {}, "dict is no array"),
        (array("int"), [1, "a"], "/1: 'a' is no int"),
        (map_of("int"), [], "list is no map"),
        (map_of("int"), {"k": "a"}, "/k: 'a' is no int"),
        (map_of("int"), {"\ud800": 1}, "lone surrogate"),
        (record(("a", "int")), [], "list is no record R"),
        (record(("a", "int")), {}, "/a: the field is missing"),
        (record(("a", "int", {"default": 1})), {}, "/a: the field is missing"),
        (record(("a", "int")), {"a": 1, "b": 2}, "the record R has no field 'b'"),
        (
            record(("a", array(record(("b", "int"), name="Q")))),
            {"a": [{"b": 1}, {"b": None}]},
            "/a/1/b: None is no int",
        ),
    ],
)
def test_what_is_refused(of: Any, value: Any, words: str) -> None:
    with pytest.raises(DataError) as raised:
        schema_of(of).codec().encode(value)
    assert words in str(raised.value).encode("utf-8", "replace").decode() or words in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_value_that_is_nested_too_deep() -> None:
    codec = schema_of(record(("next", ["null", "R"]))).codec()
    value: Any = {"next": None}
    for _ in range(150):
        value = {"next": {"R": value}}
    assert codec.decode(codec.encode(value)) == value
    for _ in range(5000):
        value = {"next": {"R": value}}
    with pytest.raises(DataError, match="too deep"):
        codec.encode(value)
