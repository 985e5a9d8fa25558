"""Records as batches."""

from __future__ import annotations

import pytest

from leafcuttr.client.producing.records import build, choose
from leafcuttr.errors import InvalidRecord, MessageTooLarge, UnknownTopicOrPartition
from leafcuttr_sdk.batches import Sticky, batches_in, partition_of
from leafcuttr_sdk.records import Record


def test_keys_decide_and_numbers_win() -> None:
    records = [Record(b"v", b"key"), Record(b"v", b"key"), Record(b"v")]
    sticky = Sticky()
    chosen = choose("t", records, [None, 2, None], 3, sticky)
    assert chosen == [partition_of(b"key", 3), 2, sticky.partition]


def test_a_partition_that_does_not_exist() -> None:
    with pytest.raises(UnknownTopicOrPartition, match="no partition 3") as raised:
        choose("t", [Record(b"a"), Record(b"b")], [0, 3], 3, Sticky())
    assert [each.batch_index for each in raised.value.record_errors] == [1]
    with pytest.raises(ValueError, match="1 partitions for 2 records"):
        choose("t", [Record(b"a"), Record(b"b")], [0], 3, Sticky())


def test_batches_keep_the_order_of_a_partition_and_know_their_places() -> None:
    records = [Record(b"x%d" % number, None, (("h", b"1"),), number or None) for number in range(6)]
    built = build(records, [1, 0, 1, 0, 1, 1], now_ms=77, max_bytes=100)
    assert [each.partition for each in built] == [1, 1, 0]
    found: dict[int, tuple[int, bytes, int]] = {}
    for each in built:
        assert len(each.batch) <= 100
        (batch,) = batches_in(each.batch)
        batch.check()
        for place, record in zip(each.places, batch.records(), strict=True):
            assert record.headers() == (("h", b"1"),)
            found[place] = each.partition, bytes(record.value or b""), record.timestamp
    assert [found[place] for place in range(6)] == [
        (partition, b"x%d" % number, number or 77) for number, partition in enumerate([1, 0, 1, 0, 1, 1])
    ]
    assert [each.places for each in built if each.partition == 1] == [
        sorted(each.places) for each in built if each.partition == 1
    ]


def test_a_record_that_fits_into_no_batch() -> None:
    with pytest.raises(MessageTooLarge) as raised:
        build([Record(b"a"), Record(b"b" * 200)], [0, 0], now_ms=1, max_bytes=150)
    assert [each.batch_index for each in raised.value.record_errors] == [1]


def test_a_header_without_utf_8() -> None:
    with pytest.raises(InvalidRecord) as raised:
        build([Record(b"a", None, (("\ud800", b""),))], [0], now_ms=1, max_bytes=150)
    assert [each.batch_index for each in raised.value.record_errors] == [0]
