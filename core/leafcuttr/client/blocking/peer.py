"""A cluster over the network as a `leafcuttr_sdk.blocking_peers.BlockingPeer`.

with open_blocking_peer({"bootstrap.servers": "hub:9092"}) as peer:
    ...
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Final

import trio

from leafcuttr.client.blocking.appending import blocking_appender
from leafcuttr.client.blocking.loop import LoopThread
from leafcuttr.client.calls import Calls
from leafcuttr.client.cluster import open_cluster
from leafcuttr.client.errors import ClientError
from leafcuttr.client.groups import committed_offsets
from leafcuttr.client.leaders import Led, look_up
from leafcuttr.client.peer import RemotePeer, usable_settings
from leafcuttr.client.retrying import until_answered
from leafcuttr.client.settings import ClientSettings
from leafcuttr.client.shared.joined import open_joined
from leafcuttr.client.shared.owner import SharedProducer, open_owner
from leafcuttr.client.transactional import PATIENCE_S
from leafcuttr.errors import BrokerError
from leafcuttr.runtime.clock import SystemClock
from leafcuttr_sdk.blocking_peers import (
    BlockingAppender,
    BlockingPeer,
    BlockingReader,
    PeerLeader,
    SharedTransaction,
    TransactionOwner,
)
from leafcuttr_sdk.groups import CommittedOffset
from leafcuttr_sdk.peers import PeerRead, PeerReader, PeerTopic
from leafcuttr_sdk.types import TopicPartition

LOGGER: Final = logging.getLogger("leafcuttr.peer")


def open_blocking_peer(
    properties: Mapping[str, str], *, strict: bool = False
) -> AbstractContextManager[BlockingPeer]:
    """See `leafcuttr_sdk.blocking_peers.open_peer`, which finds it by its entry point."""
    return _opened(usable_settings(properties, LOGGER, strict=strict))


@contextmanager
def _opened(settings: ClientSettings) -> "Iterator[BlockingRemotePeer]":
    clock = SystemClock()
    with LoopThread() as loop, loop.entered(open_cluster(settings, clock=clock)) as cluster:
        yield BlockingRemotePeer(loop, RemotePeer(settings, cluster, clock, LOGGER), Calls(cluster), clock)


class BlockingRemotePeer:
    """See `leafcuttr_sdk.blocking_peers.BlockingPeer`."""

    def __init__(self, loop: LoopThread, peer: RemotePeer, calls: Calls, clock: SystemClock) -> None:
        self._loop = loop
        self._peer = peer
        self._calls = calls
        self._clock = clock

    @property
    def name(self) -> str:
        return self._peer.name

    @property
    def trouble(self) -> str | None:
        return self._peer.trouble

    def cluster_id(self) -> str:
        return self._loop.run(self._peer.cluster_id)

    def has_transactions(self) -> bool:
        return self._loop.run(self._peer.has_transactions)

    # Topics

    def topics(self, names: Sequence[str] | None = None) -> Mapping[str, PeerTopic]:
        return self._loop.run(self._peer.topics, names)

    def topic_configs(self, names: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
        return self._loop.run(self._peer.topic_configs, names)

    def create_topic(
        self,
        name: str,
        *,
        partitions: int,
        replication_factor: int = -1,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        self._loop.run(
            partial(
                self._peer.create_topic,
                name,
                partitions=partitions,
                replication_factor=replication_factor,
                configs=configs,
            )
        )

    def leaders(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, PeerLeader]:
        return self._loop.run(_leaders, self._calls, partitions)

    def offsets(
        self, times: Mapping[TopicPartition, int], *, committed: bool = False
    ) -> dict[TopicPartition, int]:
        return self._loop.run(partial(self._peer.offsets, times, committed=committed))

    # Records

    @contextmanager
    def reader(
        self, *, committed: bool = True, max_bytes: int = 16 << 20, partition_bytes: int = 1 << 20
    ) -> Iterator[BlockingReader]:
        opened = self._peer.reader(committed=committed, max_bytes=max_bytes, partition_bytes=partition_bytes)
        with self._loop.entered(opened) as reader:
            yield BlockingReads(self._loop, reader)

    def appender(self, *, max_bytes: int = 32 << 20) -> AbstractContextManager[BlockingAppender]:
        return blocking_appender(self._loop, self._peer.appender, max_bytes)

    # Transactions of several processes

    @contextmanager
    def owner(
        self, transaction: str | SharedTransaction, *, timeout_ms: int = 60_000
    ) -> Iterator[TransactionOwner]:
        opened = open_owner(self._calls, self._clock, LOGGER, transaction, timeout_ms)
        with self._loop.entered(opened) as producer:
            owner = BlockingOwner(self._loop, producer)
            try:
                yield owner
            except GeneratorExit:
                raise  # it was dropped, perhaps by a process that was forked
            except BaseException:
                owner.abort_at_end()
                raise

    def join(
        self, transaction: SharedTransaction, *, max_bytes: int = 32 << 20
    ) -> AbstractContextManager[BlockingAppender]:
        return blocking_appender(self._loop, partial(open_joined, self._calls, transaction), max_bytes)

    # Groups

    def committed(
        self, group: str, *, stable: Sequence[TopicPartition] | None = None
    ) -> Mapping[TopicPartition, CommittedOffset]:
        return self._loop.run(partial(committed_offsets, self._calls, group, stable=stable))

    def commit(self, group: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        self._loop.run(self._peer.commit, group, offsets)


class BlockingReads:
    """See `leafcuttr_sdk.blocking_peers.BlockingReader`."""

    def __init__(self, loop: LoopThread, reader: PeerReader) -> None:
        self._loop = loop
        self._reader = reader

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        self._loop.call(self._reader.assign, positions)

    def unassign(self, *partitions: TopicPartition) -> None:
        self._loop.call(self._reader.unassign, *partitions)

    def pause(self, *partitions: TopicPartition) -> None:
        self._loop.call(self._reader.pause, *partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        self._loop.call(self._reader.resume, *partitions)

    def read(self, timeout_s: float | None = None) -> Sequence[PeerRead]:
        return self._loop.run(self._read, timeout_s)

    async def _read(self, timeout_s: float | None) -> Sequence[PeerRead]:
        if timeout_s is None:
            return await self._reader.read()
        with trio.move_on_after(timeout_s):
            return await self._reader.read()
        return ()


class BlockingOwner:
    """See `leafcuttr_sdk.blocking_peers.TransactionOwner`."""

    def __init__(self, loop: LoopThread, producer: SharedProducer) -> None:
        self._loop = loop
        self._producer = producer

    @property
    def shared(self) -> SharedTransaction | None:
        return self._producer.shared

    def begin(self) -> SharedTransaction:
        return self._loop.run(self._producer.begin_shared)

    def commit_offsets(self, group: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        self._loop.run(self._producer.commit_offsets, group, offsets)

    def commit(self, written: Mapping[TopicPartition, int] | None = None) -> None:
        self._loop.run(self._producer.commit, written)

    def abort(self) -> None:
        self._loop.run(self._producer.abort)

    def abort_at_end(self) -> None:
        """Abort what is open, because the block has raised: that is what is raised on."""
        try:
            self._loop.run(self._producer.abort, PATIENCE_S)
        except (BrokerError, ClientError, RuntimeError) as error:
            LOGGER.warning(
                "the transaction of %r is left to its timeout, aborting it failed: %s",
                self._producer.transactional_id,
                error,
            )


async def _leaders(calls: Calls, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, PeerLeader]:
    async def attempt(left_s: float) -> "Mapping[TopicPartition, Led | BrokerError]":
        return await look_up(calls, partitions)

    found: dict[TopicPartition, PeerLeader] = {}
    for tp, led in (await until_answered(calls.settings, attempt)).items():
        if isinstance(led, Led) and (address := calls.cluster.nodes.get(led.node)) is not None:
            found[tp] = PeerLeader(led.node, address.host, address.port, led.leader_epoch)
    return found
