"""`leafcuttr_sdk.transactions`: a transactional producer in this process, on the coordinator that clients use.

It does what Kafka's client does: takes an epoch, adds each partition before its first batch, numbers the batches, ends
the transaction, and goes on with the epoch that it is answered. It is of transaction version 2 whatever the feature
level, so each transaction has an epoch of its own (KIP-890), and a batch that is late is refused by its partition. What
a client repeats after CONCURRENT_TRANSACTIONS waits here (`TransactionCoordinator.settled`). How records become batches
is `producing`'s.

How one begins and ends is in `client.transactional`.
"""

import logging
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Final, TypeVar

import trio

from leafcuttr.client.transactional import NOT_OURS, TransactionalProducerBase, TransactionBase
from leafcuttr.errors import (
    BrokerError,
    ErrorCode,
    InvalidProducerEpoch,
    InvalidRecord,
    InvalidTimestamp,
    MessageTooLarge,
    RecordError,
    StorageError,
    UnknownTopicOrPartition,
)
from leafcuttr.log.append.rules import LARGE
from leafcuttr.log.appender import AppendRequest, AppendResult
from leafcuttr.log.log import Log
from leafcuttr.plugins.facade.committing import new_offsets
from leafcuttr.plugins.facade.group_errors import error_of
from leafcuttr.plugins.facade.producing import NOT_ALONE, Producing
from leafcuttr.plugins.facade.stamping import stamp_batch
from leafcuttr.state.broker import Broker
from leafcuttr.state.groups.committing import Committer
from leafcuttr.state.internal_log import ProducerIdAndEpoch
from leafcuttr.state.transactions.coordinator import TransactionAnswer
from leafcuttr.state.transactions.machine import BUMPS_EPOCHS, Transaction
from leafcuttr.state.transactions.offset_commits import commit_in_transaction
from leafcuttr.state.transactions.states import TransactionState
from leafcuttr_sdk import (
    Appended,
    CommittedOffset,
    Consumer,
    ConsumerGroupMetadata,
    NewBatch,
    Produced,
    Record,
    TopicPartition,
)
from leafcuttr_sdk.batches.header import sequence_after

_T = TypeVar("_T")

_OF_RECORDS: Final = (InvalidRecord, InvalidTimestamp, MessageTooLarge, UnknownTopicOrPartition)
"""What a record is refused for by itself."""


@asynccontextmanager
async def open_producer(
    core: Broker, producing: Producing, logger: logging.Logger, transactional_id: str, timeout_ms: int
) -> "AsyncIterator[PluginProducer]":
    """See `leafcuttr_sdk.Broker.transaction`."""
    producer = PluginProducer(core, producing, logger, transactional_id, timeout_ms)
    await producer.open()
    try:
        yield producer
    finally:
        await producer.close()


