"""What the plugin calls: subscribe or assign, poll, seek, commit. Only this module waits for records."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from typing import Final, Protocol

import trio

from leafcuttr.errors import (
    BrokerError,
    CoordinatorLoadInProgress,
    ErrorCode,
    InvalidGroupId,
    OffsetOutOfRange,
    StorageError,
    UnknownMemberId,
    UnknownTopicOrPartition,
)
from leafcuttr.plugins.facade.committing import commit_offsets, committed_offsets
from leafcuttr.plugins.facade.consumer.buffer import RecordBuffer
from leafcuttr.plugins.facade.consumer.member import ConsumerMember, Subscription
from leafcuttr.plugins.facade.consumer.options import ConsumerOptions
from leafcuttr.plugins.facade.consumer.positions import Positions
from leafcuttr.state.broker import Broker
from leafcuttr.state.groups.committing import Committer
from leafcuttr.state.patterns import Pattern
from leafcuttr_sdk import TopicPartition
from leafcuttr_sdk.errors import RebalanceInProgress
from leafcuttr_sdk.groups import CommittedOffset, ConsumerGroupMetadata
from leafcuttr_sdk.records import Fetched, StoredRecord

_FETCH_BYTES: Final = 1024 * 1024
_LEAST_BYTES: Final = 64 * 1024
# Records that an iteration hands out between two checkpoints of the loop.
_TURN: Final = 100


class Fetch(Protocol):
    """`leafcuttr_sdk.Broker.fetch`."""

    def __call__(
        self,
        positions: Mapping[TopicPartition, int],
        *,
        max_bytes: int = ...,
        max_records: int | None = None,
        wait_s: float = 0.0,
        committed: bool = False,
    ) -> Awaitable[Fetched]: ...


class GroupConsumer:
    """See `leafcuttr_sdk.Consumer`."""

    def __init__(
        self,
        broker: Broker,
        fetch: Fetch,
        options: ConsumerOptions,
        logger: logging.Logger,
        sees: Callable[[str], bool] | None = None,
    ) -> None:
        """A pattern means topics only that it `sees`; None: all."""
        self._broker = broker
        self._fetch = fetch
        self._group = options.group
        self._committed = options.committed
        self._sees = sees
        self.member = ConsumerMember(broker, options, logger, self._wake)
        self._positions = Positions(broker, options)
        self._buffer = RecordBuffer(self._positions.moved)
        self._subscribed = False
        self._assigned = False
        # Whether something has changed that the next `poll` has to see to before it hands out records.
        self._stale = True
        self._scope: trio.CancelScope | None = None
        self._polling = False
        self._handed_out = 0

    # --- what to read ---------------------------------------------------------------------------------------

    def subscribe(self, topics: Iterable[str] = (), *, pattern: str | None = None) -> None:
        """Raises ValueError while partitions are assigned by `assign`, for a pattern that is none, and for topics and a
        pattern together."""
        if self._assigned:
            raise ValueError("This consumer reads partitions that were assigned to it; unsubscribe first.")
        if isinstance(topics, str):
            raise ValueError(f"Topics are a list: [{topics!r}].")  # noqa: TRY004
        names = frozenset(topics)
        if pattern is not None and names:
            raise ValueError("Topics or a pattern, not both.")
        if pattern is None and not names:
            self.unsubscribe()
            return
        self._subscribed = True
        self.member.subscribe(Subscription(names, None if pattern is None else Pattern(pattern), self._sees))
        self._wake()

    def unsubscribe(self) -> None:
        if self._subscribed:
            self.member.subscribe(None)
        self._subscribed = self._assigned = False
        self._take_over(())

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        """Raises ValueError while subscribed."""
        if self._subscribed:
            raise ValueError(
                "This consumer is a member of a group, which assigns its partitions; unsubscribe first."
            )
        for partition in partitions:
            if partition.partition < 0:
                raise ValueError(f"{partition} is no partition.")
        self._assigned = bool(partitions)
        self._take_over(partitions, keep=True)

    @property
    def subscription(self) -> frozenset[str]:
        return self.member.topics if self._subscribed else frozenset()

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return self._positions.partitions

    def _take_over(self, partitions: Iterable[TopicPartition], *, keep: bool = False) -> None:
        self._buffer.clear()
        self._positions.assign(partitions, keep=keep)
        self._wake()

    # --- reading --------------------------------------------------------------------------------------------

    async def poll(
        self, *, wait_s: float = 1.0, max_records: int | None = None, max_bytes: int | None = None
    ) -> list[StoredRecord]:
        """Raises BrokerError; trio.BusyResourceError for two at a time, ValueError for limits below 1."""
        if any(limit is not None and limit < 1 for limit in (max_records, max_bytes)):
            raise ValueError("max_records and max_bytes are at least 1.")
        deadline = trio.current_time() + wait_s
        with self._one_poll():
            await trio.lowlevel.checkpoint()
            while True:
                # Whatever changes while this turn waits cancels it; the next one sees to it.
                with trio.CancelScope() as self._scope:
                    self._handle_changes()
                    if not self._buffer:
                        await self._fill(deadline, max_bytes)
                    records = self._buffer.take(max_records, max_bytes)
                    if records or trio.current_time() >= deadline:
                        return records

    def __aiter__(self) -> AsyncIterator[StoredRecord]:
        return self._records()

    async def _records(self) -> AsyncIterator[StoredRecord]:
        while True:
            self._handed_out += 1
            if self._buffer and not self._stale and self._handed_out % _TURN:
                with self._one_poll():
                    records = self._buffer.take(1)
            else:
                records = await self.poll(wait_s=float("inf"), max_records=1)
            for record in records:
                yield record

    @contextmanager
    def _one_poll(self) -> Iterator[None]:
        if self._polling:
            raise trio.BusyResourceError("Another task polls this consumer.")
        self._polling = True
        self.member.polls(True)
        try:
            yield
        finally:
            self._polling = False
            self._scope = None
            self.member.polls(False)

    def _wake(self) -> None:
        self._stale = True
        if self._scope is not None:
            self._scope.cancel()

    def _handle_changes(self) -> None:
        """Follow the group: give up our partitions and allow the next rebalance, or take the new assignment."""
        self._stale = False
        if not self._subscribed:
            return
        failure = self.member.take_failure()
        if failure is not None:
            self._revoke()
            raise failure
        if self.member.wants_rebalance:
            self._revoke()
            self.member.allow()
        assignment = self.member.take_assignment()
        if assignment is not None:
            self._buffer.clear()
            self._positions.assign(assignment)

    def _revoke(self) -> None:
        self._buffer.clear()
        self._positions.assign(())

    async def _fill(self, deadline: float, max_bytes: int | None) -> None:
        """Wait for records until the deadline."""
        try:
            ready, undecided = self._positions.resolve()
        except CoordinatorLoadInProgress:
            ready, undecided = {}, True
        with ExitStack() as watching:
            if undecided:
                watching.enter_context(self._broker.groups.watch(self._group, self._wake))
            if not ready:
                # Until the member, the topics or the group have something new.
                with trio.move_on_at(deadline):
                    await trio.sleep_forever()
                return
            size = _FETCH_BYTES if max_bytes is None else min(max(max_bytes, _LEAST_BYTES), _FETCH_BYTES)
            wait_s = max(deadline - trio.current_time(), 0.0)
            try:
                found = await self._fetch(ready, max_bytes=size, wait_s=wait_s, committed=self._committed)
            except (OffsetOutOfRange, StorageError, UnknownTopicOrPartition):
                # A partition has changed since it was checked: the next check sees it, or raises.
                if not self._moved_on(ready):
                    raise
                return
        self._buffer.put(found.records, found.positions)

    def _moved_on(self, ready: Mapping[TopicPartition, int]) -> bool:
        try:
            return self._positions.resolve()[0] != ready
        except BrokerError:
            return True

    # --- positions ------------------------------------------------------------------------------------------

    def position(self, partition: TopicPartition) -> int | None:
        """Raises ValueError for a partition that is not assigned."""
        return self._positions.get(partition)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Raises ValueError for a partition that is not assigned, and for an offset below 0."""
        if offset < 0:
            raise ValueError(f"{offset} is no offset.")
        self._positions.set(partition, offset)
        self._buffer.drop(partition)
        self._wake()

    async def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        await self._seek_all(partitions, beginning=True)

    async def seek_to_end(self, *partitions: TopicPartition) -> None:
        await self._seek_all(partitions, beginning=False)

    async def _seek_all(self, partitions: Sequence[TopicPartition], *, beginning: bool) -> None:
        await trio.lowlevel.checkpoint()
        for partition in partitions or self._positions.partitions:
            self._positions.seek(partition, beginning=beginning)
            self._buffer.drop(partition)
        self._wake()

    def seek_to_committed(self) -> None:
        self._take_over(self._positions.partitions)

    # --- commits --------------------------------------------------------------------------------------------

    async def commit(self, offsets: Mapping[TopicPartition, CommittedOffset] | None = None) -> None:
        """Raises RebalanceInProgress, UnknownMemberId, IllegalGeneration..."""
        if offsets is None:
            offsets = {
                partition: CommittedOffset(offset) for partition, offset in self._positions.known().items()
            }
        committer = Committer(*self.group_metadata()[1:])
        await trio.lowlevel.checkpoint()
        try:
            await commit_offsets(self._broker, self._group, committer, offsets)
        except BrokerError as error:
            if self._subscribed:
                self.member.heard(ErrorCode(error.code))
            raise

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Raises InvalidGroupId, RebalanceInProgress, UnknownMemberId."""
        if not self._group:
            raise InvalidGroupId("Without the name of a group nothing can be committed.")
        if not self._subscribed:
            return ConsumerGroupMetadata(self._group)
        if self.member.in_rebalance:
            raise RebalanceInProgress("The group rebalances; poll first.")
        if self.member.lost:
            raise UnknownMemberId("This consumer is no member of its group, or not any more; poll first.")
        return ConsumerGroupMetadata(self._group, *self.member.identity)

    async def committed(
        self, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, CommittedOffset | None]:
        """Raises BrokerError."""
        await trio.lowlevel.checkpoint()
        offsets = committed_offsets(self._broker, self._group)
        return {partition: offsets.get(partition) for partition in partitions}


@asynccontextmanager
async def open_consumer(
    broker: Broker,
    fetch: Fetch,
    options: ConsumerOptions,
    logger: logging.Logger,
    topics: Iterable[str],
    pattern: str | None,
    sees: Callable[[str], bool] | None = None,
) -> AsyncIterator[GroupConsumer]:
    """See `leafcuttr_sdk.Broker.consumer`; `broker` is the real one, `fetch` the facade's. Raises ValueError."""
    options.check()
    consumer = GroupConsumer(broker, fetch, options, logger, sees)
    failure: Exception | None = None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(consumer.member.run)
        try:
            consumer.subscribe(topics, pattern=pattern)
            yield consumer
        except Exception as error:
            failure = error  # raised outside the nursery, which would wrap it in a group
        finally:
            nursery.cancel_scope.cancel()
            consumer.member.leave("The consumer is closed.")
    if failure is not None:
        raise failure
