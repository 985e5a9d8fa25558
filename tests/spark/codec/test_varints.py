"""Varints of whole arrays beside those of one number at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr.wire.primitives import read_varlong, write_varlong
from leafcuttr_sdk.batches import BatchError
from leafcuttr_spark.codec.varints import Varints, read_ints, read_longs

longs = st.integers(-(2**63), 2**63 - 1) | st.integers(-(2**14), 2**14)
ints = st.integers(-(2**31), 2**31 - 1) | st.integers(-200, 200)


def written(numbers: list[int]) -> tuple[bytes, list[int]]:
    out, places = bytearray(), []
    for number in numbers:
        places.append(len(out))
        write_varlong(out, number)
    return bytes(out), places


def octets(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8)


@given(st.lists(longs, min_size=1, max_size=20))
def test_longs(numbers: list[int]) -> None:
    data, places = written(numbers)
    found, behind = read_longs(octets(data), np.array(places))
    assert found.tolist() == numbers
    assert behind.tolist() == [*places[1:], len(data)]
    made = Varints(np.array(numbers, np.int64))
    assert made.matrix[made.used].tobytes() == data
    assert made.sizes.tolist() == np.diff([*places, len(data)]).tolist()


@given(st.lists(ints, min_size=1, max_size=20))
def test_ints(numbers: list[int]) -> None:
    data, places = written(numbers)
    found, behind = read_ints(octets(data), np.array(places))
    assert found.tolist() == numbers
    assert behind.tolist() == [*places[1:], len(data)]


@given(st.binary(min_size=1, max_size=12))
def test_longs_of_any_bytes(data: bytes) -> None:
    try:
        expected = read_varlong(data, 0)
    except ValueError:
        with pytest.raises((BatchError, IndexError)):
            read_longs(octets(data), np.array([0]))
        return
    number, behind = read_longs(octets(data), np.array([0]))
    assert (number[0], behind[0]) == expected


@pytest.mark.parametrize(
    "data", [b"\x80\x80\x80\x80\x80\0", b"\xff\xff\xff\xff\x10", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\1"]
)
def test_more_than_32_bits(data: bytes) -> None:
    with pytest.raises(BatchError):
        read_ints(octets(data), np.array([0]))


def test_of_nothing() -> None:
    assert Varints(np.zeros(0, np.int64)).sizes.tolist() == []
    assert read_ints(octets(b""), np.zeros(0, np.int64))[0].tolist() == []
