"""`leafcuttr_sdk.peers.PeerAppender` on this broker: an idempotent producer whose batches go into the log directly.

Batches get their sequence numbers in the order of the calls, and calls that share a partition are written one after the
other. A batch that is refused breaks the sequence of its partition: what was numbered behind it is refused too, and the
next call begins a new epoch there, which is the partition's own (the producer id belongs to this appender alone).

A partition takes any sequence number from a producer that it does not know yet (KIP-98). So the first batch of an epoch
is written before those behind it.
"""

from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Final

import trio

from leafcuttr.errors import BrokerError, OutOfOrderSequence, RequestTimedOut, StorageError
from leafcuttr.log.append.rules import LARGE
from leafcuttr.plugins.facade.producing import Producing
from leafcuttr.plugins.facade.stamping import stamp_batch
from leafcuttr.state.broker import Broker
from leafcuttr_sdk import Appended, NewBatch, TopicPartition
from leafcuttr_sdk.batches.header import sequence_after

CALLS: Final = 5
"""How many calls go on beside each other: `max.in.flight.requests.per.connection`."""
DELIVERY_TIMEOUT_S: Final = 120.0
"""`delivery.timeout.ms`: how long a batch that the disk does not take is tried again."""
_FIRST_PAUSE_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 5.0
_LAST_EPOCH: Final = 32767
_NO_OFFSET: Final = bytes(8)

Answers = list[Appended | BrokerError | None]


class _Sequence:
    """The numbers of one partition. Those of epochs up to `failed` are of no use any more; the partition `knows` the
    producer once it has a batch of the epoch. `last` is set when the last call so far that has batches for the
    partition is done. `failures` counts batches."""

    __slots__ = ("epoch", "failed", "failures", "knows", "last", "next", "producer_id")

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.epoch = 0
        self.failed = -1
        self.failures = 0
        self.knows = False
        self.next = 0
        self.last: trio.Event | None = None

    def renew(self) -> None:
        """Go on with the next epoch, if this one has failed."""
        if self.failed >= self.epoch:
            self.epoch, self.next, self.knows = self.failed + 1, 0, False

    def fail(self, epoch: int) -> None:
        self.failed = max(self.failed, epoch)
        self.failures += 1


class _Numbered:
    """One batch of a call: its bytes with their numbers."""

    __slots__ = ("batch", "epoch", "partition", "place", "sequence")

    def __init__(self, place: int, partition: TopicPartition, batch: bytearray, sequence: _Sequence) -> None:
        self.place = place
        self.partition = partition
        self.batch = batch
        self.sequence = sequence
        self.epoch = sequence.epoch


class _Turn:
    """A place in a queue that is taken at once: that at a lock of trio is taken at the next checkpoint."""

    __slots__ = ("_has_come", "_queue")

    def __init__(self, queue: "deque[_Turn]") -> None:
        self._queue = queue
        self._has_come = trio.Event()
        queue.append(self)

    async def __aenter__(self) -> None:
        if self._queue[0] is not self:
            try:
                await self._has_come.wait()
            except BaseException:
                self._leave()
                raise

    async def __aexit__(self, *_: object) -> None:
        self._leave()

    def _leave(self) -> None:
        self._queue.remove(self)
        if self._queue:
            self._queue[0]._has_come.set()