class PluginProducer(TransactionalProducerBase["PluginTransaction"]):
    """See `leafcuttr_sdk.TransactionalProducer`. `identity` is the producer id and epoch of the transaction that is
    open, or of the next one; `sequences` are the next sequence numbers of that epoch."""

    def __init__(
        self,
        core: Broker,
        producing: Producing,
        logger: logging.Logger,
        transactional_id: str,
        timeout_ms: int,
    ) -> None:
        super().__init__(transactional_id, timeout_ms, logger)
        self.core = core
        self.producing = producing
        self.identity = ProducerIdAndEpoch(-1, -1)
        self.sequences: dict[Log, int] = {}
        # Whether the answer to the last request was not waited for: the epoch may be a later one.
        self._unanswered = False

    async def open(self) -> None:
        """Raises InvalidRequest, InvalidTransactionTimeout, CoordinatorNotAvailable, StorageError."""
        self._check_id()
        await self._take_epoch(None)

    async def _make_ready(self) -> None:
        found = await self.core.transactions.settled(self.transactional_id)
        if found is None:
            await self._take_epoch(None)  # forgotten, after `transactional.id.expiration.ms`
        elif (found.now.producer_id, found.now.epoch) == self.identity:
            if found.now.state is TransactionState.ONGOING:
                await self.end(commit=False)  # its abort could not be stored when it was due
        elif self._unanswered:
            await self._take_epoch(self.identity)
        elif self._timed_out(found):
            self.identity = ProducerIdAndEpoch(found.now.producer_id, found.now.epoch)
            await self._take_epoch(self.identity)
        else:
            raise self.fenced()

    def _transaction(self) -> "PluginTransaction":
        return PluginTransaction(self)

    async def _take_epoch(self, known: tuple[int, int] | None) -> None:
        """InitProducerId, as often as it takes; with the id and epoch that we have it fences nobody (KIP-360)."""
        transactions = self.core.transactions
        answer = TransactionAnswer(ErrorCode.CONCURRENT_TRANSACTIONS)
        while answer.error is ErrorCode.CONCURRENT_TRANSACTIONS:
            await transactions.settled(self.transactional_id)
            self._unanswered = True
            answer = await transactions.init(self.transactional_id, self.timeout_ms, known)
        if answer.error is ErrorCode.INVALID_TRANSACTION_TIMEOUT:
            most = self.core.settings.int("transaction.max.timeout.ms")
            raise error_of(
                answer.error, f"A timeout of {self.timeout_ms} ms is not from 1 to {most} ms, "
                "transaction.max.timeout.ms."
            )  # fmt: skip
        self._go_on(answer)

    async def end(self, *, commit: bool) -> None:
        """EndTxn. A commit is not cancelled while its decision is being written: whether it has happened would not be
        known. Raises BrokerError."""
        answer = TransactionAnswer(ErrorCode.CONCURRENT_TRANSACTIONS)
        while answer.error is ErrorCode.CONCURRENT_TRANSACTIONS:
            await self.core.transactions.settled(self.transactional_id)
            self._unanswered = True
            with trio.CancelScope(shield=commit):
                answer = await self.core.transactions.end(
                    self.transactional_id,
                    *self.identity,
                    commit=commit,
                    version=BUMPS_EPOCHS,
                )
        self._go_on(answer)

    def _go_on(self, answer: TransactionAnswer) -> None:
        self._unanswered = False
        if answer.error:
            raise self.error(answer.error)
        producer = ProducerIdAndEpoch(answer.producer_id, answer.epoch)
        if producer != self.identity:
            self.identity, self.sequences = producer, {}

    def error(self, code: ErrorCode, message: str = "") -> BrokerError:
        """The error that a code of the coordinator stands for."""
        if code in NOT_OURS:
            return self.lost()
        if code is ErrorCode.NOT_COORDINATOR:  # what makes a client come back
            return StorageError(message or f"The state of {self.transactional_id!r} could not be stored.")
        return error_of(code, message)

    def lost(self) -> BrokerError:
        """Why the transaction is ours no longer."""
        found = self.core.transactions.find(self.transactional_id)
        if found is not None and self._timed_out(found):
            return self.timed_out()
        return self.fenced()

    def is_current(self) -> bool:
        """Whether nobody has taken the id, nor raised its epoch."""
        found = self.core.transactions.find(self.transactional_id)
        return found is not None and (found.now.producer_id, found.now.epoch) == self.identity

    def _timed_out(self, found: Transaction) -> bool:
        """Whether all that has happened to the id since is that our transaction was aborted by its timeout."""
        now, (producer_id, epoch) = found.now, self.identity
        return found.overdue_epoch == epoch and now.producer_id == producer_id and now.epoch == epoch + 1


