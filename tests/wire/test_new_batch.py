"""Batches as producers make them, against the encoder that can do everything."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr.wire.new_batch import BatchBuilder, NewRecord
from leafcuttr.wire.records import Record, decode_records, encode_batch

maybe_bytes = st.none() | st.binary(max_size=300) | st.binary(min_size=8190, max_size=8200)
headers = st.lists(st.tuples(st.text(max_size=20), maybe_bytes), max_size=4).map(tuple)
rows = st.lists(st.tuples(maybe_bytes, maybe_bytes, headers, st.integers(0, 2**62)), min_size=1, max_size=40)


@given(rows, st.integers(1, 100))
def test_it_is_what_the_general_encoder_makes(records: list[NewRecord], at_once: int) -> None:
    builder = BatchBuilder()
    for start in range(0, len(records), at_once):
        assert builder.add(records[start : start + at_once], 1 << 30)
    expected = [
        Record(offset, timestamp, key, value, head)
        for offset, (value, key, head, timestamp) in enumerate(records)
    ]
    batch = builder.finish()
    assert batch == encode_batch(expected)
    assert len(batch) == builder.size
    assert list(decode_records(batch)) == expected


def test_what_does_not_fit_leaves_no_trace() -> None:
    builder = BatchBuilder()
    assert builder.add([(b"v" * 100, None, (), 7)], 200)
    alone = builder.size
    assert not builder.add([(b"v", None, (), 9), (b"v" * 100, None, (), 8)], 200)
    with pytest.raises(UnicodeEncodeError):
        builder.add([(b"v", None, (), 9), (b"v", None, (("\ud83d", b""),), 8)], 1 << 20)
    assert (builder.size, builder.count) == (alone, 1)
    assert builder.finish() == encode_batch([Record(0, 7, None, b"v" * 100)])


def test_a_header_that_is_not_utf_8_keeps_its_bytes() -> None:
    builder = BatchBuilder()
    name = b"\xff\xfe".decode("utf-8", "surrogateescape")
    assert builder.add([(None, None, ((name, None),), 7)], 1 << 20)
    assert [record.headers for record in decode_records(builder.finish())] == [((name, None),)]
