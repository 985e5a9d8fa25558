"""A log of keyed records that a coordinator keeps in an internal topic: written, and read back at start.

A key lives in one partition, chosen by its id as Kafka does. What is written here is acknowledged only after the
append; if the disk would stall the loop, the append is finished by a worker and `then` is called later. What the
records say is the coordinator's business.
"""

import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

import trio

from leafcuttr.config.settings import Settings
from leafcuttr.errors import BrokerError, CoordinatorNotAvailable, ErrorCode, MessageTooLarge
from leafcuttr.log.append.pending_write import PendingWrite
from leafcuttr.log.append.rules import Origin
from leafcuttr.log.append.staged import Staged
from leafcuttr.log.log import FileRegion, Log
from leafcuttr.runtime.complaints import Complaints
from leafcuttr.runtime.unexpected import as_refusal
from leafcuttr.state.java_hash import java_hash
from leafcuttr.state.topics import Topic, Topics
from leafcuttr.wire.batch import ATTRIBUTES_AT, HEADER_SIZE, BatchHeader, CorruptBatch, parse
from leafcuttr.wire.compression import Codec
from leafcuttr.wire.records import DECOMPRESSED_LIMIT, Record, encode_batch
from leafcuttr_sdk import Clock
from leafcuttr_sdk.batches.checksum import crc32c

logger = logging.getLogger(__name__)

KeyValue = tuple[bytes, bytes | None]
"""Key and value of a record; None is a tombstone."""

WhenPublished = Callable[[ErrorCode, int], None]
"""Called with the outcome of a write: the error to answer, and the offset of the first record (-1 on error).
"""

_TURN_BYTES: Final = 128 << 10
"""So much of a log is read between two checkpoints of the loop: some milliseconds."""

_ACTIVE_BYTES: Final = 1 << 20
"""An active segment below this is short enough to be read at every start: see `_keep_short`."""


class ProducerIdAndEpoch(NamedTuple):
    """In whose transaction records are written."""

    producer_id: int
    epoch: int


