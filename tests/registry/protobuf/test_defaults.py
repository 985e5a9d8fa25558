"""How descriptors write default values."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_registry.protobuf.defaults import double_text, escaped, float32, float_of, float_text
from leafcuttr_registry.protobuf.lexer import unquoted
from leafcuttr_registry.protobuf.tree import Number, Text, Word


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.0, "1"), (0.1, "0.1"), (-0.0, "-0"), (1e300, "1e+300"), (0.1234567890123456, "0.12345678901234559"),
        (123456789.123456789, "123456789.12345679"), (math.inf, "inf"), (-math.inf, "-inf"), (math.nan, "nan"),
    ],
)  # fmt: skip
def test_doubles(number: float, text: str) -> None:
    assert double_text(number) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.1, "1.1"),
        (16777217, "16777216"),
        (0.1234567, "0.123456702"),
        (1e39, "inf"),
        (-1e39, "-inf"),
        (1e-46, "0"),
    ],
)
def test_floats(number: float, text: str) -> None:
    assert float_text(number) == text


@given(st.floats(allow_nan=False))
def test_texts_are_the_numbers(number: float) -> None:
    assert float(double_text(number)) == number
    assert float32(float(float_text(number))) == float32(number)


@given(st.binary())
def test_bytes(data: bytes) -> None:
    text = escaped(data)
    assert text.isascii()
    assert unquoted("", -1, f'"{text}"') == data


def test_numbers_of_values() -> None:
    assert float_of(Number("1" * 400, 1 << 1200)) == math.inf
    assert str(float_of(Number("-0", 0))) == "-0.0"
    assert float_of(Word("inf")) == math.inf
    assert float_of(Word("other")) is None
    assert float_of(Text(b"1")) is None
