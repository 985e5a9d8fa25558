"""The second half of an append: write what is staged, then publish it; or undo it.

A group is one vectored write behind the published end of the active segment; a group that `rolls` begins a new segment
first. Until a group is published no reader sees a byte of it. If a write fails, the file is cut back to its published
size and everything that is not published is forgotten: offsets, producer entries, and whatever was staged behind it.
Groups before the one that failed are published and stay: `WriteError.written_to` tells each caller that waited for the
write whether its own batches are in the log. If even the cut fails, or a sync (`files.failed_sync`), it is unknown what
the file holds, and the log goes offline.

`commit` does all of it at once, on the event loop. `Log.write` decides whether it may; what would wait for the disk is
written by a worker thread (`background_write`, which uses the parts of this).
"""

import errno
import logging
import os
from itertools import pairwise
from time import monotonic
from typing import TYPE_CHECKING, Final

from leafcuttr.crashpoints import reach
from leafcuttr.log.append.pending_write import DONE, PendingWrite, failed
from leafcuttr.log.append.roll import discard, new_segment, take_over
from leafcuttr.log.append.staged import StagedGroup, WriteError
from leafcuttr.log.files.failed_sync import SyncFailedError, mark
from leafcuttr.log.files.open_file import OpenFile
from leafcuttr.log.segment.scan import DamagedSegmentError
from leafcuttr.log.segment.sync import sync_records

if TYPE_CHECKING:
    from leafcuttr.log.segment.segment import Segment
    from leafcuttr.log.state import LogState

logger = logging.getLogger(__name__)

