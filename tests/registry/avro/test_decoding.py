"""From bytes to values of JSON."""

from __future__ import annotations

from typing import Any

import pytest

from leafcuttr_registry.avro.decoding import Decodings
from leafcuttr_registry.avro.format import AvroFormat
from leafcuttr_registry.avro.reading import Fault, Limits, Sizes
from leafcuttr_sdk.schemas import DataError
from support.avro_types import array, enum, fixed, map_of, record, type_of

CASES: list[tuple[Any, bytes, Any]] = [
    ("null", b"", None),
    ("boolean", b"\x01", True),
    ("int", b"\x01", -1),
    ("long", b"\x80\x01", 64),
    ("float", b"\xcd\xcc\xcc\x3d", 0.1),
    ("float", b"\x00\x00\xc0\x7f", "NaN"),
    ("double", b"\x00" * 6 + b"\xf0\x7f", "Infinity"),
    ("double", b"\x00" * 6 + b"\xf0\xff", "-Infinity"),
    ("bytes", b"\x04\x00\xff", "\x00\xff"),
    ("string", b"\x04\xc3\xa9", "é"),
    (fixed(2), b"\x00\xff", "\x00\xff"),
    (enum("A", "B"), b"\x02", "B"),
    (["null", "int", "long"], b"\x00", None),
    (["null", "int", "long"], b"\x02\x02", {"int": 1}),
    (["null", "int", "long"], b"\x04\x02", {"long": 1}),
    ([enum("A", name="one.E"), array("int")], b"\x00\x00", {"one.E": "A"}),
    ([enum("A", name="one.E"), array("int")], b"\x02\x00", {"array": []}),
    ([map_of("int")], b"\x00\x00", {"map": {}}),
    (array("int"), b"\x02\x02\x03\x04\x04\x06\x00", [1, 2, 3]),
    (map_of("int"), b"\x02\x02a\x02\x01\x06\x02b\x04\x00", {"a": 1, "b": 2}),
    (record(("b", "int"), ("a", "null")), b"\x02", {"b": 1, "a": None}),
    (record(("next", ["null", "R"])), b"\x02\x00", {"next": {"R": {"next": None}}}),
]


def decode(of: Any, data: bytes) -> Any:
    found = type_of(of)
    limits = Limits()
    limits.begin()
    value, end = Decodings(Sizes(found), limits).of(found)(data, 0)
    assert end == len(data)
    return value


@pytest.mark.parametrize(("of", "data", "value"), CASES, ids=range(len(CASES)))
def test_values(of: Any, data: bytes, value: Any) -> None:
    assert decode(of, data) == value
    assert type(decode(of, data)) is type(value)


def test_the_order_of_fields_is_that_of_the_schema() -> None:
    assert list(decode(record(("b", "null"), ("a", "null")), b"")) == ["b", "a"]


DEEP = record(("list", array(map_of(record(("flag", "boolean"), name="Q")))))


@pytest.mark.parametrize(
    ("of", "data", "words"),
    [
        ("boolean", b"\x02", "the byte 2 is neither true nor false"),
        ("int", b"\x80\x80\x80\x80\x10", "2147483648 is out of the range of an int"),
        ("float", b"abc", "it takes 4 bytes, and 3 are left"),
        ("double", b"abc", "it takes 8 bytes"),
        (fixed(3), b"ab", "it takes 3 bytes, and 2 are left"),
        ("string", b"\x04a\xff", "a string is not UTF-8 at its byte 1"),
        (enum("A"), b"\x02", "symbol 1 of an enum of 1"),
        (enum("A"), b"\x01", "symbol -1 of an enum of 1"),
        (["null"], b"\x02", "branch 1 of a union of 1"),
        (["null"], b"\x01", "branch -1 of a union of 1"),
        (array("int"), b"\x03\x06\x02\x02\x00\x00", "a block ends at byte 4, and said that it would at 5"),
        (DEEP, b"\x02\x04\x02k\x01\x02l\x03\x00\x00", "/list/0/l/flag: the byte 3 is neither"),
        (DEEP, b"\x02\x04\x02k\x01\x02l", "/list/0/l/flag: the data end here"),
        (DEEP, b"\x02\x02\x02k\x01", "/list/0/k: the data end here"),
        (record(("a", "int"), ("b", "int")), b"\x00", "/b: the data end here"),
    ],
)
def test_what_is_wrong_and_where(of: Any, data: bytes, words: str) -> None:
    with pytest.raises(Fault) as raised:
        decode(of, data)
    assert words in str(raised.value.error())


def test_fields_of_no_bytes_are_counted() -> None:
    many = record(("x", "int"), *((f"f{at}", "null") for at in range(1000)), name="Q")
    assert len(decode(array(many), b"\x02" + b"\x00" + b"\x00")) == 1
    with pytest.raises(Fault, match="take no bytes"):
        decode(array(many), b"\xca\x01" + b"\x00" * 102)


def test_keys_of_maps_in_reasons_are_short_and_on_one_line() -> None:
    codec = AvroFormat().parse('{"type":"map","values":"int"}', {}).codec()
    for size, key in ((4, b"a\nb\x0b"), (5000, b"k" * 5000)):
        data = b"\2" + bytes((size * 2 & 0x7F | 0x80, size * 2 >> 7)) + key
        with pytest.raises(DataError) as caught:
            codec.check(data)
        said = str(caught.value)
        assert len(said.splitlines()) == 1 and "data end" in said and len(said) < 200, said
