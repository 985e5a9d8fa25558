"""Answers to ListOffsets and OffsetForLeaderEpoch: from a time, or an epoch, to an offset.

A search may go through cold parts of the disk (see `Log.off_loop`) and take apart batches that hold any number of
records; worker threads do both.
"""

from collections.abc import Callable, Iterator
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Final

import trio

from leafcuttr.errors import StorageError
from leafcuttr.log.files.off_loop import off_loop
from leafcuttr.log.layout.checkpoints import LEADER_EPOCHS, DamagedCheckpointError, read_leader_epochs
from leafcuttr.log.read.read import segment_at
from leafcuttr.log.segment.scan import DamagedSegmentError, headers
from leafcuttr.log.segment.segment import Segment
from leafcuttr.runtime.limiters import decode_limiter
from leafcuttr.wire.batch import BatchHeader
from leafcuttr.wire.compression import Codec
from leafcuttr.wire.errors import WireError
from leafcuttr.wire.primitives import LONG_MAX, LONG_MIN, as_long

if TYPE_CHECKING:
    from leafcuttr.log.state import LogState

_SMALL: Final = 16 * 1024
# Up to here records are walked over in a copy, which is quicker; beyond it a second copy would cost more than time.
_COPIED: Final = 1 << 20

FoundOffset = tuple[int, int, int]
"""Timestamp in ms, offset, leader epoch."""
_Candidate = tuple[BatchHeader, bytes]


async def offset_for_timestamp(log: "LogState", timestamp: int) -> FoundOffset | None:
    """The first record (by offset, from the log start offset on) with this timestamp or a later one.

    As in Kafka, only the first segment is searched that has such a record: if DeleteRecords has removed all of them
    there, and the segment has not gone yet, there is no answer.
    """
    from_offset = 0
    while True:
        candidate = await off_loop(partial(_first_batch, log, timestamp, from_offset))
        if candidate is None:
            return None
        found = await _taken_apart(_first_record, log, candidate, timestamp, log.log_start_offset)
        if found is not None:
            return found
        from_offset = candidate[0].next_offset


async def max_timestamp_offset(log: "LogState") -> FoundOffset | None:
    """The largest timestamp of the segments, and the first record that has it (KIP-734).

    As in Kafka, what lies before the log start offset counts for as long as its segment is there.
    """
    segment = max(log.segments, key=lambda one: one.largest_timestamp if one.size else -1)
    if segment.largest_timestamp < 0 or not segment.size:
        return None
    latest = await off_loop(partial(_latest_batch, segment))
    return None if latest is None else await _taken_apart(_largest_record, log, latest, 0, 0)


def batch_timestamp(log: "LogState", offset: int) -> int | None:
    """See `Log.batch_timestamp`."""
    for segment in log.segments[segment_at(log, max(offset, log.log_start_offset)) :]:
        found = segment.find(max(offset, log.log_start_offset), may_block=False)
        if found is not None:
            header = found[1]
            return header.max_timestamp if header.is_log_append_time else header.base_timestamp
    return None


def _first_batch(log: "LogState", timestamp: int, from_offset: int, may_block: bool) -> _Candidate | None:
    """The first batch that may hold the record."""
    from_offset = max(from_offset, log.log_start_offset)
    for segment in tuple(log.segments):
        if segment.largest_timestamp < timestamp or not segment.size:
            continue
        before = max(
            segment.time_index.offset_before(timestamp, may_block=may_block),
            from_offset - segment.base_offset,
        )
        start = segment.index.position_for(before, may_block=may_block)
        for position, header in headers(segment.open_file(), start, segment.size, may_block=may_block):
            if header.max_timestamp >= timestamp and header.last_offset >= from_offset:
                return header, segment.open_file().pread(header.size, position, may_block=may_block)
        return None
    return None


