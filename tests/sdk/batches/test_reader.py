"""Reading batches, against the broker's own decoder and encoder; and what is no batch."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leafcuttr.wire.batch import parse, sealed
from leafcuttr.wire.compression import Codec
from leafcuttr.wire.markers import Marker, encode_marker
from leafcuttr.wire.records import Record, decode_records, encode_batch
from leafcuttr_sdk import AbortedRange
from leafcuttr_sdk.batches import Batch, BatchBuilder, BatchError, batches_in, encode_headers
from sdk.batches.test_builder import headers, maybe_bytes
from support.gates_slice import sampled

records = st.lists(
    st.tuples(st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 300), maybe_bytes, maybe_bytes, headers),
    min_size=1,
    max_size=20,
)
fields = st.fixed_dictionaries(
    {},
    optional={
        "base_offset": st.integers(0, 2**40),
        "codec": st.sampled_from(Codec),
        "log_append_time": st.integers(0, 2**60),
        "delete_horizon": st.integers(0, 2**60),
        "transactional": st.just(True),
        "producer_id": st.integers(0, 2**62),
        "producer_epoch": st.integers(0, 2**15 - 1),
        "base_sequence": st.integers(0, 2**31 - 1),
        "partition_leader_epoch": st.integers(0, 2**31 - 1),
    },
)


def one(**given_fields: Any) -> bytes:
    return bytes(encode_batch([Record(0, 7, b"k", b"v", (("name", b"x"), ("none", None)))], **given_fields))


def made(drawn: list[Any], given_fields: dict[str, Any], gaps: int = 0) -> bytes:
    base, dice = given_fields.get("base_offset", 0), random.Random(gaps)
    rows, offset = [], base
    for timestamp, key, value, head in drawn:
        offset += dice.randrange(3) if gaps else 0
        rows.append(Record(offset, timestamp, key, value, head))
        offset += 1
    return bytes(encode_batch(rows, **given_fields))


def plain(batch: Batch) -> list[Record]:
    return [
        Record(
            each.offset,
            each.timestamp,
            None if each.key is None else bytes(each.key),
            None if each.value is None else bytes(each.value),
            each.headers(),
        )
        for each in batch.records()
    ]


@settings(max_examples=sampled(50))
@given(st.lists(st.tuples(records, fields), max_size=4))
def test_headers_and_records_are_what_the_broker_reads(drawn: list[Any]) -> None:
    stored = [made(rows, given_fields) for rows, given_fields in drawn]
    found = list(batches_in(b"".join(stored)))
    assert [bytes(each.data) for each in found] == stored
    assert [each.header for each in found] == [parse(each) for each in stored]
    for batch, data in zip(found, stored, strict=True):
        batch.check()
        assert plain(batch) == list(decode_records(data))
        for record in batch.records():
            assert bytes(record.encoded_headers) == encode_headers(record.headers())


@settings(max_examples=sampled(50))
@given(records, fields, st.integers(0, 5))
def test_a_new_batch_has_the_records_that_readers_see(rows: list[Any], given_fields: Any, gaps: int) -> None:
    stored = made(rows, given_fields, gaps)
    (batch,) = batches_in(stored)
    (new,) = batches_in(batch.as_new())
    new.check()
    header = new.header
    assert (header.base_offset, header.leader_epoch, header.size) == (0, -1, len(new.data))
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)
    assert not header.attributes & ~0x07
    assert (header.count, header.last_offset_delta) == (len(rows), len(rows) - 1)
    expected = [each._replace(offset=number) for number, each in enumerate(plain(batch))]
    assert plain(new) == expected
    thinned = batch.header.last_offset_delta + 1 != len(rows)
    if "log_append_time" in given_fields or thinned:
        assert header.codec == 0
        assert header.max_timestamp == max(-1, *(each.timestamp for each in expected))
    else:
        assert new.data[61:] == stored[61:]
        assert header.max_timestamp == batch.header.max_timestamp


@settings(max_examples=sampled(50))
@given(records, fields)
def test_a_batch_of_an_idempotent_producer(rows: list[Any], given_fields: Any) -> None:
    (batch,) = batches_in(made(rows, given_fields))
    (new,) = batches_in(batch.for_producer(7, 3, 2**31 - 1))
    new.check()
    assert new.header[9:12] == (7, 3, 2**31 - 1)
    (anonymous,) = batches_in(batch.as_new())
    assert new.header._replace(producer_id=-1, producer_epoch=-1, base_sequence=-1, crc=0) == (
        anonymous.header._replace(crc=0)
    )
    assert new.data[61:] == anonymous.data[61:]


def test_markers_and_empty_batches_are_for_no_other_partition() -> None:
    marker = encode_marker(5, 1, Marker(True, 3), timestamp=7)
    empty = sealed(parse(one())._replace(count=0), b"")
    for data, what in ((marker, "a control batch"), (empty, "a batch without records")):
        (batch,) = batches_in(data)
        with pytest.raises(BatchError, match=f"{what} at offset 0"):
            batch.as_new()
    (batch,) = batches_in(empty)
    assert list(batch.records()) == []
    (batch,) = batches_in(marker)
    assert batch.header.is_control
    assert len(list(batch.records())) == 1


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"x", "1 bytes at 0 are too few for a batch header of 61"),
        (one() + b"x" * 60, f"60 bytes at {len(one())} are too few"),
        (one()[:-1], f"claims {len(one())} bytes, {len(one()) - 1} are left"),
        (one()[:16] + b"\1" + one()[17:], "has magic 1, not 2"),
        (one()[:8] + b"\0\0\0\x30" + one()[12:], "claims 60 bytes"),
        (one()[:8] + b"\xff" * 4 + one()[12:], "claims 11 bytes"),
        (b"\x7f" + b"\xff" * 7 + one()[8:], "claims offsets that cannot be"),
        (one()[:57] + b"\xff" * 4 + one()[61:], "claims offsets that cannot be"),
        (one()[:23] + b"\xff" * 4 + one()[27:], "claims offsets that cannot be"),
    ],
)
def test_what_is_no_batch(data: bytes, says: str) -> None:
    with pytest.raises(BatchError, match=says):
        list(batches_in(data))


def test_a_wrong_crc() -> None:
    data = bytearray(one())
    data[-1] ^= 1
    (batch,) = batches_in(data)
    with pytest.raises(BatchError, match="the batch at offset 0 has a wrong CRC"):
        batch.check()


def body(records_bytes: bytes, count: int, attributes: int = 0) -> Batch:
    header = parse(one())._replace(count=count, attributes=attributes)
    (batch,) = batches_in(sealed(header, records_bytes))
    return batch


@pytest.mark.parametrize(
    ("batch", "says"),
    [
        (body(b"\x14\0\0", 1), "record 0 claims 10 bytes with 2 left"),
        (body(b"\x01\0\0", 1), "record 0 claims -1 bytes"),
        (body(b"\x0a\0\0\0\1\1\0", 1), "claims|does not end"),
        (body(b"\x0c\0\0\0\1\x7e\0", 1), "record 0 does not end where its length says"),
        (body(b"\x02\0", 1), "record 0 ends in the middle of a number"),
        (body(b"\xff" * 12, 1), "does not end"),
        (body(one()[61:] + b"\0", 1), "1 bytes follow the last of 1 records"),
        (body(one()[61:], 0), "bytes follow the last of 0 records"),
        (body(one()[61:], 2), "record 1 ends in the middle of a number"),
        (body(one()[61:], 1, 5), "compression codec 5 does not exist"),
        (body(one()[61:], 1, 1), "gzip"),
    ],
)
def test_broken_records_are_named(batch: Batch, says: str) -> None:
    with pytest.raises(BatchError, match=says):
        list(batch.records())


def test_broken_headers_are_named() -> None:
    for cut in (
        b"\x04",
        b"\x02\x06a",
        b"\x02\x02a",
        b"\0\0",
        b"\x02\x01",
        b"\x02\1\1",
        b"\1",
        b"\x02\x02a\x04b",
        b"\x02\x02a\0\0",
    ):
        builder = BatchBuilder()
        builder.add(b"v", 7, headers=cut)  # type: ignore[arg-type]  # what no encoder made
        (batch,) = batches_in(builder.finish())
        (record,) = batch.records()
        with pytest.raises(BatchError, match="the headers of the record at offset 0"):
            record.headers()


def test_a_bomb_ends_at_the_limit() -> None:
    data = bytes(encode_batch([Record(0, 7, None, b"\0" * 1_000_000)], codec=Codec.ZSTD))
    (batch,) = batches_in(data)
    with pytest.raises(BatchError, match="more than 100000 bytes"):
        next(batch.records(limit=100_000))
    assert sum(1 for _ in batch.records(limit=1_100_000)) == 1


@given(st.binary(max_size=200), st.integers(0, 10), st.sampled_from([0, 1, 2, 3, 4, 8]))
def test_any_bytes_end_in_records_or_an_error(data: bytes, count: int, attributes: int) -> None:
    try:
        for record in body(data, count, attributes).records(limit=1 << 20):
            record.headers()
    except BatchError:
        pass


def test_the_same_headers_are_used_again() -> None:
    """What a forwarding plugin does: records of one topic into a batch for another, their headers as they are."""
    (stored,) = batches_in(one())
    builder = BatchBuilder()
    for record in stored.records():
        assert record.value is not None
        assert builder.add(bytes(record.value), record.timestamp, headers=bytes(record.encoded_headers))  # type: ignore[arg-type]
    (new,) = batches_in(builder.finish())
    assert [each.headers() for each in new.records()] == [(("name", b"x"), ("none", None))]


def test_a_batch_of_an_aborted_transaction() -> None:
    fields = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
    aborted = [AbortedRange(5, 10, 20)]

    def batch(offset: int, **changed: Any) -> Batch:
        data = encode_batch([Record(offset, 7, None, b"v")], base_offset=offset, **{**fields, **changed})
        return next(batches_in(data))

    assert [batch(offset).is_aborted(aborted) for offset in (9, 10, 20, 21)] == [False, True, True, False]
    assert not batch(15).is_aborted(())
    assert not batch(15, producer_id=6).is_aborted(aborted)
    assert not batch(15, transactional=False).is_aborted(aborted)
