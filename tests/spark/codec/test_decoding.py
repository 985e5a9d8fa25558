"""Batches to columns, beside the broker's own reader of records, and what damage does."""

from __future__ import annotations

import random
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leafcuttr.wire.batch import HEADER_SIZE, parse
from leafcuttr.wire.compression import Codec
from leafcuttr.wire.errors import WireError
from leafcuttr.wire.records import Record, decode_records, encode_batch
from leafcuttr_sdk.batches import BatchError
from leafcuttr_sdk.batches.header import BatchHeader, seal
from leafcuttr_sdk.records import AbortedRange
from leafcuttr_spark.codec import decoding
from leafcuttr_spark.codec.decoding import Wanted, decode
from spark.codec.records import moved, record_lists, rows_of
from support.gates_slice import sampled

FIXTURES = Path(__file__).parents[2] / "log" / "fixtures" / "kafka-4.3.1"
ALL = Wanted(headers=True)


def decoded(data: bytes, wanted: Wanted = ALL, aborted: tuple[AbortedRange, ...] = ()) -> list[Record]:
    return [row for columns in decode(data, wanted, aborted) for row in rows_of(columns)]


def as_text(record: Record) -> Record:
    """Names of headers that are not UTF-8 are replaced, as Java replaces them."""
    heads = tuple(
        (name.encode("utf-8", "surrogateescape").decode("utf-8", "replace"), value)
        for name, value in record.headers
    )
    return record._replace(headers=heads)


def sealed(batch: bytes) -> bytes:
    """The batch with the CRC and length that its bytes have."""
    out = bytearray(batch)
    seal(out, BatchHeader._make(parse(out)))
    return bytes(out)


# What is whole


@given(st.lists(st.tuples(record_lists(max_gap=3), st.sampled_from(Codec)), min_size=1, max_size=4))
@settings(max_examples=sampled(30), deadline=None)
def test_batches_are_what_the_broker_reads(lists: list[tuple[list[Record], Codec]]) -> None:
    data, base, expected = b"", 7, []
    for records, codec in lists:
        batch = encode_batch(moved(records, base), base_offset=base, codec=codec)
        expected += list(decode_records(batch))
        data += batch
        base = expected[-1].offset + 1
    assert decoded(data) == expected
    first, end = random.Random(base).sample(range(base + 2), 2)
    within = [record for record in expected if first <= record.offset < end]
    assert decoded(data, Wanted(first=first, end=end, headers=True)) == within


@pytest.mark.parametrize("client", ["librdkafka", "java"])
@pytest.mark.parametrize("codec", Codec)
def test_what_real_clients_wrote(client: str, codec: Codec) -> None:
    data = (FIXTURES / f"{client}-{codec.name.lower()}-0" / "00000000000000000000.log").read_bytes()
    found = decoded(data)
    assert [record.offset for record in found] == list(range(100))
    assert [record.key for record in found] == [b"key-%d" % (number % 7) for number in range(100)]
    expected = (("made-by", b"librdkafka"), ("none", None)) if client == "librdkafka" else ()
    assert {record.headers for record in found} == {expected}


def test_times_of_the_broker() -> None:
    records = [Record(n, 1000 + n, None, b"v") for n in range(3)]
    data = encode_batch(records) + encode_batch(moved(records, 3), base_offset=3, log_append_time=77)
    (columns,) = decode(data, Wanted())
    assert columns.timestamps.tolist() == [1000, 1001, 1002, 77, 77, 77]
    assert columns.timestamp_types.tolist() == [0, 0, 0, 1, 1, 1]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5))
def test_times_wrap_as_java_s_longs(times: list[int]) -> None:
    batch = encode_batch([Record(n, time, None, None) for n, time in enumerate(times)])
    (columns,) = decode(batch, Wanted())
    assert columns.timestamps.tolist() == times


def test_only_what_is_wanted() -> None:
    data = encode_batch([Record(0, 5, b"k", b"v", (("h", b"x"),)), Record(1, 5, None, b"w")])
    (columns,) = decode(data, Wanted(keys=False, values=False))
    assert (columns.keys, columns.values, columns.headers) == (None, None, None)
    assert columns.offsets.tolist() == [0, 1]
    (columns,) = decode(data, ALL)
    assert columns.headers is not None
    assert columns.headers.to_pylist() == [[{"key": "h", "value": b"x"}], None]


