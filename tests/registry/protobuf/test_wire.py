"""Protobuf's encoding."""

from __future__ import annotations

import pytest
from google.protobuf import descriptor_pb2
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_registry.protobuf import wire


@given(st.integers(0, (1 << 64) - 1))
def test_varints(value: int) -> None:
    data = wire.varint(value)
    assert wire.read_varint(b"x" + data, 1) == (value, 1 + len(data))


RANGES = {
    3: (-(1 << 63), 1 << 63), 4: (0, 1 << 64), 5: (-(1 << 31), 1 << 31), 6: (0, 1 << 64), 7: (0, 1 << 32),
    13: (0, 1 << 32), 15: (-(1 << 31), 1 << 31), 16: (-(1 << 63), 1 << 63), 17: (-(1 << 31), 1 << 31),
    18: (-(1 << 63), 1 << 63),
}  # fmt: skip


@given(st.data(), st.sampled_from(sorted(RANGES)))
def test_scalars_come_back(data: st.DataObject, type_: int) -> None:
    least, end = RANGES[type_]
    value = data.draw(st.integers(least, end - 1))
    ((number, _, raw),) = wire.fields(wire.field(7, type_, wire.scalar(type_, value)))
    assert number == 7
    assert isinstance(raw, (int, bytes))
    assert wire.unscalar(type_, raw) == value


def test_groups() -> None:
    data = wire.field(1, 10, wire.field(2, 5, wire.scalar(5, 3)))
    assert data == b"\x0b\x10\x03\x0c"
    assert wire.fields(data) == [(1, wire.START_GROUP, [(2, wire.VARINT, 3)])]


def test_messages_of_protobuf() -> None:
    proto = descriptor_pb2.FieldDescriptorProto(name="a", number=-1)
    assert wire.fields(proto.SerializeToString()) == [(1, wire.LENGTH, b"a"), (3, wire.VARINT, (1 << 64) - 1)]


@pytest.mark.parametrize(
    "data",
    [
        b"\x80",
        b"\x08",
        b"\x0a\x05a",
        b"\x09abc",
        b"\x0b",
        b"\x0c",
        b"\x0b\x14",
        b"\x0f",
        b"\xff" * 11,
        b"\x0b" * 200,
    ],
)
def test_what_is_no_encoding(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        wire.fields(data)


@pytest.mark.parametrize(("type_", "raw"), [(1, b"abcd"), (2, b"a"), (5, b"abcd"), (1, 5), (7, 5)])
def test_values_of_another_wire_type(type_: int, raw: int | bytes) -> None:
    with pytest.raises(ValueError, match="another wire type"):
        wire.unscalar(type_, raw)


@given(st.binary(max_size=50))
def test_any_bytes_are_fields_or_refused(data: bytes) -> None:
    try:
        wire.fields(data)
    except ValueError as error:
        assert str(error)
