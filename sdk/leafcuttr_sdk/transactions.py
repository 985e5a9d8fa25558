"""Transactions: records in many partitions, and a group's offsets, that become visible together or not at all.

What Kafka's transactional producer is for clients (KIP-98), with the same coordinator, markers and fencing. A client
and a plugin that use the same transactional id fence each other.

    async with broker.transaction("mover") as producer:
        while True:
            async with producer.begin() as transaction:
                await transaction.produce_batch("out", records)
                await transaction.commit_offsets(consumer)
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol

from leafcuttr_sdk.types import TopicPartition

if TYPE_CHECKING:
    from leafcuttr_sdk.consumer import Consumer
    from leafcuttr_sdk.groups import CommittedOffset
    from leafcuttr_sdk.records import Appended, NewBatch, Produced, Record


class OpenTransaction(Protocol):
    """One transaction, from `TransactionalProducer.begin` to the end of that block.

    Readers of committed records see what is written here once it has been committed, and no later record of the same
    partitions before. Others see it at once.

    After a call that has raised anything, cancellation included, the transaction can only be aborted: every later call,
    and the end of the block, raises TransactionAborted. Several tasks may write to one transaction: what they write
    is in the order of their calls.

    Each call raises, beside what it says: ProducerFenced, once another producer has begun with the transactional id;
    TransactionTimedOut, once this took longer than `timeout_ms`; RuntimeError after the end of the block.
    """

    async def produce_batch(
        self, topic: str, records: "Sequence[Record]", *, partitions: Sequence[int | None] | None = None
    ) -> "list[Produced]":
        """As `Broker.produce_batch`, but what refuses one record is raised: the error of the first that is at fault by
        itself. Its `record_errors` name all of these by their places in `records`."""
        ...

    async def append(self, batches: "Sequence[NewBatch]") -> "list[Appended]":
        """As `Broker.append`, but what refuses one batch is raised. The producer, sequence and base offset of the
        batches are set here, whatever they say. Raises CorruptMessage for bytes that are not one batch with its
        CRC."""
        ...

    async def commit_offsets(
        self,
        group: "str | Consumer",
        offsets: "Mapping[TopicPartition, CommittedOffset] | None" = None,
    ) -> None:
        """Commit offsets of a group with the transaction. Of a `Consumer` they are committed as by its `commit`: as a
        member (KIP-447), and all its positions unless there are `offsets`. By the name of a group they are committed
        without a look at its members. Until the transaction has ended, members that begin to read these partitions
        wait. No task may poll the consumer between the `poll` that gave the records and this call.

        Raises as `Consumer.commit`; ValueError for a name without offsets."""
        ...

    async def abort(self) -> None:
        """Abort now, whether cancelled or not. The end of the block then does nothing. Raises nothing: where the disk
        does not take it within some seconds, one line in the log says so, and `begin` or the timeout aborts it."""
        ...


class TransactionalProducer(Protocol):
    """A producer that has a transactional id to itself, until another one begins with it. One transaction at a time."""

    @property
    def transactional_id(self) -> str:
        """As it was given to `Broker.transaction`."""
        ...

    def begin(self) -> AbstractAsyncContextManager[OpenTransaction]:
        """A transaction for as long as the context lasts: committed at its end, aborted if the block raises or is
        cancelled. While the last one is being completed, the context waits before it begins.

        Entering it raises ProducerFenced; StorageError, while what the last one has left cannot be aborted;
        trio.BusyResourceError while another transaction is open; RuntimeError once the producer is closed. Its end
        raises TransactionAborted, if a call has failed and the block went on; what each call of the transaction raises;
        and StorageError where the commit cannot be stored: then it is aborted.

        A commit has happened once the context has ended without an error. Cancelled before that it is aborted; while
        the decision is being written it is not cancelled. After TransactionTimedOut, or any other error but
        ProducerFenced, the next transaction may begin."""
        ...
