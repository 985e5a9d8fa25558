"""Confluent's wire format."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_sdk.schema_framing import (
    MAX_INDEXES,
    guid_prefix,
    id_prefix,
    indexes,
    read_indexes,
    read_prefix,
)
from leafcuttr_sdk.schemas import DataError

GUID = UUID("89791762-2336-4186-9674-299b90a802e2")


def test_an_id() -> None:
    assert id_prefix(258) == b"\0\0\0\1\2"
    assert read_prefix(b"\0\0\0\1\2rest") == (258, 5)


def test_a_guid() -> None:
    assert guid_prefix(GUID) == b"\1" + GUID.bytes
    assert read_prefix(guid_prefix(GUID) + b"rest") == (GUID, 17)


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\0\0\0", b"\1" + b"a" * 15, b"\2aaaa", b"{"])
def test_what_is_no_prefix(data: bytes) -> None:
    with pytest.raises(DataError):
        read_prefix(data)


@pytest.mark.parametrize(
    ("path", "data"), [((0,), b"\0"), ((1,), b"\2\2"), ((0, 0), b"\4\0\0"), ((1, 64), b"\4\2\x80\1")]
)
def test_message_indexes(path: tuple[int, ...], data: bytes) -> None:
    assert indexes(path) == data
    assert read_indexes(b"x" + data + b"rest", 1) == (path, 1 + len(data))


def test_the_first_message_written_out() -> None:
    assert read_indexes(b"\2\0") == ((0,), 2)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\2",
        b"\1",
        b"\2\1",
        b"\x80",
        b"\xff\xff\xff\xff\xff\1",
        b"\xfe\xff\xff\xff\x0f",
        b"\x82\1" + b"\0" * 65,
    ],
)
def test_what_are_no_message_indexes(data: bytes) -> None:
    with pytest.raises(DataError):
        read_indexes(data)


@pytest.mark.parametrize("path", [(), (-1,), (0,) * (MAX_INDEXES + 1)])
def test_paths_that_no_reader_takes(path: tuple[int, ...]) -> None:
    with pytest.raises(DataError):
        indexes(path)


@given(st.lists(st.integers(0, (1 << 31) - 1), min_size=1, max_size=MAX_INDEXES))
def test_message_indexes_come_back(path: list[int]) -> None:
    data = indexes(path)
    assert read_indexes(data) == (tuple(path), len(data))


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for read in (read_prefix, read_indexes):
        try:
            found = read(data)
        except DataError:
            continue
        assert 0 < found[1] <= len(data)
