"""Reading: from an offset to a range of a file that can be sent as it is.

Only published bytes are given out, whole batches of one segment. Where a range ends is remembered with the offset
that follows it, so that a consumer that reads on costs no lookup. Without `may_block`, NotCached says that an index
or a header would have to come from the disk.
"""

from bisect import bisect_right
from typing import TYPE_CHECKING, Final, NamedTuple

from leafcuttr.errors import OffsetOutOfRange, StorageError
from leafcuttr.log.files.region import FileRegion
from leafcuttr.log.segment.scan import DamagedSegmentError, headers
from leafcuttr.log.segment.segment import Segment
from leafcuttr.wire.batch import HEADER_SIZE, unpack

if TYPE_CHECKING:
    from leafcuttr.log.state import LogState

CURSORS: Final = 16  # sequential readers remembered per log


class LogRead(NamedTuple):
    """`region` is None when there is nothing to read yet. `next_offset` is what to read next: that after the region
    where it is known (it nearly always is), else -1."""

    region: FileRegion | None
    next_offset: int


def segment_at(log: "LogState", offset: int) -> int:
    """Number of the segment that holds the offset, or would."""
    segments = log.segments
    if offset >= segments[-1].base_offset:
        return len(segments) - 1
    return max(bisect_right(segments, offset, key=base_offset) - 1, 0)


def base_offset(segment: Segment) -> int:
    """A key for bisect."""
    return segment.base_offset


def read(
    log: "LogState", offset: int, max_bytes: int, *, at_least_one: bool, up_to: int | None, may_block: bool
) -> LogRead:
    """See `Log.read`."""
    if log.offline is not None:
        raise StorageError(log.offline)
    end_offset = log.log_end_offset
    if not log.log_start_offset <= offset <= end_offset:
        raise OffsetOutOfRange(
            f"Received request for offset {offset} for partition {log.topic_partition}, but we only have log segments "
            f"in the range {log.log_start_offset} to {end_offset}."
        )
    if up_to is not None and up_to < end_offset:
        end_offset = up_to
    if offset >= end_offset or (max_bytes <= 0 and not at_least_one):
        return LogRead(None, offset)
    try:
        return _region(log, offset, max_bytes, at_least_one, end_offset, may_block)
    except DamagedSegmentError as error:
        log.take_offline(str(error))
        raise StorageError(str(error)) from error
    except OSError as error:
        raise StorageError(f"Reading {log.topic_partition} failed: {error.strerror or error}") from error


def _region(
    log: "LogState", offset: int, max_bytes: int, at_least_one: bool, end_offset: int, may_block: bool
) -> LogRead:
    segment, position = _locate(log, offset, may_block)
    if segment is not log.segments[-1]:
        segment, position = _behind_empty(log, segment, position, may_block)
    end, after = segment.size, -1
    if end_offset < log.log_end_offset:
        found = segment.find(end_offset, may_block=may_block)
        if found is not None:
            end, after = found[0], found[1].base_offset
    if end - position <= max_bytes:
        length, next_offset = end - position, after if after >= 0 else _offset_after(log, segment)
    else:
        length, next_offset = _cut(segment, position, max_bytes, at_least_one, may_block)
    if length <= 0:
        return LogRead(None, offset)
    if next_offset >= 0:
        _remember(log, next_offset, segment, position + length)
    return LogRead(FileRegion(segment.open_file(), position, length), next_offset)


def _locate(log: "LogState", offset: int, may_block: bool) -> tuple[Segment, int]:
    """The segment and the position of the batch that holds the offset, or of the first one after it."""
    cursors = log.cursors
    if cursors is not None:
        known = cursors.get(offset)
        if known is not None and known[1] < known[0].size:
            return known
    number = segment_at(log, offset)
    while number < len(log.segments):
        segment = log.segments[number]
        if offset <= segment.base_offset and segment.size:
            return segment, 0
        found = segment.find(offset, may_block=may_block)
        if found is not None:
            return segment, found[0]
        number += 1
    last = log.segments[-1]
    if log.config.compact:
        return last, last.size  # Kafka's compaction may leave no batch at the end
    raise DamagedSegmentError(last.path(".log"), last.size, f"offset {offset} is not there")


def _behind_empty(log: "LogState", segment: Segment, position: int, may_block: bool) -> tuple[Segment, int]:
    """The first batch from here on that has a record; if none has, where we are.

    Compaction leaves empty batches. A range of nothing else looks to librdkafka like a message that is too large; but
    where nothing follows, a reader has to get them, or it would wait for offsets that do not come.
    """
    number, start = log.segments.index(segment), position
    for each in log.segments[number:]:
        for at, header in headers(each.open_file(), start, each.size, may_block=may_block):
            if header.count:
                return each, at
        start = 0
    return segment, position


def _offset_after(log: "LogState", segment: Segment) -> int:
    if segment is log.segments[-1]:
        return log.log_end_offset
    return log.segments[segment_at(log, segment.base_offset) + 1].base_offset


def _cut(
    segment: Segment, position: int, max_bytes: int, at_least_one: bool, may_block: bool
) -> tuple[int, int]:
    """Length of whole batches from `position` within `max_bytes`, and the offset after them."""
    boundary = segment.index.boundary_at_most(position + max_bytes, may_block=may_block)
    if boundary > position:
        head = segment.open_file().pread(HEADER_SIZE, boundary, may_block=may_block)
        return boundary - position, int(unpack(head)[0])
    length, next_offset = 0, -1
    for at, header in headers(segment.open_file(), position, segment.size, may_block=may_block):
        if at + header.size - position > max_bytes and (length or not at_least_one):
            break
        length, next_offset = at + header.size - position, header.next_offset
    return length, next_offset


def _remember(log: "LogState", next_offset: int, segment: Segment, position: int) -> None:
    cursors = log.cursors
    if cursors is None:
        cursors = log.cursors = {}
    cursors.pop(next_offset, None)
    cursors[next_offset] = (segment, position)
    if len(cursors) > CURSORS:
        del cursors[next(iter(cursors))]
