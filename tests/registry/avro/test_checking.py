"""Whether bytes are data of a schema, without making values of them."""

from __future__ import annotations

from typing import Any

import pytest

from leafcuttr_registry.avro.checking import Checks
from leafcuttr_registry.avro.reading import Fault, Limits, Sizes
from support.avro_types import array, enum, fixed, map_of, record, type_of

GOOD: list[tuple[Any, list[bytes]]] = [
    ("null", [b""]),
    ("boolean", [b"\x00", b"\x01"]),
    ("int", [b"\x00", b"\x7f", b"\x80\x01", b"\xff\xff\xff\xff\x0f", b"\x80\x00"]),
    ("long", [b"\x00", b"\xff" * 9 + b"\x01"]),
    ("float", [b"\x00" * 4]),
    ("double", [b"\xff" * 8]),
    ("bytes", [b"\x00", b"\x04\xff\xfe", b"\x80\x00", b"\xa0\x01" + b"x" * 80]),
    ("string", [b"\x00", b"\x04ab", b"\x04\xc3\xa9", b"\xa0\x01" + b"x" * 80]),
    (fixed(3), [b"\xff\xff\xff"]),
    (enum("A", "B"), [b"\x00", b"\x02", b"\x82\x00"]),
    (["null", "int"], [b"\x00", b"\x02\x05", b"\x82\x00\x05"]),
    (array("int"), [b"\x00", b"\x04\x01\x02\x00", b"\x02\x01\x02\x02\x00", b"\x03\x04\x01\x02\x00"]),
    (map_of("int"), [b"\x00", b"\x02\x02a\x05\x00"]),
    (array("null"), [b"\x00", b"\x04\x00", b"\x03\x00\x00"]),
    (map_of("null"), [b"\x02\x02a\x00"]),
    (record(("a", "int"), ("b", "null"), ("c", "string")), [b"\x05\x02x"]),
    (record(("next", ["null", "R"])), [b"\x00", b"\x02\x02\x02\x00"]),
]
BAD: list[tuple[Any, list[bytes]]] = [
    ("boolean", [b"\x02", b"\xff"]),
    ("int", [b"\x80\x80\x80\x80\x10", b"\x80" * 11]),
    ("long", [b"\xff" * 9 + b"\x02", b"\x80" * 11]),
    ("bytes", [b"\x01", b"\xa0\x01abc"]),
    ("string", [b"\x01", b"\x02\xff", b"\x02\xc3", b"\xa0\x01abc"]),
    (enum("A", "B"), [b"\x01", b"\x04", b"\x84\x00", b"\x83\x00"]),
    (enum(), [b"\x00"]),
    (["null", "int"], [b"\x01", b"\x04", b"\x81\x01", b"\x84\x00"]),
    ([], [b"\x00"]),
    (array("int"), [b"\x04\x00", b"\x03\x02\x01\x02\x00", b"\x03\x06\x01\x02\x00\x00", b"\x03\x01\x00"]),
    (map_of("int"), [b"\x02\x02\xff\x05\x00", b"\x06\x00\x05"]),
    (array("null"), [b"\xfe\xff\xff\xff\x1f\x00"]),
    (map_of("null"), [b"\xfe\xff\xff\xff\x1f\x00"]),
]


def check(of: Any, data: bytes) -> bool:
    found = type_of(of)
    limits = Limits()
    limits.begin()
    return Checks(Sizes(found), limits).of(found)(data, 0) == len(data)


@pytest.mark.parametrize(("of", "data"), [(of, one) for of, many in GOOD for one in many])
def test_data(of: Any, data: bytes) -> None:
    assert check(of, data)
    # What begins later does not matter, and what is cut off is missed.
    if data:
        with (
            pytest.raises(Exception, match=r".")
            if data[0] > 127 or of not in ("float", "double")
            else pytest.raises(AssertionError)
        ):
            assert check(of, data[:-1])


@pytest.mark.parametrize(("of", "data"), [(of, one) for of, many in BAD for one in many])
def test_what_is_none(of: Any, data: bytes) -> None:
    with pytest.raises((Fault, UnicodeDecodeError, IndexError, AssertionError)):
        assert check(of, data)


def test_types_of_no_bytes_cost_nothing() -> None:
    """Two to the power of a hundred values."""
    made: Any = record(name="R0")
    for at in range(100):
        made = record(("a", made), ("b", f"R{at}"), name=f"R{at + 1}")
    found = type_of(record(("x", "int"), ("y", made)))
    limits = Limits()
    limits.begin()
    with pytest.raises(Fault, match="take no bytes"):
        Checks(Sizes(found), limits).of(found)(b"\x00", 0)
