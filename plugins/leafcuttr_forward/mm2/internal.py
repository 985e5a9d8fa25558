"""MirrorMaker's own topics: heartbeats, checkpoints, offset syncs. They are compacted and have one partition each."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from leafcuttr_sdk.errors import BrokerError, TopicAlreadyExists, TopicAuthorizationFailed
from leafcuttr_sdk.types import TopicPartition

if TYPE_CHECKING:
    import logging

    from leafcuttr_sdk.peers import Peer, PeerAppender

COMPACTED: Final = {"cleanup.policy": "compact"}
KeyAndValue = tuple[bytes | None, bytes | None]


async def ensure_compacted(
    peer: "Peer", topic: str, replication_factor: int, logger: "logging.Logger"
) -> None:
    """Create the topic where it is missing; of a cluster with fewer brokers than copies with as many as it has. One
    that may not be created is taken to be there. Raises BrokerError."""
    if topic in await peer.topics([topic]):
        return
    nodes = await peer.node_count()
    if replication_factor > nodes:
        logger.warning(
            "%s: topic %s has %d of %d copies, one for each broker",
            peer.name,
            topic,
            nodes,
            replication_factor,
        )
    try:
        await peer.create_topic(
            topic, partitions=1, replication_factor=min(replication_factor, nodes), configs=COMPACTED
        )
    except TopicAlreadyExists:
        return
    except TopicAuthorizationFailed:
        logger.warning("%s: topic %s may not be created", peer.name, topic)


async def records_of(peer: "Peer", topic: str) -> list[KeyAndValue]:
    """All committed records that the topic has now, in their order; none where there is no such topic. Raises
    BrokerError."""
    from leafcuttr_sdk.batches import batches_in
    from leafcuttr_sdk.broker import EARLIEST, LATEST

    partition = TopicPartition(topic, 0)
    if topic not in await peer.topics([topic]):
        return []
    position = (await peer.offsets({partition: EARLIEST})).get(partition, 0)
    end = (await peer.offsets({partition: LATEST}, committed=True)).get(partition, 0)
    found: list[KeyAndValue] = []
    if position >= end:
        return found
    async with peer.reader(committed=True, max_bytes=4 << 20) as reader:
        reader.assign({partition: position})
        while position < end:
            for read in await reader.read():
                if read.error is not None:
                    raise read.error
                for batch in batches_in(read.data):
                    if not batch.header.is_control and not batch.is_aborted(read.aborted):
                        found += [
                            (_bytes(record.key), _bytes(record.value))
                            for record in batch.records()
                            if record.offset >= position
                        ]
                position = max(position, read.next_offset)
    return found


def _bytes(part: bytes | memoryview | None) -> bytes | None:
    return None if part is None else bytes(part)


class Writer:
    """Appends records to one such topic."""

    def __init__(self, appender: "PeerAppender", topic: str) -> None:
        self._appender = appender
        self._partition: Final = TopicPartition(topic, 0)

    async def write(self, records: Iterable[tuple[bytes, bytes]], now_ms: int) -> None:
        """As one batch. Raises BrokerError: they may be written or not."""
        from leafcuttr_sdk.batches import BatchBuilder
        from leafcuttr_sdk.records import NewBatch

        builder = BatchBuilder()
        builder.extend_records([(value, key, (), now_ms) for key, value in records])
        (done,) = await self._appender.append([NewBatch(self._partition, builder.finish())])
        if isinstance(done, BrokerError):
            raise done


@asynccontextmanager
async def writing(
    peer: "Peer", topic: str, replication_factor: int, logger: "logging.Logger"
) -> AsyncIterator[Writer]:
    """A writer to the topic, which is created where it is missing. Raises BrokerError."""
    await ensure_compacted(peer, topic, replication_factor, logger)
    async with peer.appender() as appender:
        yield Writer(appender, topic)
