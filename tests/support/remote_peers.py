"""Peers over the network for tests, and batches for them."""

from __future__ import annotations

import logging
from contextlib import AbstractAsyncContextManager

from leafcuttr.client.peer import open_remote_peer
from leafcuttr.runtime.clock import SystemClock
from leafcuttr_sdk.batches import BatchBuilder, batches_in
from leafcuttr_sdk.peers import Peer, PeerRead, PeerReader
from leafcuttr_sdk.records import NewBatch
from leafcuttr_sdk.types import TopicPartition

QUICK = {
    "reconnect.backoff.ms": "1",
    "reconnect.backoff.max.ms": "20",
    "retry.backoff.ms": "5",
    "retry.backoff.max.ms": "50",
}


def peer_at(address: str, **more: str) -> AbstractAsyncContextManager[Peer]:
    """`more` are settings of the client, with underscores for dots."""
    settings = {name.replace("_", "."): value for name, value in more.items()}
    return open_remote_peer(
        {"bootstrap.servers": address, **QUICK, **settings},
        clock=SystemClock(),
        logger=logging.getLogger("test.peer"),
    )


def new_batch(partition: TopicPartition, *values: bytes, timestamp: int = 1000) -> NewBatch:
    builder = BatchBuilder()
    for value in values:
        builder.add(value, timestamp)
    return NewBatch(partition, builder.finish())


def values_in(read: PeerRead) -> list[bytes]:
    """The values that a reader of committed records sees."""
    return [
        bytes(record.value or b"")
        for batch in batches_in(read.data)
        if not batch.header.is_control and not batch.is_aborted(read.aborted)
        for record in batch.records()
    ]


async def read_to(reader: PeerReader, ends: dict[TopicPartition, int]) -> dict[TopicPartition, list[bytes]]:
    """All values before these offsets, of partitions that are assigned. Raises what a partition has for an error."""
    found: dict[TopicPartition, list[bytes]] = {tp: [] for tp in ends}
    left = {tp for tp, end in ends.items() if end > 0}
    while left:
        for read in await reader.read():
            if read.error is not None:
                raise read.error
            found[read.partition] += values_in(read)
            if read.next_offset >= ends[read.partition]:
                left.discard(read.partition)
    return found
