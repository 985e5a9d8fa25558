"""A cluster over the network as a `leafcuttr_sdk.peers.Peer`.

    async with open_remote_peer({"bootstrap.servers": "hub:9092"}, clock=clock, logger=logger) as peer:
        ...

It composes: `cluster` has the connections, each of the other modules one part of the contract.
"""

import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from leafcuttr.client.calls import Calls
from leafcuttr.client.cluster import RemoteCluster, open_cluster
from leafcuttr.client.errors import ClientSettingError
from leafcuttr.client.properties import client_settings
from leafcuttr.client.settings import ClientSettings
from leafcuttr.wire.api import ApiKey
from leafcuttr_sdk.groups import CommittedOffset
from leafcuttr_sdk.peers import Peer, PeerAppender, PeerClaim, PeerReader, PeerTopic
from leafcuttr_sdk.transactions import TransactionalProducer
from leafcuttr_sdk.types import Clock, TopicPartition


@asynccontextmanager
async def open_remote_peer(
    properties: Mapping[str, str], *, clock: Clock, logger: logging.Logger, strict: bool = False
) -> AsyncIterator[Peer]:
    """The cluster that these settings of a client name, until the context ends. Raises as `usable_settings`."""
    settings = usable_settings(properties, logger, strict=strict)
    async with open_cluster(settings, clock=clock) as cluster:
        yield RemotePeer(settings, cluster, clock, logger)


def usable_settings(
    properties: Mapping[str, str], logger: logging.Logger, *, strict: bool = False
) -> ClientSettings:
    """Raises ClientSettingError for settings that cannot be used; those that mean nothing draw one line, or are refused
    if it is `strict`."""
    settings = client_settings(properties)
    if settings.unknown and strict:
        raise ClientSettingError(f'No such configuration property: "{settings.unknown[0]}"')
    if settings.unknown:
        logger.warning(
            "the client of %s does not know the settings %s", settings.servers, ", ".join(settings.unknown)
        )
    return settings


class RemotePeer:
    """See `leafcuttr_sdk.peers.Peer`."""

    def __init__(
        self, settings: ClientSettings, cluster: RemoteCluster, clock: Clock, logger: logging.Logger
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._clock = clock
        self._logger = logger
        self._calls = Calls(cluster)

    @property
    def name(self) -> str:
        return self._settings.servers

    @property
    def in_process(self) -> bool:
        return False

    @property
    def trouble(self) -> str | None:
        return self._cluster.trouble

    async def cluster_id(self) -> str:
        # Brokers before 0.10.1 have none; their address has to do.
        return (await self._calls.metadata([])).cluster_id or self.name

    async def node_count(self) -> int:
        return len((await self._calls.metadata([])).brokers)

    async def has_transactions(self) -> bool:
        offered = await self._calls.versions()
        needed = (
            ApiKey.INIT_PRODUCER_ID,
            ApiKey.ADD_PARTITIONS_TO_TXN,
            ApiKey.END_TXN,
            ApiKey.TXN_OFFSET_COMMIT,
        )
        return all(key in offered for key in needed)

    # Topics

    async def topics(self, names: Sequence[str] | None = None) -> Mapping[str, PeerTopic]:
        from leafcuttr.client.topics import describe_topics

        return await describe_topics(self._calls, names)

    async def ensure_topic(self, name: str) -> PeerTopic:
        from leafcuttr.client.topics import ensure_topic

        return await ensure_topic(self._calls, name)

    async def topic_configs(self, names: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
        from leafcuttr.client.topics import topic_configs

        return await topic_configs(self._calls, names)

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int,
        replication_factor: int = -1,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        from leafcuttr.client.topics import create_topic

        await create_topic(self._calls, name, partitions, replication_factor, configs or {})

    async def alter_topic(self, name: str, configs: Mapping[str, str | None]) -> None:
        from leafcuttr.client.topics import alter_topic

        await alter_topic(self._calls, name, configs)

    async def add_partitions(self, name: str, total: int) -> None:
        from leafcuttr.client.topics import add_partitions

        await add_partitions(self._calls, name, total)

    async def offsets(
        self, times: Mapping[TopicPartition, int], *, committed: bool = False
    ) -> dict[TopicPartition, int]:
        from leafcuttr.client.offsets import offsets_at

        return await offsets_at(self._calls, times, committed=committed)

    async def epoch_end(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, tuple[int, int]]:
        from leafcuttr.client.offsets import epoch_ends

        return await epoch_ends(self._calls, epochs)

    # Records

    def reader(
        self, *, committed: bool = True, max_bytes: int = 16 << 20, partition_bytes: int = 1 << 20
    ) -> AbstractAsyncContextManager[PeerReader]:
        from leafcuttr.client.fetching.reader import open_reader

        return open_reader(
            self._calls, committed=committed, max_bytes=max_bytes, partition_bytes=partition_bytes
        )

    def appender(self) -> AbstractAsyncContextManager[PeerAppender]:
        from leafcuttr.client.producing.appender import open_appender

        return open_appender(self._calls)

    def transaction(
        self, transactional_id: str, *, timeout_ms: int = 60_000
    ) -> AbstractAsyncContextManager[TransactionalProducer]:
        from leafcuttr.client.transactions import open_producer

        return open_producer(self._calls, self._clock, self._logger, transactional_id, timeout_ms)

    # Groups

    async def groups(self) -> Sequence[str]:
        from leafcuttr.client.groups import group_ids

        return await group_ids(self._calls)

    async def group_is_active(self, group: str) -> bool:
        from leafcuttr.client.groups import group_is_active

        return await group_is_active(self._calls, group)

    async def committed(self, group: str) -> Mapping[TopicPartition, CommittedOffset]:
        from leafcuttr.client.groups import committed_offsets

        return await committed_offsets(self._calls, group)

    async def commit(self, group: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        from leafcuttr.client.groups import commit_offsets

        await commit_offsets(self._calls, group, offsets)

    def claim(
        self,
        name: str,
        *,
        session_timeout_ms: int = 10_000,
        on_wait: Callable[[str | None], None] | None = None,
    ) -> AbstractAsyncContextManager[PeerClaim]:
        from leafcuttr.client.claim import claimed

        return claimed(self._calls, name, session_timeout_ms, self._logger, on_wait)
