"""Variable-length integers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr.wire.errors import MalformedMessage
from leafcuttr.wire.primitives import (
    read_unsigned_varint,
    read_varlong,
    write_unsigned_varint,
    write_varlong,
)

_CASES = [
    (write_unsigned_varint, read_unsigned_varint, 0, 2**32 - 1),
    (write_varlong, read_varlong, -(2**63), 2**63 - 1),
]


@pytest.mark.parametrize(("write", "read", "low", "high"), _CASES)
def test_what_is_written_is_read_and_every_prefix_is_malformed(write, read, low, high) -> None:  # type: ignore[no-untyped-def]
    @given(value=st.integers(low, high) | st.sampled_from([low, high, 127, 128]))
    def check(value: int) -> None:
        out = bytearray(b"x")
        write(out, value)
        assert read(out + b"y", 1) == (value, len(out))
        for end in range(1, len(out)):
            with pytest.raises(MalformedMessage):
                read(bytes(out[:end]), 1)

    check()


@pytest.mark.parametrize(
    ("value", "data"), [(0, b"\0"), (-1, b"\1"), (1, b"\2"), (-65, b"\x81\x01"), (300, b"\xd8\x04")]
)
def test_zigzag_has_the_bytes_of_the_protocol_buffers_guide(value: int, data: bytes) -> None:
    out = bytearray()
    write_varlong(out, value)
    assert out == data
    assert read_varlong(data, 0) == (value, len(data))


@pytest.mark.parametrize(
    ("read", "data", "reason"),
    [
        (read_unsigned_varint, b"\xff\xff\xff\xff\x10", "32 bits"),
        (read_unsigned_varint, b"\x80\x80\x80\x80\x80\x00", "more than 5 bytes"),
        (read_varlong, b"\xff" * 9 + b"\x02", "64 bits"),
        (read_varlong, b"\x80" * 10 + b"\x00", "more than 10 bytes"),
    ],
)
def test_too_long_is_malformed(read, data: bytes, reason: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(MalformedMessage, match=reason):
        read(data, 0)
