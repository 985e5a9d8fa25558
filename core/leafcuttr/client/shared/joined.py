"""Batches for a transaction that another process has begun: see `leafcuttr_sdk.blocking_peers.BlockingPeer.join`."""

from collections.abc import AsyncIterator, Sequence, Set
from contextlib import ExitStack, asynccontextmanager

import trio

from leafcuttr.client.calls import Calls
from leafcuttr.client.enlisting import TransactionVersions, add_partitions
from leafcuttr.client.producing.sender import BatchSender
from leafcuttr.client.producing.stamp import ProducerIdentity
from leafcuttr.client.shared.written import records_written
from leafcuttr.client.transactional import NOT_OURS
from leafcuttr.errors import BrokerError, OutOfOrderSequence
from leafcuttr.runtime.block_nursery import open_block_nursery
from leafcuttr_sdk.blocking_peers import SharedTransaction
from leafcuttr_sdk.errors import ProducerFenced
from leafcuttr_sdk.records import Appended, NewBatch
from leafcuttr_sdk.types import TopicPartition


@asynccontextmanager
async def open_joined(calls: Calls, transaction: SharedTransaction) -> AsyncIterator["JoinedAppender"]:
    """Its end drops what is not sent."""
    with ExitStack() as behind:
        async with open_block_nursery() as nursery:
            joined = JoinedAppender(calls, nursery, transaction)
            behind.callback(joined.close)
            yield joined


class JoinedAppender:
    """Several tasks may use it. Once a batch is refused, so are all later ones."""

    def __init__(self, calls: Calls, nursery: trio.Nursery, transaction: SharedTransaction) -> None:
        versions = TransactionVersions(transaction.version)
        self._calls = calls
        self._transaction = transaction
        self._identity = ProducerIdentity(transaction.producer_id, transaction.epoch)
        self._adds = not versions.adds_by_itself
        self._sender = BatchSender(
            calls,
            nursery,
            transactional_id=transaction.transactional_id,
            names_version=versions.produce,
        )
        self._joined: set[TopicPartition] = set()
        self._joining = trio.Lock()
        self._failure: BrokerError | None = None
        nursery.start_soon(self._sender.run)

    async def append(self, batches: Sequence[NewBatch]) -> "list[Appended | BrokerError]":
        """As `PeerAppender.append`, in the order of the calls."""
        # Calls that wait for a partition go on in their order, and no later one overtakes them.
        if self._joining.locked() or not {each.partition for each in batches} <= self._joined:
            await self._join({each.partition for each in batches})
        if self._failure is not None:
            return [self._failure] * len(batches)
        answers = await self._sender.append(batches, self._identity)
        return [self._noted(answer) for answer in answers]

    def close(self) -> None:
        """Once its tasks have ended."""
        self._sender.close()

    async def _join(self, partitions: Set[TopicPartition]) -> None:
        async with self._joining:
            new = partitions - self._joined
            if not new or self._failure is not None:
                return
            try:
                if self._adds:
                    await add_partitions(self._calls, self._transaction.transactional_id, self._identity, new)
                await self._check_first(new)
            except BrokerError as error:
                self._noted(error)
            else:
                self._joined |= new

    async def _check_first(self, partitions: Set[TopicPartition]) -> None:
        """Another process with this epoch would number its records from 0 on too, and a batch like one of its own be
        taken for a repetition and not be stored. Raises OutOfOrderSequence."""
        written = await records_written(self._calls, self._identity, partitions)
        for tp, records in (written or {}).items():
            if records:
                raise OutOfOrderSequence(
                    f"{tp}: another process has written {records} records of the transaction of "
                    f"{self._transaction.transactional_id!r} already: one writes all that a partition gets"
                )

    def _noted(self, answer: Appended | BrokerError) -> Appended | BrokerError:
        if isinstance(answer, Appended):
            return answer
        if answer.code in NOT_OURS:
            name, epoch = self._transaction.transactional_id, self._transaction.epoch
            fenced = ProducerFenced(
                f"The transaction of {name!r} with epoch {epoch} is over, or another owner has begun: {answer}"
            )
            fenced.__cause__ = answer
            answer = fenced
        self._failure = self._failure or answer
        return answer
