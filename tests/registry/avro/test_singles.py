"""Numbers of the type float."""

import math
import struct
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_registry.avro.singles import shortest


@given(st.floats(width=32, allow_nan=False))
def test_it_is_the_same_float(value: float) -> None:
    found = shortest(value)
    assert struct.pack("<f", found) == struct.pack("<f", value)
    assert len(digits(found)) <= len(digits(value))


def digits(value: float) -> str:
    """Those that count, without the zeros at the end that only say how large it is."""
    return f"{Decimal(repr(value)):E}".partition("E")[0].replace(".", "").replace("-", "").rstrip("0")


def test_as_few_digits_as_it_takes() -> None:
    assert shortest(struct.unpack("<f", struct.pack("<f", 0.1))[0]) == 0.1
    assert shortest(0.123456789) == 0.12345679
    assert shortest(struct.unpack("<f", b"\xff\xff\x7f\x7f")[0]) == 3.4028235e38


@pytest.mark.parametrize("value", [0.0, -0.0, math.inf, -math.inf])
def test_as_they_are(value: float) -> None:
    assert shortest(value) == value and math.copysign(1, shortest(value)) == math.copysign(1, value)


def test_beyond_the_range() -> None:
    assert shortest(1e39) == math.inf
    assert shortest(-1e39) == -math.inf
    assert math.isnan(shortest(math.nan))
