"""Reading a segment's file again, and writing its indexes anew from it: for recovery, and for the tools.

Which part of the file has to be read again, and what a fault in it means, is decided by the caller.
"""

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from leafcuttr.log.segment.scan import DamagedSegmentError, headers
from leafcuttr.log.segment.segment import MAX_RELATIVE, AppendedBatch, Segment
from leafcuttr.log.segment.txn_index import AbortedTransaction
from leafcuttr.wire.batch import BatchHeader

_PUBLISHED_TOGETHER = 1024  # batches


class RebuiltIndexes(NamedTuple):
    """What a scan found: where the sound batches end, the offset after them, and why it stopped before the end."""

    end_position: int
    next_offset: int
    damage: DamagedSegmentError | None


def rebuild_indexes(
    segment: Segment,
    index_interval: int,
    *,
    from_position: int = 0,
    next_offset: int | None = None,
    observe: Callable[[BatchHeader, Callable[[], bytes]], AbortedTransaction | None] | None = None,
    restore: Callable[[int, BatchHeader, int], bool] | None = None,
) -> RebuiltIndexes:
    """Scan the file from a position where a batch begins to its end, with CRCs; index and count what is sound.

    The index entries before `from_position` are kept, those from there on are written anew. The `size` of the segment
    becomes the end of what is sound; the file is not cut: see `Segment.truncate`. `next_offset` is what the batch at
    `from_position` must have at least. `observe` gets each header and a function that reads that batch, and returns the
    transaction that the batch aborts. `restore` is called with each sound batch whose base offset is not the one due
    (position, header, offset due), and returns whether it has written that offset into the batch. Raises OSError.
    """
    file = segment.open_file()
    end, segment.size = os.fstat(file.fd).st_size, from_position
    segment.truncate_indexes(from_position)
    if from_position == 0:
        segment.largest_timestamp = segment.largest_timestamp_offset = -1
    expected = segment.base_offset if next_offset is None else next_offset
    if observe is not None and from_position:
        segment.txn_index.forget_from(expected)
    elif observe is not None:
        segment.txn_index.truncate(0)  # what the loss of power has left in it may be anything
    damage = None
    batches: list[AppendedBatch] = []
    try:
        for position, header in _in_order(segment, from_position, end, expected, restore):
            if header.base_offset < expected or header.last_offset - segment.base_offset > MAX_RELATIVE:
                reason = f"base offset {header.base_offset}, at least {expected} is due"
                raise DamagedSegmentError(segment.path(".log"), position, reason)
            if observe is not None:
                aborted = observe(header, partial(file.pread, header.size, position, may_block=True))
                if aborted is not None:
                    segment.txn_index.append(aborted)
            batches.append((header.size, header.last_offset, header.max_timestamp))
            if len(batches) >= _PUBLISHED_TOGETHER:
                segment.extend(batches, index_interval)
                batches.clear()
            expected = header.next_offset
    except DamagedSegmentError as error:
        damage = error
    segment.extend(batches, index_interval)
    return RebuiltIndexes(segment.size, expected, damage)


def _in_order(
    segment: Segment,
    position: int,
    end: int,
    due: int,
    restore: Callable[[int, BatchHeader, int], bool] | None,
) -> Iterator[tuple[int, BatchHeader]]:
    """`Segment.scan`, which begins anew where `restore` has changed a batch or may want to."""
    while True:
        try:
            least = -1 if restore is None else -1 << 63
            for at, header in segment.scan(position, end=end, check_crc=True, least=least):
                if restore is not None and header.base_offset != due and restore(at, header, due):
                    header = header._replace(base_offset=due)
                    position, due = at + header.size, header.next_offset
                    yield at, header
                    break
                due = header.next_offset
                yield at, header
            else:
                return
        except DamagedSegmentError as error:
            if restore is None or error.position == position:
                raise
            position = error.position


def index_fits(segment: Segment, position: int) -> bool:
    """Whether the last index entry before `position`, where a batch begins, is one of this file. Raises OSError."""
    if not position:
        return True
    last = segment.index.search(1, position - 1)[1]
    if last is None:
        return True
    relative, at = last
    if not 0 <= at < position:
        return False
    try:
        for _, header in headers(segment.open_file(), at, position):
            return bool(header.last_offset - segment.base_offset == relative)
    except DamagedSegmentError:
        pass
    return False
