"""Dead letters on their way into their topics: one task that writes what has been posted, in order.

A topic that is not there is made, with as many partitions as the one that the records were produced to, so that records
of one partition stay in order. Each letter goes to the partition of the same number, or that modulo the count.

A write is tried once. If it fails, the records are lost: their batch is in the log, and their producer is told so.
A line in the log, `lost` and `trouble` say it; who is told of the batch has waited until then.
"""

import logging
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from leafcuttr.errors import BrokerError, TopicAlreadyExists, UnknownTopicOrPartition
from leafcuttr.log.complaints import Complaints
from leafcuttr.log.log import Log
from leafcuttr.log.rework import LongWork
from leafcuttr.log.workers import decode_limiter
from leafcuttr.state.topics import Topic, Topics
from leafcuttr_sdk.types import Clock

if TYPE_CHECKING:
    from leafcuttr.log.dead_letters import Letters
    from leafcuttr.log.rework import Prepared

_BUILT_AT_ONCE: Final = 64 * 1024  # bytes of records, about: what a millisecond makes a batch of

logger = logging.getLogger(__name__)


class DeadLetterBox:
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
        self._complain = Complaints(logger)
        topics.on_deleted.append(lambda topic: self._forget(topic.name))

    def post(self, letters: "Letters") -> None:
        """Have them written. On the event loop; touches no log, so it may be called while one is written."""
        self._posted.append(letters)
        self._arrived.set()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Write what is posted, until cancelled; then what is left, which clients have been told is stored."""
        task_status.started()
        try:
            while True:
                await self._arrived.wait()
                with trio.CancelScope(shield=True):
                    await self.empty()
        finally:
            with trio.CancelScope(shield=True):
                await self.empty()

    async def empty(self) -> None:
        """Write all that has been posted."""
        while self._posted:
            posted, self._posted = self._posted, []
            self._arrived = trio.Event()
            for letters in posted:
                try:
                    await self._write(letters)
                except Exception:
                    logger.exception("writing dead letters of %s failed", letters.partition)
                finally:
                    letters.finish()

    async def _write(self, letters: "Letters") -> None:
        for name in dict.fromkeys(letter.topic for letter in letters.letters):
            total, done = sum(letter.topic == name for letter in letters.letters), 0
            try:
                topic = await self._topic(name, letters.partition.topic)
                for batch, count in await self._batches(letters, name):
                    log = topic.partitions[letters.partition.partition % len(topic.partitions)].log
                    await self._append(log, batch)
                    done += count
                self.trouble.pop(name, None)
            except BrokerError as error:
                self._lose(letters, name, total - done, error)
            if done:
                self.written[name] = self.written.get(name, 0) + done

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

    async def _append(self, log: Log, batch: bytearray) -> None:
        prepared: Prepared | None = None
        while True:
            try:
                if self._topics.partition(log.topic_partition).log is not log:
                    raise UnknownTopicOrPartition("it has been deleted")
                staged = log.stage_letters(batch, now_ms=self._clock.now_ms(), prepared=prepared)
            except LongWork as work:
                prepared = await trio.to_thread.run_sync(partial(work.do), limiter=decode_limiter())
            else:
                await log.commit_staged(staged)
                return

    def _lose(self, letters: "Letters", name: str, count: int, error: BrokerError) -> None:
        self.lost[name] = self.lost.get(name, 0) + count
        reason = error.message or error.code.name
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
