"""The table of producers rule by rule: what may follow what, what is open, what is remembered and what is forgotten."""

from typing import Any

import pytest

from leafcuttr.errors import (
    BrokerError,
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequence,
    TransactionCoordinatorFenced,
)
from leafcuttr.log.producers.state import BatchMetadata, ProducerEntry, ProducerStateTable, entry_after
from leafcuttr.log.segment.txn_index import AbortedTransaction
from leafcuttr.wire.batch import MAX_SEQUENCE, BatchHeader, parse
from leafcuttr.wire.markers import Marker, encode_marker
from support.logs import NOW, batch

LAST_EPOCH = 2**15 - 1


def header(
    sequence: int, *, count: int = 1, producer_id: int = 1, epoch: int = 0, offset: int = 0, **fields: Any
) -> BatchHeader:
    data = batch(count, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, **fields)
    return parse(data)._replace(base_offset=offset)


def marker_at(offset: int, *, producer_id: int = 1, epoch: int = 0) -> BatchHeader:
    return parse(encode_marker(producer_id, epoch, Marker(False, 0), timestamp=NOW))._replace(
        base_offset=offset
    )


def entry(
    producer_id: int = 1,
    *,
    epoch: int = 0,
    batches: tuple[BatchMetadata, ...] = (BatchMetadata(0, 9, 9, 9, NOW),),
    timestamp: int = NOW,
    coordinator: int = -1,
    began: int = -1,
) -> ProducerEntry:
    return ProducerEntry(producer_id, epoch, batches, timestamp, coordinator, began)


def ending(sequence: int) -> tuple[BatchMetadata, ...]:
    return (BatchMetadata(sequence, sequence, 9, 0, NOW),)


def verdict(table: ProducerStateTable, of: BatchHeader) -> type[BrokerError] | None:
    try:
        table.check(of)
    except BrokerError as error:
        return type(error)
    return None


# What may follow


@pytest.mark.parametrize(
    ("last", "sequence", "refused"),
    [
        (-1, 0, None), (-1, 1, OutOfOrderSequence),
        (0, 1, None), (0, 0, OutOfOrderSequence), (0, 2, OutOfOrderSequence),
        (7, 8, None), (7, 7, OutOfOrderSequence), (7, 0, OutOfOrderSequence), (7, -1, None),
        (MAX_SEQUENCE, 0, None), (MAX_SEQUENCE, 1, OutOfOrderSequence),
    ],
)  # fmt: skip
def test_the_sequence_that_comes_next(last: int, sequence: int, refused: type[BrokerError] | None) -> None:
    """-1 is what coordinators write, who have no sequence."""
    table = ProducerStateTable([entry(batches=ending(last))])
    assert verdict(table, header(sequence)) is refused
    if last >= 0 and sequence >= 0:
        assert table.follows(1, 0, sequence) is (refused is None)


@pytest.mark.parametrize("sequence", [0, 1, 5])
def test_a_new_epoch_begins_at_0(sequence: int) -> None:
    table = ProducerStateTable([entry(epoch=3, batches=ending(4))])
    assert verdict(table, header(sequence, epoch=4)) is (OutOfOrderSequence if sequence else None)
    assert verdict(table, header(5, epoch=2)) is InvalidProducerEpoch
    assert not table.follows(1, 4, 5)
    assert not table.follows(1, 2, 5)


def test_of_whom_nothing_is_known_anything_follows() -> None:
    table = ProducerStateTable()
    assert verdict(table, header(77, epoch=5)) is None
    assert not table.follows(1, 5, 77)
    assert table.duplicate_of(header(77)) is None
    assert table.ongoing(1) == -1


def test_an_entry_without_an_epoch_questions_no_sequence() -> None:
    table = ProducerStateTable([entry(epoch=-1)])
    assert verdict(table, header(77)) is None


