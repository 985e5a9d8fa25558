"""The parts of Avro's binary encoding."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_registry.avro.reading import (
    MOST_EMPTY,
    MOST_FRAMES,
    Fault,
    Limits,
    Sizes,
    block,
    length,
    varint,
)
from support.avro_types import array, enum, fixed, map_of, record, type_of


def zigzag(value: int) -> bytes:
    left = (value << 1) ^ (value >> 63)
    out = bytearray()
    while left > 127:
        out.append(left & 127 | 128)
        left >>= 7
    return bytes(out) + bytes([left])


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_a_number_comes_back(value: int) -> None:
    raw = zigzag(value)
    assert varint(b"x" + raw + b"y", 1) == (value, 1 + len(raw))
    with pytest.raises(IndexError):
        varint(raw[:-1], 0)


def test_numbers_in_more_bytes_than_they_take() -> None:
    assert varint(b"\x80\x00", 0) == (0, 2)
    assert varint(b"\xff" * 9 + b"\x01", 0) == (-(1 << 63), 10)
    with pytest.raises(Fault, match="out of the range"):
        varint(b"\xff" * 9 + b"\x02", 0)
    with pytest.raises(Fault, match="more than ten bytes"):
        varint(b"\x80" * 10 + b"\x00", 0)


def test_lengths() -> None:
    assert length(b"\x04abc", 0) == (1, 3)
    with pytest.raises(Fault, match="a length of -1"):
        length(b"\x01", 0)
    with pytest.raises(Fault, match="a length of 4 where 3 bytes are left"):
        length(b"\x08abc", 0)
    with pytest.raises(Fault, match="where 0 bytes are left"):
        length(zigzag((1 << 63) - 1), 0)


def test_blocks() -> None:
    limits = Limits()
    limits.begin()
    assert block(b"\x04aabb", 0, 2, 0, limits) == (2, 1, 0)
    assert block(b"\x03\x08aabb", 0, 2, 0, limits) == (2, 2, 6)
    assert block(b"\x00", 0, 2, 0, limits) == (0, 1, 0)
    for raw in (b"\x06aabb", zigzag((1 << 63) - 1) + b"aabb", zigzag(-(1 << 63)) + b"\x00"):
        with pytest.raises(Fault, match="items where"):
            block(raw, 0, 2, 0, limits)
    for raw in (b"\x03\x0aaabb", b"\x03\x01aabb"):
        with pytest.raises(Fault, match="a block of"):
            block(raw, 0, 2, 0, limits)


def test_items_of_no_bytes_are_counted() -> None:
    limits = Limits()
    limits.begin()
    block(zigzag(MOST_EMPTY - 1), 0, 0, 1, limits)
    assert limits.empty == 1
    block(zigzag(1), 0, 0, 1, limits)
    with pytest.raises(Fault, match="take no bytes"):
        block(zigzag(1), 0, 0, 1, limits)
    limits.begin()
    with pytest.raises(Fault, match="take no bytes"):
        block(zigzag(MOST_EMPTY // 2 + 1), 0, 0, 2, limits)


def test_depth_is_counted() -> None:
    limits = Limits()
    limits.begin()
    for _ in range(MOST_FRAMES // 3):
        limits.enter(3)
    with pytest.raises(Fault, match="nested too deep"):
        limits.enter(3)
    limits.begin()
    limits.enter(3)


NODE = record(("x", "int"), ("next", ["null", "R"]))
MUTUAL = record(("u", ["null", record(("a", "A"), name="B")]), name="A")
EMPTY = record(("a", "null"), ("b", fixed(0)), ("c", record(("d", "null"), name="Q")))
LEAST: list[tuple[Any, int, int]] = [
    ("null", 0, 1),
    ("boolean", 1, 0),
    ("int", 1, 0),
    ("string", 1, 0),
    ("float", 4, 0),
    ("double", 8, 0),
    (fixed(0), 0, 1),
    (fixed(5), 5, 0),
    (enum("A"), 1, 0),
    (array("double"), 1, 0),
    (map_of("double"), 1, 0),
    (["double", "float"], 5, 0),
    (["null", "double"], 1, 0),
    (record(), 0, 1),
    (EMPTY, 0, 5),
    (record(("x", "int"), ("y", "double"), ("z", "null")), 9, 0),
    (NODE, 2, 0),
    (MUTUAL, 1, 0),
    (record(("x", array(MUTUAL))), 1, 0),
]


@pytest.mark.parametrize(("of", "least", "empty"), LEAST, ids=range(len(LEAST)))
def test_how_many_bytes_it_takes_at_least(of: Any, least: int, empty: int) -> None:
    found = type_of(of)
    sizes = Sizes(found)
    assert (sizes.least(found), sizes.empty(found)) == (least, empty)


def test_a_type_that_never_ends_has_values_without_number() -> None:
    found = type_of(record(("r", "R")))
    assert Sizes(found).empty(found) > MOST_EMPTY


def test_fields_of_no_bytes_in_a_record_that_takes_some() -> None:
    found: Any = type_of(record(("x", "int"), ("y", "null"), ("z", EMPTY | {"name": "E"})))
    assert Sizes(found).empty_fields(found) == 6
    empty: Any = type_of(EMPTY)
    assert Sizes(empty).empty_fields(empty) == 0


def test_the_place_of_a_fault() -> None:
    fault = Fault("wrong")
    assert str(fault.error()) == "wrong"
    fault.path += ["x", 3, "fields"]
    assert str(fault.error()) == "/fields/3/x: wrong"


def test_types_that_need_one_another() -> None:
    """B takes what A takes, which takes a byte at least, and is read after B."""
    a: Any = type_of(MUTUAL)
    b = a.fields[0].type.branches[1]
    assert (Sizes(a).least(b), Sizes(a).empty(b)) == (1, 0)
