"""Answers to ListOffsets and OffsetForLeaderEpoch: from a time, or an epoch, to an offset.

May go through cold parts of the disk: with `may_block` False they raise NotCached instead, see `Log.off_loop`.
"""

from typing import TYPE_CHECKING

from leafcuttr.errors import StorageError
from leafcuttr.log.checkpoints import LEADER_EPOCHS, DamagedCheckpointError, read_leader_epochs
from leafcuttr.log.scan import DamagedSegmentError, headers
from leafcuttr.log.segment import Segment
from leafcuttr.wire.batch import BatchHeader
from leafcuttr.wire.errors import WireError

if TYPE_CHECKING:
    from leafcuttr.log.log import Log

Found = tuple[int, int, int]
"""Timestamp in ms, offset, leader epoch."""


def offset_for_timestamp(log: "Log", timestamp: int, *, may_block: bool) -> Found | None:
    """The first record (by offset, from the log start offset on) with this timestamp or a later one."""
    for segment in tuple(log.segments):
        if segment.largest_timestamp < timestamp or not segment.size:
            continue
        found = _in_segment(log, segment, timestamp, may_block)
        if found is not None:
            return found
    return None


def _in_segment(log: "Log", segment: Segment, timestamp: int, may_block: bool) -> Found | None:
    before = segment.time_index.offset_before(timestamp, may_block=may_block)
    start = segment.index.position_for(before, may_block=may_block)
    for position, header in headers(segment.open_file(), start, segment.size, may_block=may_block):
        if header.max_timestamp >= timestamp and header.last_offset >= log.log_start_offset:
            batch = segment.open_file().pread(header.size, position, may_block=may_block)
            for record_timestamp, offset in _records(log, batch):
                if record_timestamp >= timestamp and offset >= log.log_start_offset:
                    return record_timestamp, offset, header.leader_epoch
    return None


def max_timestamp_offset(log: "Log", *, may_block: bool) -> Found | None:
    """The largest timestamp of the log, and the first record that has it (KIP-734).

    What lies before the log start offset does not count, though it may still be on the disk.
    """
    filled = [segment for segment in log.segments if segment.size and segment.largest_timestamp >= 0]
    best: Found | None = None
    for segment in sorted(filled, key=lambda one: -one.largest_timestamp):
        if best is not None and segment.largest_timestamp <= best[0]:
            break
        found = _largest_in(log, segment, may_block)
        if found is not None and (best is None or found[0] > best[0]):
            best = found
    return best


def _largest_in(log: "Log", segment: Segment, may_block: bool) -> Found | None:
    place = segment.find(segment.offset_of_largest_timestamp(may_block=may_block), may_block=may_block)
    if place is not None and segment.base_offset < log.log_start_offset > place[1].base_offset:
        place = _largest_left(log, segment, may_block)
    if place is None:
        return None
    position, header = place
    batch = segment.open_file().pread(header.size, position, may_block=may_block)
    left = [
        (timestamp, offset) for timestamp, offset in _records(log, batch) if offset >= log.log_start_offset
    ]
    if not left:
        return None
    timestamp, offset = max(left, key=lambda record: record[0])
    return timestamp, offset, header.leader_epoch


def _largest_left(log: "Log", segment: Segment, may_block: bool) -> tuple[int, BatchHeader] | None:
    """Position and header of the batch with the largest timestamp from the log start offset on."""
    start, file = log.log_start_offset, segment.open_file()
    first = segment.find(start, may_block=may_block)
    best: tuple[int, BatchHeader] | None = None
    largest = -1
    for position, header in headers(
        file, first[0] if first else segment.size, segment.size, may_block=may_block
    ):
        timestamp = header.max_timestamp
        if header.base_offset < start:
            batch = file.pread(header.size, position, may_block=may_block)
            timestamp = max((stamp for stamp, offset in _records(log, batch) if offset >= start), default=-1)
        if timestamp > largest:
            best, largest = (position, header), timestamp
    return best


def _records(log: "Log", batch: bytes) -> list[tuple[int, int]]:
    from leafcuttr.wire.records import decode_records

    try:
        return [(record.timestamp, record.offset) for record in decode_records(batch)]
    except WireError as error:
        raise StorageError(f"A batch of {log.topic_partition} cannot be decoded: {error}") from error


def offset_for_leader_epoch(log: "Log", epoch: int) -> tuple[int, int]:
    """The epoch asked for, or the largest known below it, and where the next one begins: the log end for the last
    one. (-1, -1) if it is not known (KIP-101).

    A log has one epoch, unless Kafka has written it and it was adopted; then `leader-epoch-checkpoint` names all.
    Raises StorageError if that cannot be read.
    """
    if epoch < 0 or epoch > log.leader_epoch:
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
    "Found",
    "max_timestamp_offset",
    "offset_for_leader_epoch",
    "offset_for_timestamp",
]
