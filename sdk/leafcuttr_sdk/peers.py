"""Clusters of Kafka as ends of a flow: this broker in process, or any other cluster over the network, by one contract.

    async with broker.peer({"bootstrap.servers": "hub:9092"}) as hub, broker.peer() as here:
        async with here.reader(committed=True) as reader, hub.appender() as appender:
            reader.assign({TopicPartition("orders", 0): 0})
            while True:
                for read in await reader.read():
                    ...

For services that move records between clusters. What only this broker can do stays in `leafcuttr_sdk.broker`; for
programs that block, without a broker and without trio, there is `leafcuttr_sdk.blocking_peers`. Whatever the cluster's
version, batches come in Kafka's newest format (magic 2).
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, NamedTuple, Protocol

from leafcuttr_sdk._described import described
from leafcuttr_sdk.records import AbortedRange
from leafcuttr_sdk.types import TopicPartition

if TYPE_CHECKING:
    from leafcuttr_sdk.errors import BrokerError
    from leafcuttr_sdk.groups import CommittedOffset
    from leafcuttr_sdk.records import Appended, NewBatch
    from leafcuttr_sdk.transactions import TransactionalProducer


@described
class PeerTopic(NamedTuple):
    """A topic of a cluster as its metadata has it."""

    name: str
    topic_id: bytes
    """16 bytes; zeros where the cluster has no ids of topics (Kafka before 2.8)."""
    leader_epochs: Sequence[int]
    """The leader epoch of each partition, in the order of their numbers; -1 where it is not known."""
    internal: bool = False

    @property
    def partitions(self) -> int:
        """How many there are."""
        return len(self.leader_epochs)


@described
class PeerRead(NamedTuple):
    """What a reader found in one partition: whole record batches of magic 2 as they are stored, one behind the other.
    The first may begin before the position; records before it are to be skipped."""

    partition: TopicPartition
    data: bytes | bytearray | memoryview
    next_offset: int
    """Where the reader goes on. It may be above the position although `data` is empty: aborted or compacted records."""
    high_watermark: int
    """With `committed`, the last stable offset."""
    log_start_offset: int
    aborted: Sequence[AbortedRange] = ()
    """Of a reader of committed records: the aborted transactions that have records in `data`."""
    error: "BrokerError | None" = None
    """Why the partition is not read any further until `assign` names it again: OffsetOutOfRange,
    UnknownTopicOrPartition (it was deleted), UnknownTopicId (it was deleted and created anew), CorruptMessage,
    TopicAuthorizationFailed. What passes by itself (no leader, no connection) is retried by the reader and is no
    error."""


class PeerReader(Protocol):
    """Reads many partitions, those of a broker with one request. One task at a time calls `read`."""

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read these too, from these offsets on; one that is read already goes on there, and what was read of it and
        not handed out is dropped. A `read` that waits goes on with them."""
        ...

    def unassign(self, *partitions: TopicPartition) -> None:
        """Read these no more. Those that are not assigned are ignored."""
        ...

    def pause(self, *partitions: TopicPartition) -> None:
        """Request nothing of these until `resume`. What was read of them already is handed out at that time."""
        ...

    def resume(self, *partitions: TopicPartition) -> None: ...

    async def read(self) -> Sequence[PeerRead]:
        """What has come since the last call, at most one `PeerRead` of each partition; waits until there is something.
        Meanwhile the next ones are being fetched, of at most `max_bytes` in all. `data` may be kept. Cancelled: nothing
        is lost."""
        ...


class PeerAppender(Protocol):
    """Appends prebuilt batches, idempotently where the cluster can (KIP-98), several requests under way."""

    async def append(self, batches: "Sequence[NewBatch]") -> "list[Appended | BrokerError]":
        """As `Broker.append`; done once all are acknowledged by all replicas in sync, or refused for good. What passes
        (no leader, no connection, too few replicas) is retried for `delivery.timeout.ms`, then RequestTimedOut: such a
        batch may have been appended. Several tasks may call it, up to five calls at a time go on beside each other;
        the batches of one partition are appended in the order of the calls, and none behind one that failed, of the
        same call or of one that was under way when this one was made (those are RequestTimedOut, or
        OutOfOrderSequence). A batch whose CRC is wrong is CorruptMessage.

        Producer, sequence and base offset of the batches are set here. `Appended.base_offset` is -1 where the cluster
        does not tell. Cancelled: any of them may have been appended."""
        ...


class PeerClaim(Protocol):
    """A name that one process of many has: see `Peer.claim`."""

    @property
    def is_held(self) -> bool:
        """False once another process may have it."""
        ...

    async def lost(self) -> None:
        """Wait until it is not held any more."""
        ...


