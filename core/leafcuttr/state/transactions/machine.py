"""One transactional id: requests go in, the next thing to write or an error comes out, without I/O.

Each request either has its answer at once, or returns the `Snapshot` that has to be written; until `written` or
`failed` is called the machine is `busy` and refuses every other change with CONCURRENT_TRANSACTIONS. Nothing is
published before it is in the log. Times are wall clock, ms since 1970: they are written and read back.

New producer ids come from outside (`fresh_id`), for when the epochs of the one at hand are used up.
"""

from collections.abc import Collection
from typing import Final, NamedTuple

from leafcuttr.errors import ErrorCode
from leafcuttr.state.transactions.states import COMPLETE, PREPARED, TransactionCause, TransactionState, after
from leafcuttr_sdk import TopicPartition

NO_ID: Final = -1
NO_EPOCH: Final = -1
NO_TIME: Final = -1
# The last epoch that a client gets to see; one more is left for fencing it (KIP-360).
LAST_EPOCH: Final = 2**15 - 2
BUMPS_EPOCHS: Final = 2
"""The transaction version from which on every end of a transaction raises the epoch (KIP-890)."""


class Snapshot(NamedTuple):
    """All that is known of a transactional id at one time; what a record of `__transaction_state` says.

    `last_epoch` is the epoch before the last raise, kept in memory only: by it a repeated InitProducerId is known.
    `next_id` is the producer id that takes over when the transaction that is being ended has used up the epochs.
    `version` is the transaction version of the client that ended it.
    """

    producer_id: int
    epoch: int = NO_EPOCH
    state: TransactionState = TransactionState.EMPTY
    timeout_ms: int = 0
    partitions: frozenset[TopicPartition] = frozenset()
    updated_ms: int = NO_TIME
    started_ms: int = NO_TIME
    previous_id: int = NO_ID
    next_id: int = NO_ID
    last_epoch: int = NO_EPOCH
    version: int = 0

    @property
    def commits(self) -> bool:
        return self.state in (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)


Decision = Snapshot | ErrorCode
"""What to write before the answer may leave, or the answer; NONE where there is nothing to do."""


