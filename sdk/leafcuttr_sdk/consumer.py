"""A member of a consumer group, or a reader of partitions that it names itself, in process."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Protocol

from leafcuttr_sdk.groups import CommittedOffset
from leafcuttr_sdk.records import StoredRecord
from leafcuttr_sdk.types import TopicPartition


class Consumer(Protocol):
    """Either subscribed (the group assigns partitions) or assigned (the caller does), as Kafka's consumer.

    One task at a time calls `poll`. Heartbeats go on by themselves for as long as `poll` comes back within
    `max_poll_interval_ms`.
    """

    async def poll(
        self, *, wait_s: float = 1.0, max_records: int | None = None, max_bytes: int | None = None
    ) -> list[StoredRecord]:
        """The next records, or none after `wait_s`. Joins the group and takes part in rebalances. Raises BrokerError.
        Cancelled: positions are as before."""
        ...

    def __aiter__(self) -> AsyncIterator[StoredRecord]:
        """Record after record, for ever."""
        ...

    async def commit(self, offsets: Mapping[TopicPartition, CommittedOffset] | None = None) -> None:
        """Commit the positions of all assigned partitions, or these. Raises RebalanceInProgress, UnknownMemberId,
        IllegalGeneration... Cancelled: it may have been committed."""
        ...

    def subscribe(self, topics: Iterable[str] = (), *, pattern: str | None = None) -> None:
        """From the next `poll` on. `pattern` is a regular expression that whole topic names are compared with. Raises
        ValueError while partitions are assigned by `assign`."""
        ...

    def unsubscribe(self) -> None:
        """Take part in nothing any more; the member leaves the group at the next `poll`."""
        ...

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        """Read these, without being a member. Raises ValueError while subscribed."""
        ...

    @property
    def subscription(self) -> frozenset[str]: ...

    @property
    def assignment(self) -> frozenset[TopicPartition]: ...

    def position(self, partition: TopicPartition) -> int | None:
        """The next offset; None where it is not known yet. Raises ValueError for one that is not assigned."""
        ...

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Raises ValueError for one that is not assigned."""
        ...

    async def seek_to_beginning(self, *partitions: TopicPartition) -> None: ...

    async def seek_to_end(self, *partitions: TopicPartition) -> None: ...

    async def committed(
        self, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, CommittedOffset | None]: ...
