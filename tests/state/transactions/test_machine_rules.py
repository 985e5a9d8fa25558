"""The machine of a transactional id, rule by rule: for each request and state the error, or all of what is written."""

from __future__ import annotations

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.state.transactions.machine import (
    LAST_EPOCH,
    NO_EPOCH,
    NO_ID,
    NO_TIME,
    Decision,
    Snapshot,
    Transaction,
)
from leafcuttr.state.transactions.states import TransactionState
from leafcuttr_sdk import TopicPartition

P0, P1, P2 = (TopicPartition("t", number) for number in range(3))
NONE, CONCURRENT = ErrorCode.NONE, ErrorCode.CONCURRENT_TRANSACTIONS
FENCED, MAPPING = ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING
INVALID, ABORTABLE = ErrorCode.INVALID_TXN_STATE, ErrorCode.TRANSACTION_ABORTABLE

BASE = Snapshot(
    producer_id=7, epoch=3, state=TransactionState.EMPTY, timeout_ms=1000, partitions=frozenset(), updated_ms=20,
    started_ms=10, previous_id=6, next_id=NO_ID, last_epoch=2, version=1,
)  # fmt: skip


def at(
    state: TransactionState = TransactionState.EMPTY, *, floor: int = NO_EPOCH, **fields: object
) -> Transaction:
    """A transactional id in this state; in one with a transaction it has two partitions."""
    partitions = frozenset() if state is TransactionState.EMPTY else frozenset({P0, P1})
    transaction = Transaction("id", BASE._replace(state=state, partitions=partitions)._replace(**fields))
    transaction.epoch_floor = floor
    return transaction


def busy(transaction: Transaction) -> Transaction:
    transaction._begin(transaction.now._replace(updated_ms=21))
    assert transaction.busy
    return transaction


# InitProducerId


def init(transaction: Transaction, known: tuple[int, int] | None = None, version: int = 2) -> Decision:
    return transaction.init(2000, known, fresh_id=99, now_ms=50, version=version)


@pytest.mark.parametrize(
    "state", [TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT]
)
@pytest.mark.parametrize(
    ("now", "known", "given"),
    [
        # (producer id, epoch, last epoch) before and after
        ((7, -1, -1), None, (7, 0, -1)),
        ((7, -1, -1), (7, 5), (7, 0, -1)),
        ((7, -1, -1), (8, 5), (7, 0, -1)),
        ((7, 3, 2), None, (7, 4, -1)),
        ((7, 3, 2), (7, 3), (7, 4, 3)),
        ((7, 3, 2), (7, 2), (7, 3, 2)),
        ((7, 3, 2), (7, 1), FENCED),
        ((7, 3, 2), (7, 4), FENCED),
        ((7, 3, 2), (8, 3), FENCED),
        ((7, 3, -1), (7, 2), FENCED),
        ((7, LAST_EPOCH - 1, -1), None, (7, LAST_EPOCH, -1)),
        ((7, LAST_EPOCH - 1, -1), (7, LAST_EPOCH - 1), (7, LAST_EPOCH, LAST_EPOCH - 1)),
        ((7, LAST_EPOCH, -1), None, (99, 0, -1)),
        ((7, LAST_EPOCH, -1), (7, LAST_EPOCH), (99, 0, LAST_EPOCH)),
        ((7, LAST_EPOCH, 5), (7, 5), (7, LAST_EPOCH, 5)),
        ((7, LAST_EPOCH + 1, -1), None, (99, 0, -1)),
        # the producer id before this one, to the end of its epochs: the answer was lost
        ((7, 0, LAST_EPOCH), (6, LAST_EPOCH), (7, 0, LAST_EPOCH)),
        ((7, 0, LAST_EPOCH + 1), (6, LAST_EPOCH + 1), (7, 0, LAST_EPOCH + 1)),
        ((7, 0, LAST_EPOCH - 1), (6, LAST_EPOCH - 1), FENCED),
        ((7, 0, LAST_EPOCH), (5, LAST_EPOCH), FENCED),
    ],
)
def test_which_requests_get_a_producer_id(
    state: TransactionState,
    now: tuple[int, int, int],
    known: tuple[int, int] | None,
    given: tuple[int, int, int] | ErrorCode,
) -> None:
    transaction = at(state, producer_id=now[0], epoch=now[1], last_epoch=now[2])
    decision = init(transaction, known)
    if isinstance(given, ErrorCode):
        assert decision is given
        assert not transaction.busy
        return
    assert decision == Snapshot(
        producer_id=given[0], epoch=given[1], state=TransactionState.EMPTY, timeout_ms=2000, partitions=frozenset(),
        updated_ms=50, started_ms=NO_TIME, previous_id=now[0], next_id=NO_ID, last_epoch=given[2], version=1,
    )  # fmt: skip
    transaction.written()
    assert (transaction.now, transaction.busy) == (decision, False)


