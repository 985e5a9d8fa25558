"""Peers for code that blocks: a cluster of Kafka in a program without trio, without a broker and without a command, as
an executor of Spark is one.

    with open_peer({"bootstrap.servers": "hub:9092"}) as hub, hub.reader() as reader:
        reader.assign({TopicPartition("orders", 0): 0})
        for read in reader.read(timeout_s=10):
            ...

It is the same client with the same settings as that of `leafcuttr_sdk.peers`, whose promises hold here too: what blocks
here waits there. Properties, partitions, offsets and transactions are plain values that can be pickled; a peer, and
what comes of it, belong to the process that has opened them, whose threads may share them.

A transaction that several processes write to is begun by one of them, its owner, and joined by the others:

    with hub.owner("daily-orders") as owner:            # fences an earlier owner, and aborts what that has left
        shared = owner.begin()                          # to be sent to other processes
        ...
        owner.commit_offsets("daily-orders", {...})
        owner.commit()

    with open_peer(properties) as hub, hub.join(shared) as appender:    # in each of the others
        appender.send([NewBatch(partition, batch)])
        counts = appender.flush()

Of a partition one process writes all records of a transaction, since each numbers them from 0 on.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from leafcuttr_sdk._described import described
from leafcuttr_sdk.types import TopicPartition

if TYPE_CHECKING:
    from leafcuttr_sdk.errors import BrokerError
    from leafcuttr_sdk.groups import CommittedOffset
    from leafcuttr_sdk.peers import PeerRead, PeerTopic
    from leafcuttr_sdk.records import Appended, NewBatch

ENTRY_POINTS: Final = "leafcuttr.peers"
"""The group of entry points in which `open_peer` finds the client, by the name `blocking`."""


@described
class PeerLeader(NamedTuple):
    """The broker that leads a partition, as the cluster advertises it."""

    node: int
    host: str
    port: int
    leader_epoch: int
    """-1 where it is not known."""


@described
class SharedTransaction(NamedTuple):
    """What another process needs to write to a transaction, or to end it: plain values, which can be pickled."""

    transactional_id: str
    producer_id: int
    epoch: int
    """Each transaction of an owner has a larger one, or another producer id."""
    version: int
    """The cluster's `transaction.version`: from 2 on a write adds its partition by itself (KIP-890)."""
    timeout_ms: int


class BlockingReader(Protocol):
    """As `leafcuttr_sdk.peers.PeerReader`, for one thread at a time."""

    def assign(self, positions: Mapping[TopicPartition, int]) -> None: ...

    def unassign(self, *partitions: TopicPartition) -> None: ...

    def pause(self, *partitions: TopicPartition) -> None: ...

    def resume(self, *partitions: TopicPartition) -> None: ...

    def read(self, timeout_s: float | None = None) -> "Sequence[PeerRead]":
        """What has come since the last call, at most one `PeerRead` of each partition; waits until there is something,
        or returns nothing after `timeout_s` seconds. Meanwhile the next ones are being fetched. `data` may be kept."""
        ...


class BlockingAppender(Protocol):
    """As `leafcuttr_sdk.peers.PeerAppender`; the batches of one partition are appended in the order of the calls."""

    def append(self, batches: "Sequence[NewBatch]") -> "list[Appended | BrokerError]":
        """Append these, and wait until all are acknowledged by all replicas in sync, or refused for good."""
        ...

    def send(self, batches: "Sequence[NewBatch]") -> None:
        """Append these behind all before, and return while they are on their way; waits while more than `max_bytes`
        are. Their bytes may not be changed before `flush`. Raises the first error of what was sent before: what is sent
        after it is refused."""
        ...

    def flush(self) -> dict[TopicPartition, int]:
        """Wait until all that was sent is acknowledged. How many records `send` has appended to each partition since
        the context began. Raises the first error."""
        ...


class TransactionOwner(Protocol):
    """The one that begins and ends the transactions of a transactional id, for as long as the context of
    `BlockingPeer.owner` lasts, or until another owner fences it. One transaction at a time.

    Where the context ends with an exception, the transaction that is open is aborted. Where it ends without one, that
    is left as it is: another process can end it by `BlockingPeer.owner(shared)`, or its timeout aborts it.

    Each call raises ProducerFenced, once another owner or producer has the transactional id; TransactionTimedOut, once
    the transaction took longer than its timeout and was aborted; RuntimeError without an open transaction."""

    @property
    def shared(self) -> SharedTransaction | None:
        """The open transaction; None between two."""
        ...

    def begin(self) -> SharedTransaction:
        """Begin a transaction with an epoch of its own: what the processes of an earlier one still send is refused.
        Waits until the last one is completed. Raises RuntimeError while another one is open."""
        ...

    def commit_offsets(self, group: str, offsets: "Mapping[TopicPartition, CommittedOffset]") -> None:
        """Commit offsets of a group with the transaction, without a look at the group's members."""
        ...

    def commit(self, written: Mapping[TopicPartition, int] | None = None) -> None:
        """Commit it, with all that was acknowledged to those who have joined. Returns once it is decided: readers of
        committed records see all of it a moment later.

        `written` is how many records they say that they have written to each partition, the sum of what their `flush`
        returned. Where the partitions have others, because a part was written twice or is missing, TransactionAborted
        is raised, and it is not committed. A cluster before Kafka 2.8, or one that does not let this client read the
        topic, does not tell: then it is committed without.

        Where the answer is lost it is sent again, for `delivery.timeout.ms`; RequestTimedOut says that nobody knows
        whether it was committed. What fails otherwise is not committed: abort it."""
        ...

    def abort(self) -> None:
        """Abort it, and return once that is decided. Of one that is over already it raises nothing."""
        ...


