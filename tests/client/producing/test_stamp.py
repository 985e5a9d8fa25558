"""A prebuilt batch as one of a producer."""

from __future__ import annotations

import pytest

from leafcuttr.client.producing.stamp import LARGE, ProducerIdentity, checked, fit, stamped
from leafcuttr.errors import CorruptMessage
from leafcuttr.wire.batch import TRANSACTIONAL, BatchHeader, parse
from leafcuttr.wire.compression import Codec
from leafcuttr.wire.records import Record, decode_records, encode_batch
from leafcuttr_sdk.batches import BatchError, batches_in

RECORDS = [Record(0, 5, b"k", b"v" * 100, (("h", b"x"),)), Record(1, 6, None, None)]


def whole(
    batch: bytes | bytearray, sequence: int = 9, *, transactional: bool = False
) -> tuple[BatchHeader, bytes]:
    gathered = stamped(checked(batch), ProducerIdentity(7, 3), sequence, transactional=transactional)
    joined = b"".join(gathered.pieces)
    assert len(joined) == gathered.length
    (found,) = batches_in(joined)
    found.check()
    return found.header, joined


@pytest.mark.parametrize("codec", list(Codec))
def test_the_header_is_the_producer_s_and_the_records_stay(codec: Codec) -> None:
    batch = encode_batch(RECORDS, codec=codec, partition_leader_epoch=4, producer_id=1, base_sequence=2)
    before = bytes(batch)
    header, joined = whole(batch)
    assert header[:3] == (0, len(batch) - 12, -1)
    assert header[-4:] == (7, 3, 9, 2)
    assert not header.is_transactional
    assert list(decode_records(joined)) == RECORDS
    assert bytes(batch) == before


def test_the_records_are_not_copied() -> None:
    batch = encode_batch(RECORDS)
    _, body = stamped(checked(batch), ProducerIdentity(7, 3), 0, transactional=False).pieces
    assert isinstance(body, memoryview)
    assert body.obj is batch


def test_the_bit_of_a_transaction_is_set_and_taken_away() -> None:
    assert whole(encode_batch(RECORDS), transactional=True)[0].attributes == TRANSACTIONAL
    assert whole(encode_batch(RECORDS, transactional=True))[0].attributes == 0


def test_what_is_no_whole_batch_with_its_crc_is_refused() -> None:
    batch = encode_batch(RECORDS)
    for place in range(12, len(batch)):  # base offset and leader epoch are not covered by the CRC
        if 12 <= place < 16:
            continue
        broken = bytearray(batch)
        broken[place] ^= 1
        with pytest.raises(CorruptMessage):
            checked(broken)
    for wrong in (batch[:60], batch[:-1], batch + b"x", batch + batch):
        with pytest.raises(CorruptMessage):
            checked(wrong)


LARGE_RECORDS = [Record(at, 5, b"k", bytes(1000)) for at in range(100)]


def test_a_large_batch_gets_its_crc_without_a_look_at_its_records() -> None:
    batch = encode_batch(LARGE_RECORDS, partition_leader_epoch=4, producer_id=1, base_sequence=2)
    assert len(batch) > LARGE
    for transactional in (False, True):
        header, joined = whole(batch, transactional=transactional)  # checks the CRC
        assert header.is_transactional is transactional
        assert header[-4:] == (7, 3, 9, 100)
        assert joined[61:] == batch[61:]


def test_a_large_batch_whose_crc_is_wrong_stays_as_wrong() -> None:
    broken = encode_batch(LARGE_RECORDS)
    broken[-1] ^= 1
    with pytest.raises(CorruptMessage):
        checked(broken)
    gathered = stamped(fit(broken), ProducerIdentity(7, 3), 0, transactional=False)
    (found,) = batches_in(b"".join(gathered.pieces))
    with pytest.raises(BatchError):
        found.check()


def test_small_ones_are_checked_before_they_are_sent() -> None:
    broken = encode_batch(RECORDS)
    broken[-1] ^= 1
    with pytest.raises(CorruptMessage):
        fit(broken)
    assert fit(encode_batch(RECORDS)) == checked(encode_batch(RECORDS))


def test_sequences_are_of_offsets() -> None:
    assert checked(encode_batch(RECORDS)).records == 2
    assert checked(encode_batch(RECORDS)).size == len(encode_batch(RECORDS))
    assert parse(encode_batch(RECORDS, last_offset_delta=5)).last_offset_delta == 5
