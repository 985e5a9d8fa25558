"""The broker itself as a cluster: what `Broker.peer` gives without properties."""

import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from leafcuttr.errors import InvalidReplicationFactor, StorageError, UnknownTopicOrPartition
from leafcuttr.plugins.facade.groups import GroupsView
from leafcuttr.plugins.facade.producing import Producing
from leafcuttr.plugins.facade.topics import TopicsView
from leafcuttr.runtime.pacing import Pace
from leafcuttr.state.broker import Broker
from leafcuttr.state.identity import of_plugin
from leafcuttr.state.topics import Partition
from leafcuttr_sdk import EARLIEST, LATEST, TopicPartition
from leafcuttr_sdk.errors import GroupIdNotFound
from leafcuttr_sdk.peers import PeerTopic

if TYPE_CHECKING:
    from leafcuttr_sdk.groups import CommittedOffset
    from leafcuttr_sdk.peers import PeerAppender, PeerClaim, PeerReader
    from leafcuttr_sdk.transactions import TransactionalProducer

OpenTransactionalProducer = Callable[..., "AbstractAsyncContextManager[TransactionalProducer]"]
"""Of the parameters of `leafcuttr_sdk.Broker.transaction`."""

_CONSUMERS: Final = frozenset({None, "", "consumer"})
"""Protocol types of groups of consumers; those that only commit have none."""


class PeerParts(NamedTuple):
    """What the peer of a plugin is made from."""

    core: Broker
    plugin: str
    logger: logging.Logger
    producing: Producing
    transaction: OpenTransactionalProducer


class InProcessPeer:
    """See `leafcuttr_sdk.peers.Peer`."""

    def __init__(self, parts: PeerParts) -> None:
        self._core = parts.core
        self._producing = parts.producing
        self._topics = TopicsView(parts.core, parts.plugin)
        self._groups = GroupsView(parts.core)
        self._client = of_plugin(parts.plugin)
        self.transaction = parts.transaction

    @property
    def name(self) -> str:
        return "this broker"

    @property
    def in_process(self) -> bool:
        return True

    @property
    def trouble(self) -> str | None:
        logs = dict(self._core.logs.logs)
        return next(
            (f"{name} is offline: {log.offline}" for name, log in logs.items() if log.offline is not None),
            None,
        )

    async def cluster_id(self) -> str:
        await trio.lowlevel.checkpoint()
        return self._core.cluster_id

    async def node_count(self) -> int:
        await trio.lowlevel.checkpoint()
        return 1

    async def has_transactions(self) -> bool:
        await trio.lowlevel.checkpoint()
        return True

    # Topics

    async def topics(self, names: Sequence[str] | None = None) -> Mapping[str, PeerTopic]:
        await trio.lowlevel.checkpoint()
        known, pace = self._core.topics.by_name, Pace()
        found: dict[str, PeerTopic] = {}
        for name in list(known) if names is None else names:
            await pace.turn()
            topic = known.get(name)
            if topic is not None:
                epochs = [each.leader_epoch for each in topic.partitions]
                found[name] = PeerTopic(name, topic.id, epochs, topic.internal)
        return found

    async def ensure_topic(self, name: str) -> PeerTopic:
        await self._topics.ensure(name)
        return (await self.topics([name]))[name]

    async def topic_configs(self, names: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
        await trio.lowlevel.checkpoint()
        infos = {name: self._topics.get(name) for name in names}
        return {name: dict(info.overrides) for name, info in infos.items() if info is not None}

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int,
        replication_factor: int = -1,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        await trio.lowlevel.checkpoint()
        self._core.topics.check_creatable(name)
        if replication_factor not in (-1, 1):
            raise InvalidReplicationFactor(
                f"A replication factor of {replication_factor} cannot be had: this cluster is one broker."
            )
        await self._topics.create(name, partitions=partitions, configs=configs)

    async def alter_topic(self, name: str, configs: Mapping[str, str | None]) -> None:
        await self._topics.alter(name, configs)

    async def add_partitions(self, name: str, total: int) -> None:
        await self._topics.add_partitions(name, total)

    async def offsets(
        self, times: Mapping[TopicPartition, int], *, committed: bool = False
    ) -> dict[TopicPartition, int]:
        await trio.lowlevel.checkpoint()
        pace, answer = Pace(), dict[TopicPartition, int]()
        for partition, time in times.items():
            await pace.turn()
            found = self._find(partition)
            if found is None:
                continue
            log = found.log
            if log.offline is not None:
                raise StorageError(log.offline)
            if time == EARLIEST:
                answer[partition] = log.log_start_offset
                continue
            at = None if time == LATEST else await log.offset_for_timestamp(max(time, 0))
            end = log.last_stable_offset if committed else log.high_watermark
            answer[partition] = end if at is None else min(at[1], end)
        return answer

    async def epoch_end(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, tuple[int, int]]:
        await trio.lowlevel.checkpoint()
        found = {partition: self._find(partition) for partition in epochs}
        return {
            partition: one.log.offset_for_leader_epoch(epochs[partition])
            for partition, one in found.items()
            if one is not None
        }

    def _find(self, partition: TopicPartition) -> Partition | None:
        try:
            return self._core.topics.partition(partition)
        except UnknownTopicOrPartition:
            return None

    # Records

    def reader(
        self, *, committed: bool = True, max_bytes: int = 16 << 20, partition_bytes: int = 1 << 20
    ) -> "AbstractAsyncContextManager[PeerReader]":
        from leafcuttr.plugins.facade.peer.reader import open_reader

        return open_reader(
            self._core, committed=committed, max_bytes=max_bytes, partition_bytes=partition_bytes
        )

    def appender(self) -> "AbstractAsyncContextManager[PeerAppender]":
        from leafcuttr.plugins.facade.peer.appender import open_appender

        return open_appender(self._core, self._producing)

    # Groups

    async def groups(self) -> Sequence[str]:
        await trio.lowlevel.checkpoint()
        return sorted(each.group_id for each in self._core.groups.all() if each.protocol_type in _CONSUMERS)

    async def group_is_active(self, group: str) -> bool:
        await trio.lowlevel.checkpoint()
        try:
            return len(self._core.groups.find(group).members) > 0
        except GroupIdNotFound:
            return False

    async def committed(self, group: str) -> "Mapping[TopicPartition, CommittedOffset]":
        await trio.lowlevel.checkpoint()
        return self._groups.committed(group)

    async def commit(self, group: str, offsets: "Mapping[TopicPartition, CommittedOffset]") -> None:
        await self._groups.commit(group, offsets)

    def claim(
        self,
        name: str,
        *,
        session_timeout_ms: int = 10_000,
        on_wait: "Callable[[str | None], None] | None" = None,
    ) -> "AbstractAsyncContextManager[PeerClaim]":
        from leafcuttr.plugins.facade.peer.claim import open_claim

        return open_claim(self._core, name, self._client, session_timeout_ms, on_wait)


@asynccontextmanager
async def open_in_process_peer(parts: PeerParts) -> AsyncIterator[InProcessPeer]:
    """See `leafcuttr_sdk.Broker.peer`."""
    yield InProcessPeer(parts)