def _latest_batch(segment: Segment, may_block: bool) -> _Candidate | None:
    """The batch with the largest timestamp of a segment."""
    found = segment.find(segment.offset_of_largest_timestamp(may_block=may_block), may_block=may_block)
    if found is None:
        return None
    position, header = found
    return header, segment.open_file().pread(header.size, position, may_block=may_block)


async def _taken_apart(
    search: "_Search", log: "LogState", candidate: _Candidate, timestamp: int, from_offset: int
) -> FoundOffset | None:
    """What `search` finds in the records of a batch. A batch of two kilobytes may hold millions of records, so what is
    not small is taken apart by a worker."""
    header, batch = candidate
    if header.codec == Codec.NONE and header.size <= _SMALL:
        return search(log, header, batch, timestamp, from_offset)
    return await trio.to_thread.run_sync(
        search,
        *(log, header, batch, timestamp, from_offset),
        limiter=decode_limiter(),
        abandon_on_cancel=True,
    )


def _first_record(
    log: "LogState", header: BatchHeader, batch: bytes, timestamp: int, from_offset: int
) -> FoundOffset | None:
    """The first record from `from_offset` on with this timestamp or a later one."""
    for at, offset in _times(log, header, batch):
        if at >= timestamp and offset >= from_offset:
            return at, offset, header.leader_epoch
    return None


def _largest_record(
    log: "LogState", header: BatchHeader, batch: bytes, _: int, from_offset: int
) -> FoundOffset | None:
    """The first of the records from `from_offset` on that have the largest timestamp."""
    left = (each for each in _times(log, header, batch) if each[1] >= from_offset)
    latest = max(left, key=itemgetter(0), default=None)
    return None if latest is None else (*latest, header.leader_epoch)


def _times(log: "LogState", header: BatchHeader, batch: bytes) -> Iterator[tuple[int, int]]:
    """Timestamp and offset of each record of a batch, without what they hold, which may be 100 MB. A batch that cannot
    be read is a StorageError."""
    log.resources.descriptors.import_late("leafcuttr.wire.records")
    log.resources.descriptors.import_late("leafcuttr.wire.record_summary")
    from leafcuttr.wire.record_summary import record_shapes
    from leafcuttr.wire.records import record_bytes

    try:
        data = record_bytes(batch)
        for shape in record_shapes(data.tobytes() if len(data) <= _COPIED else data, header.count):
            timestamp = header.base_timestamp + shape.timestamp_delta
            if not LONG_MIN <= timestamp <= LONG_MAX:
                timestamp = as_long(timestamp)
            yield (
                header.max_timestamp if header.is_log_append_time else timestamp,
                header.base_offset + shape.offset_delta,
            )
    except WireError as error:
        raise StorageError(f"A batch of {log.topic_partition} cannot be decoded: {error}") from error


_Search = Callable[["LogState", BatchHeader, bytes, int, int], FoundOffset | None]


def offset_for_leader_epoch(log: "LogState", epoch: int) -> tuple[int, int]:
    """The epoch `epoch`, or the largest known below it, and where the next one begins: the log end for the last
    one. (-1, -1) if it is not known (KIP-101).

    A log has one epoch, unless Kafka has written it and it was adopted; then `leader-epoch-checkpoint` names all.
    Raises StorageError if that cannot be read.
    """
    if epoch == -1 or epoch > log.leader_epoch:
        return -1, -1
    if epoch == log.leader_epoch:
        return epoch, log.log_end_offset
    try:
        epochs = read_leader_epochs(log.directory / LEADER_EPOCHS)
    except (DamagedCheckpointError, OSError) as error:
        raise StorageError(f"The leader epochs of {log.topic_partition} cannot be read: {error}") from error
    known = [each for each, _ in epochs if each <= epoch]
    end_offset = next((start for each, start in epochs if each > epoch), log.log_start_offset)
    return known[-1] if known else epoch, max(end_offset, log.log_start_offset)


__all__ = [
    "DamagedSegmentError",
    "FoundOffset",
    "max_timestamp_offset",
    "offset_for_leader_epoch",
    "offset_for_timestamp",
]
