"""Ids and events of streams, without a connection."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_http.streams.events import FORMATS, encoded
from leafcuttr_http.streams.positions import Positions, parse, tag_of
from leafcuttr_sdk import StoredRecord

OFFSETS = st.lists(st.integers(0, 2**63 - 1), max_size=30)
TAG = tag_of(bytes(range(16)))
maybe_bytes = st.none() | st.binary(max_size=50) | st.text(max_size=20).map(str.encode)


@given(OFFSETS, st.lists(st.tuples(st.integers(0, 29), st.integers(0, 2**63 - 1)), max_size=10))
def test_an_id_says_where_it_is(offsets: list[int], moves: list[tuple[int, int]]) -> None:
    positions = Positions(TAG, offsets)
    before = positions.copy()
    for partition, offset in moves:
        if partition < len(offsets):
            positions.move(partition, offset)
    assert parse(positions.id().decode()) == (TAG, positions.offsets)
    assert parse(before.id().decode()) == (TAG, offsets)
    positions.add_partitions(40)
    assert parse(positions.id().decode()).offsets == [
        *positions.offsets[: len(offsets)],
        *[0] * (40 - len(offsets)),
    ]


def test_an_id_is_short() -> None:
    assert len(Positions(TAG, [1_000_000] * 12).id()) <= 56


@given(st.text(max_size=40) | st.binary(max_size=40).map(lambda data: data.hex()))
def test_what_is_no_id(text: str) -> None:
    try:
        place = parse(text)
    except ValueError:
        return
    assert all(0 <= offset < 2**63 for offset in place.offsets)


@pytest.mark.parametrize("text", ["", "AA", "A" * 200_000, "AQ", "!!!!", "AQAAAAAAgA", "AQAAAAAA" + "_" * 16])
def test_ids_that_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"it |its |an offset"):
        parse(text)


headers = st.lists(st.tuples(st.text(max_size=10), maybe_bytes), max_size=3).map(tuple)
values = maybe_bytes | st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
).map(lambda value: json.dumps(value, indent=1, ensure_ascii=False).encode("utf-8", "replace"))


@given(st.sampled_from(sorted(FORMATS)), maybe_bytes, values, headers)
def test_an_event_is_one_line_of_json(
    format: str, key: bytes | None, value: bytes | None, head: tuple[tuple[str, bytes | None], ...]
) -> None:
    positions = Positions(TAG, [0, 7])
    (event,) = encoded([StoredRecord("t", 1, 9, 5, key, value, head)], positions, FORMATS[format])
    assert not {"\r", "\n"} & set(event.data)
    assert positions.offsets == [0, 10] == parse(event.id).offsets
    shown = json.loads(event.data)
    assert [each["name"] for each in shown["headers"]] == [name for name, _ in head]
    if format == "json" and "value" in shown and value is not None:
        assert shown["value"] == json.loads(value) or shown["value"] != shown["value"]


def test_a_deep_value_is_not_parsed_to_death() -> None:
    value = b"[" * 100_000 + b"]" * 100_000
    (event,) = encoded([StoredRecord("t", 0, 0, 0, None, value, ())], Positions(TAG, [0]), FORMATS["json"])
    assert "value_base64" in json.loads(event.data)
    (event,) = encoded(
        [StoredRecord("t", 0, 0, 0, None, b"9" * 5000, ())], Positions(TAG, [0]), FORMATS["json"]
    )
    assert "value_base64" in event.data
