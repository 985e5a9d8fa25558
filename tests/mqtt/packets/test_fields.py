"""The data types of 1.5, read and written, at their ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_mqtt.packets.encoding import binary, text, varint
from leafcuttr_mqtt.packets.errors import PacketError
from leafcuttr_mqtt.packets.fields import Body, decoded
from leafcuttr_mqtt.packets.types import ReasonCode


def body(raw: bytes, end: int | None = None) -> Body:
    return Body("X", raw, 0, len(raw) if end is None else end)


@pytest.mark.parametrize(
    ("value", "raw"),
    [
        (0, "00"),
        (127, "7f"),
        (128, "8001"),
        (16_383, "ff7f"),
        (16_384, "808001"),
        (2_097_151, "ffff7f"),
        (2_097_152, "80808001"),
        (268_435_455, "ffffff7f"),
    ],
)
def test_the_table_of_variable_byte_integers(value: int, raw: str) -> None:
    """Table 1-1"""
    assert varint(value).hex() == raw
    assert body(bytes.fromhex(raw)).varint("v") == value


@given(st.integers(0, 268_435_455))
def test_variable_byte_integers_come_back(value: int) -> None:
    raw = varint(value)
    read = body(raw + b"x", len(raw))
    assert read.varint("v") == value
    assert read.left() == 0


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("", "X: ends in v"),
        ("80", "X: ends in v"),
        ("ffffff", "X: ends in v"),
        ("ffffffff", "X: v has more than four bytes"),
        ("8080808001", "X: v has more than four bytes"),
        ("8000", "X: v has more bytes than need be"),
        ("ffff00", "X: v has more bytes than need be"),
    ],
)
def test_what_is_no_variable_byte_integer(raw: str, text: str) -> None:
    with pytest.raises(PacketError) as caught:
        body(bytes.fromhex(raw)).varint("v")
    assert caught.value.text == text
    assert caught.value.reason == ReasonCode.MALFORMED_PACKET


def test_one_that_is_too_large_is_not_written() -> None:
    with pytest.raises(ValueError, match="268435456 is more than 268435455"):
        varint(268_435_456)


@pytest.mark.parametrize(("method", "size"), [("byte", 1), ("two", 2), ("four", 4), ("packet_id", 2)])
def test_fixed_sizes(method: str, size: int) -> None:
    raw = bytes(range(1, 9))
    read = body(raw, size)
    call = getattr(read, method)
    arguments = () if method == "packet_id" else ("v",)
    assert call(*arguments) == int.from_bytes(raw[:size], "big")
    assert read.left() == 0
    for end in range(size):
        short = body(raw, end)
        with pytest.raises(PacketError, match="X: ends in "):
            getattr(short, method)(*arguments)
        assert short.at == 0


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_texts_come_back(value: str) -> None:
    raw = text(value)
    assert raw == len(raw[2:]).to_bytes(2, "big") + value.encode()
    assert body(raw + b"more").text("t") == value


def test_the_longest_text() -> None:
    assert body(text("x" * 65_535)).text("t") == "x" * 65_535
    for write in (lambda: text("x" * 65_536), lambda: text("é" * 32_768), lambda: binary(bytes(65_536))):
        with pytest.raises(ValueError, match="65536 bytes are more than 65535"):
            write()


def test_a_surrogate_is_not_written() -> None:
    with pytest.raises(ValueError, match="surrogates not allowed"):
        text("\ud800")


def test_control_characters_and_non_characters_are_read() -> None:
    """1.5.4 advises against them and forbids none of them; the mark at the start is a character."""
    value = "\ufeff\x01\x1f\x7f\x9f\uffff\U0010ffff"
    assert decoded(value.encode(), "t") == value


def test_bytes_are_counted_from_where_the_packet_begins() -> None:
    read = Body("X", b"..\0\1a\0\2bc..", 2, 9)
    assert (read.binary("a"), read.text("b"), read.left()) == (b"a", "bc", 0)
    read.done()
    read.at = 5
    assert read.rest() == b"\0\2bc"
    read.at = 5
    with pytest.raises(PacketError, match="X: 4 bytes too many"):
        read.done()


@pytest.mark.parametrize("raw", ["", "00", "0001", "0003 6161", "ffff 6161"])
def test_a_binary_field_that_ends_too_early(raw: str) -> None:
    data = bytes.fromhex(raw)
    with pytest.raises(PacketError, match="X: ends in b"):
        Body("X", data + b"xxxxxx", 0, len(data)).binary("b")
