"""Writing transaction markers into partitions, and telling the groups of those in `__consumer_offsets`.

The coordinator, or a WriteTxnMarkers request, has decided that a transaction ends.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import NamedTuple

import trio

from leafcuttr.errors import BrokerError, InvalidProducerEpoch, TransactionCoordinatorFenced
from leafcuttr.log.append.pending_write import PendingWrite
from leafcuttr.log.append.rules import Origin
from leafcuttr.log.append.staged import Staged
from leafcuttr.log.log import Log
from leafcuttr.state.groups.committing import Offsets
from leafcuttr.state.topic_names import CONSUMER_OFFSETS
from leafcuttr.state.topics import Topics
from leafcuttr.state.transactions.machine import BUMPS_EPOCHS
from leafcuttr_sdk import Clock, TopicPartition

logger = logging.getLogger(__name__)

Wait = Callable[[], Awaitable[None]]
WhenDone = Callable[[TopicPartition], None]


class End(NamedTuple):
    """What a marker says, the same in every partition. `version` is the transaction version it was ended with."""

    producer_id: int
    epoch: int
    commit: bool
    coordinator_epoch: int
    version: int


def stage_marker(log: Log, end: End, now_ms: int) -> Staged:
    """Give the marker an offset in this partition and queue it. Raises InvalidProducerEpoch,
    TransactionCoordinatorFenced, StorageError."""
    log.resources.descriptors.import_late("leafcuttr.wire.markers")
    from leafcuttr.wire.markers import Marker, encode_marker

    batch = encode_marker(
        end.producer_id,
        end.epoch,
        Marker(end.commit, end.coordinator_epoch),
        timestamp=now_ms,
        log_append_time=log.config.log_append_time,
    )
    origin = Origin.MARKER_OF_NEXT_EPOCH if end.version >= BUMPS_EPOCHS else Origin.MARKER
    return log.stage(batch, origin, now_ms=now_ms)


class Markers:
    """Ends transactions in partitions."""

    def __init__(self, *, topics: Topics, offsets: Offsets, clock: Clock) -> None:
        self._topics = topics
        self._offsets = offsets
        self._clock = clock

    def write(self, partition: TopicPartition, end: End) -> Awaitable[None] | None:
        """Append one marker; an awaitable comes back if the disk is slow.

        A partition that does not exist any more needs none, and one that has had this marker gets no second.
        Raises (at once, or from the awaitable) InvalidProducerEpoch, TransactionCoordinatorFenced, StorageError.
        """
        log = self._log(partition)
        if log is None or _has_ended(log, end):
            return None
        staged = stage_marker(log, end, self._clock.now_ms())
        write = log.write()
        if not write.done:
            return self._wait(write, partition, end, staged)
        failure = write.failure_of(staged)
        if failure is not None:
            raise failure
        self._written(partition, end, staged.base_offset)
        return None

    def _log(self, partition: TopicPartition) -> Log | None:
        topic = self._topics.by_name.get(partition.topic)
        if topic is None or not 0 <= partition.partition < len(topic.partitions):
            return None
        return topic.partitions[partition.partition].log

    async def _wait(self, write: PendingWrite, partition: TopicPartition, end: End, staged: Staged) -> None:
        await write.confirm(staged)
        self._written(partition, end, staged.base_offset)

    def _written(self, partition: TopicPartition, end: End, offset: int) -> None:
        if partition.topic == CONSUMER_OFFSETS:
            self._offsets.transaction_ended(
                partition.partition, end.producer_id, commit=end.commit, marker_at=offset
            )

    def write_or_pass(self, partition: TopicPartition, end: End) -> Awaitable[None] | None:
        """As `write`, but a partition that knows a later epoch is left as it is: the transaction has ended there.

        Raises StorageError.
        """
        try:
            return self.write(partition, end)
        except (InvalidProducerEpoch, TransactionCoordinatorFenced) as error:
            logger.warning("%s gets no transaction marker: %s", partition, error)
            return None

    def write_all(self, partitions: Iterable[TopicPartition], end: End, done: WhenDone) -> list[Wait]:
        """`write_or_pass` for each, and `done` for each that has its marker: now, or once the result has been
        awaited (`wait_for_all`: the disk then holds up all of them together). One that refuses is logged."""
        waiting: list[Wait] = []
        for partition in sorted(partitions):
            try:
                coming = self.write_or_pass(partition, end)
            except BrokerError as error:
                _refused(partition, error)
            else:
                if coming is None:
                    done(partition)
                else:
                    waiting.append(partial(_finish, partition, coming, done))
        return waiting


async def wait_for_all(waiting: Iterable[Wait]) -> None:
    """Let others run at least once, and return when all is done."""
    async with trio.open_nursery() as nursery:
        for wait in waiting:
            nursery.start_soon(wait)
    await trio.lowlevel.checkpoint()


async def _finish(partition: TopicPartition, coming: Awaitable[None], done: WhenDone) -> None:
    try:
        await coming
    except BrokerError as error:
        _refused(partition, error)
    else:
        done(partition)


def _refused(partition: TopicPartition, error: BrokerError) -> None:
    logger.warning("%s has no transaction marker yet: %s", partition, error)


def _has_ended(log: Log, end: End) -> bool:
    """Whether this very marker is in the log: its epoch is used for nothing else (KIP-890)."""
    known = log.producers.get(end.producer_id)
    return (
        end.version >= BUMPS_EPOCHS
        and known is not None
        and known.epoch == end.epoch
        and known.current_txn_first_offset < 0
    )