class Peer(Protocol):
    """One cluster, for as long as the context of `Broker.peer` lasts.

    Calls raise BrokerError with Kafka's code; where no broker of the cluster answers in time, RequestTimedOut with a
    line that says why (no broker answers at HOST:PORT, the certificate is refused, the password is wrong). Nothing is
    connected before the first call, and a cluster that is away is tried again at every call.
    """

    @property
    def name(self) -> str:
        """For lines and labels: the bootstrap addresses; `this broker` in process."""
        ...

    @property
    def in_process(self) -> bool:
        """True for this broker."""
        ...

    @property
    def trouble(self) -> str | None:
        """What is wrong with the cluster now, in one line for `/health`; None while it answers."""
        ...

    async def cluster_id(self) -> str:
        """Equal ids are the same cluster, whatever the addresses say."""
        ...

    async def node_count(self) -> int:
        """How many brokers there are: the largest replication factor."""
        ...

    async def has_transactions(self) -> bool:
        """False for a cluster that does not offer them; flows are at least once there."""
        ...

    # Topics

    async def topics(self, names: "Sequence[str] | None" = None) -> Mapping[str, PeerTopic]:
        """Those of these names that exist; of None all. Creates nothing."""
        ...

    async def ensure_topic(self, name: str) -> PeerTopic:
        """The topic, created with the cluster's defaults if it does not exist and `auto.create.topics.enable` allows
        that, as for producers. Raises UnknownTopicOrPartition, InvalidTopic, TopicAuthorizationFailed."""
        ...

    async def topic_configs(self, names: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
        """Of each of these that exists the settings that were given for the topic itself, as texts."""
        ...

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int,
        replication_factor: int = -1,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        """Returns once it can be written. -1 is the cluster's default. Raises TopicAlreadyExists, InvalidTopic,
        InvalidPartitions, InvalidReplicationFactor, InvalidConfig, PolicyViolation, TopicAuthorizationFailed."""
        ...

    async def alter_topic(self, name: str, configs: Mapping[str, str | None]) -> None:
        """Set these settings of the topic, and leave others as they are; None takes the override away."""
        ...

    async def add_partitions(self, name: str, total: int) -> None:
        """Enlarge the topic to so many."""
        ...

    async def offsets(
        self, times: Mapping[TopicPartition, int], *, committed: bool = False
    ) -> dict[TopicPartition, int]:
        """As `Broker.offsets`: by time in ms, or `EARLIEST`, or `LATEST`, with `committed` the last stable offset.
        Partitions that do not exist are left out."""
        ...

    async def epoch_end(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, tuple[int, int]]:
        """For each partition and leader epoch (of a batch that was read) the largest epoch that is not above it, and
        the offset behind its last record (KIP-101, KIP-320); (-1, -1) where it is not known. An end below the position
        says that the log was truncated. Partitions that do not exist are left out."""
        ...

    # Records

    def reader(
        self, *, committed: bool = True, max_bytes: int = 16 << 20, partition_bytes: int = 1 << 20
    ) -> AbstractAsyncContextManager[PeerReader]:
        """`max_bytes` is what all partitions together may have fetched and not handed out, `partition_bytes` what one
        request takes of a partition (at least a batch)."""
        ...

    def appender(self) -> AbstractAsyncContextManager[PeerAppender]: ...

    def transaction(
        self, transactional_id: str, *, timeout_ms: int = 60_000
    ) -> "AbstractAsyncContextManager[TransactionalProducer]":
        """As `Broker.transaction`."""
        ...

    # Groups

    async def groups(self) -> Sequence[str]:
        """The ids of all consumer groups of the classic and the newer protocol; claims are none."""
        ...

    async def group_is_active(self, group: str) -> bool:
        """Whether it has members, so that its offsets are theirs to commit. False for one that does not exist."""
        ...

    async def committed(self, group: str) -> Mapping[TopicPartition, "CommittedOffset"]:
        """All committed offsets of a group; none for one that does not exist."""
        ...

    async def commit(self, group: str, offsets: Mapping[TopicPartition, "CommittedOffset"]) -> None:
        """Commit for a group without members. Raises UnknownMemberId where it has some."""
        ...

    def claim(
        self,
        name: str,
        *,
        session_timeout_ms: int = 10_000,
        on_wait: Callable[[str | None], None] | None = None,
    ) -> AbstractAsyncContextManager[PeerClaim]:
        """Wait until this process has the name to itself, and have it for as long as the context lasts. It is a
        consumer group of that id at the cluster, whose members assign the name to one of themselves: a process that
        dies is followed by another after `session_timeout_ms`, one that ends its context within a second or so. One
        that was lost is of no more use.

        `on_wait` is called while it waits, any number of times: with None where another process has the name; with one
        line of text, the reason, where the cluster cannot say who has it. Once the claim is held it is called no more.

        Raises, when it is entered, InvalidSessionTimeout, InvalidGroupId, and InconsistentGroupProtocol where a group
        of that name has other members."""
        ...