class PluginTransaction(TransactionBase):
    """See `leafcuttr_sdk.OpenTransaction`."""

    def __init__(self, producer: PluginProducer) -> None:
        super().__init__(producer.transactional_id, producer.logger)
        self._producer = producer
        self._core = producer.core
        self._producing = producer.producing.in_transaction(self._write, partial(self._write, lent=True))

    # --- what plugins call ------------------------------------------------------------------------------

    async def produce_batch(
        self, topic: str, records: Sequence[Record], *, partitions: Sequence[int | None] | None = None
    ) -> list[Produced]:
        with self._step():
            answers = await self._producing.produce_batch(topic, records, partitions=partitions)
            return _stored(answers, name_records=True)

    async def append(self, batches: Sequence[NewBatch]) -> list[Appended]:
        with self._step():
            return _stored(await self._producing.append(batches), name_records=False)

    async def commit_offsets(
        self,
        group: str | Consumer,
        offsets: Mapping[TopicPartition, CommittedOffset] | None = None,
    ) -> None:
        with self._step():
            if isinstance(group, str):
                committer = ConsumerGroupMetadata(group)
                if offsets is None:
                    raise ValueError(f"The offsets of group {group!r} are to be named.")
            else:
                committer = group.group_metadata()
                if offsets is None:
                    offsets = _positions(group)
            await self._commit_offsets(committer, offsets)

    # --- how --------------------------------------------------------------------------------------------

    async def _end_with_commit(self) -> None:
        await self._producer.end(commit=True)

    async def _end_with_abort(self) -> None:
        if self._begun:
            await self._producer.end(commit=False)

    @contextmanager
    def _step(self) -> Iterator[None]:
        """One call. Whatever it raises, nothing can be committed after it."""
        self._check()
        try:
            yield
        except Exception as error:
            known, self._failed = self._failed, True
            if isinstance(error, InvalidProducerEpoch) and not self._producer.is_current():
                error = self._producer.lost()
            if not known:
                self._failure = error
            raise error from error.__cause__
        except BaseException:
            self._failed = True
            raise

    async def _write(
        self, requested: Sequence[AppendRequest], *, lent: bool = False
    ) -> Sequence[AppendResult]:
        """`Appender.append` for this transaction."""
        async with self._one_at_a_time:
            self._check()
            await self._add({each.log.topic_partition for each in requested if self._is_new(each.log)})
            stamped = [each._replace(batch=await self._stamped(each)) for each in requested]
            return await self._core.appender.append(stamped, lent=lent)

    def _is_new(self, log: Log) -> bool:
        """Whether this partition is to become part of the transaction: one of its name before it does not count, and
        one that is offline takes no batch, and could have no marker."""
        producer_id, epoch = self._producer.identity
        return log.offline is None and log.ongoing(producer_id, epoch) < 0

    async def _add(self, partitions: set[TopicPartition]) -> None:
        """AddPartitionsToTxn. The transaction may end before the batches are staged, but then its markers come into
        these partitions, with an epoch that fences the batches."""
        transactions, producer = self._core.transactions, self._producer
        code = ErrorCode.CONCURRENT_TRANSACTIONS if partitions else ErrorCode.NONE
        while code is ErrorCode.CONCURRENT_TRANSACTIONS:
            await transactions.settled(producer.transactional_id)
            self._begun = True
            added = transactions.add(producer.transactional_id, *producer.identity, partitions, BUMPS_EPOCHS)
            code = added if isinstance(added, ErrorCode) else await added
        if code:
            raise producer.error(code)

    async def _stamped(self, requested: AppendRequest) -> bytearray:
        """The batch as one of this producer, with the sequence numbers that are next in its partition."""
        sequences, log = self._producer.sequences, requested.log
        batch, sequence = requested.batch, sequences.get(log, 0)
        stamp = partial(stamp_batch, batch, self._producer.identity, sequence, transactional=True)
        new, records = stamp() if len(batch) <= LARGE else await trio.to_thread.run_sync(stamp)
        sequences[log] = sequence_after(sequence, records)
        return new

    async def _commit_offsets(
        self, committer: ConsumerGroupMetadata, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> None:
        if self._producing.rights is not None:
            self._producing.rights.need_to_commit(committer.group, (each.topic for each in offsets))
        producer, new = self._producer, await new_offsets(self._core, offsets)
        async with self._one_at_a_time:
            self._check()
            codes = [ErrorCode.CONCURRENT_TRANSACTIONS] if new else []
            while ErrorCode.CONCURRENT_TRANSACTIONS in codes:
                await self._core.transactions.settled(producer.transactional_id)
                self._begun = True
                codes = await commit_in_transaction(
                    self._core.groups,
                    self._core.transactions,
                    producer.transactional_id,
                    producer.identity,
                    committer.group,
                    Committer(*committer[1:]),
                    new,
                    adds=True,
                    knows_abortable=True,
                )
        for code, each in zip(codes, new, strict=True):
            if code:
                raise producer.error(code, f"committing {each.topic}-{each.partition}: {code.name}")


def _stored(answers: Sequence[_T | BrokerError], *, name_records: bool) -> list[_T]:
    """The answers, if none is an error. Raises the first that is about its own record or batch; with `name_records` it
    names the others at fault."""
    errors = [(place, one) for place, one in enumerate(answers) if isinstance(one, BrokerError)]
    if not errors:
        return [one for one in answers if not isinstance(one, BrokerError)]
    at_fault = [(place, one) for place, one in errors if str(one) != NOT_ALONE] or errors
    _, first = at_fault[0]
    if name_records and isinstance(first, _OF_RECORDS):
        first.record_errors = [RecordError(place, one.message) for place, one in at_fault]
    raise first


def _positions(consumer: Consumer) -> dict[TopicPartition, CommittedOffset]:
    known = {each: consumer.position(each) for each in consumer.assignment}
    return {each: CommittedOffset(offset) for each, offset in known.items() if offset is not None}
