"""A member of a consumer group, or a reader of partitions that it names itself, in process."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Protocol

from leafcuttr_sdk.groups import CommittedOffset, ConsumerGroupMetadata
from leafcuttr_sdk.records import StoredRecord
from leafcuttr_sdk.types import TopicPartition


class Consumer(Protocol):
    """Either subscribed (the group assigns partitions) or assigned (the caller does), as Kafka's consumer.

    One task at a time calls `poll`; two are a `trio.BusyResourceError`. Heartbeats go on by themselves for as long as
    `poll` is called within `max_poll_interval_ms` of its last end; after that the member leaves, and the next `poll`
    joins anew. A rebalance takes place in `poll`: until then what is assigned stays so, and can be committed. With it
    partitions may come to others, and what was not committed of them is read again by the members that have them then.

    A partition that nothing was committed for begins where `auto_offset_reset` says, as does one whose position is not
    in the log any more; with `none` that is an OffsetOutOfRange, until `seek`.
    """

    async def poll(
        self, *, wait_s: float = 1.0, max_records: int | None = None, max_bytes: int | None = None
    ) -> list[StoredRecord]:
        """The next records, or none after `wait_s`: those that are there, at most `max_records`, and at most
        `max_bytes` of keys, values and headers but for a first one that has more. Those of a partition are together and
        in order of offset. Without limits it is all that one `Broker.fetch` has found, at its speed. It may return none
        although there are some, while the group rebalances. Joins the group, and rejoins it when it rebalances.

        Raises BrokerError: FencedInstanceId for good, once another took this `instance_id`; StorageError where all
        partitions are offline (of some, the others go on). Cancelled: positions are as before, and a rebalance of the
        group goes on."""
        ...

    def __aiter__(self) -> AsyncIterator[StoredRecord]:
        """Record after record, for ever; the position is behind the one that was yielded last. As `poll`."""
        ...

    async def commit(self, offsets: Mapping[TopicPartition, CommittedOffset] | None = None) -> None:
        """Commit the positions of all assigned partitions, or these. Raises RebalanceInProgress while the group
        rebalances, UnknownMemberId and IllegalGeneration once it has gone on without this member (all three:
        poll, and go on with the new assignment), UnknownTopicOrPartition, OffsetMetadataTooLarge. Cancelled: it may
        have been committed."""
        ...

    def group_metadata(self) -> ConsumerGroupMetadata:
        """In whose name it commits now (KIP-447). Raises RebalanceInProgress and UnknownMemberId as `commit`, and
        InvalidGroupId without a group."""
        ...

    def subscribe(self, topics: Iterable[str] = (), *, pattern: str | None = None) -> None:
        """From the next `poll` on. `pattern` is a regular expression (RE2, without flags and word boundaries) that
        whole topic names are compared with, again whenever topics come and go; internal ones are never meant. A topic
        that does not exist yet is read once it does. Without topics it is `unsubscribe`. Raises ValueError while
        partitions are assigned by `assign`, for a pattern that is none, and for topics and a pattern together."""
        ...

    def unsubscribe(self) -> None:
        """Read nothing any more. The member leaves its group at once, unless it is static (KIP-345): that one is
        removed when its session ends."""
        ...

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        """Read these, without being a member; those that were assigned before go on where they are. Raises ValueError
        while subscribed."""
        ...

    @property
    def subscription(self) -> frozenset[str]:
        """Topics; with a pattern, those that matched at the last rebalance."""
        ...

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that it reads: those that the group has assigned to it, or those of `assign`."""
        ...

    def position(self, partition: TopicPartition) -> int | None:
        """The next offset; None where it is not known yet. Raises ValueError for one that is not assigned."""
        ...

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """A `poll` that waits goes on from there. Raises ValueError for one that is not assigned, or an offset below
        0."""
        ...

    async def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """To the log start offsets; of all that are assigned if none are named. Raises ValueError, BrokerError."""
        ...

    async def seek_to_end(self, *partitions: TopicPartition) -> None:
        """To the high watermarks, or with `committed` to the last stable offsets. Raises as `seek_to_beginning`."""
        ...

    def seek_to_committed(self) -> None:
        """Go back to what the group has committed, as after an assignment: for records whose transaction was aborted.
        `position` is None until the next `poll`."""
        ...

    async def committed(
        self, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, CommittedOffset | None]:
        """What any member of the group has committed. Raises CoordinatorLoadInProgress, CoordinatorNotAvailable."""
        ...
