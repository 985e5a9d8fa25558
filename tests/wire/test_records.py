"""Records and batches against kafka-python, kio and what real clients wrote."""

from pathlib import Path

import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from leafcuttr.wire.batch import ATTRIBUTES_AT, parse
from leafcuttr.wire.compression import Codec, DecompressionLimitError
from leafcuttr.wire.errors import MalformedRecord, WireError
from leafcuttr.wire.record_summary import record_shapes
from leafcuttr.wire.records import (
    ControlRecord,
    Record,
    control_record,
    decode_records,
    encode_batch,
    record_bytes,
)
from support.gates_slice import sampled

FIXTURE = Path(__file__).parents[1] / "log" / "fixtures" / "kafka-4.3.1"

maybe_bytes = st.none() | st.binary(max_size=300)
headers = st.lists(st.tuples(st.text(max_size=20), maybe_bytes), max_size=4).map(tuple)
timestamps = st.integers(-1, 2**42)


@st.composite
def record_lists(draw: st.DrawFn, max_gap: int = 1) -> list[Record]:
    rows = draw(st.lists(st.tuples(timestamps, maybe_bytes, maybe_bytes, headers), min_size=1, max_size=20))
    offset = 0
    records = []
    for timestamp, key, value, head in rows:
        records.append(Record(offset, timestamp, key, value, head))
        offset += draw(st.integers(1, max_gap))
    return records


def batches_of(log: Path) -> list[bytes]:
    data = log.read_bytes()
    found, at = [], 0
    while at < len(data):
        size = parse(data, at).size
        found.append(data[at : at + size])
        at += size
    return found


@given(record_lists(max_gap=1000), st.sampled_from(Codec), st.integers(0, 2**40))
@settings(max_examples=sampled(150), deadline=None)
def test_what_is_encoded_comes_back(records: list[Record], codec: Codec, base: int) -> None:
    moved = [record._replace(offset=record.offset + base) for record in records]
    batch = encode_batch(
        moved, base_offset=base, codec=codec, producer_id=77, producer_epoch=3, base_sequence=5
    )
    assert list(decode_records(batch)) == moved
    header = parse(batch)
    assert crc32c(memoryview(batch)[ATTRIBUTES_AT:]) == header.crc
    assert (header.base_offset, header.last_offset, header.count) == (base, moved[-1].offset, len(moved))
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (77, 3, 5)
    assert header.max_timestamp == max(record.timestamp for record in records)


@given(record_lists())
@settings(max_examples=sampled(100), deadline=None)
def test_kafka_python_reads_what_we_write(records: list[Record]) -> None:
    from kafka.record import MemoryRecords

    for codec in (Codec.NONE, Codec.GZIP):
        theirs = MemoryRecords(bytes(encode_batch(records, codec=codec)))
        batch = theirs.next_batch()
        assert batch.validate_crc()
        read = [Record(one.offset, one.timestamp, one.key, one.value, tuple(one.headers)) for one in batch]
        assert read == records


@given(record_lists(), st.sampled_from([Codec.NONE, Codec.GZIP]))
@settings(max_examples=sampled(100), deadline=None)
def test_we_read_and_write_what_kafka_python_writes(records: list[Record], codec: Codec) -> None:
    from kafka.record.default_records import DefaultRecordBatchBuilder

    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=int(codec), is_transactional=True, producer_id=9, producer_epoch=1,
        base_sequence=4, batch_size=1 << 20,
    )  # fmt: skip
    for record in records:
        builder.append(record.offset, record.timestamp, record.key, record.value, list(record.headers))
    built = bytes(builder.build())
    assert list(decode_records(built)) == records
    if codec is Codec.NONE:
        ours = encode_batch(
            records,
            partition_leader_epoch=0,
            producer_id=9,
            producer_epoch=1,
            base_sequence=4,
            transactional=True,
        )
        assert ours == built


@given(record_lists())
@settings(max_examples=sampled(60), deadline=None)
def test_kio_agrees(records: list[Record]) -> None:
    """Only bytes of our own go into kio's reader, which believes every length. It rounds timestamps to seconds."""
    from kio.records.readers import read_batch

    records = [record._replace(timestamp=abs(record.timestamp)) for record in records]
    ours = bytes(encode_batch(records, partition_leader_epoch=4))
    theirs, size = read_batch(ours, 0)
    assert size == len(ours)
    assert (theirs.partition_leader_epoch, theirs.last_offset_delta) == (4, records[-1].offset)
    assert [(one.offset, one.key, one.value) for one in theirs.records] == [
        (record.offset, record.key, record.value) for record in records
    ]
    assert [[(head.key, head.value) for head in one.headers] for one in theirs.records] == [
        [(name.encode(), value) for name, value in record.headers] for record in records
    ]


@pytest.mark.parametrize("client", ["librdkafka", "java"])
@pytest.mark.parametrize("codec", Codec)
def test_what_real_clients_wrote(client: str, codec: Codec) -> None:
    log = FIXTURE / f"{client}-{codec.name.lower()}-0" / "00000000000000000000.log"
    batches = batches_of(log)
    assert {parse(batch).codec for batch in batches} == {codec}
    records = [record for batch in batches for record in decode_records(batch)]
    assert [record.offset for record in records] == list(range(100))
    assert [record.key for record in records] == [b"key-%d" % (number % 7) for number in range(100)]
    assert [record.value for record in records] == [
        b"value number %d " % number + b"leaf " * (number % 40) for number in range(100)
    ]
    expected = (("made-by", b"librdkafka"), ("none", None)) if client == "librdkafka" else ()
    assert {record.headers for record in records} == {expected}