@pytest.mark.parametrize("state", [TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT])
def test_while_a_transaction_ends_a_newcomer_waits(state: TransactionState) -> None:
    assert init(at(state)) is CONCURRENT
    assert init(at(state), (7, 3)) is CONCURRENT
    assert init(at(state), (8, 3)) is FENCED


def test_while_something_is_written_everybody_waits() -> None:
    for state in (TransactionState.EMPTY, TransactionState.ONGOING):
        assert init(busy(at(state)), (8, 3)) is CONCURRENT
        assert busy(at(state)).add(8, 9, [P0], 50, 2) is CONCURRENT
        assert end(busy(at(state)), 8, 9, version=2) is CONCURRENT
        assert end(busy(at(state)), version=0) is CONCURRENT
    assert end(busy(at(TransactionState.ONGOING)), 8, version=0) is MAPPING
    assert end(busy(at(TransactionState.ONGOING)), 7, 9, version=0) is FENCED


@pytest.mark.parametrize(("floor", "raised"), [(NO_EPOCH, 4), (2, 4), (3, 4), (9, 10)])
@pytest.mark.parametrize(("version", "last"), [(0, NO_EPOCH), (1, NO_EPOCH), (2, 3), (3, 3)])
def test_a_newcomer_fences_the_transaction_that_goes_on(
    floor: int, raised: int, version: int, last: int
) -> None:
    expected = BASE._replace(
        state=TransactionState.PREPARE_ABORT, partitions=frozenset({P0, P1}), epoch=raised, last_epoch=last,
        previous_id=7, updated_ms=50, version=version,
    )  # fmt: skip
    assert init(at(TransactionState.ONGOING, floor=floor), version=version) == expected
    assert init(at(TransactionState.ONGOING, floor=floor), (7, 3), version=version) == expected
    assert init(at(TransactionState.ONGOING, floor=floor), (8, 3), version=version) is FENCED
    transaction = at(TransactionState.ONGOING, floor=floor)
    assert transaction.fence(50, version) == expected
    assert transaction.busy


def test_an_epoch_that_a_partition_knows_is_passed() -> None:
    decision = init(at(floor=9))
    assert isinstance(decision, Snapshot)
    assert (decision.producer_id, decision.epoch) == (7, 10)
    assert at(floor=LAST_EPOCH).exhausted
    assert not at(floor=LAST_EPOCH - 1).exhausted
    assert at(epoch=LAST_EPOCH).exhausted
    transaction = at(floor=LAST_EPOCH)
    decision = init(transaction)
    assert isinstance(decision, Snapshot)
    assert (decision.producer_id, decision.epoch) == (99, 0)
    transaction.written()
    assert not transaction.exhausted, "it was known of the producer id before"


def test_the_epoch_that_a_partition_knows_holds_as_long_as_the_producer_id() -> None:
    transaction = at(floor=9)
    transaction.add(7, 3, [P0], 50, 2)
    transaction.written()
    assert transaction.epoch_floor == 9


# AddPartitionsToTxn


