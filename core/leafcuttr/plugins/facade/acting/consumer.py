"""A consumer that acts for a client: it may be in the group with each poll and commit, not only when it has joined."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from leafcuttr.handlers.access import DESCRIBE_GROUP, DESCRIBE_TOPIC, READ_GROUP
from leafcuttr.plugins.facade.acting.rights import Rights
from leafcuttr_sdk import Consumer, TopicPartition
from leafcuttr_sdk.groups import CommittedOffset, ConsumerGroupMetadata
from leafcuttr_sdk.records import StoredRecord


class ActingConsumer:
    """See `leafcuttr_sdk.Consumer`. What it reads is authorized by the facade's `fetch`."""

    def __init__(self, consumer: Consumer, rights: Rights, group: str) -> None:
        self._consumer = consumer
        self._rights = rights
        self._group = group
        self.subscribe = consumer.subscribe
        self.unsubscribe = consumer.unsubscribe
        self.assign = consumer.assign
        self.position = consumer.position
        self.seek = consumer.seek

    def _need_group(self) -> None:
        if self._group:
            self._rights.need(READ_GROUP, self._group)

    async def poll(
        self, *, wait_s: float = 1.0, max_records: int | None = None, max_bytes: int | None = None
    ) -> list[StoredRecord]:
        self._need_group()
        return await self._consumer.poll(wait_s=wait_s, max_records=max_records, max_bytes=max_bytes)

    async def __aiter__(self) -> AsyncIterator[StoredRecord]:
        async for record in self._consumer:
            self._need_group()
            yield record

    async def commit(self, offsets: Mapping[TopicPartition, CommittedOffset] | None = None) -> None:
        assigned = self._consumer.assignment if offsets is None else offsets
        self._rights.need_to_commit(self._group, (partition.topic for partition in assigned))
        await self._consumer.commit(offsets)

    async def committed(
        self, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, CommittedOffset | None]:
        wanted: Sequence[TopicPartition] = list(partitions)
        self._rights.need(DESCRIBE_GROUP, self._group)
        for topic in {partition.topic: None for partition in wanted}:
            self._rights.need(DESCRIBE_TOPIC, topic)
        return await self._consumer.committed(wanted)

    def group_metadata(self) -> ConsumerGroupMetadata:
        self._need_group()
        return self._consumer.group_metadata()

    @property
    def subscription(self) -> frozenset[str]:
        return self._consumer.subscription

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return self._consumer.assignment

    async def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        self._need_ends(partitions)
        await self._consumer.seek_to_beginning(*partitions)

    async def seek_to_end(self, *partitions: TopicPartition) -> None:
        self._need_ends(partitions)
        await self._consumer.seek_to_end(*partitions)

    def seek_to_committed(self) -> None:
        self._need_group()
        self._consumer.seek_to_committed()

    def _need_ends(self, partitions: Iterable[TopicPartition]) -> None:
        for topic in {partition.topic: None for partition in partitions or self._consumer.assignment}:
            self._rights.need(DESCRIBE_TOPIC, topic)


@asynccontextmanager
async def open_acting_consumer(
    rights: Rights, group: str, opening: AbstractAsyncContextManager[Consumer]
) -> AsyncIterator[Consumer]:
    """Raises AuthorizationFailed."""
    if group:
        rights.need(READ_GROUP, group)
    async with opening as consumer:
        yield ActingConsumer(consumer, rights, group)