class BlockingPeer(Protocol):
    """One cluster, as `leafcuttr_sdk.peers.Peer`: see there for what is raised. Threads may share it."""

    @property
    def name(self) -> str:
        """For lines and labels: the bootstrap addresses."""
        ...

    @property
    def trouble(self) -> str | None:
        """What is wrong with the cluster now, in one line; None while it answers."""
        ...

    def cluster_id(self) -> str:
        """Equal ids are the same cluster."""
        ...

    def has_transactions(self) -> bool:
        """False for a cluster that does not offer them."""
        ...

    # Topics

    def topics(self, names: "Sequence[str] | None" = None) -> "Mapping[str, PeerTopic]":
        """Those of these names that exist; of None all. Creates nothing."""
        ...

    def topic_configs(self, names: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
        """Of each of these that exists the settings that were given for the topic itself."""
        ...

    def create_topic(
        self,
        name: str,
        *,
        partitions: int,
        replication_factor: int = -1,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        """Returns once it can be written. -1 is the cluster's default."""
        ...

    def leaders(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, PeerLeader]:
        """Who leads these now. Those that do not exist, and those that have no leader, are left out."""
        ...

    def offsets(
        self, times: Mapping[TopicPartition, int], *, committed: bool = False
    ) -> dict[TopicPartition, int]:
        """For each partition the offset of the first record with that time (ms) or a later one, or `EARLIEST`, or
        `LATEST`; the end where there is none. With `committed` the end is the last stable offset. Partitions that do
        not exist are left out."""
        ...

    # Records

    def reader(
        self, *, committed: bool = True, max_bytes: int = 16 << 20, partition_bytes: int = 1 << 20
    ) -> AbstractContextManager[BlockingReader]:
        """`max_bytes` is what all partitions together may have fetched and not handed out, `partition_bytes` what one
        request takes of a partition (at least a batch)."""
        ...

    def appender(self, *, max_bytes: int = 32 << 20) -> AbstractContextManager[BlockingAppender]:
        """Appends idempotently where the cluster can. `max_bytes` is for `send`. The context ends without waiting for
        what was sent: `flush` does."""
        ...

    # Transactions of several processes

    def owner(
        self, transaction: str | SharedTransaction, *, timeout_ms: int = 60_000
    ) -> AbstractContextManager[TransactionOwner]:
        """The owner of a transactional id, whose begin fences every earlier one, aborts its transaction, and waits
        until that is completed. Of a `SharedTransaction` it is the owner of that one, which another process has begun
        and left open; the id's next ones come after it. A transaction that takes longer than `timeout_ms` is aborted.

        Raises, when it is entered: InvalidRequest for an id that is empty, above 32767 bytes, or none that UTF-8 can
        write; InvalidTransactionTimeout."""
        ...

    def join(
        self, transaction: SharedTransaction, *, max_bytes: int = 32 << 20
    ) -> AbstractContextManager[BlockingAppender]:
        """Writes to a transaction that another process has begun. After an error it can only be aborted.

        The first batch for a partition is refused, with OutOfOrderSequence, where another one that has joined has
        written to it already, as a second attempt of a task does (if the cluster tells: see
        `TransactionOwner.commit`). Once the transaction is over, or another owner has begun, batches are refused with
        ProducerFenced."""
        ...

    # Groups

    def committed(
        self, group: str, *, stable: "Sequence[TopicPartition] | None" = None
    ) -> "Mapping[TopicPartition, CommittedOffset]":
        """All committed offsets of a group; none for one that does not exist. With `stable` those of these partitions,
        once no transaction is open or being completed that may change them: for a program that starts again, and has
        to know what its last commit has become. It waits for `request.timeout.ms`."""
        ...

    def commit(self, group: str, offsets: "Mapping[TopicPartition, CommittedOffset]") -> None:
        """Commit for a group without members. Raises UnknownMemberId where it has some."""
        ...


def open_peer(properties: Mapping[str, str], *, strict: bool = False) -> AbstractContextManager[BlockingPeer]:
    """The cluster that `bootstrap.servers` leads to, with the properties of Kafka's clients in Java and of librdkafka
    (`security.protocol`, `ssl.*`, `sasl.*`, `client.id`...), for as long as the context lasts. Nothing is connected
    before the first call. Files that properties name are read in this process: certificates can be given as texts too
    (`ssl.truststore.certificates`), which other machines have.

    Raises PluginError, when it is called, with one line that names the property which cannot be used; one that no
    client of Kafka has is logged, and is such an error if this is `strict`. So does a process in which LeafCuttr is not
    installed with its metadata: an archive for executors has to hold the folder `leafcuttr-VERSION.dist-info` too."""
    from importlib.metadata import entry_points

    from leafcuttr_sdk.errors import PluginError

    for found in entry_points(group=ENTRY_POINTS, name="blocking"):
        opened: AbstractContextManager[BlockingPeer] = found.load()(properties, strict=strict)
        return opened
    raise PluginError(
        f"no client of Kafka's protocol is installed (entry points {ENTRY_POINTS}); mend it with: pip install leafcuttr"
    )