@pytest.mark.parametrize(
    "state",
    [
        TransactionState.EMPTY,
        TransactionState.ONGOING,
        TransactionState.COMPLETE_COMMIT,
        TransactionState.COMPLETE_ABORT,
    ],
)
def test_partitions_are_added(state: TransactionState) -> None:
    transaction = at(state, partitions=frozenset({P0} if state is TransactionState.ONGOING else ()))
    decision = transaction.add(7, 3, [P1, P2], 50, 2)
    ongoing = state is TransactionState.ONGOING
    assert decision == BASE._replace(
        state=TransactionState.ONGOING, previous_id=7, updated_ms=50, version=2, started_ms=10 if ongoing else 50,
        partitions=frozenset({P0, P1, P2} if ongoing else {P1, P2}),
    )  # fmt: skip


def test_partitions_that_are_in_it_are_not_written_again() -> None:
    assert at(TransactionState.ONGOING).add(7, 3, [P1], 50, 2) is NONE
    assert isinstance(at(TransactionState.ONGOING).add(7, 3, [P1, P2], 50, 2), Snapshot)
    assert isinstance(at(TransactionState.COMPLETE_COMMIT).add(7, 3, [P1], 50, 2), Snapshot)


@pytest.mark.parametrize(
    ("state", "producer_id", "epoch", "error"),
    [
        (TransactionState.EMPTY, 8, 3, MAPPING),
        (TransactionState.EMPTY, 7, 2, FENCED),
        (TransactionState.EMPTY, 7, 4, FENCED),
        (TransactionState.ONGOING, 8, 3, MAPPING),
        (TransactionState.ONGOING, 7, 2, FENCED),
        (TransactionState.PREPARE_COMMIT, 7, 3, CONCURRENT),
        (TransactionState.PREPARE_ABORT, 7, 3, CONCURRENT),
        (TransactionState.PREPARE_ABORT, 7, 4, FENCED),
    ],
)
def test_which_producers_may_not_add_and_whose_records_do_not_belong(
    state: TransactionState, producer_id: int, epoch: int, error: ErrorCode
) -> None:
    assert at(state).add(producer_id, epoch, [P2], 50, 2) is error
    assert at(state).verify(producer_id, epoch, P0) is error


def test_the_last_epoch_may_add_and_the_one_behind_it_not() -> None:
    assert isinstance(at(epoch=LAST_EPOCH).add(7, LAST_EPOCH, [P0], 50, 2), Snapshot)
    assert at(epoch=LAST_EPOCH + 1).add(7, LAST_EPOCH + 1, [P0], 50, 2) is FENCED


def test_records_belong_to_a_transaction_with_their_partition() -> None:
    assert at(TransactionState.ONGOING).verify(7, 3, P1) is NONE
    assert at(TransactionState.ONGOING).verify(7, 3, P2) is ABORTABLE
    assert at().verify(7, 3, P0) is ABORTABLE


# EndTxn


def end(
    transaction: Transaction, producer_id: int = 7, epoch: int = 3, *, commit: bool = True, version: int
) -> Decision:
    return transaction.end(producer_id, epoch, commit=commit, fresh_id=99, now_ms=50, version=version)


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("version", [0, 1, 2, 3])
@pytest.mark.parametrize("epoch", [3, LAST_EPOCH - 1, LAST_EPOCH])
def test_a_transaction_ends(commit: bool, version: int, epoch: int) -> None:
    raises = version >= 2
    decision = end(at(TransactionState.ONGOING, epoch=epoch), 7, epoch, commit=commit, version=version)
    assert decision == BASE._replace(
        state=TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT,
        partitions=frozenset({P0, P1}),
        epoch=epoch + raises, last_epoch=epoch if raises else 2, previous_id=7, updated_ms=50,
        next_id=99 if raises and epoch == LAST_EPOCH else NO_ID, version=version if raises else 0,
    )  # fmt: skip