def test_an_entry_without_batches_is_followed_by_0_and_not_by_the_short_way() -> None:
    table = ProducerStateTable([entry(batches=())])
    assert (entry(batches=()).last_sequence, entry(batches=()).last_offset) == (-1, -1)
    assert verdict(table, header(0)) is None
    assert verdict(table, header(1)) is OutOfOrderSequence
    assert not table.follows(1, 0, 0)


@pytest.mark.parametrize("began", [0, 5])
def test_while_a_transaction_is_open_a_plain_batch_is_refused(began: int) -> None:
    """Also where it began with the first record of the log."""
    table = ProducerStateTable([entry(began=began)])
    assert verdict(table, header(10)) is InvalidTxnState
    assert verdict(table, header(10, transactional=True)) is None
    assert not table.follows(1, 0, 10)
    assert table.follows(1, 0, 10, True)


def test_staged_counts_before_published() -> None:
    table = ProducerStateTable([entry()])
    staged = table.stage(1, 0, 10, 1, NOW, 10, True)
    assert verdict(table, header(12, transactional=True)) is None
    assert verdict(table, header(10, transactional=True)) is OutOfOrderSequence
    assert table.follows(1, 0, 12, True)
    assert table.duplicate_of(header(10, count=2)) == BatchMetadata(10, 11, 11, 1, NOW)
    assert (table.ongoing(1), table.first_unstable, table.get(1)) == (10, -1, entry())
    table.forget_staged()
    assert table.ongoing(1) == -1
    table.publish(staged)
    assert (table.ongoing(1), table.first_unstable, table.get(1)) == (10, 10, staged)


def test_publishing_an_older_entry_leaves_what_is_staged_behind_it() -> None:
    table = ProducerStateTable()
    first, second = table.stage(1, 0, 0, 0, NOW, 0), table.stage(1, 0, 1, 0, NOW, 1)
    table.publish(first)
    assert table.follows(1, 0, 2)
    table.publish(second)
    table.forget_staged()
    assert table.follows(1, 0, 2)
    assert table.expire(NOW + 10, 10) == 1, "nothing is staged any more"


@pytest.mark.parametrize(
    ("sequence", "count", "epoch", "found"),
    [(0, 10, 0, True), (0, 9, 0, False), (1, 9, 0, False), (0, 10, 1, False), (-1, 1, 0, False)],
)
def test_a_duplicate_has_the_same_first_and_last_sequence(
    sequence: int, count: int, epoch: int, found: bool
) -> None:
    batches = (BatchMetadata(0, 9, 9, 9, NOW), BatchMetadata(-1, -1, 10, 0, NOW))
    table = ProducerStateTable([entry(batches=batches)])
    assert (table.duplicate_of(header(sequence, count=count, epoch=epoch)) is not None) is found


# What is remembered


def test_an_entry_after_a_batch() -> None:
    first = entry_after(None, 1, 2, 5, 2, NOW, 100)
    assert first == ProducerEntry(1, 2, (BatchMetadata(5, 7, 102, 2, NOW),), NOW, -1, -1)
    assert first.batches[0].base_offset == 100
    known = first._replace(coordinator_epoch=9)
    second = entry_after(known, 1, 2, 8, 0, NOW + 1, 200, True)
    assert second.batches == (*first.batches, BatchMetadata(8, 8, 200, 0, NOW + 1))
    assert (second.last_timestamp, second.coordinator_epoch) == (NOW + 1, 9)
    assert second.current_txn_first_offset == 200
    third = entry_after(second, 1, 2, 9, 0, NOW, 300, True)
    assert third.current_txn_first_offset == 200, "it goes on"
    assert entry_after(second, 1, 3, 0, 0, NOW, 300).batches == (BatchMetadata(0, 0, 300, 0, NOW),)
    for number in range(10):
        third = entry_after(third, 1, 2, 10 + number, 0, NOW, 400 + number, True)
    assert [each.last_offset for each in third.batches] == [405, 406, 407, 408, 409]
    assert (
        entry_after(second._replace(current_txn_first_offset=0), 1, 2, 9, 0, NOW, 7).current_txn_first_offset
        == 0
    )