def test_control_batches_and_aborted_transactions_are_left_out() -> None:
    def batch(base: int, producer: int, *, control: bool = False, transactional: bool = True) -> bytes:
        return bytes(
            encode_batch(
                [Record(base, 1, b"\0\0\0\1", b"%d" % base)], base_offset=base, producer_id=producer,
                producer_epoch=0, base_sequence=0, transactional=transactional, control=control,
            )
        )  # fmt: skip

    data = b"".join(
        [
            batch(0, 8),
            batch(1, 9),
            batch(2, -1, transactional=False),
            batch(3, 8, control=True),
            batch(4, 8),
            batch(5, 8, transactional=False),
        ]
    )
    assert [record.offset for record in decoded(data)] == [0, 1, 2, 4, 5]
    assert [record.offset for record in decoded(data, ALL, (AbortedRange(8, 0, 3),))] == [1, 2, 4, 5]
    assert [record.offset for record in decoded(data, ALL, (AbortedRange(8, 4, 9),))] == [0, 1, 2, 5]


def test_batches_that_compaction_left_empty() -> None:
    data = encode_batch([], last_offset_delta=9) + encode_batch([Record(10, 1, b"k", None)], base_offset=10)
    assert [record.offset for record in decoded(data)] == [10]


def test_many_records_come_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "_AT_ONCE", 64)
    records = [Record(n, n, b"%d" % n, bytes(n % 90), (("n", b"%d" % n),) * (n % 3)) for n in range(1000)]
    for codec in (Codec.NONE, Codec.LZ4):
        data = b"".join(
            encode_batch(records[at : at + 150], base_offset=at, codec=codec) for at in range(0, 1000, 150)
        )
        pieces = list(decode(data, ALL))
        assert max(len(piece.offsets) for piece in pieces) <= 64
        assert [row for piece in pieces for row in rows_of(piece)] == records


def test_compressed_batches_are_joined_up_to_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    records = [Record(n, 0, None, bytes(1000)) for n in range(40)]
    data = b"".join(encode_batch([one], base_offset=one.offset, codec=Codec.GZIP) for one in records)
    assert len(list(decode(data, ALL))) == 1
    monkeypatch.setattr(decoding, "_JOINED", 10_000)
    pieces = list(decode(data, ALL))
    assert 4 <= len(pieces) <= 6
    assert [row for piece in pieces for row in rows_of(piece)] == records
    plain = b"".join(encode_batch([one], base_offset=one.offset) for one in records)
    assert len(list(decode(plain, ALL))) == 1, "of one buffer all are decoded together"


@given(st.integers(0, 200), st.integers(30, 40))
@settings(max_examples=sampled(20), deadline=None)
def test_records_with_many_headers(most: int, records: int) -> None:
    heads = tuple((f"h{n}", None if n % 3 == 0 else b"%d" % n) for n in range(most))
    given_ = [Record(n, 0, None, b"", heads[: (n * 7) % (most + 1)]) for n in range(records)]
    assert decoded(bytes(encode_batch(given_))) == given_


# Damage


@given(record_lists(), st.data())
@settings(max_examples=sampled(80), deadline=None)
def test_changed_bytes_are_an_error_or_what_the_broker_reads(
    records: list[Record], data: st.DataObject
) -> None:
    batch = bytearray(encode_batch(records))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(HEADER_SIZE, len(batch) - 1))
        batch[at] = data.draw(
            st.sampled_from([0, 1, 2, 3, 0x7E, 0x7F, 0x80, 0x81, 0xFE, 0xFF]) | st.integers(0, 255)
        )
    changed = sealed(batch)
    try:
        expected = [as_text(record) for record in decode_records(changed)]
    except WireError:
        with pytest.raises(BatchError):
            decoded(changed)
        return
    assert decoded(changed) == [record for record in expected if record.offset >= 0]


