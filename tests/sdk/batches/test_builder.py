"""Batches as producers make them, against the encoder that can do everything."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.records.readers import read_batch

from leafcuttr.wire.records import Record, decode_records, encode_batch
from leafcuttr_sdk.batches import BatchBuilder, encode_headers, encode_key
from leafcuttr_sdk.batches.builder import NewRecord
from support.gates_slice import sampled

maybe_bytes = st.none() | st.binary(max_size=300) | st.sampled_from([b"x" * 8191, b"y" * 8192])
headers = st.lists(st.tuples(st.text(max_size=20), maybe_bytes), max_size=4).map(tuple)
rows = st.lists(st.tuples(maybe_bytes, maybe_bytes, headers, st.integers(0, 2**62)), min_size=1, max_size=40)
groups = st.lists(
    st.tuples(st.lists(maybe_bytes, max_size=5), maybe_bytes, headers, st.integers(0, 2**62)),
    min_size=1,
    max_size=8,
)


@given(rows, st.integers(1, 100))
def test_it_is_what_the_general_encoder_makes(records: list[NewRecord], at_once: int) -> None:
    builder = BatchBuilder()
    for start in range(0, len(records), at_once):
        assert builder.extend_records(records[start : start + at_once])
    expected = [
        Record(offset, timestamp, key, value, head)
        for offset, (value, key, head, timestamp) in enumerate(records)
    ]
    batch = builder.finish()
    assert batch == encode_batch(expected)
    assert len(batch) == builder.size
    assert list(decode_records(batch)) == expected


def test_what_does_not_fit_leaves_no_trace() -> None:
    builder = BatchBuilder(max_bytes=200)
    assert builder.extend_records([(b"v" * 100, None, (), 7)])
    alone = builder.size
    assert not builder.extend_records([(b"v", None, (), 9), (b"v" * 100, None, (), 8)])
    with pytest.raises(UnicodeEncodeError):
        builder.extend_records([(b"v", None, (), 9), (b"v", None, (("\ud83d", b""),), 8)])
    assert (builder.size, builder.count) == (alone, 1)
    assert builder.finish() == encode_batch([Record(0, 7, None, b"v" * 100)])


def test_a_header_that_is_not_utf_8_keeps_its_bytes() -> None:
    builder = BatchBuilder()
    name = b"\xff\xfe".decode("utf-8", "surrogateescape")
    assert builder.extend_records([(None, None, ((name, None),), 7)])
    assert [record.headers for record in decode_records(builder.finish())] == [((name, None),)]


@settings(max_examples=sampled(50))
@given(rows)
def test_encoded_parts_give_the_same_bytes(records: list[NewRecord]) -> None:
    builder = BatchBuilder()
    for value, key, head, timestamp in records:
        assert builder.add(value, timestamp, encode_key(key), encode_headers(head))
    expected = [
        Record(offset, timestamp, key, value, head)
        for offset, (value, key, head, timestamp) in enumerate(records)
    ]
    assert builder.count == len(records)
    assert builder.size == len(builder.finish())
    assert builder.finish() == encode_batch(expected)


@settings(max_examples=sampled(50))
@given(st.lists(st.tuples(rows, st.booleans()), max_size=4))
def test_rows_of_encoded_parts(drawn: list[tuple[list[NewRecord], bool]]) -> None:
    """With one time for all of a call, and with times of their own."""
    builder = BatchBuilder()
    expected: list[Record] = []
    assert builder.extend_encoded([])
    for records, same in drawn:
        times = [records[0][3] if same else record[3] for record in records]
        assert builder.extend_encoded(
            [
                (value, encode_key(key), encode_headers(head), time)
                for (value, key, head, _), time in zip(records, times, strict=True)
            ]
        )
        expected += [
            Record(len(expected) + number, time, key, value, head)
            for number, ((value, key, head, _), time) in enumerate(zip(records, times, strict=True))
        ]
    assert (builder.count, bool(expected)) == (len(expected), builder.count > 0)
    if expected:
        assert builder.size == len(builder.finish())
        assert builder.finish() == encode_batch(expected)
    full = BatchBuilder(max_bytes=builder.size)
    if expected:
        encoded = [(r.value, encode_key(r.key), encode_headers(r.headers), r.timestamp) for r in expected]
        assert full.extend_encoded(encoded)
        assert not full.extend_encoded(encoded[:1])
        assert full.finish() == builder.finish()


@settings(max_examples=sampled(50))
@given(groups)
def test_values_that_share_key_and_headers(
    drawn: list[tuple[list[bytes | None], bytes | None, Any, int]],
) -> None:
    builder = BatchBuilder()
    expected: list[Record] = []
    for values, key, head, timestamp in drawn:
        assert builder.extend(values, timestamp, encode_key(key), encode_headers(head))
        expected += [
            Record(len(expected) + number, timestamp, key, value, head) for number, value in enumerate(values)
        ]
    if not expected:
        with pytest.raises(ValueError, match="without records"):
            builder.finish()
    else:
        assert builder.finish() == encode_batch(expected)


def test_a_batch_ends_at_its_limit_and_the_next_one_begins() -> None:
    record = len(encode_batch([Record(0, 7, None, b"v" * 100)])) - 61
    builder = BatchBuilder(max_bytes=61 + 3 * record)
    assert [builder.add(b"v" * 100, 7) for _ in range(4)] == [True, True, True, False]
    assert not builder.extend([b""] * 20, 9)
    full = builder.finish()
    assert full == encode_batch([Record(number, 7, None, b"v" * 100) for number in range(3)])
    builder.clear()
    assert (builder.count, builder.size) == (0, 61)
    assert builder.add(b"next", 8)
    assert builder.finish() == encode_batch([Record(0, 8, None, b"next")])


def test_a_header_without_utf_8_is_refused_when_it_is_encoded() -> None:
    with pytest.raises(UnicodeEncodeError):
        encode_headers((("\ud83d", b""),))


@settings(max_examples=sampled(50))
@given(st.lists(st.tuples(maybe_bytes, maybe_bytes, headers, st.integers(0, 2**41)), min_size=1, max_size=8))
def test_kio_reads_them(records: list[NewRecord]) -> None:
    """A reader that no one here wrote."""
    builder = BatchBuilder()
    for value, key, head, timestamp in records:
        assert builder.add(value, timestamp, encode_key(key), encode_headers(head))
    batch, _ = read_batch(bytes(builder.finish()), 0)
    found = [
        (each.value, each.key, tuple((header.key, header.value) for header in each.headers))
        for each in batch.records
    ]
    assert found == [
        (value, key, tuple((name.encode(), content) for name, content in head))
        for value, key, head, _ in records
    ]


def test_times_that_are_farther_apart_than_a_long() -> None:
    """Their difference wraps, as Java's does; readers get the times back."""
    times = [-6, 2**63 - 5]
    builder = BatchBuilder()
    for at in times:
        assert builder.add(b"v", at)
    expected = [Record(number, at, None, b"v") for number, at in enumerate(times)]
    assert builder.finish() == encode_batch(expected)
    assert [record.timestamp for record in decode_records(builder.finish())] == times