def test_a_sequence_goes_on_at_0_behind_the_last() -> None:
    after = entry_after(None, 1, 0, MAX_SEQUENCE - 1, 3, NOW, 0)
    assert (after.batches[0].first_sequence, after.last_sequence) == (MAX_SEQUENCE - 1, 1)


def test_a_table_of_entries_knows_what_is_open() -> None:
    table = ProducerStateTable([entry(1, began=50), entry(2), entry(3, began=0), entry(4, began=20)])
    assert (table.first_unstable, table.ongoing(1), table.ongoing(2)) == (0, 50, -1)
    assert (table.ongoing(3, 0), table.ongoing(3, 1), len(table)) == (0, -1, 4)
    assert table.aborted(4, 70) == AbortedTransaction(4, 20, 70, 0)
    assert table.aborted(3, 70) == AbortedTransaction(3, 0, 70, 20)
    assert table.aborted(2, 70) is None
    assert ProducerStateTable([entry(1), entry(2)]).first_unstable == -1
    assert ProducerStateTable().first_unstable == -1
    assert ProducerStateTable([entry(1, began=5)]).aborted(1, 70) == AbortedTransaction(1, 5, 70, 71)


def test_a_table_comes_back_from_its_dump() -> None:
    table = ProducerStateTable([entry(7, epoch=3, timestamp=5, coordinator=9, began=4), entry(8, batches=())])
    again = ProducerStateTable.from_dump(table.dump())
    assert list(again) == list(table)
    assert again.first_unstable == 4


def test_a_table_that_takes_the_place_of_another() -> None:
    table = ProducerStateTable([entry(1, began=5)])
    table.stage(2, 0, 0, 0, NOW, 6)
    other = ProducerStateTable([entry(3, began=9)])
    table.replace(other)
    assert ([each.producer_id for each in table], table.first_unstable) == ([3], 9)
    assert not table.follows(2, 0, 1)
    table.publish(table.stage(4, 0, 0, 0, NOW, 10))
    assert len(other) == 1


def test_transactions_end_in_any_order() -> None:
    table = ProducerStateTable()
    for producer_id, offset in ((1, 0), (2, 1), (3, 2), (1, 3)):
        table.publish(table.stage(producer_id, 0, offset, 0, NOW, offset, True))
    table.publish(table.stage(9, 0, 0, 0, NOW, 4))
    seen = [table.first_unstable]
    for producer_id in (2, 1, 3):
        table.publish(table.stage_marker(producer_id, 0, 0, NOW))
        seen.append(table.first_unstable)
    assert seen == [0, 0, 2, -1]


def test_what_is_left_after_a_marker() -> None:
    table = ProducerStateTable([entry(1, coordinator=2, began=5)])
    table.publish(table.stage_marker(1, 0, 3, NOW + 1))
    assert table.get(1) == entry(1, coordinator=3, timestamp=NOW + 1)
    table.publish(table.stage_marker(1, 1, 3, NOW + 2))
    assert table.get(1) == entry(1, epoch=1, batches=(), coordinator=3, timestamp=NOW + 2)
    table.publish(table.stage_marker(8, 4, 0, NOW))
    assert table.get(8) == entry(8, epoch=4, batches=(), coordinator=0)


@pytest.mark.parametrize(
    ("silent_ms", "began", "staged", "gone"),
    [
        (999, -1, False, 0),
        (1000, -1, False, 1),
        (9999, 0, False, 0),
        (9999, 5, False, 0),
        (9999, -1, True, 0),
    ],
)
def test_who_is_forgotten(silent_ms: int, began: int, staged: bool, gone: int) -> None:
    table = ProducerStateTable([entry(1, began=began), entry(2, timestamp=NOW + silent_ms)])
    if staged:
        table.stage(1, 0, 10, 0, NOW, 10)
    assert table.expire(NOW + silent_ms, 1000) == gone
    assert [each.producer_id for each in table] == [1, 2][gone:]