class InternalLog:
    """One internal topic as a store of keyed records.

    `partitions_setting` says how many partitions it will have, `load_setting` how much is read at once at start;
    `answers` the error that a client gets when the log refuses, UNKNOWN_SERVER_ERROR for others.
    """

    def __init__(
        self,
        name: str,
        *,
        partitions_setting: str,
        load_setting: str,
        answers: Mapping[ErrorCode, ErrorCode],
        topics: Topics,
        settings: Settings,
        clock: Clock,
        codec: Codec = Codec.NONE,
    ) -> None:
        self.name = name
        self._partitions_setting = partitions_setting
        self._load_setting = load_setting
        self._answers = answers
        self._codec = codec
        self._topics = topics
        self._settings = settings
        self._clock = clock
        self._nursery: trio.Nursery | None = None
        self._complain = Complaints(logger)

    @property
    def topic(self) -> Topic | None:
        return self._topics.by_name.get(self.name)

    def use(self, nursery: trio.Nursery | None) -> None:
        """Finish writes that would block in this nursery from now on."""
        self._nursery = nursery

    async def ready(self) -> None:
        """Create the topic if it is not there. Raises CoordinatorNotAvailable."""
        if self.topic is not None:
            return
        try:
            await self._topics.ensure(self.name)
        except BrokerError as error:
            self._complain("creation", "%s cannot be created: %s", self.name, error, level=logging.WARNING)
            raise CoordinatorNotAvailable from error

    def partition_of(self, id_: str) -> int:
        topic = self.topic
        count = len(topic.partitions) if topic else self._settings.int(self._partitions_setting)
        return (java_hash(id_) & 0x7FFFFFFF) % count

    def partitions_to_load(self) -> set[int]:
        """The partitions that hold anything."""
        topic = self.topic
        if topic is None:
            return set()
        return {
            partition.index
            for partition in topic.partitions
            if partition.log.offline is not None
            or partition.log.high_watermark > partition.log.log_start_offset
        }

    def write(
        self,
        partition: int,
        entries: Sequence[KeyValue],
        then: WhenPublished,
        *,
        producer: ProducerIdAndEpoch | None = None,
    ) -> None:
        """Append the records as one batch, then call `then`: before this returns, unless the disk is slow.

        With a `producer` the batch belongs to its transaction.
        """
        try:
            log = self._log(partition)
            batch = memoryview(self._batch(entries, producer))
            staged = log.stage(batch, Origin.COORDINATOR, now_ms=self._clock.now_ms())
        except Exception as error:
            then(self._answer(partition, self._refusal(error)), -1)
            return
        write = log.write()
        if write.done:
            self._finish(log, write, staged, then)
        elif self._nursery is not None:
            self._nursery.start_soon(self._wait, log, write, staged, then)
        else:
            write.when_done(partial(self._finish, log, write, staged, then))

    def refuses(self, partition: int, size: int) -> ErrorCode:
        """What to answer if so many bytes are more than one batch can hold, without making it; else NONE."""
        most = self.largest_batch()
        if size <= most:
            return ErrorCode.NONE
        return self._answer(
            partition, MessageTooLarge(f"{size} bytes are more than max.message.bytes allows, {most}")
        )

    def largest_batch(self) -> int:
        """Bytes of keys and values that one batch may hold, as far as it can be known before it is compressed."""
        topic = self.topic
        if topic is None or self._codec is not Codec.NONE:
            return DECOMPRESSED_LIMIT
        return topic.config.max_message_bytes

    async def _wait(self, log: Log, write: PendingWrite, staged: Staged, then: WhenPublished) -> None:
        await write.wait()
        self._finish(log, write, staged, then)

    def _finish(self, log: Log, write: PendingWrite, staged: Staged, then: WhenPublished) -> None:
        failure = write.failure_of(staged)
        if failure is not None:
            then(self._answer(log.topic_partition.partition, failure), -1)
            return
        then(ErrorCode.NONE, staged.base_offset)
        _keep_short(log)

    def _refusal(self, error: Exception) -> BrokerError:
        """What to answer. The exception must not be raised on: a write that is due later is made by a task of the
        broker's own, which would end the broker with it."""
        if isinstance(error, BrokerError):
            return error
        return as_refusal(self._complain, error, f"writing to {self.name}")

    def _log(self, partition: int) -> Log:
        topic = self.topic
        if topic is None or partition >= len(topic.partitions):
            raise CoordinatorNotAvailable
        return topic.partitions[partition].log

    def _batch(self, entries: Sequence[KeyValue], producer: ProducerIdAndEpoch | None) -> bytearray:
        now_ms = self._clock.now_ms()
        records = [Record(number, now_ms, key, value) for number, (key, value) in enumerate(entries)]
        if producer is None:
            return encode_batch(records, codec=self._codec)
        return encode_batch(
            records,
            codec=self._codec,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            transactional=True,
        )

    def _answer(self, partition: int, error: BrokerError) -> ErrorCode:
        text = "writing to %s-%d failed: %s"
        if error.code is ErrorCode.KAFKA_STORAGE_ERROR:
            reason = error or error.code.name
            self._complain("storage", text, self.name, partition, reason, level=logging.WARNING)
        else:
            logger.warning(text, self.name, partition, error or error.code.name)
        return self._answers.get(error.code, ErrorCode.UNKNOWN_SERVER_ERROR)

    async def batches(self, partition: int) -> AsyncIterator[Iterator[tuple[BatchHeader, memoryview]]]:
        """Every batch of a partition in order, some at a time; lets others run in between. Raises StorageError, and
        WireError from the iterators, each of which has to be used up."""
        log = self._log(partition)
        offset, at_once = log.log_start_offset, self._settings.int(self._load_setting)
        while offset < log.high_watermark:
            region = await _read(log, offset, at_once)
            if region is None:
                return
            reading = _Reading(memoryview(await trio.to_thread.run_sync(region.read)), offset)
            while reading.left:
                yield iter(reading)
                await trio.lowlevel.checkpoint()
            offset = reading.offset


class _Reading:
    """The batches of a piece of a log from `offset` on; in the end `offset` is that after them. Each iterator goes over
    what one turn of the loop may take, `left` says whether there is more."""

    def __init__(self, data: memoryview, offset: int) -> None:
        self.offset = offset
        self._data = data
        self._at = 0

    @property
    def left(self) -> bool:
        return self._at < len(self._data)

    def __iter__(self) -> Iterator[tuple[BatchHeader, memoryview]]:
        data, turn = self._data, self._at + _TURN_BYTES
        while self._at < min(turn, len(data)):
            header = _intact(data, self._at)
            begin = self._at
            self._at += header.size
            if header.next_offset > self.offset:
                self.offset = header.next_offset
                yield header, data[begin : self._at]


def _keep_short(log: Log) -> None:
    """End an active segment that is larger than all before it. The cleaner leaves the active one alone, but a start has
    to read it, and that must not take longer with each record ever written."""
    active = log.active_size
    if active > _ACTIVE_BYTES and active > log.size - active and log.config.compact:
        log.roll_with_next()


async def _read(log: Log, offset: int, at_once: int) -> FileRegion | None:
    found = await log.off_loop(
        lambda may_block: log.read(offset, at_once, at_least_one=True, may_block=may_block)
    )
    return found.region


def _intact(data: memoryview, at: int) -> BatchHeader:
    """The header of the batch at `at`, whose bytes are all there and as they were written. Raises CorruptBatch."""
    header = parse(data, at)
    if not HEADER_SIZE <= header.size <= len(data) - at:
        raise CorruptBatch(f"a batch claims {header.size} bytes, {len(data) - at} are left")
    if crc32c(data[at + ATTRIBUTES_AT : at + header.size]) != header.crc:
        raise CorruptBatch(f"the batch at offset {header.base_offset} has a wrong CRC")
    return header
