"""`leafcuttr_sdk.peers.PeerReader` on the logs of this broker.

Each partition that is assigned waits at its log; a change of the log puts it among those that may have something. So a
`read` goes through these only, and an idle one costs nothing, however many partitions there are. Nothing is read ahead:
what comes from the page cache is there at once. A position moves when its records are handed out, in one step with the
end of `read`, so that a cancelled one loses nothing.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Final

import trio

from leafcuttr.errors import (
    BrokerError,
    CorruptMessage,
    OffsetOutOfRange,
    StorageError,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from leafcuttr.log.log import Log
from leafcuttr.plugins.facade.reading import has_news, read_log
from leafcuttr.runtime.pacing import Pace
from leafcuttr.state.broker import Broker
from leafcuttr_sdk import TopicPartition
from leafcuttr_sdk.peers import PeerRead

_AGAIN_S: Final = 1.0
"""After how long a read is tried again that the disk has refused."""


class _Assigned:
    """One partition that is read: where, and in which log. It waits there."""

    __slots__ = ("_tell", "log", "partition", "paused", "position")

    def __init__(
        self, partition: TopicPartition, log: Log | None, position: int, tell: "Callable[[_Assigned], None]"
    ) -> None:
        self.partition = partition
        self.log = log
        self.position = position
        self.paused = False
        self._tell = tell
        if log is not None:
            log.waiters.add(self)

    def notify(self) -> None:
        self._tell(self)

    def end(self) -> None:
        if self.log is not None:
            self.log.waiters.discard(self)


class InProcessReader:
    """See `leafcuttr_sdk.peers.PeerReader`."""

    def __init__(self, core: Broker, *, committed: bool, max_bytes: int, partition_bytes: int) -> None:
        self._core = core
        self._committed = committed
        self._max_bytes = max(max_bytes, 1)
        self._partition_bytes = max(partition_bytes, 1)
        self._assigned: dict[TopicPartition, _Assigned] = {}
        # What may have something, the one that waits longest first.
        self._stirred: dict[_Assigned, None] = {}
        # What the disk refused, until it is time to try it again.
        self._refused: dict[_Assigned, None] = {}
        self._event = trio.Event()
        self._reading = False

    # What to read

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        for partition, position in positions.items():
            self._end(partition)
            assigned = _Assigned(partition, self._log(partition), position, self._stir)
            self._assigned[partition] = assigned
            self._stir(assigned)

    def unassign(self, *partitions: TopicPartition) -> None:
        for partition in partitions:
            self._end(partition)

    def pause(self, *partitions: TopicPartition) -> None:
        for partition in partitions:
            found = self._assigned.get(partition)
            if found is not None:
                found.paused = True

    def resume(self, *partitions: TopicPartition) -> None:
        for partition in partitions:
            found = self._assigned.get(partition)
            if found is not None and found.paused:
                found.paused = False
                self._stir(found)

    def close(self) -> None:
        """Wait at no log any more."""
        for partition in list(self._assigned):
            self._end(partition)

    def _end(self, partition: TopicPartition) -> None:
        found = self._assigned.pop(partition, None)
        if found is not None:
            found.end()
            self._stirred.pop(found, None)
            self._refused.pop(found, None)

    def _log(self, partition: TopicPartition) -> Log | None:
        try:
            return self._core.topics.partition(partition).log
        except UnknownTopicOrPartition:
            return None

    def _stir(self, assigned: _Assigned) -> None:
        self._stirred[assigned] = None
        self._event.set()

    # Reading

    async def read(self) -> Sequence[PeerRead]:
        """Raises trio.BusyResourceError for two at a time."""
        with self._one_at_a_time():
            await trio.lowlevel.checkpoint()
            while True:
                self._event = trio.Event()
                taken = self._take(await self._found())
                if taken:
                    return taken
                await self._wait()

    @contextmanager
    def _one_at_a_time(self) -> Iterator[None]:
        if self._reading:
            raise trio.BusyResourceError("Another task reads with this reader.")
        self._reading = True
        try:
            yield
        finally:
            self._reading = False

    async def _wait(self) -> None:
        with trio.move_on_after(_AGAIN_S if self._refused else float("inf")) as limit:
            await self._event.wait()
        if limit.cancelled_caught:
            self._stirred.update(self._refused)
            self._refused.clear()

    async def _found(self) -> list[tuple[_Assigned, PeerRead]]:
        """What there is now within the limit."""
        found: list[tuple[_Assigned, PeerRead]] = []
        left, pace = self._max_bytes, Pace()
        for assigned in list(self._stirred):
            await pace.turn()
            if left <= 0:
                break
            if self._assigned.get(assigned.partition) is not assigned or self._is_idle(assigned):
                self._stirred.pop(assigned, None)
                continue
            read = await self._read_one(assigned, min(left, self._partition_bytes))
            if read is None:
                continue
            left -= len(read.data)
            found.append((assigned, read))
        return found

    def _is_idle(self, assigned: _Assigned) -> bool:
        """Whether there is nothing to read, or to say, until the log tells of a change."""
        log = assigned.log
        return assigned.paused or (
            log is not None and not has_news(log, assigned.position, committed=self._committed)
        )

    async def _read_one(self, assigned: _Assigned, max_bytes: int) -> PeerRead | None:
        """One read, or why the partition cannot be read any more; None for nothing yet."""
        log, position = assigned.log, assigned.position
        try:
            if log is None:
                raise UnknownTopicOrPartition(f"There is no partition {assigned.partition}.")
            read = await read_log(log, position, max_bytes, committed=self._committed)
        except StorageError:
            gone = self._gone(assigned)
            if gone is None:
                self._stirred.pop(assigned, None)
                self._refused[assigned] = None
                return None
            return _failed(assigned, gone)
        except (OffsetOutOfRange, CorruptMessage, UnknownTopicOrPartition) as error:
            return _failed(assigned, error.with_traceback(None))
        if read.next_offset <= position:
            self._stirred.pop(assigned, None)
            return None
        return PeerRead(
            assigned.partition,
            read.data,
            read.next_offset,
            log.last_stable_offset if self._committed else read.high_watermark,
            read.log_start_offset,
            read.aborted,
        )

    def _gone(self, assigned: _Assigned) -> BrokerError | None:
        """What the log of a topic that was deleted stands for; None for one that the disk keeps from being read."""
        now = self._log(assigned.partition)
        if now is assigned.log:
            return None
        topic, _ = assigned.partition
        if now is None and topic not in self._core.topics.by_name:
            return UnknownTopicOrPartition(f"Topic '{topic}' was deleted.")
        return UnknownTopicId(f"Topic '{topic}' was deleted and created anew.")

    def _take(self, found: list[tuple[_Assigned, PeerRead]]) -> list[PeerRead]:
        """What is still to be handed out: a partition may have been assigned or paused meanwhile."""
        taken: list[PeerRead] = []
        for assigned, read in found:
            current = self._assigned.get(assigned.partition) is assigned
            if not current or assigned.paused:
                continue
            taken.append(read)
            if read.error is not None:
                self._end(assigned.partition)
                continue
            assigned.position = read.next_offset
            # Behind the others, so that all are read evenly.
            self._stirred.pop(assigned, None)
            self._stirred[assigned] = None
        return taken


def _failed(assigned: _Assigned, error: BrokerError) -> PeerRead:
    log = assigned.log
    end, start = (-1, -1) if log is None else (log.high_watermark, log.log_start_offset)
    return PeerRead(assigned.partition, b"", assigned.position, end, start, error=error)


@asynccontextmanager
async def open_reader(
    core: Broker, *, committed: bool, max_bytes: int, partition_bytes: int
) -> AsyncIterator[InProcessReader]:
    """See `leafcuttr_sdk.peers.Peer.reader`."""
    reader = InProcessReader(core, committed=committed, max_bytes=max_bytes, partition_bytes=partition_bytes)
    try:
        yield reader
    finally:
        reader.close()