class InProcessAppender:
    """See `leafcuttr_sdk.peers.PeerAppender`."""

    def __init__(self, core: Broker, producing: Producing) -> None:
        self._core = core
        self._producing = producing
        self._under_way = trio.CapacityLimiter(CALLS)
        self._turns: deque[_Turn] = deque()
        self._sequences: dict[TopicPartition, _Sequence] = {}
        self._producer_id = -1

    async def append(self, batches: Sequence[NewBatch]) -> list[Appended | BrokerError]:
        turn, done = _Turn(self._turns), trio.Event()
        # Of what fails from here on the caller knows nothing yet.
        known = {partition: self._failures(partition) for partition, _ in batches}
        answers: Answers = [None] * len(batches)
        numbered: list[_Numbered] = []
        try:
            async with turn:
                await self._under_way.acquire_on_behalf_of(turn)
                await self._number(batches, known, numbered, answers)
                before = self._queue(numbered, done)
            for call in before:
                await call.wait()
            await self._write(numbered, answers)
        finally:
            for each in numbered:
                if not isinstance(answers[each.place], Appended):
                    each.sequence.fail(each.epoch)
            done.set()
            with suppress(RuntimeError):  # it was cancelled before it was one of them
                self._under_way.release_on_behalf_of(turn)
        return [answer for answer in answers if answer is not None]

    def _failures(self, partition: TopicPartition) -> int:
        found = self._sequences.get(partition)
        return 0 if found is None else found.failures

    async def _number(
        self,
        batches: Sequence[NewBatch],
        known: Mapping[TopicPartition, int],
        numbered: list[_Numbered],
        answers: Answers,
    ) -> None:
        """Give each batch its numbers. One that is damaged has its answer, and so has what comes behind one that has
        failed since the call was made."""
        for place, (partition, batch) in enumerate(batches):
            if self._failures(partition) > known[partition]:
                answers[place] = _behind(partition)
                continue
            sequence = await self._sequence_of(partition)
            stamp = partial(
                stamp_batch, batch, (sequence.producer_id, sequence.epoch), sequence.next, transactional=False
            )
            try:
                new, records = stamp() if len(batch) <= LARGE else await trio.to_thread.run_sync(stamp)
            except BrokerError as error:
                answers[place] = error.with_traceback(None)
                sequence.failures += 1
                continue
            sequence.next = sequence_after(sequence.next, records)
            numbered.append(_Numbered(place, partition, new, sequence))

    async def _sequence_of(self, partition: TopicPartition) -> _Sequence:
        """The numbers that are next in a partition. Raises StorageError."""
        found = self._sequences.get(partition)
        if found is not None:
            found.renew()
        if found is None or found.epoch > _LAST_EPOCH:
            if found is not None or self._producer_id < 0:
                self._producer_id = await self._core.producer_ids.next_id()
            former, found = found, _Sequence(self._producer_id)
            self._sequences[partition] = found
            if former is not None:
                found.last, found.failures = former.last, former.failures
        return found

    def _queue(self, numbered: Sequence[_Numbered], done: trio.Event) -> list[trio.Event]:
        """Stand behind the calls that have batches for the same partitions: those are returned."""
        before = {each.sequence.last for each in numbered}
        for each in numbered:
            each.sequence.last = done
        return [event for event in before if event is not None and event is not done]

    async def _write(self, numbered: Sequence[_Numbered], answers: Answers) -> None:
        """Append until each has its answer, or `DELIVERY_TIMEOUT_S` is over."""
        left = list(numbered)
        until, pause = trio.current_time() + DELIVERY_TIMEOUT_S, _FIRST_PAUSE_S
        while True:
            left = await self._write_once(left, answers)
            if not left:
                return
            if trio.current_time() >= until:
                break
            await trio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)
        for each in left:
            answers[each.place] = RequestTimedOut(
                f"{each.partition} did not take the batch for {DELIVERY_TIMEOUT_S:g} s: {answers[each.place]}"
            )

    async def _write_once(self, batches: Sequence[_Numbered], answers: Answers) -> list[_Numbered]:
        """Append these, and return those that are to be tried again: in each partition all from the first that the disk
        did not take."""
        firsts: list[_Numbered] = []
        others: list[_Numbered] = []
        begun: set[TopicPartition] = set()
        for each in batches:
            if each.sequence.knows or each.partition not in begun:
                firsts.append(each)
            else:
                others.append(each)
            begun.add(each.partition)
        again: dict[TopicPartition, list[_Numbered]] = {}
        for some in (firsts, others):
            await self._append(some, answers, again)
        return [each for of_partition in again.values() for each in of_partition]

    async def _append(
        self,
        batches: Sequence[_Numbered],
        answers: Answers,
        again: dict[TopicPartition, list[_Numbered]],
    ) -> None:
        ready: list[_Numbered] = []
        for each in batches:
            if each.partition in again:
                again[each.partition].append(each)
            elif each.epoch <= each.sequence.failed:
                answers[each.place] = _behind(each.partition)
            else:
                each.batch[: len(_NO_OFFSET)] = _NO_OFFSET  # an append that failed may have set it
                ready.append(each)
        if not ready:
            return
        results = await self._producing.append([NewBatch(each.partition, each.batch) for each in ready])
        for each, result in zip(ready, results, strict=True):
            answers[each.place] = result
            if each.partition in again:
                again[each.partition].append(each)
            elif isinstance(result, Appended):
                each.sequence.knows = True
            elif isinstance(result, StorageError):
                again[each.partition] = [each]
            else:
                each.sequence.fail(each.epoch)


def _behind(partition: TopicPartition) -> OutOfOrderSequence:
    return OutOfOrderSequence(f"A batch for {partition} before this one was not appended.")


@asynccontextmanager
async def open_appender(core: Broker, producing: Producing) -> AsyncIterator[InProcessAppender]:
    """See `leafcuttr_sdk.peers.Peer.appender`."""
    yield InProcessAppender(core, producing)
