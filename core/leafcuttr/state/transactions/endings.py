"""Completing what has been decided: a marker into every partition of the transaction, then that it is complete.

The caller has decided. Only this module changes a prepared transaction, and it never gives up: a marker that waits for
the disk, or is refused, is written by a task.
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Final

import trio

from leafcuttr import crashpoints
from leafcuttr.errors import ErrorCode
from leafcuttr.state.transactions.machine import Transaction
from leafcuttr.state.transactions.markers import End, Markers, Wait, wait_for_all
from leafcuttr.state.transactions.store import TransactionLog
from leafcuttr.state.transactions.table import TransactionTable
from leafcuttr_sdk import TopicPartition

logger = logging.getLogger(__name__)

# More markers than this are written by a task of their own, which lets others run in between.
_AT_ONCE: Final = 50
_RETRY_S: Final = (0.1, 0.5, 1.0, 5.0)

Completion = ErrorCode | Awaitable[ErrorCode]


class Endings:
    """The ends of transactions. `complete` writes that one is complete, once it has all its markers."""

    def __init__(
        self,
        table: TransactionTable,
        log: TransactionLog,
        markers: Markers,
        complete: Callable[[Transaction], Completion],
    ) -> None:
        self._table = table
        self._log = log
        self._markers = markers
        self._complete = complete
        self._nursery: trio.Nursery | None = None

    def use(self, nursery: trio.Nursery | None) -> None:
        """Go on in this nursery where it takes longer. Without one the broker stops, or has not started, and nothing
        is done: the next start finds the decision and goes on."""
        self._nursery = nursery

    def finish(self, transaction: Transaction) -> None:
        """Write the markers of a prepared transaction, and that it is complete: now, unless something has to wait. Once
        for each transaction."""
        crashpoints.reach("transaction.prepared")
        if self._nursery is None:
            return
        waiting: list[Wait] = []
        coming: Completion = ErrorCode.NOT_COORDINATOR
        if len(transaction.now.partitions) <= _AT_ONCE:
            waiting = self._mark(transaction, transaction.now.partitions)
            if not transaction.now.partitions:
                coming = self._complete(transaction)
        if coming is not ErrorCode.NONE:
            self._nursery.start_soon(self._finish_in_time, transaction, waiting, coming)

    async def finish_all(self, prepared: Iterable[Transaction]) -> None:
        """As `finish`, with others in between."""
        for transaction in prepared:
            if self._table.holds(transaction):
                self.finish(transaction)
            await trio.lowlevel.checkpoint()

    async def _finish_in_time(
        self, transaction: Transaction, waiting: list[Wait], coming: Completion
    ) -> None:
        """As `finish`, with waits where the disk is slow, and again and again where it refuses."""
        try:
            await wait_for_all(waiting)
            tries = 0
            while await outcome(coming) and self._table.holds(transaction):
                if tries:
                    await trio.sleep(_RETRY_S[min(tries, len(_RETRY_S)) - 1])
                tries += 1
                todo = sorted(transaction.now.partitions)
                for start in range(0, len(todo), _AT_ONCE):
                    await wait_for_all(self._mark(transaction, todo[start : start + _AT_ONCE]))
                if not transaction.now.partitions:
                    coming = self._complete(transaction)
        except Exception:
            # One transaction must not take the broker with it; the next start completes it.
            logger.exception("completing the transaction of %r failed", transaction.transactional_id)

    def _mark(self, transaction: Transaction, partitions: Collection[TopicPartition]) -> list[Wait]:
        """Write markers. Pass the result to `wait_for_all`."""

        def done(partition: TopicPartition) -> None:
            transaction.marked(partition)
            crashpoints.reach("transaction.marked")

        now = transaction.now
        leader_epoch = self._log.coordinator_epoch(self._log.partition_of(transaction.transactional_id))
        end = End(now.producer_id, now.epoch, now.commits, leader_epoch, now.version)
        return self._markers.write_all(partitions, end, done)


async def outcome(coming: Completion) -> ErrorCode:
    return coming if isinstance(coming, ErrorCode) else await coming