# Markers


@pytest.mark.parametrize(
    ("known", "began", "epoch", "coordinator", "version", "refused"),
    [
        (5, 0, 5, 7, 1, None),
        (5, 0, 6, 7, 1, None),
        (5, 0, 4, 7, 1, InvalidProducerEpoch),
        (5, 0, 5, 6, 1, TransactionCoordinatorFenced),
        (5, 0, 5, 8, 1, None),
        (5, 0, 6, 7, 2, None),
        (5, 0, 5, 7, 2, InvalidProducerEpoch),
        (5, 0, 4, 7, 2, InvalidProducerEpoch),
        (5, -1, 5, 7, 2, None),
        (5, -1, 4, 7, 2, InvalidProducerEpoch),
        (5, -1, 5, 6, 2, TransactionCoordinatorFenced),
        (LAST_EPOCH, 0, LAST_EPOCH, 7, 2, None),
        (LAST_EPOCH, 0, LAST_EPOCH - 1, 7, 2, InvalidProducerEpoch),
    ],
)
def test_which_marker_may_follow(
    known: int, began: int, epoch: int, coordinator: int, version: int, refused: type[BrokerError] | None
) -> None:
    table = ProducerStateTable([entry(1, epoch=known, coordinator=7, began=began)])
    if refused is None:
        table.check_marker(1, epoch, coordinator, version)
    else:
        with pytest.raises(refused):
            table.check_marker(1, epoch, coordinator, version)
    table.check_marker(2, 0, 0, version)  # of whom nothing is known


# What recovery finds


def test_what_is_in_the_log_is_not_questioned() -> None:
    table = ProducerStateTable([entry(1, epoch=5)])
    assert table.replay(header(77, count=2, epoch=5, offset=100)) is None
    found = table.get(1)
    assert found is not None
    assert found.batches[-1] == BatchMetadata(77, 78, 101, 1, NOW)
    assert table.replay(header(3, epoch=1, offset=102)) is None
    assert table.get(1) == entry(1, epoch=1, batches=(BatchMetadata(3, 3, 102, 0, NOW),))


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_that_recovery_finds(commit: bool) -> None:
    table = ProducerStateTable()
    table.replay(header(0, offset=0, transactional=True))
    table.replay(header(0, offset=1, producer_id=2, transactional=True))
    assert table.first_unstable == 0
    aborted = table.replay(marker_at(2), Marker(commit, 6))
    assert aborted == (None if commit else AbortedTransaction(1, 0, 2, 1))
    assert table.first_unstable == 1
    found = table.get(1)
    assert found is not None
    assert (found.coordinator_epoch, found.last_sequence, found.current_txn_first_offset) == (6, 0, -1)


def test_what_is_of_no_producer_or_no_marker_leaves_the_table_alone() -> None:
    table = ProducerStateTable([entry(1, began=5)])
    assert table.replay(header(-1, producer_id=-1)) is None
    assert table.replay(marker_at(7)) is None
    assert list(table) == [entry(1, began=5)]


@pytest.mark.parametrize(
    ("known", "count", "timestamp", "expected"),
    [(True, 0, -1, NOW), (True, 1, -1, -1), (True, 0, 5, 5), (False, 0, -1, -1)],
)
def test_a_batch_of_which_a_filter_has_left_nothing_keeps_the_time(
    known: bool, count: int, timestamp: int, expected: int
) -> None:
    table = ProducerStateTable([entry(1)] if known else [])
    table.replay(header(10)._replace(count=count, max_timestamp=timestamp))
    found = table.get(1)
    assert found is not None
    assert found.last_timestamp == expected