IOV_MAX: Final = 1024
_NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of a write that has written nothing; any other error of a write that syncs may be that of its sync."""
_TRACE: Final = 16
"""Bytes of a batch of which one at least is not 0: offset, length, leader epoch."""


def write_all(fd: int, views: list[memoryview | bytearray], position: int, size: int) -> None:
    """Write the views one behind the other at `position`, `size` bytes in all. Raises OSError."""
    if len(views) <= IOV_MAX:
        written = os.pwritev(fd, views, position)
        if written == size:
            return
    else:
        written = 0
    rest: list[memoryview] = []
    skip = written
    for view in [memoryview(view) for view in views]:
        if skip >= len(view):
            skip -= len(view)
        else:
            rest.append(view[skip:])
            skip = 0
    position += written
    while rest:
        written = os.pwritev(fd, rest[:IOV_MAX], position)
        if written <= 0:
            raise OSError("the file takes no more bytes")
        position += written
        while rest and written >= len(rest[0]):
            written -= len(rest.pop(0))
        if rest and written:
            rest[0] = rest[0][written:]


def commit(log: "LogState") -> PendingWrite:
    """Write all that is staged, here, whatever the disk takes for it, publish it and wake waiters; done when this
    returns. Not while a worker writes for the log."""
    if not log.groups:
        return DONE
    if log.writing is not None:
        raise RuntimeError(f"{log.topic_partition}: a worker writes what was staged before")
    reach("append.staged")
    groups, log.groups = log.groups, []
    try:
        refuse_after_failed_sync(log)
        began = monotonic()
        for group in groups:
            segment = log.segments[-1]
            if group.rolls:
                segment = _roll_here(log, segment, group.base_offset)
            sync = to_sync(log, segment, group)
            # Held: another thread may make the pool close it meanwhile.
            file = segment.open_for_writing(sync_writes=log.rules.sync)
            _write(file, group.views, segment.size, group.size, sync)
            reach("append.written")
            publish(log, segment, group, synced=bool(sync) or file.synced)
            del file
        log.resources.pressure.wrote(monotonic() - began)
    except (OSError, DamagedSegmentError) as error:
        reason = fail(log, error)
        return failed(WriteError(reason, log.log_end_offset, disk_full=is_disk_full(error)))
    except Exception as error:
        # Nothing of it may be answered as if it were written.
        reason = fail(log, error)
        logger.exception("writing to %s failed", log.topic_partition)
        return failed(WriteError(reason, log.log_end_offset))
    except BaseException as error:
        fail(log, error)
        raise
    return DONE


def is_disk_full(error: BaseException) -> bool:
    """Whether a write has failed because there is no space for it."""
    return isinstance(error, OSError) and error.errno in _NO_SPACE


def write_there(
    file: OpenFile, views: list[memoryview | bytearray], position: int, size: int, sync: "list[Segment]"
) -> None:
    reach("writer.before-write")
    _write(file, views, position, size, sync)
    reach("writer.written")


def _write(
    file: OpenFile, views: list[memoryview | bytearray], position: int, size: int, sync: "list[Segment]"
) -> None:
    if file.synced:
        file.reserve(position + size)
    try:
        write_all(file.fd, views, position, size)
    except OSError as error:
        if file.synced and not is_disk_full(error) and not _refused(error, file, position):
            mark(os.path.dirname(file.path))  # noqa: PTH120 - of a str
            raise SyncFailedError(error.errno, error.strerror, file.path) from error
        raise
    for segment in sync:
        try:
            sync_records(segment)
        except FileNotFoundError:
            if segment is sync[-1]:
                raise
            # An earlier segment that retention has dropped meanwhile.


def to_sync(log: "LogState", segment: "Segment", group: StagedGroup) -> "list[Segment]":
    """What has to be synced before the answer: nothing, or all segments since the last sync, of which `segment`, the
    one that is written to, comes last. In topic sync mode the write itself syncs: only what was there before and the
    names of the files are left to do, once."""
    unflushed, rules = log.unflushed, log.rules
    if rules.sync:
        if not unflushed and segment.name_synced:
            return []
    elif unflushed + group.batches[-1][1] + 1 - group.base_offset < rules.flush_messages:
        return []
    if not unflushed:
        return [segment]
    since, segments = log.log_end_offset - unflushed, log.segments
    before = [s for s, after in pairwise(segments) if after.base_offset > since]
    return [*before, segment]


def _roll_here(log: "LogState", segment: "Segment", base_offset: int) -> "Segment":
    return take_over(log, new_segment(log, segment, base_offset))


def publish(log: "LogState", segment: "Segment", group: StagedGroup, *, synced: bool) -> None:
    end_offset = group.batches[-1][1] + 1
    if group.aborts is not None:
        len(segment.txn_index)  # what needs the disk comes first: if it fails, nothing has changed
    segment.extend(group.batches, log.rules.index_interval_bytes)
    if synced:
        log.unflushed = 0
    else:
        log.unflushed += end_offset - group.base_offset
    log.log_end_offset = end_offset
    log.bytes_in += group.size
    if group.aborts is not None:
        _publish_aborts(log, segment, group, group.aborts)
    else:
        for entry in group.entries:
            log.producers.publish(entry)
    reach("append.published")
    if group.letters is not None:
        for letters in group.letters:
            letters.post()
    log.notify()


def _publish_aborts(log: "LogState", segment: "Segment", group: StagedGroup, aborts: dict[int, int]) -> None:
    """Publish the producers' entries where markers among them abort transactions: each is indexed with the last stable
    offset that it leaves behind, so before its own entry ends the transaction and after all entries before it."""
    for number, entry in enumerate(group.entries):
        if number in aborts:
            aborted = log.producers.aborted(entry.producer_id, aborts[number])
            if aborted is not None:
                segment.txn_index.append(aborted)
                log.aborts.noticed(segment)
        log.producers.publish(entry)


def fail(log: "LogState", error: BaseException) -> str:
    """Undo everything that is still staged: nothing of it may be seen, and offsets behind a gap are worth nothing.
    Returns the reason, for the callers."""
    reason = _reason(log, error)
    if isinstance(error, SyncFailedError):
        log.handle_failed_sync(error)
    else:
        log.resources.complaints(_cause(error), "%s", reason)
    log.forget_staged()
    if log.chain is not None:
        log.chain.forget()
    segment = log.segments[-1]
    try:
        _cut_back(segment)
        discard(log, log.log_end_offset)
    except OSError as undo_error:
        log.take_offline(f"{reason}; and what was written of it could not be undone: {undo_error.strerror}")
    return reason


def _cut_back(segment: "Segment") -> None:
    """Take what was written behind the published end out of the file. Raises OSError."""
    file = segment.file
    try:
        if file is not None:
            file.drop_reserve()
            os.ftruncate(file.fd, segment.size)
        else:
            os.truncate(segment.path(".log"), segment.size)  # there may be no descriptor left to open it with
    except OSError as error:
        if not _refused(error, file or segment.open_file(), segment.size):
            raise


def _refused(error: OSError, file: OpenFile, position: int) -> bool:
    """Whether the file system, which is read-only now, has taken nothing of a write at this position. Raises
    OSError."""
    return error.errno == errno.EROFS and not any(os.pread(file.fd, _TRACE, position))


def refuse_after_failed_sync(log: "LogState") -> None:
    """Raise OSError if a sync of the log has failed since the batches were staged."""
    if log.sync_failed:
        raise OSError(log.offline)


def _reason(log: "LogState", error: BaseException) -> str:
    return f"Writing to {log.topic_partition} in {log.directory_name} failed: {_cause(error)}"


def _cause(error: BaseException) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__