@pytest.mark.parametrize(
    "state", [TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT]
)
def test_an_abort_without_a_transaction_raises_the_epoch(state: TransactionState) -> None:
    """Of a client that does not know whether it has begun one."""
    transaction = at(state, partitions=frozenset())
    assert end(transaction, commit=False, version=2) == BASE._replace(
        state=TransactionState.PREPARE_ABORT,
        epoch=4,
        last_epoch=3,
        previous_id=7,
        started_ms=50,
        updated_ms=50,
        version=2,
    )


@pytest.mark.parametrize(
    ("state", "producer_id", "epoch", "on_commit", "on_abort"),
    [
        (TransactionState.EMPTY, 7, 3, INVALID, None),
        (TransactionState.EMPTY, 7, 2, FENCED, FENCED),
        (TransactionState.EMPTY, 7, 4, FENCED, FENCED),
        (TransactionState.EMPTY, 8, 3, MAPPING, MAPPING),
        (TransactionState.ONGOING, 7, 2, FENCED, FENCED),
        (TransactionState.ONGOING, 7, 4, FENCED, FENCED),
        (TransactionState.ONGOING, 8, 3, MAPPING, MAPPING),
        (TransactionState.PREPARE_COMMIT, 7, 2, CONCURRENT, INVALID),
        (TransactionState.PREPARE_ABORT, 7, 2, INVALID, CONCURRENT),
        (TransactionState.PREPARE_COMMIT, 7, 3, FENCED, FENCED),
        (TransactionState.PREPARE_COMMIT, 7, 4, FENCED, FENCED),
        (TransactionState.PREPARE_COMMIT, 7, 1, FENCED, FENCED),
        (TransactionState.PREPARE_ABORT, 8, 2, MAPPING, MAPPING),
        (TransactionState.COMPLETE_COMMIT, 7, 2, NONE, INVALID),
        (TransactionState.COMPLETE_ABORT, 7, 2, INVALID, NONE),
        (TransactionState.COMPLETE_COMMIT, 7, 3, INVALID, None),
        (TransactionState.COMPLETE_ABORT, 7, 3, INVALID, None),
        (TransactionState.COMPLETE_COMMIT, 7, 1, FENCED, FENCED),
        (TransactionState.COMPLETE_COMMIT, 7, 4, FENCED, FENCED),
        (TransactionState.COMPLETE_COMMIT, 8, 2, MAPPING, MAPPING),
    ],
)
def test_an_end_that_raises_the_epoch(
    state: TransactionState, producer_id: int, epoch: int, on_commit: ErrorCode, on_abort: ErrorCode | None
) -> None:
    """The producer with the epoch before this one repeats its last request. None: it is taken."""
    assert end(at(state), producer_id, epoch, commit=True, version=2) is on_commit
    aborted = end(at(state), producer_id, epoch, commit=False, version=2)
    assert isinstance(aborted, Snapshot) if on_abort is None else aborted is on_abort


@pytest.mark.parametrize(
    ("state", "now", "producer_id", "epoch", "error"),
    [
        (TransactionState.COMPLETE_COMMIT, 0, 6, LAST_EPOCH, NONE),
        (TransactionState.COMPLETE_ABORT, 0, 6, LAST_EPOCH, INVALID),
        (TransactionState.COMPLETE_COMMIT, 0, 6, LAST_EPOCH - 1, MAPPING),
        (TransactionState.COMPLETE_COMMIT, 0, 5, LAST_EPOCH, MAPPING),
        (TransactionState.COMPLETE_COMMIT, 1, 6, LAST_EPOCH, MAPPING),
        (TransactionState.EMPTY, 0, 6, LAST_EPOCH, FENCED),
        (TransactionState.PREPARE_COMMIT, 0, 6, LAST_EPOCH, FENCED),
    ],
)
def test_an_end_repeated_with_the_producer_id_before(
    state: TransactionState, now: int, producer_id: int, epoch: int, error: ErrorCode
) -> None:
    assert end(at(state, epoch=now), producer_id, epoch, version=2) is error


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize(
    ("state", "on_commit", "on_abort"),
    [
        (TransactionState.EMPTY, INVALID, INVALID),
        (TransactionState.PREPARE_COMMIT, CONCURRENT, INVALID),
        (TransactionState.PREPARE_ABORT, INVALID, CONCURRENT),
        (TransactionState.COMPLETE_COMMIT, NONE, INVALID),
        (TransactionState.COMPLETE_ABORT, INVALID, NONE),
    ],
)
def test_an_end_that_keeps_the_epoch(
    version: int, state: TransactionState, on_commit: ErrorCode, on_abort: ErrorCode
) -> None:
    for commit, expected in ((True, on_commit), (False, on_abort)):
        assert end(at(state), commit=commit, version=version) is expected
        assert end(at(state), 8, commit=commit, version=version) is MAPPING
        assert end(at(state), 7, 2, commit=commit, version=version) is FENCED
        assert end(at(state), 7, 4, commit=commit, version=version) is FENCED


