"""Dead letters on their way into their topics: one task that writes what has been posted, in order.

A topic that is not there is made, with as many partitions as the one that the records were produced to, so that records
of one partition stay in order. Each letter goes to the partition of the same number, or that modulo the count.

A write is tried once. If it fails, the records are lost: their batch is in the log, and their producer is told so.
A line in the log, `lost` and `trouble` say it; the producer of the batch is answered after that.
"""

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from leafcuttr.errors import BrokerError, TopicAlreadyExists, UnknownTopicOrPartition
from leafcuttr.log.append.pending_write import PendingWrite
from leafcuttr.log.append.preparation import LongWork
from leafcuttr.log.append.rules import Origin
from leafcuttr.log.append.staged import Staged
from leafcuttr.log.log import Log
from leafcuttr.runtime.complaints import Complaints
from leafcuttr.runtime.limiters import decode_limiter
from leafcuttr.state.topics import Topic, Topics
from leafcuttr_sdk.types import Clock

if TYPE_CHECKING:
    from leafcuttr.log.append.chain.dead_letters import Letters
    from leafcuttr.log.append.preparation import Prepared

_BUILT_AT_ONCE: Final = 64 * 1024  # bytes of records, about: what a millisecond makes a batch of

logger = logging.getLogger(__name__)


class _Sent(NamedTuple):
    """A batch of dead letters on its way into their topic."""

    letters: "Letters"
    topic: str
    count: int  # type: ignore[assignment]  # hides tuple.count, which is not used
    write: PendingWrite
    staged: Staged


class DeadLetterWriter:
    """`written` and `lost` count records by dead-letter topic; `trouble` has those to which the last write failed, and
    why."""

    def __init__(self, topics: Topics, clock: Clock) -> None:
        self.written: dict[str, int] = {}
        self.lost: dict[str, int] = {}
        self.trouble: dict[str, str] = {}
        self._topics = topics
        self._clock = clock
        self._posted: list[Letters] = []
        self._arrived = trio.Event()
        self._scope = trio.CancelScope(shield=True)
        self._ended = False
        self._complain = Complaints(logger)
        topics.on_deleted.append(lambda topic: self._forget(topic.name))

    def post(self, letters: "Letters") -> None:
        """Have them written. On the event loop; touches no log, so it may be called while one is written."""
        if self._ended:
            for name in dict.fromkeys(letter.topic for letter in letters.letters):
                count = sum(letter.topic == name for letter in letters.letters)
                self._lose(letters, name, count, BrokerError("the broker has stopped"))
            letters.finish()
            return
        self._posted.append(letters)
        self._arrived.set()

    def stop(self) -> None:
        """Have `run` end: no caller waits for a batch any more."""
        self._scope.cancel()

    async def run(self) -> None:
        """Write what is posted, until `stop`; then what is left. Cancellation does not end it: what waits for a
        batch is not to be cancelled, and waits for its dead letters too."""
        with self._scope:
            while True:
                await self._arrived.wait()
                with trio.CancelScope(shield=True):
                    await self.write_posted()
        with trio.CancelScope(shield=True):
            await self.write_posted()
        self._ended = True

    async def write_posted(self) -> None:
        """Write all that has been posted: what is there at one time goes with one write for each log."""
        while self._posted:
            posted, self._posted = self._posted, []
            self._arrived = trio.Event()
            sent: list[_Sent] = []
            try:
                for letters in posted:
                    for name in dict.fromkeys(letter.topic for letter in letters.letters):
                        sent += await self._send(letters, name)
                for each in sent:
                    await self._judge(each)
            finally:
                for letters in posted:
                    letters.finish()

    async def _send(self, letters: "Letters", name: str) -> "list[_Sent]":
        """Begin to write those for one topic. What cannot be staged is lost."""
        sent: list[_Sent] = []
        total = sum(letter.topic == name for letter in letters.letters)
        try:
            topic = await self._topic(name, letters.partition.topic)
            for batch, count in await self._batches(letters, name):
                log = topic.partitions[letters.partition.partition % len(topic.partitions)].log
                sent.append(_Sent(letters, name, count, *await self._append(log, batch)))
        except Exception as error:
            self._lose(letters, name, total - sum(each.count for each in sent), error)
        return sent

    async def _judge(self, sent: "_Sent") -> None:
        if not sent.write.published:
            # Not for dead letters that clients' batches in the same write have left: they are behind these.
            await sent.write.wait_until_published()
        failure = sent.write.failure_of(sent.staged)
        if failure is not None:
            self._lose(sent.letters, sent.topic, sent.count, failure)
            return
        self.written[sent.topic] = self.written.get(sent.topic, 0) + sent.count
        self.trouble.pop(sent.topic, None)

    async def _topic(self, name: str, source: str) -> Topic:
        while (topic := self._topics.by_name.get(name)) is None:
            origin = self._topics.by_name.get(source)
            with suppress(TopicAlreadyExists):
                return await self._topics.create(name, len(origin.partitions) if origin else 1, {})
        return topic

    async def _batches(self, letters: "Letters", topic: str) -> list[tuple[bytearray, int]]:
        def build() -> list[tuple[bytearray, int]]:
            return list(letters.batches(topic, now_ms))

        now_ms = self._clock.now_ms()
        size = sum(
            len(letter.record.key or b"") + len(letter.record.value or b"") for letter in letters.letters
        )
        if size <= _BUILT_AT_ONCE and len(letters.letters) <= _BUILT_AT_ONCE // 128:
            return build()
        return await trio.to_thread.run_sync(build, limiter=decode_limiter())

    async def _append(self, log: Log, batch: bytearray) -> tuple[PendingWrite, Staged]:
        prepared: Prepared | None = None
        while True:
            try:
                if self._topics.partition(log.topic_partition).log is not log:
                    raise UnknownTopicOrPartition("it has been deleted")
                staged = log.stage(batch, Origin.DEAD_LETTERS, now_ms=self._clock.now_ms(), prepared=prepared)
            except LongWork as long:
                prepared = await long.work.done()
                continue
            return log.write(), staged

    def _lose(self, letters: "Letters", name: str, count: int, error: Exception) -> None:
        reason = str(error) or (error.code.name if isinstance(error, BrokerError) else type(error).__name__)
        if not isinstance(error, BrokerError):
            logger.error("writing dead letters to %s failed", name, exc_info=error)
        self.lost[name] = self.lost.get(name, 0) + count
        self.trouble[name] = reason
        self._complain(
            f"{name}: {reason}",
            "%d dead letters of %s, from offset %d on, cannot be written to %s and are lost: %s",
            *(count, letters.partition, letters.base_offset, name, reason),
        )

    def _forget(self, name: str) -> None:
        for counts in (self.written, self.lost):
            counts.pop(name, None)
        self.trouble.pop(name, None)
