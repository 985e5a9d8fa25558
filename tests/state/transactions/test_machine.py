"""The machine of a transactional id, move by move, and any sequence of moves."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from leafcuttr.errors import ErrorCode
from leafcuttr.runtime.transitions import TransitionError
from leafcuttr.state.transactions.machine import LAST_EPOCH, NO_ID, Decision, Snapshot, Transaction
from leafcuttr.state.transactions.states import COMPLETE, PREPARED, TransactionCause, TransactionState, after
from leafcuttr_sdk import TopicPartition
from support.gates_slice import sampled

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


def new(**fields: object) -> Transaction:
    return Transaction("id", Snapshot(7, timeout_ms=1000, updated_ms=0)._replace(**fields))


def done(transaction: Transaction, decision: Decision) -> Snapshot:
    assert isinstance(decision, Snapshot), decision
    assert transaction.busy
    transaction.written()
    assert transaction.now == decision
    return decision


def init(transaction: Transaction, known: tuple[int, int] | None = None, fresh_id: int = 99) -> Decision:
    return transaction.init(1000, known, fresh_id=fresh_id, now_ms=1, version=2)


def end(transaction: Transaction, epoch: int, *, commit: bool = True, version: int = 2) -> Decision:
    producer_id = transaction.now.producer_id
    return transaction.end(producer_id, epoch, commit=commit, fresh_id=99, now_ms=5, version=version)


def test_nothing_is_published_before_it_is_written() -> None:
    one = new()
    decision = init(one)
    assert one.now.epoch == -1
    assert init(one) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert one.add(7, -1, [P0], 2, 2) is ErrorCode.CONCURRENT_TRANSACTIONS
    one.failed()
    assert one.now.epoch == -1
    assert done(one, init(one)) == decision


@pytest.mark.parametrize(("version", "raised"), [(0, 0), (2, 1)])
@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_from_its_begin_to_its_end(version: int, raised: int, commit: bool) -> None:
    one = new()
    done(one, init(one))
    done(one, one.add(7, 0, [P0], 2, version))
    assert one.add(7, 0, [P0], 3, version) is ErrorCode.NONE
    added = done(one, one.add(7, 0, [P1], 4, version))
    assert (added.started_ms, added.partitions) == (2, {P0, P1})
    prepared = done(one, end(one, 0, commit=commit, version=version))
    assert prepared.state is (TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT)
    assert prepared.epoch == raised
    one.marked(P0)
    assert one.now.partitions == {P1}
    complete = done(one, one.complete(6))
    assert complete.state is (TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT)
    assert (complete.partitions, complete.epoch) == (frozenset(), raised)
    assert end(one, 0, commit=commit, version=version) is ErrorCode.NONE
    assert end(one, 0, commit=not commit, version=version) is ErrorCode.INVALID_TXN_STATE


def test_the_last_epoch_hands_over_to_a_new_producer_id() -> None:
    one = new(epoch=LAST_EPOCH)
    assert one.exhausted
    done(one, one.add(7, LAST_EPOCH, [P0], 2, 2))
    prepared = done(one, end(one, LAST_EPOCH))
    assert (prepared.producer_id, prepared.epoch, prepared.next_id) == (7, LAST_EPOCH + 1, 99)
    complete = done(one, one.complete(6))
    assert (complete.producer_id, complete.epoch, complete.previous_id) == (99, 0, 7)
    again = one.end(7, LAST_EPOCH, commit=True, fresh_id=NO_ID, now_ms=7, version=2)
    assert again is ErrorCode.NONE


def test_init_with_the_current_epoch_goes_on_and_others_are_fenced() -> None:
    one = new()
    done(one, init(one))
    assert done(one, init(one, (7, 0))).epoch == 1
    assert done(one, init(one, (7, 0))).epoch == 1  # the first answer was lost
    done(one, init(one))
    assert init(one, (7, 0)) is ErrorCode.PRODUCER_FENCED
    assert init(one, (8, 2)) is ErrorCode.PRODUCER_FENCED


def test_a_newcomer_aborts_what_goes_on() -> None:
    for version in (0, 2):
        one = new()
        done(one, init(one))
        done(one, one.add(7, 0, [P0], 2, version))
        fenced = one.init(1000, None, fresh_id=99, now_ms=3, version=version)
        assert done(one, fenced)[1:3] == (1, TransactionState.PREPARE_ABORT)
        assert init(one) is ErrorCode.CONCURRENT_TRANSACTIONS
        done(one, one.complete(4))
        assert done(one, init(one)).epoch == 2


def test_time_runs_out_for_transactions_and_for_ids() -> None:
    one = new()
    done(one, init(one))
    assert not one.is_overdue(10_000)
    assert one.is_expired(10_001, 10_000)
    done(one, one.add(7, 0, [P0], 100, 2))
    assert not one.is_expired(10_001, 1)
    assert not one.is_overdue(1100)
    assert one.is_overdue(1101)
    done(one, one.fence(1101, 2))
    assert one.now.epoch == 1
    assert one.add(7, 0, [P0], 1102, 2) is ErrorCode.PRODUCER_FENCED


def test_no_producer_begins_with_the_epoch_that_only_markers_have() -> None:
    """A transaction at the end of a producer id's epochs is aborted with the last number that the format can hold."""
    one = new(epoch=LAST_EPOCH)
    done(one, one.add(7, LAST_EPOCH, [P0], 100, 0))
    done(one, one.fence(1101, 0))
    done(one, one.complete(1102))
    assert (one.now.epoch, one.now.state) == (LAST_EPOCH + 1, TransactionState.COMPLETE_ABORT)
    assert one.add(7, LAST_EPOCH + 1, [P0], 1103, 0) is ErrorCode.PRODUCER_FENCED
    assert done(one, init(one)).producer_id != 7


