"""Group commit: writes that would wait for the disk, by a worker thread, one at a time for a log.

A write takes all that is staged when it begins; what is staged meanwhile waits for the next one, which begins when it
has ended. All of it happens on the loop, in callbacks, but for the writing itself: no task has to run between the
staging and the write, nor between the write and its publication. State is changed, as in `commit`, only
after the worker has returned. A caller that waits for a write also waits for the dead letters of its
batches, which are posted when those are published; the next write does not.
"""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from leafcuttr.crashpoints import reach
from leafcuttr.log.append.commit import (
    fail,
    is_disk_full,
    publish,
    refuse_after_failed_sync,
    to_sync,
    write_there,
)
from leafcuttr.log.append.pending_write import PendingWrite
from leafcuttr.log.append.roll import new_segment, take_over
from leafcuttr.log.append.staged import StagedGroup, WriteError
from leafcuttr.log.files.open_file import OpenFile
from leafcuttr.log.segment.scan import DamagedSegmentError

if TYPE_CHECKING:
    from leafcuttr.log.segment.segment import Segment
    from leafcuttr.log.state import LogState

logger = logging.getLogger(__name__)

_EXPECTED: Final = (OSError, DamagedSegmentError)


def write_in_background(log: "LogState") -> PendingWrite:
    """Have all that is staged written by a worker thread, at once or together when the one that writes now is done."""
    pending = log.next_write
    if pending is None:
        pending = PendingWrite()
        if log.writing is None:
            BackgroundWrite(log, pending).begin()
        else:
            log.next_write = pending
    return pending


class BackgroundWrite:
    """What a worker writes for a log, from taking what is staged to its publication."""

    __slots__ = ("_at", "_file", "_groups", "_log", "_segment", "_synced", "pending")

    def __init__(self, log: "LogState", pending: PendingWrite) -> None:
        self.pending = pending
        self._log = log
        self._groups: list[StagedGroup] = []
        self._at = 0
        self._segment: Segment | None = None
        self._file: OpenFile | None = None
        self._synced = False

    def begin(self) -> None:
        """Begin to write all that is staged. It may have failed, and be over, when this returns."""
        log = self._log
        log.writing = self.pending
        reach("append.staged")
        self._groups, log.groups = log.groups, []
        self._step(self._first)

    def _step(self, step: Callable[[], None]) -> None:
        """Take one step; if it fails, nothing more is written."""
        try:
            step()
        except BaseException as error:
            self._fail(error)
            if not isinstance(error, Exception):
                raise

    def _first(self) -> None:
        refuse_after_failed_sync(self._log)
        self._next()

    def _next(self) -> None:
        """Write the next group, or end."""
        log, at = self._log, self._at
        if at == len(self._groups):
            self._end()
            return
        group, segment = self._groups[at], log.segments[-1]
        if group.rolls:
            log.sealing = True
            log.resources.writers.start(new_segment, (log, segment, group.base_offset), self._rolled)
        else:
            self._write(group, segment)

    def _rolled(self, fresh: Any, error: BaseException | None) -> None:
        log = self._log
        log.sealing = False
        if error is not None:
            self._fail(error)
        else:
            self._step(lambda: self._write(self._groups[self._at], take_over(log, fresh)))

    def _write(self, group: StagedGroup, segment: "Segment") -> None:
        log = self._log
        sync = to_sync(log, segment, group)
        # Held until it is published: another thread may make the pool close it meanwhile.
        file = segment.open_for_writing(sync_writes=log.rules.sync)
        self._segment, self._file, self._synced = segment, file, bool(sync) or file.synced
        log.resources.writers.start(
            write_there, (file, group.views, segment.size, group.size, sync), self._written
        )

    def _written(self, _: Any, error: BaseException | None) -> None:
        if error is not None:
            self._fail(error)
        else:
            self._step(self._publish)

    def _publish(self) -> None:
        reach("append.written")
        assert self._segment is not None
        publish(self._log, self._segment, self._groups[self._at], synced=self._synced)
        self._segment = self._file = None
        self._at += 1
        self._next()

    def _end(self) -> None:
        log = self._log
        log.writing = None
        waiting, log.next_write = log.next_write, None
        if waiting is not None:  # before this one's callbacks, which may stage more
            BackgroundWrite(log, waiting).begin()
        self._finish(None)

    def _finish(self, failure: WriteError | None) -> None:
        """End the pending write, once the dead letters of what has been published are written, or lost."""
        posted = [letters for group in self._groups[: self._at] for letters in group.letters or ()]
        if not posted:
            self.pending.finish(failure)
            return
        from leafcuttr.log.append.chain.dead_letters import when_all_finished

        self.pending.publish(failure)
        when_all_finished(posted, self.pending.finish)

    def _fail(self, error: BaseException) -> None:
        """Nothing that is not published is written any more, what waits for the next write neither."""
        log = self._log
        if not isinstance(error, _EXPECTED):
            logger.error("writing to %s failed", log.topic_partition, exc_info=error)
        self._segment = self._file = None
        log.writing, log.sealing = None, False
        waiting, log.next_write = log.next_write, None
        failure = WriteError(fail(log, error), log.log_end_offset, disk_full=is_disk_full(error))
        self._finish(failure)
        if waiting is not None:
            waiting.finish(failure)
