"""The part of the check of a blocking peer that is about transactions of several processes."""

import pickle
from contextlib import suppress

from leafcuttr_sdk.blocking_peers import SharedTransaction
from leafcuttr_sdk.broker import LATEST
from leafcuttr_sdk.errors import BrokerError, OutOfOrderSequence, ProducerFenced, TransactionAborted
from leafcuttr_sdk.groups import CommittedOffset
from leafcuttr_sdk.testing.blocking_peer_trial import BlockingTrial, new
from leafcuttr_sdk.types import TopicPartition


class SharedTransactionTrial:
    """Its parts; each has topics and a transactional id of its own. A cluster without transactions passes."""

    def __init__(self, trial: BlockingTrial) -> None:
        self._trial = trial
        self._peer = trial.peer
        self._second = trial.second

    def shared(self) -> None:
        trial = self._trial
        if not self._peer.has_transactions():
            return
        first, second = trial.topic("shared", 2)
        group = trial.name("group")
        with self._peer.owner(trial.name("id")) as owner:
            trial.same("what is shared before it begins", owner.shared, None)
            for number in range(2):
                shared = owner.begin()
                trial.same("what is shared", owner.shared, shared)
                other = pickle.loads(pickle.dumps(shared))
                with self._peer.join(shared) as one, self._second.join(other) as two:
                    for piece in range(3):
                        one.send([new(first, b"a%d%d" % (number, piece), b"-")])
                        two.send([new(second, b"b%d%d" % (number, piece))])
                    counts = one.flush() | two.flush()
                trial.same("what was written", counts, {first: 6, second: 3})
                trial.same("what is visible of an open one", len(trial.records(second)), 3 * number)
                owner.commit_offsets(group, {first: CommittedOffset(number + 1, f"batch {number}")})
                owner.commit(counts)
                trial.same("what is shared after the commit", owner.shared, None)
                trial.same(
                    "the offset, once it is stable",
                    self._second.committed(group, stable=[first]).get(first),
                    CommittedOffset(number + 1, f"batch {number}"),
                )
                self._becomes(first, [b"%s" % value for value in _values(b"a", number, b"-")])
                self._becomes(second, _values(b"b", number))
                trial.becomes(
                    "the offset that was committed with it",
                    lambda: self._peer.committed(group).get(first),
                    CommittedOffset(number + 1, f"batch {number}"),
                )
            with trial.raises("a commit without a transaction", RuntimeError):
                owner.commit()
            owner.begin()
            with trial.raises("a begin within a transaction", RuntimeError):
                owner.begin()
            owner.commit({})  # nothing was written: there is nothing to decide

    def aborted(self) -> None:
        trial = self._trial
        if not self._peer.has_transactions():
            return
        (partition,) = trial.topic("aborted")
        group = trial.name("group")
        with self._peer.owner(trial.name("id")) as owner:
            self._write(owner.begin(), partition, b"gone", b"gone too")
            owner.commit_offsets(group, {partition: CommittedOffset(9)})
            owner.abort()
            owner.abort()
            self._write(owner.begin(), partition, b"kept")
            owner.commit({partition: 1})
            self._becomes(partition, [b"kept"])
            everything = trial.values(partition, committed=False)
            trial.same("what was written in all", everything, [b"gone", b"gone too", b"kept"])
            trial.same("an offset of an aborted one", self._peer.committed(group).get(partition), None)

    def epochs(self) -> None:
        trial = self._trial
        if not self._peer.has_transactions():
            return
        (partition,) = trial.topic("epochs")
        with self._peer.owner(trial.name("id")) as owner:
            earlier: list[SharedTransaction] = []
            for number in range(3):
                shared = owner.begin()
                if (shared.producer_id, shared.epoch) in [(one.producer_id, one.epoch) for one in earlier]:
                    trial.wrong("two transactions have one epoch")
                earlier.append(shared)
                self._write(shared, partition, b"%d" % number)
                if number == 1:
                    owner.abort()
                else:
                    owner.commit({partition: 1})
            owner.begin()
            for old in earlier:
                with self._second.join(old) as late:
                    answers = late.append([new(partition, b"late")])
                    if not isinstance(answers[0], ProducerFenced):
                        trial.wrong(f"a batch for an earlier transaction is answered with {answers[0]!r}")
                    trial.same("the answer to the next batch", late.append([new(partition, b"l")]), answers)
            owner.abort()
        self._becomes(partition, [b"0", b"2"])

    def fencing(self) -> None:
        trial = self._trial
        if not self._peer.has_transactions():
            return
        (partition,) = trial.topic("fencing")
        name = trial.name("id")
        with self._peer.owner(name) as first:
            shared = first.begin()
            with self._second.join(shared) as joined:
                trial.all_appended(joined.append([new(partition, b"old")]))
                with self._second.owner(name) as second:
                    answers = joined.append([new(partition, b"late")])
                    if not isinstance(answers[0], ProducerFenced):
                        trial.wrong(f"a batch for a fenced transaction is answered with {answers[0]!r}")
                    with trial.raises("offsets of a fenced owner", ProducerFenced):
                        first.commit_offsets(trial.name("group"), {partition: CommittedOffset(1)})
                    with trial.raises("the commit of a fenced owner", ProducerFenced):
                        first.commit()
                    with trial.raises("the begin of a fenced owner", ProducerFenced):
                        first.begin()
                    self._write(second.begin(), partition, b"new")
                    second.commit()
        self._becomes(partition, [b"new"])

    def twice(self) -> None:
        trial = self._trial
        if not self._peer.has_transactions():
            return
        first, second = trial.topic("twice", 2)
        with self._peer.owner(trial.name("id")) as owner:
            shared = owner.begin()
            self._write(shared, first, b"once")
            with self._second.join(shared) as again:
                answers = again.append([new(first, b"again")])
                if not isinstance(answers[0], OutOfOrderSequence):
                    trial.wrong(f"a second writer of a partition is answered with {answers[0]!r}")
            for written in ({first: 2}, {}, {first: 1, second: 1}):
                with trial.raises(f"a commit of {len(written)} other partitions", TransactionAborted):
                    owner.commit(written)
                with trial.raises("a commit after that", TransactionAborted):
                    owner.commit({first: 1})
                owner.abort()
                self._write(owner.begin(), first, b"once")
            owner.commit({first: 1})
        self._becomes(first, [b"once"])

    def resumed(self) -> None:
        trial = self._trial
        if not self._peer.has_transactions():
            return
        (partition,) = trial.topic("resumed")
        group, name = trial.name("group"), trial.name("id")
        for number, commits in enumerate((True, False, True)):
            with self._peer.owner(name) as owner:
                shared = owner.begin()
            self._write(shared, partition, b"%d" % number)
            with self._second.owner(shared) as other:
                trial.same("what is shared by the other", other.shared, shared)
                other.commit_offsets(group, {partition: CommittedOffset(number + 1)})
                if commits:
                    other.commit({partition: 1})
                else:
                    other.abort()
                self._write(other.begin(), partition, b"next %d" % number)
                other.commit({partition: 1})
        self._becomes(partition, [b"0", b"next 0", b"next 1", b"2", b"next 2"])
        committed = CommittedOffset(3)
        trial.becomes("the offset", lambda: self._peer.committed(group).get(partition), committed)

    def interrupted(self) -> None:
        trial = self._trial
        if not self._peer.has_transactions():
            return
        (partition,) = trial.topic("interrupted")
        with suppress(ZeroDivisionError), self._peer.owner(trial.name("id")) as owner:
            self._write(owner.begin(), partition, b"gone")
            raise ZeroDivisionError

        def end() -> object:
            return self._peer.offsets({partition: LATEST}, committed=True)[partition]

        trial.becomes("the last stable offset, behind the marker", end, 2)
        trial.same("what is visible", trial.values(partition), [])

    def _write(self, shared: SharedTransaction, partition: TopicPartition, *values: bytes) -> None:
        """By another process, each record in a batch."""
        with self._second.join(shared) as joined:
            self._trial.all_appended(joined.append([new(partition, value) for value in values]))

    def _becomes(self, partition: TopicPartition, wanted: list[bytes]) -> None:
        def values() -> "list[bytes] | BrokerError":
            return self._trial.values(partition)

        self._trial.becomes(f"what readers of committed records see of {partition}", values, wanted)


def _values(letter: bytes, last: int, *behind: bytes) -> list[bytes]:
    return [
        value
        for number in range(last + 1)
        for piece in range(3)
        for value in (b"%s%d%d" % (letter, number, piece), *behind)
    ]