def test_what_the_table_does_not_have_is_refused() -> None:
    with pytest.raises(TransitionError, match="PrepareCommit"):
        after(TransactionState.PREPARE_COMMIT, TransactionCause.ABORTED)
    assert not [cause for cause in TransactionCause if _has(TransactionState.DEAD, cause)]


def _has(state: TransactionState, cause: TransactionCause) -> bool:
    try:
        after(state, cause)
    except TransitionError:
        return False
    return True


class AnySequence(RuleBasedStateMachine):
    """However requests, failures and the time follow each other: epochs only grow, what is decided stays decided."""

    def __init__(self) -> None:
        super().__init__()
        self.one = new()
        self.now_ms = 0
        self.fresh_id = 100
        self.before = self.one.now

    def settle(self, decision: Decision, written: bool) -> None:
        self.now_ms += 1
        if isinstance(decision, Snapshot):
            self.one.written() if written else self.one.failed()

    @rule(again=st.booleans(), off=st.integers(-2, 1), written=st.booleans(), version=st.sampled_from([0, 2]))
    def init(self, again: bool, off: int, written: bool, version: int) -> None:
        known = (self.one.now.producer_id, self.one.now.epoch + off) if again else None
        self.fresh_id += 1
        self.settle(
            self.one.init(1000, known, fresh_id=self.fresh_id, now_ms=self.now_ms, version=version), written
        )

    @rule(
        off=st.integers(-1, 1), which=st.sampled_from([P0, P1]), written=st.booleans(),
        version=st.sampled_from([0, 2]),
    )  # fmt: skip
    def add(self, off: int, which: TopicPartition, written: bool, version: int) -> None:
        now = self.one.now
        self.settle(self.one.add(now.producer_id, now.epoch + off, [which], self.now_ms, version), written)

    @rule(
        off=st.integers(-1, 1), commit=st.booleans(), written=st.booleans(), version=st.sampled_from([0, 2])
    )
    def end(self, off: int, commit: bool, written: bool, version: int) -> None:
        now = self.one.now
        self.fresh_id += 1
        decision = self.one.end(
            now.producer_id,
            now.epoch + off,
            commit=commit,
            fresh_id=self.fresh_id,
            now_ms=self.now_ms,
            version=version,
        )
        self.settle(decision, written)

    @precondition(lambda self: self.one.now.state in PREPARED)
    @rule(written=st.booleans())
    def complete(self, written: bool) -> None:
        self.settle(self.one.complete(self.now_ms), written)

    @precondition(lambda self: self.one.is_overdue(self.now_ms + 5000))
    @rule(written=st.booleans(), version=st.sampled_from([0, 2]))
    def time_is_up(self, written: bool, version: int) -> None:
        self.settle(self.one.fence(self.now_ms, version), written)

    @rule()
    def epochs_run_out(self) -> None:
        if self.one.now.state in COMPLETE and self.one.now.epoch < LAST_EPOCH:
            self.one.now = self.one.now._replace(epoch=LAST_EPOCH)

    @invariant()
    def epochs_grow_and_decisions_hold(self) -> None:
        before, now = self.before, self.one.now
        assert not self.one.busy
        assert (now.producer_id, now.epoch) >= (before.producer_id, before.epoch)
        assert now.epoch <= LAST_EPOCH + 1
        if before.state in PREPARED and now != before:
            assert now.state in COMPLETE
            assert now.commits == before.commits
        if now.state is TransactionState.ONGOING:
            assert now.partitions
        self.before = now


TestAnySequence = AnySequence.TestCase
TestAnySequence.settings = settings(max_examples=sampled(100), stateful_step_count=30, deadline=None)


@pytest.mark.parametrize("version", [0, 2])
def test_a_stored_transaction_of_the_very_last_epoch_can_be_aborted(version: int) -> None:
    """An earlier version may have written one. No epoch is above it: its markers have the same."""
    one = new(state=TransactionState.ONGOING, epoch=2**15 - 1, partitions=frozenset([P0]))
    assert done(one, one.fence(5, version)).epoch == 2**15 - 1
    one = new(state=TransactionState.ONGOING, epoch=2**15 - 1, partitions=frozenset([P0]))
    assert done(one, end(one, 2**15 - 1, commit=False, version=2)).epoch == 2**15 - 1
