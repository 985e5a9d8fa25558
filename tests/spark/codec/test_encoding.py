"""Columns to batches: read by the broker's own reader, by kio and by kafka-python."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leafcuttr.wire.batch import parse
from leafcuttr.wire.compression import Codec
from leafcuttr.wire.records import Record, decode_records, encode_batch
from leafcuttr_sdk.batches import batches_in
from leafcuttr_spark.codec import encoding
from leafcuttr_spark.codec.encoding import Rows, encode
from leafcuttr_spark.codec.headers import HEADERS
from spark.codec.records import binary, record_lists
from support.gates_slice import sampled


def rows_of(records: list[Record], *, with_headers: bool = True) -> Rows:
    heads = pa.array(
        [[{"key": key, "value": value} for key, value in one.headers] or None for one in records], HEADERS
    )
    return Rows(
        binary(one.key for one in records),
        binary(one.value for one in records),
        np.array([one.timestamp for one in records], np.int64),
        heads if with_headers else None,
    )


def read(batches: list[encoding.EncodedBatch]) -> list[Record]:
    """All records, with offsets as if they were appended one after the other."""
    found: list[Record] = []
    for batch in batches:
        (whole,) = batches_in(batch.data)
        whole.check()
        records = list(decode_records(batch.data))
        assert len(records) == batch.records == whole.header.count == whole.header.last_offset_delta + 1
        assert whole.header.max_timestamp == max(one.timestamp for one in records)
        base = len(found)
        found += [one._replace(offset=one.offset + base) for one in records]
    return found


@given(record_lists(), st.sampled_from(Codec), st.integers(1, 3000))
@settings(max_examples=sampled(50), deadline=None)
def test_the_broker_reads_what_is_encoded(records: list[Record], codec: Codec, batch_bytes: int) -> None:
    batches = list(encode(rows_of(records), batch_bytes=batch_bytes, codec=codec))
    assert read(batches) == records
    if not codec:
        assert all(len(one.data) - 61 <= batch_bytes or one.records == 1 for one in batches)
    if len(batches) == 1:
        assert batches[0].data == encode_batch(records, codec=codec)


@given(record_lists())
@settings(max_examples=sampled(30), deadline=None)
def test_kio_and_kafka_python_read_it(records: list[Record]) -> None:
    from kafka.record import MemoryRecords
    from kio.records.readers import read_batch

    records = [one._replace(timestamp=abs(one.timestamp)) for one in records]
    (batch,) = encode(rows_of(records))
    theirs, size = read_batch(bytes(batch.data), 0)
    assert size == len(batch.data)
    assert [(one.offset, one.key, one.value) for one in theirs.records] == [
        (one.offset, one.key, one.value) for one in records
    ]
    assert [[(head.key, head.value) for head in one.headers] for one in theirs.records] == [
        [(name.encode(), value) for name, value in one.headers] for one in records
    ]
    read_by = MemoryRecords(bytes(batch.data)).next_batch()
    assert read_by.validate_crc()
    assert [(one.timestamp, one.key, one.value, tuple(one.headers)) for one in read_by] == [
        (one.timestamp, one.key, one.value, one.headers) for one in records
    ]


@given(record_lists(max_size=12), st.integers(0, 5), st.integers(0, 5))
@settings(max_examples=sampled(30), deadline=None)
def test_slices_of_arrays(records: list[Record], before: int, behind: int) -> None:
    """Arrow's arrays may begin within their buffers."""
    padding = [Record(0, 0, b"no", b"no", (("no", b"no"),))]
    padded = rows_of(padding * before + records + padding * behind)
    assert read(list(encode(padded.part(before, before + len(records))))) == records


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5))
def test_times_wrap_as_java_s_longs(times: list[int]) -> None:
    records = [Record(n, time, None, None) for n, time in enumerate(times)]
    (batch,) = encode(rows_of(records))
    assert list(decode_records(batch.data)) == records


def test_more_than_is_joined_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "_JOINED", 5000)
    records = [Record(n, n, b"%d" % n, bytes(n * 13 % 700), (("n", b""),) * (n % 2)) for n in range(300)]
    batches = list(encode(rows_of(records), batch_bytes=1500))
    assert len(batches) > 30
    assert read(batches) == records


def test_without_a_column_of_headers() -> None:
    records = [Record(0, 1, b"k", None), Record(1, 2, None, b"v")]
    assert read(list(encode(rows_of(records, with_headers=False)))) == records


def test_nothing_is_no_batch() -> None:
    assert list(encode(rows_of([]))) == []


def test_a_header_without_a_name_is_refused() -> None:
    heads = pa.array([[{"key": None, "value": b"x"}]], HEADERS)
    with pytest.raises(ValueError, match="a header has no key"):
        list(encode(Rows(binary([b""]), binary([b""]), np.zeros(1, np.int64), heads)))


def test_producer_and_offset_are_left_to_the_appender() -> None:
    (batch,) = encode(rows_of([Record(0, 5, None, b"v")]))
    header = parse(batch.data)
    assert (header.base_offset, header.producer_id, header.producer_epoch, header.base_sequence) == (
        0,
        -1,
        -1,
        -1,
    )
