"""Timestamps are longs, as in Java: base and delta together wrap. All who read or write records agree on it."""

from __future__ import annotations

import ctypes

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kafka.record import MemoryRecords

from leafcuttr.log.cleaner.compaction.walk import max_timestamp, walk
from leafcuttr.wire.batch import HEADER_SIZE, parse
from leafcuttr.wire.loose_records import put_together, take_apart
from leafcuttr.wire.primitives import LONG_MAX, LONG_MIN, as_long, write_varlong
from leafcuttr.wire.records import Record, decode_records, encode_batch, encode_records

ENDS = [LONG_MIN, LONG_MIN + 1, LONG_MIN + 63, -1, 0, 1, LONG_MAX - 63, LONG_MAX - 1, LONG_MAX]
longs = st.sampled_from(ENDS) | st.integers(LONG_MIN, LONG_MAX)


@given(st.integers(-(2**66), 2**66))
def test_a_sum_has_the_64_bits_of_a_long(value: int) -> None:
    assert as_long(value) == ctypes.c_int64(value).value


def with_delta(delta: int) -> bytes:
    """One record with key k and value v."""
    one = bytearray(1)
    write_varlong(one, delta)
    one += b"\0\x02k\x02v\0"
    out = bytearray()
    write_varlong(out, len(one))
    return bytes(out + one)


@given(longs, longs)
@example(LONG_MAX, 1)
@example(LONG_MIN, -1)
@example(LONG_MAX, LONG_MAX)
def test_all_readers_wrap(base: int, delta: int) -> None:
    due, data = ctypes.c_int64(base + delta).value, with_delta(delta)
    batch = bytes(encode_batch([Record(0, base, b"k", b"v")]))[:HEADER_SIZE] + data
    (read,) = decode_records(batch)
    assert read.timestamp == due
    (loose,) = take_apart(data, 1, base).records
    assert loose.timestamp == due
    assert max_timestamp(data, walk(data, 0, len(data), 1).bounds[:1], base) == due


@given(st.lists(longs, min_size=1, max_size=5), longs)
def test_what_is_written_is_read_again(stamps: list[int], base: int) -> None:
    records = [Record(number, stamp, b"k", b"v") for number, stamp in enumerate(stamps)]
    assert list(decode_records(encode_batch(records))) == records
    horizon = encode_batch(records, delete_horizon=base)
    assert parse(horizon).base_timestamp == base
    assert list(decode_records(horizon)) == records
    data = bytes(encode_records(records, base_offset=0, base_timestamp=base))
    loose = take_apart(data, len(records), base)
    assert [record.timestamp for record in loose.records] == stamps
    anew = [record._replace(value=b"w") for record in loose.records]
    again = bytes(put_together(data, loose, range(len(anew)), anew, base))
    assert take_apart(again, len(anew), base).records == anew
    starts = walk(data, 0, len(data), len(records)).bounds[:-1]
    assert max_timestamp(data, starts, base) == max(stamps)


@pytest.mark.parametrize("stamps", [(LONG_MAX, 0), (0, LONG_MAX), (LONG_MAX, LONG_MAX)])
def test_another_client_reads_the_same(stamps: tuple[int, ...]) -> None:
    records = [Record(number, stamp, b"k", b"v") for number, stamp in enumerate(stamps)]
    batch = MemoryRecords(bytes(encode_batch(records))).next_batch()
    assert [record.timestamp for record in batch] == list(stamps)
