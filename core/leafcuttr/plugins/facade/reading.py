"""Reading for plugins: raw batches, records, waiting for more, offsets by time. The loop never waits for
the disk, and decoding goes on in short turns."""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from itertools import islice
from typing import TYPE_CHECKING, Final

import trio

from leafcuttr.errors import CorruptMessage, StorageError, UnknownTopicOrPartition
from leafcuttr.log.log import Log
from leafcuttr.log.read.read import LogRead
from leafcuttr.plugins.facade.topics import existing
from leafcuttr.runtime.limiters import decode_limiter
from leafcuttr.runtime.pacing import Pace
from leafcuttr.state.broker import Broker
from leafcuttr.wire.batch import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    HEADER_SIZE,
    BatchHeader,
    CorruptBatch,
    parse,
)
from leafcuttr.wire.errors import WireError
from leafcuttr.wire.primitives import LONG_MAX
from leafcuttr.wire.record_shapes import Shapes
from leafcuttr.wire.records import Record, decode_alike, record_bytes
from leafcuttr_sdk import (
    EARLIEST,
    LATEST,
    AbortedRange,
    Fetched,
    RawRead,
    StoredRecord,
    TopicPartition,
)
from leafcuttr_sdk.batches.checksum import crc32c
from leafcuttr_sdk.batches.reader import Batch

if TYPE_CHECKING:
    from leafcuttr.plugins.facade.acting.rights import Rights

_READ_AT_ONCE: Final = 1024 * 1024
"""Bytes that are copied out of the page cache on the loop: a tenth of a millisecond."""
_DECOMPRESSED_AT_ONCE: Final = 16 * 1024
_SLICE: Final = 100
"""Records that are decoded between two readings of the clock."""
_SHAPED: Final = 64
"""Partitions of which the shapes of records are remembered."""


