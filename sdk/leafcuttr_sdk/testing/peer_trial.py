"""What the parts of the check of a peer share: names, batches, and all records of a partition."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

import trio

from leafcuttr_sdk.batches.builder import BatchBuilder
from leafcuttr_sdk.batches.reader import Batch, batches_in
from leafcuttr_sdk.peers import Peer, PeerAppender, PeerRead, PeerReader
from leafcuttr_sdk.records import NewBatch
from leafcuttr_sdk.testing.peer_findings import PeerFindings
from leafcuttr_sdk.testing.report import Notes, told
from leafcuttr_sdk.types import TopicPartition

PATIENCE_S: Final = 60.0
"""What one part of the check may take."""
SOON_S: Final = 10.0
SILENCE_S: Final = 0.5
"""How long nothing may come where nothing is to come."""


class Seen(NamedTuple):
    """One record as a reader of the partition sees it."""

    offset: int
    value: bytes


class PeerTrial(PeerFindings):
    """The peer, another one of its cluster, and what was found."""

    def __init__(
        self,
        peer: Peer,
        second: Peer,
        notes: Notes,
        prefix: str,
        delete_topic: Callable[[str], Awaitable[None]] | None,
    ) -> None:
        super().__init__(notes, prefix)
        self.peer = peer
        self.second = second
        self.delete_topic = delete_topic

    async def part(self, name: str, check: Callable[[], Awaitable[None]]) -> None:
        """One part of the check, whatever becomes of it."""
        self._part = name
        try:
            with trio.fail_after(PATIENCE_S):
                await check()
        except trio.TooSlowError:
            self.wrong(f"it was not done within {PATIENCE_S:g} s")
        except Exception as error:
            self.wrong(f"it raised {told(error)}")

    async def becomes(self, what: str, find: Callable[[], Awaitable[object]], wanted: object) -> None:
        """A line unless what is found is this soon: the brokers of a cluster learn of a change one after the other."""
        found = await find()
        with trio.move_on_after(SOON_S):
            while found != wanted:
                await trio.sleep(0.02)
                found = await find()
        self.same(what, found, wanted)

    # Names and batches

    async def topic(
        self, what: str, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> list[TopicPartition]:
        """The partitions of a new topic."""
        name = self.name(what)
        await self.peer.create_topic(name, partitions=partitions, configs=configs)
        return [TopicPartition(name, number) for number in range(partitions)]

    @asynccontextmanager
    async def filled(self, partition: TopicPartition, *values: bytes) -> AsyncGenerator[PeerAppender]:
        """An appender, once these records are in the partition, one batch for each."""
        async with self.peer.appender() as appender:
            self.all_appended(await appender.append([new(partition, value) for value in values]))
            yield appender

    # Reading

    async def records(
        self, partition: TopicPartition, count: int, start: int = 0, *, committed: bool = True
    ) -> list[Seen]:
        """So many records from an offset on, and those that come with them."""
        seen: list[Seen] = []
        async with self.peer.reader(committed=committed) as reader:
            reader.assign({partition: start})
            while len(seen) < count:
                for read in await reader.read():
                    seen += self.seen(read, start)
        return seen

    def seen(self, read: PeerRead, start: int) -> list[Seen]:
        """The records of a read from an offset on, as a client hands them out."""
        if read.error is not None:
            self.wrong(f"a read of {read.partition} said {told(read.error)}")
        return [
            Seen(record.offset, bytes(record.value or b""))
            for batch in stored(read)
            if not batch.header.is_control and not batch.is_aborted(read.aborted)
            for record in batch.records()
            if record.offset >= start
        ]

    async def nothing(self, what: str, reader: PeerReader) -> None:
        """A line if the reader has anything."""
        with trio.move_on_after(SILENCE_S):
            found = await reader.read()
            self.wrong(f"{what} gave {[(each.partition, each.next_offset) for each in found]}")


def batch_of(*values: bytes, timestamp: int | None = None) -> bytearray:
    """One batch."""
    builder = BatchBuilder()
    for value in values:
        builder.add(value, 1_700_000_000_000 if timestamp is None else timestamp)
    return builder.finish()


def new(partition: TopicPartition, *values: bytes, timestamp: int | None = None) -> NewBatch:
    """The same for `append`."""
    return NewBatch(partition, batch_of(*values, timestamp=timestamp))


def stored(read: PeerRead) -> list[Batch]:
    """The batches of a read."""
    return list(batches_in(read.data))
