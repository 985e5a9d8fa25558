"""Transactions of which the partitions know at a start, and of which the coordinator may have lost the records.

With the power each log loses a tail of its own, so `__transaction_state` may speak of an earlier time than the
partitions do (unless it is in topic sync mode). Then epochs that were given out must not be given out again: a
partition would refuse them, or take a new batch for the repetition of an old one. And a transaction that is open in a
partition, and that no coordinator will end, is aborted: otherwise read_committed consumers would wait for ever.

The coordinator knows of a transaction before a partition has its records: so no producer goes on with a transaction
that the coordinator does not know at a start.
"""

import logging
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from leafcuttr.log.log import Log
from leafcuttr.state.topics import Topics
from leafcuttr.state.transactions.machine import BUMPS_EPOCHS, NO_EPOCH, Transaction
from leafcuttr.state.transactions.markers import End, Markers, Wait, wait_for_all
from leafcuttr.state.transactions.states import PREPARED, TransactionState
from leafcuttr_sdk import TopicPartition

logger = logging.getLogger(__name__)

_KEEPS_EPOCH: Final = 1
"""The transaction version of a marker that has the epoch of the records."""


class _Open(NamedTuple):
    """A transaction that a partition has not seen the end of."""

    name: TopicPartition
    log: Log
    producer_id: int
    epoch: int
    coordinator_epoch: int


class PartitionTransactions:
    """Transactions and epochs in the logs, read once, before any client may write to them."""

    def __init__(self, topics: Topics) -> None:
        self._epochs: dict[int, int] = {}
        self._open: list[_Open] = []
        self._going: dict[tuple[int, TopicPartition], int] = {}  # and the epoch of its records
        for name, log in _with_producers(topics):
            for entry in log.producers:
                producer_id = entry.producer_id
                self._epochs[producer_id] = max(self._epochs.get(producer_id, NO_EPOCH), entry.epoch)
                if entry.current_txn_first_offset >= 0:
                    self._open.append(_Open(name, log, producer_id, entry.epoch, entry.coordinator_epoch))

    def loaded(self, transactions: Iterable[Transaction]) -> None:
        """These are known to the coordinator, and no client has been answered about them yet: let no epoch be given out
        again that a partition has seen."""
        for transaction in transactions:
            now = transaction.now
            known = self._epochs.get(now.producer_id, NO_EPOCH)
            if known > now.epoch:
                transaction.epoch_floor = known
            if now.state is TransactionState.ONGOING or now.state in PREPARED:
                raised = now.state in PREPARED and now.version >= BUMPS_EPOCHS
                epoch = now.epoch - 1 if raised else now.epoch
                self._going.update({(now.producer_id, partition): epoch for partition in now.partitions})

    async def abort_unknown(self, markers: Markers) -> None:
        """Abort what is open in a partition and belongs to no transaction that was `loaded` as going on, or as being
        ended: also a later one of the same producer. Raises nothing: what a partition refuses is logged."""
        waiting: list[Wait] = []
        for name, log, producer_id, epoch, coordinator_epoch in self._open:
            ended_by_others = epoch <= self._going.get((producer_id, name), NO_EPOCH)
            if ended_by_others or log.ongoing(producer_id, epoch) < 0:
                continue
            logger.warning(
                "%s: a transaction of producer %d is open that the coordinator does not know; it is aborted",
                name,
                producer_id,
            )
            end = End(producer_id, epoch, False, max(coordinator_epoch, 0), _KEEPS_EPOCH)
            waiting += markers.write_all([name], end, lambda _: None)
        await wait_for_all(waiting)


def _with_producers(topics: Topics) -> Iterator[tuple[TopicPartition, Log]]:
    for topic in topics.by_name.values():
        for partition in topic.partitions:
            if partition.log.offline is None and partition.log.has_producers:
                yield TopicPartition(topic.name, partition.index), partition.log