class Transaction:
    """One transactional id. Not thread-safe; each call is complete when it returns."""

    __slots__ = ("_pending", "began_s", "epoch_floor", "now", "overdue_epoch", "transactional_id")

    def __init__(self, transactional_id: str, snapshot: Snapshot) -> None:
        self.transactional_id = transactional_id
        self.now = snapshot
        self._pending: Snapshot | None = None
        self.began_s: float | None = None
        """When the transaction that goes on began, in monotonic seconds; kept by the coordinator, which has a clock."""
        self.epoch_floor = NO_EPOCH
        """The highest epoch that a partition knows of this producer id, where what is here may be older than that."""
        self.overdue_epoch = NO_EPOCH
        """The epoch of the last transaction that was aborted because its time was up. In memory only."""

    @property
    def busy(self) -> bool:
        """Something is being written."""
        return self._pending is not None

    @property
    def exhausted(self) -> bool:
        """No epoch is left for this producer id: the next raise needs a `fresh_id`."""
        return self._highest_epoch >= LAST_EPOCH

    @property
    def _highest_epoch(self) -> int:
        return max(self.now.epoch, self.epoch_floor)

    # --- requests ---------------------------------------------------------------------------------------

    def init(
        self, timeout_ms: int, known: tuple[int, int] | None, *, fresh_id: int, now_ms: int, version: int
    ) -> Decision:
        """InitProducerId with the producer id and epoch that the client has, if it names them (KIP-360).

        In an ongoing transaction the answer is a snapshot that aborts it: the client has to repeat the request.
        `fresh_id` is used if `exhausted`, `version` is the broker's transaction version.
        """
        now = self.now
        if self.busy:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if known is not None and not self._is_known(*known):
            return ErrorCode.PRODUCER_FENCED
        if now.state in PREPARED:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if now.state is TransactionState.ONGOING:
            return self.fence(now_ms, version)
        producer_id, epoch, last_epoch = now.producer_id, self._highest_epoch + 1, NO_EPOCH
        if self.exhausted and (known is None or known[1] == now.epoch):
            producer_id, epoch = fresh_id, 0
            last_epoch = NO_EPOCH if known is None else now.epoch
        elif known is not None:
            if now.epoch in (NO_EPOCH, known[1]):
                last_epoch = now.epoch
            elif now.last_epoch == known[1]:
                # The answer to the first request was lost.
                epoch, last_epoch = now.epoch, now.last_epoch
            else:
                return ErrorCode.PRODUCER_FENCED
        return self._begin(
            now._replace(
                state=after(now.state, TransactionCause.INITIALIZED),
                producer_id=producer_id,
                previous_id=now.producer_id,
                next_id=NO_ID,
                epoch=epoch,
                last_epoch=last_epoch,
                timeout_ms=timeout_ms,
                partitions=frozenset(),
                started_ms=NO_TIME,
                updated_ms=now_ms,
            )
        )

    def add(
        self,
        producer_id: int,
        epoch: int,
        partitions: Collection[TopicPartition],
        now_ms: int,
        version: int,
    ) -> Decision:
        """AddPartitionsToTxn, or what has its effect: a transaction begins with its first partition."""
        now = self.now
        if self.busy:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if error := self._check(producer_id, epoch):
            return error
        if (
            epoch > LAST_EPOCH
        ):  # that of the markers which ended the last transaction: no producer was given it
            return ErrorCode.PRODUCER_FENCED
        if now.state is TransactionState.ONGOING and now.partitions.issuperset(partitions):
            return ErrorCode.NONE
        return self._begin(
            now._replace(
                state=after(now.state, TransactionCause.PARTITIONS_ADDED),
                previous_id=now.producer_id,
                partitions=now.partitions.union(partitions),
                started_ms=now.started_ms if now.state is TransactionState.ONGOING else now_ms,
                updated_ms=now_ms,
                version=version,
            )
        )

    def verify(self, producer_id: int, epoch: int, partition: TopicPartition) -> ErrorCode:
        """Whether records of this partition belong to the transaction that goes on."""
        if error := self._check(producer_id, epoch):
            return error
        return ErrorCode.NONE if partition in self.now.partitions else ErrorCode.TRANSACTION_ABORTABLE

    def end(
        self, producer_id: int, epoch: int, *, commit: bool, fresh_id: int, now_ms: int, version: int
    ) -> Decision:
        """EndTxn. NONE means that the request was a repetition: it has been done before."""
        if version < BUMPS_EPOCHS:
            return self._end_keeping_epoch(producer_id, epoch, commit, now_ms)
        now = self.now
        again_with_new_id = now.previous_id == producer_id and epoch == LAST_EPOCH and now.epoch == 0
        again = now.epoch == epoch + 1 or again_with_new_id
        if self.busy:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if now.producer_id != producer_id and not again_with_new_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if now.state in PREPARED:
            valid = now.epoch == epoch + 1
        else:
            valid = epoch == now.epoch or (now.state in COMPLETE and again)
        if not valid:
            return ErrorCode.PRODUCER_FENCED
        if now.state in PREPARED:
            return ErrorCode.CONCURRENT_TRANSACTIONS if commit == now.commits else ErrorCode.INVALID_TXN_STATE
        if now.state in COMPLETE and again:
            return ErrorCode.NONE if commit == now.commits else ErrorCode.INVALID_TXN_STATE
        if now.state is not TransactionState.ONGOING and commit:
            return ErrorCode.INVALID_TXN_STATE
        return self._prepare(commit, now_ms, version, fresh_id)

    def _end_keeping_epoch(self, producer_id: int, epoch: int, commit: bool, now_ms: int) -> Decision:
        now = self.now
        if now.producer_id != producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if now.epoch != epoch:
            return ErrorCode.PRODUCER_FENCED
        if self.busy:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if now.state is TransactionState.ONGOING:
            return self._prepare(commit, now_ms, 0, NO_ID)
        if now.state is TransactionState.EMPTY or commit != now.commits:
            return ErrorCode.INVALID_TXN_STATE
        return ErrorCode.CONCURRENT_TRANSACTIONS if now.state in PREPARED else ErrorCode.NONE

    # --- on a timer --------------------------------------------------------------------------------------

    def is_overdue(self, now_ms: int) -> bool:
        """`now_ms`: by the clock that the transaction began by, whatever has been done to it since."""
        now = self.now
        return (
            now.state is TransactionState.ONGOING
            and not self.busy
            and now.started_ms + now.timeout_ms < now_ms
        )

    def is_expired(self, now_ms: int, expiration_ms: int) -> bool:
        now = self.now
        idle = now.state is TransactionState.EMPTY or now.state in COMPLETE
        return idle and not self.busy and now.updated_ms <= now_ms - expiration_ms

    def fence(self, now_ms: int, version: int) -> Snapshot:
        """Abort the ongoing transaction under an epoch that its producer does not have.

        With a version that raises epochs at every end, that raise is the fence: there is only one.
        """
        now = self.now
        fenced = now._replace(state=after(now.state, TransactionCause.FENCED))
        return self._begin(
            fenced._replace(
                state=after(fenced.state, TransactionCause.ABORTED),
                epoch=_above(self._highest_epoch),
                last_epoch=now.epoch if version >= BUMPS_EPOCHS else NO_EPOCH,
                previous_id=now.producer_id,
                updated_ms=now_ms,
                version=version,
            )
        )

    def complete(self, now_ms: int) -> Snapshot:
        """Every partition has its marker."""
        now = self.now
        producer_id, epoch = now.producer_id, now.epoch
        if now.version >= BUMPS_EPOCHS and now.next_id != NO_ID:
            producer_id, epoch = now.next_id, 0
        return self._begin(
            now._replace(
                state=after(now.state, TransactionCause.MARKED),
                producer_id=producer_id,
                previous_id=now.producer_id,
                next_id=NO_ID,
                epoch=epoch,
                partitions=frozenset(),
                updated_ms=now_ms,
            )
        )

    def marked(self, partition: TopicPartition) -> None:
        """This partition has its marker. In memory only: a marker more does no harm."""
        self.now = self.now._replace(partitions=self.now.partitions - {partition})

    def expire(self) -> None:
        """The tombstone is in the log."""
        self.now = self.now._replace(state=after(self.now.state, TransactionCause.EXPIRED))

    # --- outcomes ---------------------------------------------------------------------------------------

    def written(self) -> None:
        """What was to be written is in the log."""
        assert self._pending is not None
        if self._pending.producer_id != self.now.producer_id:
            self.epoch_floor = NO_EPOCH
        self.now, self._pending = self._pending, None

    def failed(self) -> None:
        """It is not: all is as before."""
        self._pending = None

    def _begin(self, snapshot: Snapshot) -> Snapshot:
        self._pending = snapshot
        return snapshot

    def _prepare(self, commit: bool, now_ms: int, version: int, fresh_id: int) -> Snapshot:
        now = self.now
        raises = version >= BUMPS_EPOCHS
        return self._begin(
            now._replace(
                state=after(now.state, TransactionCause.COMMITTED if commit else TransactionCause.ABORTED),
                previous_id=now.producer_id,
                next_id=fresh_id if raises and self.exhausted else NO_ID,
                epoch=_above(now.epoch) if raises else now.epoch,
                last_epoch=now.epoch if raises else now.last_epoch,
                # An abort without a transaction has no start of its own, but its record needs one.
                started_ms=now.started_ms if now.state is TransactionState.ONGOING else now_ms,
                updated_ms=now_ms,
                version=version,
            )
        )

    def _is_known(self, producer_id: int, epoch: int) -> bool:
        """Whether a client that names this may go on: nothing is known of it, it has this producer id, or it had the
        one before to the end of its epochs and missed the answer."""
        now = self.now
        return (
            now.epoch == NO_EPOCH
            or producer_id == now.producer_id
            or (producer_id == now.previous_id and epoch >= LAST_EPOCH)
        )

    def _check(self, producer_id: int, epoch: int) -> ErrorCode:
        now = self.now
        if now.producer_id != producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if now.epoch != epoch:
            return ErrorCode.PRODUCER_FENCED
        return ErrorCode.CONCURRENT_TRANSACTIONS if now.state in PREPARED else ErrorCode.NONE


def _above(epoch: int) -> int:
    """The epoch of the markers that end a transaction of this one. That of a stored transaction may be the very last,
    which then is that of its markers too."""
    return min(epoch, LAST_EPOCH) + 1
