"""Deletion of segments that are too old, too many, or below the log start offset.

A segment is deleted in two steps: its files are renamed to `.deleted` at once, and removed after file.delete.delay.ms,
so that a reader that has just been given a range of them is not cut short. Only whole segments are deleted, the oldest
first, and the log start offset moves to the base of what remains. An expired log rolls first, so that its last records
are deleted too (as in Kafka). Nothing of a topic that is only compacted is deleted. What DeleteRecords leaves below the
log start offset is deleted with the request, not at the next check as in Kafka: DeleteRecords is often used to free
space.
"""

import logging
import os
from collections.abc import Callable
from contextlib import suppress

from leafcuttr.crashpoints import reach
from leafcuttr.errors import OffsetOutOfRange, StorageError
from leafcuttr.log.append.roll import roll
from leafcuttr.log.files.failed_sync import sync_directory
from leafcuttr.log.files.pending_delete import PendingDelete
from leafcuttr.log.segment.segment import Segment
from leafcuttr.log.state import LogState

_log = logging.getLogger(__name__)


def apply_retention(log: LogState, now_ms: int) -> int:
    """See `Log.apply_retention`."""
    if log.offline is not None:
        return 0
    freed = _drop_deleted(log)
    config = log.config
    if not config.delete:
        return freed
    if config.retention_bytes >= 0:
        excess = log.size - config.retention_bytes

        def too_many(segment: Segment, _: int) -> bool:
            nonlocal excess
            excess -= segment.size
            return excess >= 0

        freed += _drop_while(log, f"retention.bytes is {config.retention_bytes}", too_many)
    if config.retention_ms >= 0:
        freed += _drop_while(
            log,
            f"retention.ms is {config.retention_ms}",
            lambda s, _: now_ms - _age_mark(s) > config.retention_ms,
        )
    return freed


def _age_mark(segment: Segment) -> int:
    """When the newest record of the segment was new: its timestamp, or the last write if it has none."""
    if segment.largest_timestamp >= 0:
        return segment.largest_timestamp
    return int(os.stat(segment.path(".log")).st_mtime * 1000)  # noqa: PTH116


def delete_records_before(log: LogState, offset: int) -> int:
    """See `Log.delete_records_before`."""
    if log.offline is not None:
        raise StorageError(log.offline)
    if offset < 0 or offset > log.high_watermark:
        raise OffsetOutOfRange(
            f"Cannot delete records of {log.topic_partition} before offset {offset}, the high watermark is "
            f"{log.high_watermark}"
        )
    if offset > log.log_start_offset:
        log.log_start_offset = offset
        reach("delete-records.moved")
        _drop_deleted(log)
        log.notify()
    return log.log_start_offset


def _drop_deleted(log: LogState) -> int:
    """Drop the segments below the log start offset, but not the one that is written to: as in Kafka, that one stays
    until it rolls, or is too old."""
    last = log.segments[-1]
    return _drop_while(
        log,
        "it is below the log start offset",
        lambda segment, end: end <= log.log_start_offset and segment is not last,
    )


def _drop_while(log: LogState, reason: str, expired: Callable[[Segment, int], bool]) -> int:
    """Drop segments from the oldest on while `expired(segment, offset after it)`."""
    segments = log.segments
    count = 0
    while count < len(segments):
        last = count == len(segments) - 1
        end = log.log_end_offset if last else segments[count + 1].base_offset
        segment = segments[count]
        if (last and (not segment.size or log.busy)) or not expired(segment, end):
            break
        count += 1
    if not count:
        return 0
    try:
        if count == len(segments):
            try:
                roll(log)
            except OSError:
                # On a full disk there is no space for a new segment; what frees some is deleted all the same.
                if count > 1:
                    _drop(log, segments[: count - 1], reason)
                raise
        return _drop(log, segments[:count], reason)
    except OSError as error:
        raise StorageError(f"Deleting segments of {log.topic_partition} failed: {error.strerror}") from error


def _drop(log: LogState, dropped: list[Segment], reason: str) -> int:
    del log.segments[: len(dropped)]
    log.cursors = None
    log.log_start_offset = max(log.log_start_offset, log.segments[0].base_offset)
    freed = 0
    for segment in dropped:
        freed += segment.size
        _log.info("%s: segment %d is deleted: %s", log.topic_partition, segment.base_offset, reason)
        due_ms = log.elapsed_ms + log.config.file_delete_delay_ms
        log.pending_deletes.append(PendingDelete(segment.mark_deleted(), due_ms))
        reach("retention.renamed")
    log.notify()
    return freed


def delete_scheduled_files(log: LogState, elapsed_ms: int, *, at_most: int) -> int:
    """See `Log.delete_scheduled_files`."""
    gone, done = 0, []
    for first in tuple(log.pending_deletes):
        if gone >= at_most or first.at_ms > elapsed_ms:
            break
        for path in first.paths:
            try:
                os.unlink(path)  # noqa: PTH108
            except FileNotFoundError:
                continue
            gone += 1
            reach("retention.removing")
        done.append(first)
    if done:
        # Else the loss of power could give them back their names, beside a clean stop that knows nothing of them.
        with suppress(FileNotFoundError):  # the topic is being deleted
            sync_directory(log.directory_name)
    for first in done:
        with suppress(ValueError):  # another worker was faster
            log.pending_deletes.remove(first)
    return gone
