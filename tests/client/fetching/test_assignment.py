"""What a reader reads, and how far it is: without I/O."""

from __future__ import annotations

from typing import Any

import pytest

from leafcuttr.client.fetching.assignment import MISSES, Assignment, Wanted
from leafcuttr.client.leaders import Led
from leafcuttr.errors import (
    CorruptMessage,
    ErrorCode,
    OffsetOutOfRange,
    TopicAuthorizationFailed,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from leafcuttr.wire.messages.fetch import AbortedTransaction, PartitionData
from leafcuttr.wire.records import Record, encode_batch
from leafcuttr_sdk.records import AbortedRange
from leafcuttr_sdk.types import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
ID = b"\1" * 16


def data(base: int = 0, count: int = 1, *, epoch: int = 0, **more: Any) -> PartitionData:
    records = [Record(base + number, 1, None, b"v") for number in range(count)]
    batch = encode_batch(records, base_offset=base, partition_leader_epoch=epoch) if count else b""
    fields = {"error_code": 0, "high_watermark": 100, "last_stable_offset": 50, "log_start_offset": 3, **more}
    return PartitionData(partition_index=0, records=memoryview(bytes(batch)), **fields)


def refused(code: ErrorCode) -> PartitionData:
    return data(count=0, error_code=int(code))


def reading(*tps: TopicPartition, committed: bool = True, at: int = 0) -> Assignment:
    """All led by broker 1, in epoch 0."""
    made = Assignment(committed=committed)
    made.assign(dict.fromkeys(tps, at))
    for tp in tps:
        made.learn(tp, Led(1, 0, ID))
    return made


def wanted(of: Assignment, node: int = 1) -> list[Wanted]:
    found = of.to_fetch(node)
    assert found is not None
    return found


def test_what_was_found_is_handed_out_and_the_next_fetch_goes_on_behind_it() -> None:
    one = reading(A)
    (fetch,) = wanted(one)
    assert fetch[:4] == (A, ID, 0, 0)
    assert one.found(fetch, data(0, 2))
    assert one.to_fetch(1) is None  # not before that is handed out
    (read,) = one.take()
    assert (read.partition, read.next_offset, read.high_watermark, read.log_start_offset) == (A, 2, 50, 3)
    assert one.take() == []
    assert wanted(one)[0].offset == 2


def test_without_isolation_the_high_watermark_counts() -> None:
    one = reading(A, committed=False)
    one.found(wanted(one)[0], data(aborted_transactions=[AbortedTransaction(producer_id=1, first_offset=0)]))
    (read,) = one.take()
    assert (read.high_watermark, list(read.aborted)) == (100, [])


def test_aborted_transactions_are_named() -> None:
    one = reading(A)
    one.found(wanted(one)[0], data(aborted_transactions=[AbortedTransaction(producer_id=1, first_offset=0)]))
    assert list(one.take()[0].aborted) == [AbortedRange(1, 0, 0)]


def test_nothing_found_is_nothing_handed_out() -> None:
    one = reading(A)
    assert one.found(wanted(one)[0], data(count=0))
    assert one.take() == []
    assert wanted(one)[0].offset == 0


def test_no_fetch_goes_out_that_leaves_out_what_is_about_to_be_handed_out() -> None:
    """The next one of that partition would wait behind it at the broker."""
    one = reading(A, B)
    both = {each.partition: each for each in wanted(one)}
    one.found(both[A], data())
    assert one.to_fetch(1) is None
    one.take()
    assert len(wanted(one)) == 2


def test_each_partition_comes_first_in_its_turn() -> None:
    one = reading(A, B)
    firsts = [wanted(one)[0].partition for _ in range(4)]
    assert sorted(firsts) == [A, A, B, B]


def test_one_leader_at_a_time() -> None:
    one = reading(A, B)
    one.learn(B, Led(2, 0, ID))
    assert [each.partition for each in wanted(one, 1)] == [A]
    assert [each.partition for each in wanted(one, 2)] == [B]
    assert one.nodes() == {1, 2}
    assert one.to_fetch(3) is None


def test_paused_ones_are_not_fetched_and_hold_up_nothing() -> None:
    one = reading(A, B)
    both = {each.partition: each for each in wanted(one)}
    one.found(both[A], data())
    one.pause([A], paused=True)
    assert one.take() == []
    assert [each.partition for each in wanted(one)] == [B]
    assert one.leaves_some(1, 1)
    one.pause([A], paused=False)
    assert [read.partition for read in one.take()] == [A]
    assert not one.leaves_some(1, 2)


def test_what_comes_for_an_earlier_assignment_is_dropped() -> None:
    one = reading(A)
    (before,) = wanted(one)
    one.assign({A: 7})
    one.found(before, data(0, 10))
    assert one.take() == []
    assert wanted(one)[0].offset == 7
    one.unassign([A])
    one.found(before, data(0, 3))
    assert one.take() == []
    assert one.nodes() == set()


def test_what_was_found_and_not_handed_out_is_dropped_when_it_is_assigned_anew() -> None:
    one = reading(A)
    one.found(wanted(one)[0], data(0, 3))
    one.assign({A: 1})
    assert one.take() == []
    assert wanted(one)[0].offset == 1


@pytest.mark.parametrize(
    "code",
    [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_TOPIC_ID],
)
def test_what_says_that_it_is_led_elsewhere(code: ErrorCode) -> None:
    one = reading(A)
    assert one.found(wanted(one)[0], refused(code))
    assert one.leaderless() == {A}
    assert one.take() == []


@pytest.mark.parametrize("code", [ErrorCode.OFFSET_NOT_AVAILABLE, ErrorCode.UNKNOWN_SERVER_ERROR])
def test_what_passes_is_tried_again_after_a_pause(code: ErrorCode) -> None:
    one = reading(A)
    assert not one.found(wanted(one)[0], refused(code))
    assert wanted(one)


def test_what_does_not_pass_is_an_error_once() -> None:
    one = reading(A, at=9)
    one.found(wanted(one)[0], refused(ErrorCode.OFFSET_OUT_OF_RANGE))
    (read,) = one.take()
    assert isinstance(read.error, OffsetOutOfRange)
    assert str(read.error) == "t-0 at offset 9"
    assert (read.data, read.next_offset) == (b"", 9)
    assert one.take() == []
    assert one.to_fetch(1) is None
    assert one.leaderless() == set()
    assert one.nodes() == set()
    one.assign({A: 0})
    assert one.leaderless() == {A}


def test_damage_is_an_error() -> None:
    one = reading(A)
    broken = bytearray(data(0).records)  # type: ignore[arg-type]
    broken[16] = 9
    found = PartitionData(partition_index=0, error_code=0, high_watermark=1, records=memoryview(broken))
    assert one.found(wanted(one)[0], found)
    assert isinstance(one.take()[0].error, CorruptMessage)


def test_a_lost_connection_sends_all_of_it_to_the_metadata() -> None:
    one = reading(A, B)
    one.learn(B, Led(2, 0, ID))
    one.lost(1)
    assert one.leaderless() == {A}


def test_a_topic_that_the_metadata_does_not_have_is_deleted_after_some_looks() -> None:
    one = reading(A)
    one.lost(1)
    for _ in range(MISSES - 1):
        one.missed(A, UnknownTopicOrPartition("gone"), for_good=False)
        assert one.take() == []
    one.learn(A, Led(1, 0, ID))
    one.lost(1)
    for _ in range(MISSES):
        one.missed(A, UnknownTopicOrPartition("gone"), for_good=False)
    assert isinstance(one.take()[0].error, UnknownTopicOrPartition)
    other = reading(B)
    other.missed(B, TopicAuthorizationFailed("no"), for_good=True)
    assert isinstance(other.take()[0].error, TopicAuthorizationFailed)


def test_a_topic_with_another_id_was_created_anew() -> None:
    one = reading(A)
    one.found(wanted(one)[0], data())
    one.lost(1)
    one.learn(A, Led(1, 0, b"\2" * 16))
    (read,) = one.take()  # behind what was found before
    assert read.data
    assert isinstance(read.error, UnknownTopicId)
    one.assign({A: 0})
    one.learn(A, Led(1, 0, b"\2" * 16))
    assert wanted(one)[0].topic_id == b"\2" * 16


def test_a_new_leader_confirms_the_epoch_of_what_was_read() -> None:
    one = reading(A)
    one.found(wanted(one)[0], data(0, 5, epoch=0))
    one.take()
    one.lost(1)
    one.learn(A, Led(2, 3, ID))
    assert one.to_fetch(2) is None
    (asked,) = one.unconfirmed()
    assert asked[:4] == (A, 2, 3, 0)
    one.confirm(asked, 0, 5)
    assert one.unconfirmed() == []
    assert wanted(one, 2)[0].leader_epoch == 3


@pytest.mark.parametrize(
    ("end", "says"), [((0, 3), "now epoch 0 ends at offset 3"), ((-1, -1), "unknown there")]
)
def test_a_new_leader_without_what_was_read(end: tuple[int, int], says: str) -> None:
    one = reading(A)
    one.found(wanted(one)[0], data(0, 5, epoch=0))
    one.take()
    one.lost(1)
    one.learn(A, Led(2, 3, ID))
    one.confirm(one.unconfirmed()[0], *end)
    (read,) = one.take()
    assert isinstance(read.error, OffsetOutOfRange)
    assert f"offset 5 was read of leader epoch 0, {says}"[-len(says) :] in str(read.error)
    assert one.unconfirmed() == []


def test_a_leader_of_the_same_epoch_needs_to_confirm_nothing() -> None:
    one = reading(A)
    one.found(wanted(one)[0], data(0, 5, epoch=3))
    one.take()
    one.lost(1)
    one.learn(A, Led(2, 3, ID))
    assert one.unconfirmed() == []
    one.learn(A, Led(2, -1, ID))  # a cluster without epochs
    assert one.unconfirmed() == []


def test_a_look_at_what_is_known_changes_nothing() -> None:
    one = reading(A, B)
    one.found({each.partition: each for each in wanted(one)}[A], data(0, 5))
    one.take()
    one.learn(A, Led(1, 3, ID))
    (asked,) = one.unconfirmed()
    one.learn(A, Led(1, 3, ID))
    assert one.unconfirmed() == [asked]
    one.confirm(asked, 0, 5)
    one.learn(A, Led(1, 3, ID))
    assert one.unconfirmed() == []
    one.missed(B, UnknownTopicOrPartition("gone"), for_good=False)
    assert one.leaderless() == {B}
    assert one.readable() == {A, B}
    one.missed(B, UnknownTopicOrPartition("gone"), for_good=True)
    assert one.readable() == {A}


def test_one_that_is_no_leader_any_more_cannot_confirm() -> None:
    one = reading(A)
    one.found(wanted(one)[0], data(0, 5))
    one.take()
    one.lost(1)
    one.learn(A, Led(2, 3, ID))
    one.forget(one.unconfirmed()[0])
    assert one.leaderless() == {A}
