"""Records in bulk are those that are read one by one, or are refused as those are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr.wire.batch import HEADER_SIZE, parse
from leafcuttr.wire.compression import Codec
from leafcuttr.wire.entries import decode_entries
from leafcuttr.wire.errors import WireError
from leafcuttr.wire.records import Record, decode_records, encode_batch

maybe_bytes = st.none() | st.binary(max_size=80) | st.integers(100, 20_000).map(bytes)
heads = st.just(()) | st.lists(st.tuples(st.text(max_size=3), maybe_bytes), max_size=2).map(tuple)
rows = st.tuples(st.integers(-1, 2**42), st.integers(1, 300), maybe_bytes, maybe_bytes, heads)


def records_of(drawn: list[tuple[int, int, bytes | None, bytes | None, tuple[()]]]) -> list[Record]:
    found, offset = [], 0
    for timestamp, gap, key, value, headers in drawn:
        offset += gap
        found.append(Record(offset, timestamp, key, value, headers))
    return found


def one_by_one(batch: bytes) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(record.offset, record.key, record.value) for record in decode_records(batch)]


@given(st.lists(rows, max_size=8), st.sampled_from([Codec.NONE, Codec.GZIP]))
def test_as_one_by_one(
    drawn: list[tuple[int, int, bytes | None, bytes | None, tuple[()]]], codec: Codec
) -> None:
    batch = bytes(encode_batch(records_of(drawn), codec=codec))
    assert decode_entries(parse(batch), batch) == one_by_one(batch)


@given(st.lists(rows, min_size=1, max_size=4), st.data())
def test_damaged_as_one_by_one(
    drawn: list[tuple[int, int, bytes | None, bytes | None, tuple[()]]], data: st.DataObject
) -> None:
    batch = encode_batch(records_of(drawn))
    for _ in range(data.draw(st.integers(1, 3))):
        batch[data.draw(st.integers(HEADER_SIZE, len(batch) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del batch[data.draw(st.integers(HEADER_SIZE, len(batch) - 1)) :]
    try:
        wanted = one_by_one(bytes(batch))
    except WireError:
        with pytest.raises(WireError):
            decode_entries(parse(batch), bytes(batch))
    else:
        assert decode_entries(parse(batch), bytes(batch)) == wanted
