"""The part of the check of a peer that reads: readers, what they wait for, and what they say of a partition."""

from typing import Final

import trio

from leafcuttr_sdk.errors import (
    OffsetOutOfRange,
    TopicAlreadyExists,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from leafcuttr_sdk.peers import PeerRead, PeerReader
from leafcuttr_sdk.testing.peer_trial import PeerTrial, Seen, new
from leafcuttr_sdk.types import TopicPartition

_RECORDS: Final = 60
_SIZE: Final = 20_000


class ReadingTrial:
    """Its parts; each has topics of its own."""

    def __init__(self, trial: PeerTrial) -> None:
        self._trial = trial
        self._peer = trial.peer

    async def waiting(self) -> None:
        trial = self._trial
        first, second = await trial.topic("waiting", 2)
        async with trial.filled(second, b"there") as appender, self._peer.reader() as reader:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._next, reader, second, [Seen(0, b"there")])
                await trio.sleep(0.1)
                reader.assign({first: 0, second: 0})
            await trial.nothing("a reader at the ends", reader)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._next, reader, first, [Seen(0, b"new")])
                await trio.sleep(0.1)
                trial.all_appended(await appender.append([new(first, b"new")]))
            await self._cancelled(reader, first)

    async def _next(self, reader: PeerReader, partition: TopicPartition, wanted: list[Seen]) -> None:
        (read,) = await reader.read()
        self._trial.same("the partition that is read", read.partition, partition)
        self._trial.same("what is read", self._trial.seen(read, 0), wanted)
        if read.next_offset != wanted[-1].offset + 1:
            self._trial.wrong(f"the next offset behind {wanted[-1].offset} is {read.next_offset}")
        if (read.log_start_offset, read.high_watermark) != (0, wanted[-1].offset + 1):
            self._trial.wrong(
                f"the ends of the partition are {read.log_start_offset} and {read.high_watermark}"
            )

    async def _cancelled(self, reader: PeerReader, partition: TopicPartition) -> None:
        """Reads that are cancelled again and again, while records come."""
        trial, seen = self._trial, list[Seen]()

        async def append() -> None:
            async with self._peer.appender() as appender:
                for number in range(_RECORDS):
                    trial.all_appended(await appender.append([new(partition, b"%d" % number)]))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(append)
            pause = 0.0
            while len(seen) < _RECORDS:
                with trio.move_on_after(pause):
                    for read in await reader.read():
                        seen += trial.seen(read, 1)
                pause = (pause + 0.0007) % 0.01
        wanted = [Seen(1 + number, b"%d" % number) for number in range(_RECORDS)]
        trial.same("what is read by reads that are cancelled", seen, wanted)

    async def bounds(self) -> None:
        trial = self._trial
        partitions = await trial.topic("bounds", 3)
        async with self._peer.appender() as appender:
            for _ in range(8):
                batches = [new(partition, bytes(_SIZE)) for partition in partitions]
                trial.all_appended(await appender.append(batches))
        limit, one = 2 * _SIZE, _SIZE + 1000
        counts = dict.fromkeys(partitions, 0)
        async with self._peer.reader(max_bytes=limit, partition_bytes=_SIZE) as reader:
            reader.assign(dict.fromkeys(partitions, 0))
            while sum(counts.values()) < 24:
                reads = await reader.read()
                size = sum(len(each.data) for each in reads)
                if size > limit + one:
                    trial.wrong(f"a read gave {size} bytes, {limit} are allowed, and one batch more")
                for read in reads:
                    counts[read.partition] += len(trial.seen(read, 0))
                if max(counts.values()) - min(counts.values()) > 6:
                    trial.wrong(f"one partition is read before the others: {sorted(counts.values())}")
                    return

    async def pause(self) -> None:
        trial = self._trial
        first, second = await trial.topic("pause", 2)
        unknown = TopicPartition(first.topic, 99)
        async with trial.filled(first, b"a") as appender, self._peer.reader() as reader:
            reader.assign({first: 0, second: 0})
            reader.pause(first, unknown)
            await trial.nothing("a reader whose partition is paused", reader)
            reader.resume(first, second, unknown)
            await self._next(reader, first, [Seen(0, b"a")])
            reader.unassign(first, unknown)
            trial.all_appended(await appender.append([new(first, b"b"), new(second, b"x")]))
            await self._next(reader, second, [Seen(0, b"x")])
            await trial.nothing("a reader whose partition is unassigned", reader)
            reader.assign({first: 1})
            await self._next(reader, first, [Seen(1, b"b")])

    async def out_of_range(self) -> None:
        trial = self._trial
        first, second = await trial.topic("range", 2)
        async with trial.filled(first, b"a", b"b") as appender, self._peer.reader() as reader:
            reader.assign({first: 5, second: 0})
            read = await self._said(reader, first)
            if not isinstance(read.error, OffsetOutOfRange):
                trial.wrong(f"a position behind the end is {read.error!r}")
            if len(read.data):
                trial.wrong("a read with an error has data")
            await trial.nothing("a reader that has said it", reader)
            trial.all_appended(await appender.append([new(second, b"x")]))
            await self._next(reader, second, [Seen(0, b"x")])
            reader.assign({first: 1})
            await self._next(reader, first, [Seen(1, b"b")])

    async def deleted(self) -> None:
        trial, delete = self._trial, self._trial.delete_topic
        assert delete is not None
        (partition,) = await trial.topic("deleted")
        async with trial.filled(partition, b"old"), self._peer.reader() as reader:
            reader.assign({TopicPartition(trial.name("never"), 0): 0})
            never = await self._said(reader)
            if not isinstance(never.error, UnknownTopicOrPartition):
                trial.wrong(f"a topic that never was is {never.error!r}")
            reader.assign({partition: 0})
            await self._next(reader, partition, [Seen(0, b"old")])
            await delete(partition.topic)
            gone = await self._said(reader, partition)
            if not isinstance(gone.error, UnknownTopicOrPartition):
                trial.wrong(f"a topic that was deleted is {gone.error!r}")
        await self._recreated()

    async def _recreated(self) -> None:
        trial, delete = self._trial, self._trial.delete_topic
        assert delete is not None
        (partition,) = await trial.topic("recreated")
        before = (await self._peer.topics([partition.topic]))[partition.topic].topic_id
        async with trial.filled(partition, b"old"), self._peer.reader() as reader:
            reader.assign({partition: 0})
            await self._next(reader, partition, [Seen(0, b"old")])
            await delete(partition.topic)
            await self._create_again(partition.topic)
            async with self._peer.appender() as appender:
                trial.all_appended(await appender.append([new(partition, b"new"), new(partition, b"newer")]))
            after = (await self._peer.topics([partition.topic]))[partition.topic].topic_id
            read = await self._said(reader, partition)
            if before == bytes(16):
                return  # a cluster without ids cannot know it
            if after == before:
                trial.wrong("a topic that was created anew has its old id")
            # It may have been seen between the two.
            if not isinstance(read.error, UnknownTopicId | UnknownTopicOrPartition):
                trial.wrong(f"a topic that was created anew is {read.error!r}")
            reader.assign({partition: 0})
            seen: list[Seen] = []
            while len(seen) < 2:
                for read in await reader.read():
                    seen += trial.seen(read, 0)
            trial.same("the new topic", seen, [Seen(0, b"new"), Seen(1, b"newer")])

    async def _create_again(self, name: str) -> None:
        """As soon as the cluster has forgotten the old one."""
        while True:
            try:
                await self._peer.create_topic(name, partitions=1)
            except TopicAlreadyExists:
                await trio.sleep(0.05)
            else:
                return

    async def _said(self, reader: PeerReader, partition: TopicPartition | None = None) -> PeerRead:
        """The next read, which has an error."""
        (read,) = await reader.read()
        if partition is not None:
            self._trial.same("the partition with the error", read.partition, partition)
        if read.error is None:
            self._trial.wrong(f"a read of {read.partition} has no error: next offset {read.next_offset}")
        return read
