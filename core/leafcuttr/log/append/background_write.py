"""Writes that may wait for the disk: by a worker thread, one at a time for a log.

A flight takes what is staged when it takes off; what is staged meanwhile waits for the next one, which takes off when
it has landed (group commit). All of it happens on the loop, in callbacks, but for the writing itself: no task has to
run between the staging and the write, nor between the write and its publication. State is changed, as in
`commit`, only after the worker has returned. Who waits for a flight waits also for the dead letters of
its batches, which are posted when those are published; the next flight does not.
"""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from leafcuttr.crashpoints import reach
from leafcuttr.log.append.commit import fail, publish, refuse_if_suspect, to_sync, write_there
from leafcuttr.log.append.pending_write import Ticket
from leafcuttr.log.append.roll import new_segment, take_over
from leafcuttr.log.append.staged import Group, WriteError
from leafcuttr.log.files.pool import OpenFile
from leafcuttr.log.segment.scan import DamagedSegmentError

if TYPE_CHECKING:
    from leafcuttr.log.segment.segment import Segment
    from leafcuttr.log.state import LogState

logger = logging.getLogger(__name__)

_EXPECTED: Final = (OSError, DamagedSegmentError)


class Flight:
    """What is being written for a log, from taking off to landing."""

    __slots__ = ("_at", "_file", "_groups", "_log", "_segment", "_synced", "ticket")

    def __init__(self, log: "LogState", ticket: Ticket) -> None:
        self.ticket = ticket
        self._log = log
        self._groups: list[Group] = []
        self._at = 0
        self._segment: Segment | None = None
        self._file: OpenFile | None = None
        self._synced = False

    def take_off(self) -> None:
        """Begin to write all that is staged. It may have failed, and be over, when this returns."""
        log = self._log
        log.flight = self.ticket
        reach("append.staged")
        self._groups, log.groups = log.groups, []
        self._step(self._begin)

    def _step(self, step: Callable[[], None]) -> None:
        """Take one step; if it fails, nothing more of the flight is written."""
        try:
            step()
        except BaseException as error:
            self._fail(error)
            if not isinstance(error, Exception):
                raise

    def _begin(self) -> None:
        refuse_if_suspect(self._log)
        self._next()

    def _next(self) -> None:
        """Write the next group, or land."""
        log, at = self._log, self._at
        if at == len(self._groups):
            self._land()
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

    def _write(self, group: Group, segment: "Segment") -> None:
        log = self._log
        sync = to_sync(log, segment, group)
        # Held until it is published: another thread may make the pool let go of it meanwhile.
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

    def _land(self) -> None:
        log = self._log
        log.flight = None
        ticket, log.ticket = log.ticket, None
        if ticket is not None:  # before anybody hears of this one: who does may stage more
            Flight(log, ticket).take_off()
        self._tell(None)

    def _tell(self, failure: WriteError | None) -> None:
        """Finish the ticket once the dead letters of what has been published are written, or lost."""
        posted = [letters for group in self._groups[: self._at] for letters in group.letters or ()]
        if not posted:
            self.ticket.finish(failure)
            return
        from leafcuttr.log.append.dead_letters import when_all_finished

        self.ticket.land(failure)
        when_all_finished(posted, self.ticket.finish)

    def _fail(self, error: BaseException) -> None:
        """Nothing that is not published is written any more, what waits for the next flight neither."""
        log = self._log
        if not isinstance(error, _EXPECTED):
            logger.error("writing to %s failed", log.topic_partition, exc_info=error)
        self._segment = self._file = None
        log.flight, log.sealing = None, False
        waiting, log.ticket = log.ticket, None
        failure = WriteError(fail(log, error), log.log_end_offset)
        self._tell(failure)
        if waiting is not None:
            waiting.finish(failure)