# By itself


@pytest.mark.parametrize("state", [TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT])
@pytest.mark.parametrize(
    ("version", "next_id", "taken"), [(2, 99, True), (3, 99, True), (1, 99, False), (2, NO_ID, False)]
)
def test_every_partition_has_its_marker(
    state: TransactionState, version: int, next_id: int, taken: bool
) -> None:
    complete = (
        TransactionState.COMPLETE_COMMIT
        if state is TransactionState.PREPARE_COMMIT
        else TransactionState.COMPLETE_ABORT
    )
    transaction = at(state, version=version, next_id=next_id)
    assert transaction.complete(50) == BASE._replace(
        state=complete, producer_id=99 if taken else 7, epoch=0 if taken else 3, previous_id=7, next_id=NO_ID,
        partitions=frozenset(), updated_ms=50, version=version,
    )  # fmt: skip
    assert transaction.busy


@pytest.mark.parametrize("state", [state for state in TransactionState if state is not TransactionState.DEAD])
def test_when_its_time_is_up(state: TransactionState) -> None:
    """A transaction by when it began, an id by when anything was written of it."""
    assert at(state).is_overdue(1011) is (state is TransactionState.ONGOING)
    assert not at(state).is_overdue(1010)
    assert not busy(at(state)).is_overdue(1011)
    idle = state in (
        TransactionState.EMPTY,
        TransactionState.COMPLETE_COMMIT,
        TransactionState.COMPLETE_ABORT,
    )
    assert at(state).is_expired(520, 500) is idle
    assert not at(state).is_expired(519, 500)
    assert not busy(at(state)).is_expired(520, 500)


def test_markers_are_noted_one_by_one() -> None:
    transaction = at(TransactionState.PREPARE_COMMIT)
    transaction.marked(P0)
    transaction.marked(P0)
    assert transaction.now == at(TransactionState.PREPARE_COMMIT).now._replace(partitions=frozenset({P1}))
    assert not transaction.busy


def test_an_id_is_forgotten() -> None:
    transaction = at()
    transaction.expire()
    assert transaction.now == BASE._replace(state=TransactionState.DEAD)


def test_what_is_new_is_as_it_was_given() -> None:
    transaction = Transaction("id", BASE)
    assert (transaction.transactional_id, transaction.now, transaction.busy) == ("id", BASE, False)
    assert (transaction.began_s, transaction.epoch_floor, transaction.exhausted) == (None, NO_EPOCH, False)


@pytest.mark.parametrize("state", list(TransactionState))
def test_what_commits(state: TransactionState) -> None:
    assert BASE._replace(state=state).commits is (
        state in (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)
    )


def test_what_is_not_written_leaves_all_as_it_was() -> None:
    transaction = at()
    first = transaction.add(7, 3, [P0], 50, 2)
    transaction.failed()
    assert (transaction.now, transaction.busy) == (BASE, False)
    assert transaction.add(7, 3, [P0], 50, 2) == first