class Reading:
    """The reading part of the facade."""

    def __init__(self, core: Broker) -> None:
        self._core = core
        self._turn = 0
        self._shapes: dict[TopicPartition, Shapes] = {}
        self._rights: Rights | None = None

    def acting_for(self, rights: "Rights") -> "Reading":
        """The same for a client, who may do what these say."""
        part = copy(self)
        part._rights = rights
        return part

    async def read_batches(
        self, partition: TopicPartition, offset: int, *, max_bytes: int = 1024 * 1024, committed: bool = False
    ) -> RawRead:
        """See `leafcuttr_sdk.Broker.read_batches`."""
        await trio.lowlevel.checkpoint()
        found = await read_log(self._log(partition), offset, max_bytes, committed=committed)
        if self._rights is not None:
            self._rights.consumed(len(found.data))
        return found

    async def fetch(
        self,
        positions: Mapping[TopicPartition, int],
        *,
        max_bytes: int = 1024 * 1024,
        max_records: int | None = None,
        wait_s: float = 0.0,
        committed: bool = False,
    ) -> Fetched:
        """See `leafcuttr_sdk.Broker.fetch`."""
        until = trio.current_time() + wait_s
        at, records = dict(positions), list[StoredRecord]()
        await trio.lowlevel.checkpoint()
        while True:
            await self._pass(at, records, max_bytes, max_records, committed)
            if records or trio.current_time() >= until:
                return Fetched(records, at)
            with trio.move_on_at(until):
                await self._wait(at, committed)

    async def _pass(
        self,
        at: dict[TopicPartition, int],
        records: list[StoredRecord],
        max_bytes: int,
        max_records: int | None,
        committed: bool,
    ) -> None:
        """Read each partition once, each time beginning with another one, so that all are read evenly."""
        partitions = list(at)
        if not partitions:
            return
        first = self._turn = (self._turn + 1) % len(partitions)
        pace, left = Pace(), max(max_bytes, 1)
        for number, partition in enumerate(partitions[first:] + partitions[:first]):
            log = self._log(partition)
            if log.offline is not None:
                raise StorageError(log.offline)
            if not has_news(log, at[partition], committed=committed):
                continue
            most = max(left // (len(partitions) - number), 1)
            found = await _read(log, at[partition], most, committed)
            left -= len(found.data)
            if self._rights is not None:
                self._rights.consumed(len(found.data))
            aborted = await _aborted(log, at[partition], found.next_offset) if committed else ()
            shapes = self._shapes_of(partition)
            if not await _decode(
                partition, found.data, at[partition], aborted, shapes, records, max_records, pace
            ):
                at[partition] = records[-1].offset + 1
                return
            at[partition] = found.next_offset
            if left <= 0:
                return

    async def wait_for_records(
        self, positions: Mapping[TopicPartition, int], *, committed: bool = False
    ) -> set[TopicPartition]:
        """See `leafcuttr_sdk.Broker.wait_for_records`."""
        await trio.lowlevel.checkpoint()
        return await self._wait(positions, committed)

    async def _wait(self, positions: Mapping[TopicPartition, int], committed: bool) -> set[TopicPartition]:
        logs: list[tuple[TopicPartition, int, Log]] = []
        ready: set[TopicPartition] = set()
        for partition, position in positions.items():
            try:
                logs.append((partition, position, self._log(partition)))
            except UnknownTopicOrPartition:
                ready.add(partition)
        ready |= _ready(logs, committed)
        if ready:
            return ready
        change = _Change()
        for _, _, log in logs:
            log.waiters.add(change)
        try:
            while not ready:
                await change.wait()
                ready = _ready(logs, committed)
            return ready
        finally:
            for _, _, log in logs:
                log.waiters.discard(change)

    async def offsets(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """See `leafcuttr_sdk.Broker.offsets`."""
        await trio.lowlevel.checkpoint()
        pace, answer = Pace(), dict[TopicPartition, int]()
        for partition, time in times.items():
            await pace.turn()
            log = self._log(partition, reads=False)
            if log.offline is not None:
                raise StorageError(log.offline)
            if time == EARLIEST:
                answer[partition] = log.log_start_offset
            elif time == LATEST:
                answer[partition] = log.high_watermark
            else:
                found = await log.offset_for_timestamp(max(time, 0))
                end = log.high_watermark
                answer[partition] = end if found is None else min(found[1], end)
        return answer

    def _shapes_of(self, partition: TopicPartition) -> Shapes:
        shapes = self._shapes.get(partition)
        if shapes is None:
            if len(self._shapes) >= _SHAPED:
                self._shapes.clear()
            shapes = self._shapes[partition] = Shapes(partition)
        return shapes

    def _log(self, partition: TopicPartition, *, reads: bool = True) -> Log:
        if self._rights is not None:
            self._rights.need_to_read(partition.topic, records=reads)
        topic = existing(self._core, partition.topic)
        if not 0 <= partition.partition < len(topic.partitions):
            raise UnknownTopicOrPartition(
                f"Topic '{topic.name}' has {len(topic.partitions)} partition(s), there is no partition "
                f"{partition.partition}."
            )
        return topic.partitions[partition.partition].log


class _Change:
    """Told by a log that it has changed."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = trio.Event()

    def notify(self) -> None:
        self._event.set()

    async def wait(self) -> None:
        await self._event.wait()
        self._event = trio.Event()


def has_news(log: Log, position: int, *, committed: bool) -> bool:
    """Whether a read from there finds something, or fails."""
    if log.offline is not None or position > log.log_end_offset:
        return True
    return position < (log.last_stable_offset if committed else log.log_end_offset)


def _ready(logs: Sequence[tuple[TopicPartition, int, Log]], committed: bool) -> set[TopicPartition]:
    return {partition for partition, position, log in logs if has_news(log, position, committed=committed)}


async def read_log(log: Log, offset: int, max_bytes: int, *, committed: bool) -> RawRead:
    """See `leafcuttr_sdk.Broker.read_batches`. Raises OffsetOutOfRange, CorruptMessage, StorageError."""
    read = await _read(log, offset, max_bytes, committed)
    if not committed or not read.data:
        return read
    return read._replace(aborted=await _aborted(log, offset, read.next_offset))


async def _read(log: Log, offset: int, max_bytes: int, committed: bool) -> RawRead:
    def read(may_block: bool) -> LogRead:
        up_to = log.last_stable_offset if committed else None
        return log.read(offset, max_bytes, at_least_one=True, up_to=up_to, may_block=may_block)

    try:
        found = await log.off_loop(read)
        region = found.region
        data: bytes | bytearray = b""
        if region is not None:
            cached = region.read_cached() if region.length <= _READ_AT_ONCE else None
            data = await trio.to_thread.run_sync(region.read) if cached is None else cached
            if len(data) != region.length:
                raise StorageError(f"{log.topic_partition} ends in the middle of what offset {offset} is in")
        next_offset = found.next_offset
        if next_offset < 0:
            next_offset = max((header.next_offset for header, _ in _batches(data)), default=offset)
    except OSError as error:
        raise StorageError(f"Reading {log.topic_partition} failed: {error.strerror or error}") from error
    except CorruptBatch as error:
        raise CorruptMessage(f"{log.topic_partition}: {error}") from error
    log.bytes_out += len(data)
    log.records_out += max(next_offset - offset, 0)
    return RawRead(data, next_offset, log.high_watermark, log.log_start_offset)


async def _aborted(log: Log, offset: int, next_offset: int) -> tuple[AbortedRange, ...]:
    found = await log.off_loop(
        lambda may_block: log.aborted_transactions(offset, next_offset, may_block=may_block)
    )
    return tuple(AbortedRange(one.producer_id, one.first_offset, one.last_offset) for one in found)


def _batches(data: bytes | bytearray) -> Iterator[tuple[BatchHeader, memoryview]]:
    """The batches that lie one behind the other. Raises CorruptBatch."""
    view, at = memoryview(data), 0
    while at < len(view):
        header = parse(view, at)
        if not HEADER_SIZE <= header.size <= len(view) - at:
            raise CorruptBatch(f"the batch at offset {header.base_offset} claims {header.size} bytes")
        if header.next_offset > LONG_MAX:  # no CRC covers the base offset
            raise CorruptBatch(
                f"the batch at offset {header.base_offset} claims {header.last_offset_delta} more"
            )
        yield header, view[at : at + header.size]
        at += header.size


async def _decode(
    partition: TopicPartition,
    data: bytes | bytearray,
    offset: int,
    aborted: Sequence[AbortedRange],
    shapes: Shapes,
    records: list[StoredRecord],
    most: int | None,
    pace: Pace,
) -> bool:
    """Add the records from `offset` on, without those of control batches and of aborted transactions; False once there
    are `most` of them. Raises CorruptMessage."""
    try:
        for header, batch in _batches(data):
            if header.next_offset <= offset or header.is_control or not header.count:
                continue
            if aborted and Batch(header, batch).is_aborted(aborted):
                continue
            if crc32c(batch[ATTRIBUTES_AT:]) != header.crc:
                raise CorruptBatch(f"the batch at offset {header.base_offset} has a wrong CRC")
            if header.codec and header.size > _DECOMPRESSED_AT_ONCE:
                batch = await trio.to_thread.run_sync(
                    _decompressed, batch, limiter=decode_limiter(), abandon_on_cancel=True
                )
            decoded = decode_alike(batch, shapes)
            while some := list(islice(decoded, _SLICE)):
                await pace.turn()
                if some[0].offset < offset:
                    some = [record for record in some if record.offset >= offset]
                if most is not None and len(records) + len(some) >= most:
                    records += _stored(partition, some[: most - len(records)])
                    return False
                records += _stored(partition, some)
    except WireError as error:
        raise CorruptMessage(f"{partition}: {error}") from error
    return True


def _stored(partition: TopicPartition, records: Sequence[Record | StoredRecord]) -> list[StoredRecord]:
    topic, number = partition
    new = tuple.__new__  # StoredRecord._make, which does the same, takes half as long again
    return [
        record if type(record) is StoredRecord else new(StoredRecord, (topic, number, *record))
        for record in records
    ]


def _decompressed(batch: memoryview) -> memoryview:
    """The same batch without compression; its CRC and length are not made right again."""
    out = bytearray(batch[:HEADER_SIZE]) + record_bytes(batch)
    out[ATTRIBUTES_AT + 1] &= ~CODEC_MASK & 0xFF
    return memoryview(out)
