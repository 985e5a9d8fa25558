"""The batch header: parsed, stamped and checked, also when the bytes are hostile."""

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr.wire.batch import (
    ATTRIBUTES_AT,
    MAX_SEQUENCE,
    CorruptBatch,
    InvalidBatch,
    batch_size,
    check_client_batch,
    parse,
    sequence_after,
    single_batch,
    stamp,
)
from support.logs import batch, patched


def test_header_fields() -> None:
    header = parse(batch(3, timestamp=77, producer_id=9, producer_epoch=2, base_sequence=MAX_SEQUENCE))
    assert (header.base_offset, header.last_offset, header.next_offset, header.count) == (0, 2, 3, 3)
    assert (header.max_timestamp, header.producer_id, header.producer_epoch) == (77, 9, 2)
    assert header.size == len(batch(3, timestamp=77))
    assert header.last_sequence == 1


def test_stamping_leaves_the_crc_right() -> None:
    data = batch(2)
    before = parse(data)
    stamp(data, 1 << 40, before.length, 7)
    after = parse(data)
    assert (after.base_offset, after.leader_epoch) == (1 << 40, 7)
    assert after._replace(base_offset=0, leader_epoch=before.leader_epoch) == before
    assert after.crc == crc32c(bytes(data[ATTRIBUTES_AT:]))


@pytest.mark.parametrize(
    ("form", "at", "value", "words"),
    [
        (">i", 57, 0, "count"),
        (">i", 57, -1, "count"),
        (">i", 57, 5, "Inconsistent"),
        (">i", 23, -1, "offset range"),
        (">h", 21, 0x20, "control"),
        (">h", 21, 5, "compression"),
        (">q", 43, 1000, "sequence"),
    ],
)
def test_what_a_client_may_not_say(form: str, at: int, value: int, words: str) -> None:
    with pytest.raises(InvalidBatch, match=words):
        check_client_batch(parse(patched(batch(2), form, at, value)))
    check_client_batch(parse(batch(2)))


def test_single_batch() -> None:
    good = bytes(batch(2))
    assert single_batch(memoryview(good)) == good
    assert single_batch(memoryview(good + good[:-1])) == good
    for wrong in (b"", good[:16], good[:-1], good + good, patched(good, ">b", 16, 1)):
        with pytest.raises(InvalidBatch):
            single_batch(memoryview(wrong))
    for wrong in (patched(good, ">i", 8, 10), patched(good, ">b", 16, 3), good + bytes(20)):
        with pytest.raises(CorruptBatch):
            single_batch(memoryview(wrong))


@given(st.binary(max_size=80))
def test_any_bytes_are_a_batch_or_an_error(data: bytes) -> None:
    try:
        size = batch_size(data)
    except CorruptBatch:
        return
    assert size is None or 17 <= size <= len(data) or size <= len(data)
    if len(data) < 61:
        with pytest.raises(CorruptBatch):
            parse(data)


@given(st.integers(0, MAX_SEQUENCE), st.integers(0, 2**31))
def test_sequences_wrap(sequence: int, records: int) -> None:
    assert sequence_after(sequence, records) == (sequence + records) % (1 << 31)
    assert sequence_after(-1, records) == -1
