"""The transaction coordinator: hands requests to the transactions' machines, and carries out what they decide.

Every decision is written to `__transaction_state` before it is published or answered; then, if it ends a transaction,
the markers are written, and then that it is complete. While the disk is not slow all of that happens within the
request. What waits goes on in `run`'s nursery, whether or not the client still does.

One task keeps the time: it aborts transactions that take too long and forgets unused ids.

A little longer than other modules, because the order of writing, publishing and answering is one thing.
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Generator, Iterable
from typing import Any, Final, NamedTuple

import trio

from leafcuttr import crashpoints
from leafcuttr.config.settings import Settings
from leafcuttr.errors import CoordinatorLoadInProgress, ErrorCode
from leafcuttr.runtime import standstill
from leafcuttr.state.features import Features
from leafcuttr.state.groups.committing import Offsets
from leafcuttr.state.producer_ids import ProducerIds
from leafcuttr.state.topic_names import TRANSACTION_STATE
from leafcuttr.state.topics import Topic, Topics
from leafcuttr.state.transactions.endings import Endings, outcome
from leafcuttr.state.transactions.loader import load
from leafcuttr.state.transactions.machine import BUMPS_EPOCHS, NO_EPOCH, NO_ID, Snapshot, Transaction
from leafcuttr.state.transactions.markers import Markers
from leafcuttr.state.transactions.partition_transactions import PartitionTransactions
from leafcuttr.state.transactions.records import transaction_key, transaction_value
from leafcuttr.state.transactions.states import PREPARED, TransactionState
from leafcuttr.state.transactions.store import TransactionLog
from leafcuttr.state.transactions.table import TransactionTable
from leafcuttr_sdk import Clock, TopicPartition

logger = logging.getLogger(__name__)

_STEP: Final = 100


class TransactionAnswer(NamedTuple):
    """The outcome of a request, with the producer id and epoch to go on with."""

    error: ErrorCode
    producer_id: int = NO_ID
    epoch: int = NO_EPOCH


class _Outcome:
    """Of a write that a worker does; no caller has to wait for it."""

    __slots__ = ("_event", "error")

    def __init__(self) -> None:
        self.error: ErrorCode | None = None
        self._event: trio.Event | None = None

    def set(self, error: ErrorCode) -> None:
        self.error = error
        if self._event is not None:
            self._event.set()

    def __await__(self) -> Generator[Any, Any, ErrorCode]:
        return self._wait().__await__()

    async def _wait(self) -> ErrorCode:
        if self.error is None:
            if self._event is None:
                self._event = trio.Event()
            await self._event.wait()
        assert self.error is not None
        return self.error


class TransactionCoordinator:
    """All transactional ids of this broker. `markers` may be used by other code that ends transactions."""

    def __init__(
        self,
        *,
        settings: Settings,
        topics: Topics,
        clock: Clock,
        producer_ids: ProducerIds,
        offsets: Offsets,
        features: Features,
        stopped_cleanly: bool = True,
    ) -> None:
        """Unless the broker has `stopped_cleanly`, `__transaction_state` may be older than what the partitions have."""
        self._settings = settings
        self._topics = topics
        self._partitions: PartitionTransactions | None = None
        self._stopped_cleanly = stopped_cleanly
        self._clock = clock
        self._producer_ids = producer_ids
        self._features = features
        self._log = TransactionLog(topics=topics, settings=settings, clock=clock)
        self._table = TransactionTable(self._log)
        self._table.loading = self._log.partitions_to_load()
        self._nursery: trio.Nursery | None = None
        self._settling = trio.lowlevel.ParkingLot()  # those that wait in `settled`
        self.committed = self.aborted = self.timed_out = (
            0  # decided since the start; the last are among the aborted
        )
        self.markers = Markers(topics=topics, offsets=offsets, clock=clock)
        self._endings = Endings(self._table, self._log, self.markers, self._write_complete)
        topics.on_deleted.append(self._topic_deleted)

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Load, complete what was prepared, then keep the time until cancelled."""
        async with trio.open_nursery() as nursery:
            self._log.use(nursery)
            self._endings.use(nursery)
            self._nursery = nursery
            try:
                partitions = self._partitions = PartitionTransactions(self._topics)
                task_status.started()
                await load(self._table, self._log, self._loaded)
                if not self._stopped_cleanly and not self._table.failed:
                    await partitions.abort_unknown(self.markers)
                self._partitions = None
                nursery.start_soon(
                    self._now_and_then,
                    "transaction.abort.timed.out.transaction.cleanup.interval.ms",
                    self.abort_overdue,
                )
                nursery.start_soon(
                    self._now_and_then,
                    "transaction.remove.expired.transaction.cleanup.interval.ms",
                    self.forget_expired,
                )
                await trio.sleep_forever()
            finally:
                self._log.use(None)
                self._endings.use(None)
                self._nursery = None

    def _loaded(self, transactions: Iterable[Transaction]) -> None:
        """These ids can be served now. What is prepared by now was so in the log, and nothing else will complete it: a
        client's own transaction may be prepared a moment later, and is completed by its request."""
        prepared = []
        transactions = list(transactions)
        if self._partitions is not None:
            self._partitions.loaded(transactions)
        for transaction in transactions:
            self._keep_time(transaction)
            if transaction.now.state in PREPARED:
                prepared.append(transaction)
        if prepared and self._nursery is not None:
            self._nursery.start_soon(self._endings.finish_all, prepared)
        self._settling.unpark_all()

    async def ready(self) -> None:
        """Make sure that transactions can be stored. Raises CoordinatorNotAvailable."""
        await self._log.ready()

    # --- requests ---------------------------------------------------------------------------------------

    async def init(
        self, transactional_id: str, timeout_ms: int, known: tuple[int, int] | None
    ) -> TransactionAnswer:
        """InitProducerId. `known` is the producer id and epoch that the client has, if it names them.

        Raises StorageError (no producer id), CoordinatorNotAvailable, CoordinatorLoadInProgress.
        """
        if not 0 < timeout_ms <= self._settings.int("transaction.max.timeout.ms"):
            return TransactionAnswer(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        await self.ready()
        transaction = self._table.find(transactional_id)
        if transaction is None:
            new = Snapshot(
                await self._producer_ids.next_id(), timeout_ms=timeout_ms, updated_ms=self._clock.now_ms()
            )
            transaction = self._table.find_or_create(transactional_id, new)
        fresh_id = await self._producer_ids.next_id() if transaction.exhausted else NO_ID
        decision = transaction.init(
            timeout_ms, known, fresh_id=fresh_id, now_ms=self._clock.now_ms(), version=self._level
        )
        if isinstance(decision, ErrorCode):
            return TransactionAnswer(decision)
        if decision.state in PREPARED:
            error = await self._end(transaction, decision)
            return TransactionAnswer(error or ErrorCode.CONCURRENT_TRANSACTIONS)
        error = await outcome(self._write(transaction, decision))
        return (
            TransactionAnswer(error)
            if error
            else TransactionAnswer(error, decision.producer_id, decision.epoch)
        )

    def add(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Collection[TopicPartition],
        version: int,
    ) -> ErrorCode | Awaitable[ErrorCode]:
        """Make partitions part of the transaction; an awaitable comes back if the disk is slow.

        `version` is the client's transaction version. Raises CoordinatorNotAvailable, CoordinatorLoadInProgress.
        """
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        transaction = self._table.find(transactional_id)
        if transaction is None:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        decision = transaction.add(producer_id, epoch, partitions, self._clock.now_ms(), version)
        return decision if isinstance(decision, ErrorCode) else self._write(transaction, decision)

    def verify(
        self, transactional_id: str, producer_id: int, epoch: int, partition: TopicPartition
    ) -> ErrorCode:
        """Whether a partition is part of the transaction that goes on. Raises as `add`."""
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        transaction = self._table.find(transactional_id)
        if transaction is None:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        return transaction.verify(producer_id, epoch, partition)

    def admit(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partition: TopicPartition,
        *,
        adds: bool,
        knows_abortable: bool,
    ) -> ErrorCode | Awaitable[ErrorCode]:
        """Whether records, or offsets, may be written to this partition in the transaction (KIP-890).

        `adds`: a client of transaction version 2, for which the partition becomes part of it. `knows_abortable`:
        whether the client understands TRANSACTION_ABORTABLE. Raises as `add`.
        """
        if adds:
            added = self.add(transactional_id, producer_id, epoch, (partition,), BUMPS_EPOCHS)
            return _for_writers(added) if isinstance(added, ErrorCode) else added
        if not self._settings.bool("transaction.partition.verification.enable"):
            return ErrorCode.NONE
        code = self.verify(transactional_id, producer_id, epoch, partition)
        if code is ErrorCode.TRANSACTION_ABORTABLE and not knows_abortable:
            return ErrorCode.INVALID_TXN_STATE
        return _for_writers(code)

    async def end(
        self, transactional_id: str, producer_id: int, epoch: int, *, commit: bool, version: int
    ) -> TransactionAnswer:
        """EndTxn. Raises as `add`, and StorageError where the epochs are used up and there is no new producer id."""
        if not transactional_id:
            return TransactionAnswer(ErrorCode.INVALID_REQUEST)
        transaction = self._table.find(transactional_id)
        if transaction is None:
            return TransactionAnswer(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        raises = version >= BUMPS_EPOCHS
        fresh_id = await self._producer_ids.next_id() if raises and transaction.exhausted else NO_ID
        decision = transaction.end(
            producer_id,
            epoch,
            commit=commit,
            fresh_id=fresh_id,
            now_ms=self._clock.now_ms(),
            version=version,
        )
        now = transaction.now
        if isinstance(decision, ErrorCode):
            return (
                TransactionAnswer(decision)
                if decision
                else TransactionAnswer(decision, now.producer_id, now.epoch)
            )
        error = await self._end(transaction, decision)
        if error:
            return TransactionAnswer(error)
        if decision.next_id != NO_ID:
            return TransactionAnswer(error, decision.next_id, 0)
        return TransactionAnswer(error, decision.producer_id, decision.epoch)

    async def settled(self, transactional_id: str) -> Transaction | None:
        """Wait until nothing is being written or completed of this id, and return it as it is then: what clients do who
        repeat a request after CONCURRENT_TRANSACTIONS or COORDINATOR_LOAD_IN_PROGRESS. None if there is no such id.

        Raises CoordinatorNotAvailable. Cancelled: nothing has happened.
        """
        await trio.lowlevel.checkpoint()
        while True:
            try:
                found = self._table.find(transactional_id)
            except CoordinatorLoadInProgress:
                pass
            else:
                if found is None or not (found.busy or found.now.state in PREPARED):
                    return found
            await self._settling.park()

    def find(self, transactional_id: str) -> Transaction | None:
        """Raises as `add`."""
        return self._table.find(transactional_id)

    def all(self) -> list[Transaction]:
        """Every transactional id that has been loaded, for reading."""
        return list(self._table)

    @property
    def failed(self) -> int:
        """How many partitions of `__transaction_state` cannot be read: their ids are not available."""
        return len(self._table.failed)

    @property
    def loading(self) -> bool:
        return bool(self._table.loading)

    # --- effects ----------------------------------------------------------------------------------------

    @property
    def _level(self) -> int:
        return self._features.transaction_version

    def _write(
        self, transaction: Transaction, snapshot: Snapshot, then: Callable[[], None] | None = None
    ) -> ErrorCode | Awaitable[ErrorCode]:
        """Store what the machine has decided, publish it, call `then`; the error to answer if it was not stored."""
        outcome = _Outcome()

        def written(error: ErrorCode, _: int) -> None:
            if error:
                transaction.failed()
            else:
                transaction.written()
                self._keep_time(transaction)
                crashpoints.reach("transaction.written")
                if then is not None:
                    then()
            outcome.set(error)
            self._settling.unpark_all()

        partition = self._log.partition_of(transaction.transactional_id)
        value = transaction_value(snapshot, 1 if self._level else 0)
        self._log.write(partition, [(transaction_key(transaction.transactional_id), value)], written)
        return outcome if outcome.error is None else outcome.error

    async def _end(self, transaction: Transaction, prepared: Snapshot) -> ErrorCode:
        """Write the decision; the markers follow, here or in a task. Returns once nothing can change it any more."""
        crashpoints.reach("transaction.before-prepare")

        def decided() -> None:
            if prepared.commits:
                self.committed += 1
            else:
                self.aborted += 1
            self._endings.finish(transaction)

        return await outcome(self._write(transaction, prepared, decided))

    def _write_complete(self, transaction: Transaction) -> ErrorCode | Awaitable[ErrorCode]:
        crashpoints.reach("transaction.before-complete")
        return self._write(transaction, transaction.complete(self._clock.now_ms()))

    # --- on a timer --------------------------------------------------------------------------------------

    async def _now_and_then(self, setting: str, step: Callable[[], Awaitable[None]]) -> None:
        while True:
            await standstill.sleep(self._settings.int(setting) / 1000)
            try:
                await step()
            except Exception:
                logger.exception("a periodic check of transactions failed; it is tried again")

    async def abort_overdue(self) -> None:
        """Abort the transactions that have taken longer than their producer said, and fence it."""
        for number, transaction in enumerate(self._table):
            if number % _STEP == 0:
                await trio.lowlevel.checkpoint()
            if transaction.is_overdue(self._time_of(transaction)) and self._table.holds(transaction):
                logger.info(
                    "the transaction of %r takes too long and is aborted", transaction.transactional_id
                )
                transaction.overdue_epoch = transaction.now.epoch
                error = await self._end(transaction, transaction.fence(self._clock.now_ms(), self._level))
                self.timed_out += not error

    def _keep_time(self, transaction: Transaction) -> None:
        """A change of the time of day must not change timeouts."""
        if transaction.now.state is not TransactionState.ONGOING:
            transaction.began_s = None
        elif transaction.began_s is None:
            age_ms = max(self._clock.now_ms() - transaction.now.started_ms, 0)
            transaction.began_s = self._clock.monotonic() - age_ms / 1000

    def _time_of(self, transaction: Transaction) -> int:
        began_s = transaction.began_s
        if began_s is None:
            return self._clock.now_ms()
        return transaction.now.started_ms + int((self._clock.monotonic() - began_s) * 1000)

    async def forget_expired(self) -> None:
        """Write tombstones for ids unused for `transactional.id.expiration.ms`."""
        for number, transaction in enumerate(self._table):
            if number % _STEP == 0:
                await trio.lowlevel.checkpoint()
            expiration_ms = self._settings.int("transactional.id.expiration.ms")
            if self._table.holds(transaction) and transaction.is_expired(self._clock.now_ms(), expiration_ms):
                self._write_tombstone(transaction)

    def _write_tombstone(self, transaction: Transaction) -> None:
        transaction.expire()
        self._table.forget(transaction)

        def written(error: ErrorCode, _: int) -> None:
            # Without its tombstone it comes back at the next start, and expires then.
            if error:
                logger.warning("the tombstone of %r was not written", transaction.transactional_id)

        partition = self._log.partition_of(transaction.transactional_id)
        self._log.write(partition, [(transaction_key(transaction.transactional_id), None)], written)

    def _topic_deleted(self, topic: Topic) -> None:
        # To delete this topic is to delete the transactional ids.
        if topic.name == TRANSACTION_STATE:
            self._table.loading.clear()
            self._table.failed.clear()
            self._table.clear()
            self._settling.unpark_all()


def _for_writers(code: ErrorCode) -> ErrorCode:
    """As the writer gets it: a producer that is fenced by a partition is told of its epoch."""
    return ErrorCode.INVALID_PRODUCER_EPOCH if code is ErrorCode.PRODUCER_FENCED else code