@given(record_lists(), st.data())
@settings(max_examples=sampled(30), deadline=None)
def test_cut_records_are_an_error(records: list[Record], data: st.DataObject) -> None:
    batch = encode_batch(records)
    end = data.draw(st.integers(HEADER_SIZE, len(batch) - 1))
    with pytest.raises(BatchError):
        decoded(sealed(batch[:end]))
    with pytest.raises(BatchError):
        decoded(sealed(bytes(batch) + b"\0"))


@given(record_lists(max_size=4), st.sampled_from([codec for codec in Codec if codec]), st.data())
@settings(max_examples=sampled(30), deadline=None)
def test_changed_compressed_bytes(records: list[Record], codec: Codec, data: st.DataObject) -> None:
    batch = bytearray(encode_batch(records, codec=codec))
    at = data.draw(st.integers(HEADER_SIZE, len(batch) - 1))
    batch[at] ^= data.draw(st.integers(1, 255))
    changed = sealed(batch)
    try:
        expected = [as_text(record) for record in decode_records(changed)]
    except WireError:
        with pytest.raises(BatchError):
            decoded(changed)
        return
    assert decoded(changed) == [record for record in expected if record.offset >= 0]


def test_a_wrong_crc_is_an_error_unless_it_is_not_checked() -> None:
    batch = bytearray(encode_batch([Record(0, 0, None, b"abc")]))
    batch[-3] ^= 1
    with pytest.raises(BatchError, match="CRC"):
        decoded(batch)
    assert len(decoded(batch, Wanted(headers=True, check_crcs=False))) == 1


def test_a_batch_of_more_records_than_bytes() -> None:
    batch = bytearray(encode_batch([Record(0, 0, None, b"abc")]))
    batch[57:61] = (2**31 - 1).to_bytes(4, "big")
    with pytest.raises(BatchError, match="claims 2147483647 records in 10 bytes"):
        decoded(sealed(batch))


def test_an_unknown_codec() -> None:
    batch = bytearray(encode_batch([Record(0, 0, None, b"abc")]))
    batch[22] |= 6
    with pytest.raises(BatchError, match="codec 6"):
        decoded(sealed(batch))


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec])
def test_bombs_end_at_the_limit(codec: Codec) -> None:
    bomb = encode_batch([Record(0, 0, None, bytes(8 << 20))], codec=codec)
    with pytest.raises(BatchError, match="1048576"):
        decoded(bomb, Wanted(limit=1 << 20))
    assert len(decoded(bomb, Wanted(limit=9 << 20, headers=True))) == 1


@pytest.mark.long
def test_a_bomb_of_tiny_records_takes_little_memory() -> None:
    records = b"\x0c\0\0\0\1\1\0" * (1 << 20)
    batch = bytearray(HEADER_SIZE) + records
    header = BatchHeader(0, 0, 0, 2, 0, 0, 1 << 20, 0, 0, -1, -1, -1, 1 << 20)
    seal(batch, header)
    tracemalloc.start()
    total = sum(len(columns.offsets) for columns in decode(batch, Wanted()))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert total == 1 << 20
    assert peak < 32 << 20


@pytest.mark.parametrize("claimed", [b"\xfe\xff\xff\xff\x0f", b"\x06", b"\x01"])
def test_headers_that_are_only_claimed(claimed: bytes) -> None:
    """2**31 - 1 of them, 3 in four bytes, and -1: nothing is allocated for any."""
    record = b"\0\0\0\1\1" + claimed + b"\0\1\0\1"
    batch = bytearray(HEADER_SIZE) + bytes([2 * len(record)]) + record
    seal(batch, BatchHeader(0, 0, 0, 2, 0, 0, 0, 0, 0, -1, -1, -1, 1))
    with pytest.raises(BatchError, match="a record claims more headers than fit into it, or less than none"):
        decoded(bytes(batch))
    with pytest.raises(BatchError, match="claims more headers"):
        list(decode(batch, Wanted()))


def test_a_record_of_very_many_headers_is_read_in_time() -> None:
    """One round of numpy for each header of one record would take minutes."""
    heads = (("", None),) * 300_000
    (columns,) = decode(encode_batch([Record(0, 0, None, None, heads)]), ALL)
    assert columns.headers is not None
    assert len(columns.headers[0]) == 300_000
