"""The reader of DER: what it reads, and that nothing else than DerError comes of other bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr.net import der
from leafcuttr.net.der import DerError, Element, elements, first, object_identifier


def test_elements_in_a_row() -> None:
    assert list(elements(b"\x02\x01\x05\x04\x02ab")) == [
        Element(der.INTEGER, b"\x05", b"\x02\x01\x05"),
        Element(der.OCTET_STRING, b"ab", b"\x04\x02ab"),
    ]


@pytest.mark.parametrize("size", [0, 127, 128, 255, 256, 70_000])
def test_lengths(size: int) -> None:
    octets = size.to_bytes(max((size.bit_length() + 7) // 8, 1), "big")
    length = bytes([size]) if size < 128 else bytes([0x80 | len(octets)]) + octets
    content = bytes(size)
    assert first(b"\x04" + length + content + b"behind").content == content


@pytest.mark.parametrize(
    "wrong",
    [b"", b"\x02", b"\x02\x02\x05", b"\x04\x80ab", b"\x04\x85\0\0\0\0\1a", b"\x04\x82\1", b"\x1f\x81\x01\0"],
)
def test_what_is_none(wrong: bytes) -> None:
    with pytest.raises(DerError):
        first(wrong)


def test_fields() -> None:
    found = first(b"\x30\x03\x02\x01\x05")
    assert [each.content for each in found.fields(der.SEQUENCE, 1)] == [b"\x05"]
    with pytest.raises(DerError, match="1 fields where 2 belong"):
        found.fields(der.SEQUENCE, 2)
    with pytest.raises(DerError, match="tag 0x30 where 0x31 belongs"):
        found.fields(der.SET, 1)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"\x55\x04\x03", "2.5.4.3"),
        (b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x01", "1.2.840.113549.1.9.1"),
        (b"\x88\x37\x03", "2.999.3"),
        (b"\x27", "0.39"),
    ],
)
def test_object_identifiers(content: bytes, text: str) -> None:
    assert object_identifier(content) == text


@pytest.mark.parametrize("content", [b"", b"\x55\x84"])
def test_object_identifiers_that_do_not_end(content: bytes) -> None:
    with pytest.raises(DerError):
        object_identifier(content)


@given(st.binary(max_size=60))
def test_any_bytes(data: bytes) -> None:
    try:
        found = list(elements(data))
    except DerError:
        return
    assert b"".join(each.raw for each in found) == data