def test_the_bytes_of_the_java_producer_are_ours() -> None:
    for batch in batches_of(FIXTURE / "java-none-0" / "00000000000000000000.log"):
        header = parse(batch)
        again = encode_batch(
            decode_records(batch), base_offset=header.base_offset, partition_leader_epoch=header.leader_epoch,
            producer_id=header.producer_id, producer_epoch=header.producer_epoch, base_sequence=header.base_sequence,
        )  # fmt: skip
        assert again == batch


def test_transaction_markers() -> None:
    markers = []
    for batch in batches_of(FIXTURE / "transactions-0" / "00000000000000000000.log"):
        if parse(batch).is_control:
            markers += [control_record(record) for record in decode_records(batch)]
    assert [marker.type for marker in markers] == [1, 1, 0, 1, 1, 0]
    assert markers[0] == ControlRecord(0, 1, 0)


def test_batches_thinned_out_by_compaction() -> None:
    sizes = []
    for batch in batches_of(FIXTURE / "compacted-0" / "00000000000000000000.log"):
        header = parse(batch)
        records = list(decode_records(batch))
        sizes.append(len(records))
        assert all(header.base_offset <= record.offset <= header.last_offset for record in records)
    assert sizes


def test_an_empty_batch_keeps_its_last_offset() -> None:
    batch = encode_batch(
        [], base_offset=10, last_offset_delta=4, producer_id=1, producer_epoch=0, base_sequence=0
    )
    header = parse(batch)
    assert (header.count, header.last_offset) == (0, 14)
    assert list(decode_records(batch)) == []


def test_log_append_time_is_the_time_of_every_record() -> None:
    batch = encode_batch([Record(0, 5, b"a", b"b"), Record(1, 9, None, None)], log_append_time=1234)
    assert parse(batch).is_log_append_time
    assert [record.timestamp for record in decode_records(batch)] == [1234, 1234]


def test_deltas_count_from_the_delete_horizon() -> None:
    records = [Record(0, 500, b"a", None), Record(1, 900, b"b", None)]
    batch = encode_batch(records, delete_horizon=1000)
    assert parse(batch).base_timestamp == 1000
    assert parse(batch).attributes == 0x40
    assert list(decode_records(batch)) == records


def test_header_keys_that_are_not_utf8_survive() -> None:
    batch = encode_batch([Record(0, 0, None, b"v", (("\udcff\udcfe", b"1"),))])
    (record,) = decode_records(batch)
    assert record.headers == (("\udcff\udcfe", b"1"),)
    assert encode_batch([record]) == batch


def test_offsets_before_the_base_are_refused() -> None:
    with pytest.raises(ValueError, match="before the batch's base offset 5"):
        encode_batch([Record(4, 0, None, None)], base_offset=5)


@given(record_lists(), st.sampled_from(Codec), st.data())
@settings(max_examples=sampled(200), deadline=None)
def test_damaged_batches_raise_nothing_but_wire_errors(
    records: list[Record], codec: Codec, data: st.DataObject
) -> None:
    batch = encode_batch(records, codec=codec)
    for _ in range(data.draw(st.integers(1, 3))):
        batch[data.draw(st.integers(0, len(batch) - 1))] = data.draw(st.integers(0, 255))
    del batch[data.draw(st.integers(len(batch) // 2, len(batch))) :]
    try:
        read = list(decode_records(batch, limit=1 << 20))
        shapes = list(record_shapes(record_bytes(batch, limit=1 << 20).tobytes(), parse(batch).count))
    except WireError:
        return
    assert len(read) == len(shapes) == parse(batch).count


def test_a_count_that_is_only_claimed_costs_nothing() -> None:
    batch = encode_batch([Record(0, 0, b"k", b"v")])
    batch[57:61] = (2**31 - 1).to_bytes(4, "big")
    with pytest.raises(MalformedRecord, match="record 1"):
        list(decode_records(batch))
    assert next(decode_records(batch)).key == b"k"


def test_headers_that_are_only_claimed_cost_nothing() -> None:
    record = bytes([0, 0, 0, 1, 1]) + b"\xfe\xff\xff\xff\x0f"
    batch = encode_batch([]) + bytes([len(record) * 2]) + record
    batch[57:61] = (1).to_bytes(4, "big")
    with pytest.raises(MalformedRecord, match="2147483647 headers"):
        list(decode_records(batch))
    with pytest.raises(MalformedRecord):
        list(record_shapes(bytes(batch[61:]), 1))


def test_decompression_is_bounded() -> None:
    batch = encode_batch([Record(0, 0, None, bytes(1 << 20))], codec=Codec.ZSTD)
    with pytest.raises(DecompressionLimitError):
        next(decode_records(batch, limit=1 << 16))


def test_rubbish_after_the_records_is_found() -> None:
    batch = encode_batch([Record(0, 0, b"k", b"v")]) + b"\x00"
    with pytest.raises(MalformedRecord, match="1 bytes follow the last of 1 records"):
        list(decode_records(batch))


@given(record_lists())
@settings(max_examples=sampled(60), deadline=None)
def test_shapes_are_those_of_the_records(records: list[Record]) -> None:
    payload = record_bytes(encode_batch(records)).tobytes()
    first = records[0].timestamp
    assert [tuple(shape) for shape in record_shapes(payload, len(records))] == [
        (record.timestamp - first, record.offset, record.key is not None) for record in records
    ]
