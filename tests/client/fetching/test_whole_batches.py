"""What an answer holds of one partition."""

from __future__ import annotations

import pytest
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from leafcuttr.client.fetching.whole_batches import aborted_ranges, whole_batches
from leafcuttr.wire.batch import parse
from leafcuttr.wire.errors import WireError
from leafcuttr.wire.markers import Marker, encode_marker
from leafcuttr.wire.records import Record, encode_batch
from leafcuttr_sdk.batches import batches_in
from leafcuttr_sdk.records import AbortedRange


def batch(
    base: int, count: int = 1, *, epoch: int = 0, producer: int = -1, last: int | None = None
) -> bytearray:
    records = [Record(base + number, 1, None, b"v%d" % number) for number in range(count)]
    return encode_batch(
        records, base_offset=base, partition_leader_epoch=epoch, producer_id=producer,
        producer_epoch=0 if producer >= 0 else -1, base_sequence=0 if producer >= 0 else -1,
        transactional=producer >= 0, last_offset_delta=last,
    )  # fmt: skip


def marker(base: int, producer: int, *, commit: bool) -> bytearray:
    made = encode_marker(producer, 0, Marker(commit, 0), timestamp=1)
    made[:8] = base.to_bytes(8, "big")
    return made


def legacy(base: int, magic: int = 1) -> bytearray:
    builder = LegacyRecordBatchBuilder(magic, 0, 1 << 20)
    for offset in (base, base + 1):
        builder.append(offset, timestamp=5, key=None, value=b"old")
    return bytearray(builder.build())


def test_the_last_batch_that_is_not_whole_is_left() -> None:
    first, second = batch(5, 2, epoch=3), batch(7, 3, epoch=4)
    data = first + second
    for cut in range(len(first), len(data)):
        found = whole_batches(memoryview(data)[:cut], 5)
        assert (bytes(found.data), found.next_offset, found.leader_epoch) == (first, 7, 3)
    found = whole_batches(memoryview(data), 5)
    assert (bytes(found.data), found.next_offset, found.leader_epoch) == (data, 10, 4)
    assert isinstance(found.data, memoryview)
    assert found.data.obj is data
    for cut in range(len(first)):
        assert whole_batches(memoryview(data)[:cut], 5) == (b"", 5, -1)


def test_records_that_compaction_removed_at_the_end_of_a_batch_are_passed() -> None:
    assert whole_batches(memoryview(batch(5, 1, last=9)), 5).next_offset == 15


def test_the_position_never_goes_back() -> None:
    assert whole_batches(memoryview(batch(5)), 9).next_offset == 9


@pytest.mark.parametrize("magic", [0, 1])
def test_older_formats_are_converted_and_may_be_mixed_with_the_new_one(magic: int) -> None:
    data = legacy(0, magic) + batch(2, 2, epoch=1) + legacy(4, magic) + batch(6, epoch=2)
    found = whole_batches(memoryview(data), 0)
    assert (found.next_offset, found.leader_epoch) == (7, 2)
    assert [(each.header.base_offset, each.header.count) for each in batches_in(found.data)] == [
        (0, 2), (2, 2), (4, 2), (6, 1)
    ]  # fmt: skip
    for each in batches_in(found.data):
        each.check()
    cut = whole_batches(memoryview(data)[:-1], 0)
    assert (cut.next_offset, cut.leader_epoch) == (6, -1)
    only = whole_batches(memoryview(legacy(8, magic)), 8)
    assert (only.next_offset, only.leader_epoch) == (10, -1)
    first_whole = whole_batches(memoryview(batch(2, epoch=3) + legacy(3, magic)[:-60]), 2)
    assert (first_whole.next_offset, first_whole.leader_epoch) == (3, 3)


def test_offsets_that_no_request_can_have() -> None:
    data = batch(0, 2)
    data[:8] = (2**63 - 2).to_bytes(8, "big")
    with pytest.raises(WireError):
        whole_batches(memoryview(data), 0)
    data[:8] = (2**63 - 3).to_bytes(8, "big")
    assert whole_batches(memoryview(data), 0).next_offset == 2**63 - 1


@pytest.mark.parametrize("place", [8, 16, 23])
def test_bytes_that_are_no_batch(place: int) -> None:
    data = batch(0)
    data[place] = 0xF0
    with pytest.raises(WireError):
        whole_batches(memoryview(data), 0)
    if place != 23:  # a length is not judged before it is whole
        for before in (batch(0), legacy(0)):
            found = whole_batches(memoryview(before + data), 0)
            assert found.next_offset == parse(found.data).last_offset + 1
            assert len(list(batches_in(found.data))) == 1


def test_no_number_of_random_bytes_does_more_than_raise() -> None:
    import random

    data = legacy(0) + batch(2, 2) + marker(4, 3, commit=False)
    for seed in range(3000):
        chosen = random.Random(seed)
        broken = bytearray(data)
        for _ in range(chosen.randint(1, 6)):
            broken[chosen.randrange(len(broken))] = chosen.randrange(256)
        try:
            found = whole_batches(memoryview(broken), 0)
            aborted_ranges([(3, 0)], found.data, found.next_offset)
        except WireError:
            pass


def test_an_aborted_transaction_ends_with_its_marker() -> None:
    data = (
        batch(0, producer=1) + batch(1, producer=2) + marker(2, 1, commit=False) + batch(3, producer=1)
        + marker(4, 1, commit=True) + batch(5, producer=1) + marker(6, 1, commit=False) + marker(7, 2, commit=False)
    )  # fmt: skip
    assert aborted_ranges([(2, 1), (1, 0), (1, 5)], data, 8) == [
        AbortedRange(1, 0, 2), AbortedRange(1, 5, 6), AbortedRange(2, 1, 7)
    ]  # fmt: skip
    assert aborted_ranges([], data, 8) == []
    found = [each for each in batches_in(data) if not each.header.is_control]
    ranges = aborted_ranges([(2, 1), (1, 0), (1, 5)], data, 8)
    assert [each.header.base_offset for each in found if not each.is_aborted(ranges)] == [3]


def test_one_whose_marker_is_not_there_lasts_to_the_end() -> None:
    data = marker(3, 1, commit=True) + batch(4, producer=1) + batch(5)
    assert aborted_ranges([(1, 4)], data, 6) == [AbortedRange(1, 4, 5)]


def test_one_that_began_before_the_answer() -> None:
    data = batch(10, producer=1) + marker(11, 1, commit=False) + batch(12, producer=1)
    assert aborted_ranges([(1, 2)], data, 13) == [AbortedRange(1, 2, 11)]


def test_a_commit_marker_s_header_is_what_parse_reads() -> None:
    assert parse(marker(3, 1, commit=True)).is_control
