"""The supervisor: picks the dirtiest logs, has processes clean them, and puts what comes back into the logs.

One process for each of log.cleaner.threads while there is work; none when there is not. Whatever reads or syncs runs
in worker threads; a log changes only on the loop, in one step (`swap.exchange`), after a check that it is still the
log that the work was begun with: see `round`. A log that cannot be cleaned because of what is in it is marked, named in
one line and left aside until the next start, listed in `uncleanable`; one whose disk has a fault is tried again later.

Settings are read when they are needed, so that changes while running hold from the next round on; a change ends the
backoff between two rounds, and a new limit of reading and writing holds at once. What cleans is imported once there is
something to clean.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import trio

from leafcuttr.config.settings import Settings
from leafcuttr.crashpoints import reach
from leafcuttr.errors import BrokerError
from leafcuttr.log.cleaner.checkpoint import CleanerCheckpoint
from leafcuttr.log.files.pool import FilePool
from leafcuttr.log.log import Log
from leafcuttr_sdk import Clock, TopicPartition

if TYPE_CHECKING:
    from leafcuttr.log.cleaner.policy import Cleanable
    from leafcuttr.log.cleaner.worker import CleaningProcess

_log = logging.getLogger(__name__)

_UNLIMITED: Final = 1e15  # bytes a second: more than any disk

Secure = Callable[[TopicPartition, int], Awaitable[None]]


class Cleaner:
    """See the module's docstring. `secure(name, offset)` makes the recovery point on the disk at least `offset`: what
    has been compacted must never be taken for a log that has lost records."""

    def __init__(
        self,
        logs: Mapping[TopicPartition, Log],
        checkpoint_of: Callable[[TopicPartition], CleanerCheckpoint],
        settings: Settings,
        clock: Clock,
        pool: FilePool,
        secure: Secure,
    ) -> None:
        self.uncleanable: dict[TopicPartition, str] = {}
        self.rounds = 0
        self.read_bytes = self.written_bytes = self.removed_records = 0
        self.busy_seconds = 0.0
        self._logs = logs
        self._checkpoint_of = checkpoint_of
        self._settings = settings
        self._clock = clock
        self._pool = pool
        self._secure = secure
        self._idle: list[CleaningProcess] = []
        self._working: dict[TopicPartition, trio.CancelScope] = {}
        self._children: set[CleaningProcess] = set()
        self._postponed: set[TopicPartition] = set()
        self._warned: set[TopicPartition] = set()
        self._changed = trio.Event()
        self._cleaning = trio.Lock()
        settings.on_change(self._settings_changed)

    async def run(self) -> None:
        """Clean what is due, for ever; after log.cleaner.backoff.ms search again when nothing was."""
        if not self._settings.bool("log.cleaner.enable"):
            return
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._follow_rate)
                while True:
                    try:
                        worked = await self.clean_due()
                    except Exception:
                        _log.exception("compaction failed; it is tried again")
                        worked = 0
                    if not worked:
                        await self._end_children()
                        self._postponed.clear()
                        await self._back_off()
        finally:
            await self._end_children()

    async def _back_off(self) -> None:
        """log.cleaner.backoff.ms, unless a setting of the cleaner changes: it may make a log due."""
        changed = self._changed
        with trio.move_on_after(self._settings.int("log.cleaner.backoff.ms") / 1000):
            await changed.wait()

    def _settings_changed(self, names: frozenset[str]) -> None:
        if any(name.startswith("log.cleaner.") for name in names):
            self._changed.set()
            self._changed = trio.Event()

    async def clean_due(self) -> int:
        """Clean as many of the dirtiest logs as there may be processes; returns how many that were.

        Callers take turns: two that clean one log would replace the same segments.
        """
        async with self._cleaning:
            threads = self._settings.int("log.cleaner.threads")
            due = (await self._due())[:threads]
            async with trio.open_nursery() as nursery:
                for each in due:
                    nursery.start_soon(self._clean, each)
            return len(due)

    def forget(self, name: TopicPartition) -> None:
        """The partition is deleted: stop working on it."""
        scope = self._working.get(name)
        if scope is not None:
            scope.cancel()
        self.uncleanable.pop(name, None)
        self._warned.discard(name)

    @property
    def working(self) -> int:
        """How many logs are being cleaned now."""
        return len(self._working)

    async def _due(self) -> "list[Cleanable]":
        aside = self._postponed | self.uncleanable.keys()
        logs = [
            log
            for name, log in self._logs.items()
            if log.config.compact and log.offline is None and len(log.segments) > 1 and name not in aside
        ]
        if not logs:
            return []
        found = await trio.to_thread.run_sync(self._cleanable, logs)
        due = [each for each in found if each.due]
        return sorted(due, key=lambda each: (each.overdue_ms, each.ratio), reverse=True)

    def _cleanable(self, logs: Iterable[Log]) -> "list[Cleanable]":
        from leafcuttr.log.cleaner.policy import cleanable

        now_ms, found = self._clock.now_ms(), []
        for log in logs:
            # The next read of a damaged log reports what is wrong with it.
            with suppress(OSError, IndexError):
                found.append(
                    cleanable(log, self._checkpoint_of(log.topic_partition).get(log.topic_partition), now_ms)
                )
        return found

    # One log

    async def _clean(self, target: "Cleanable") -> None:
        """All rounds over one log. Raises nothing about this log."""
        from leafcuttr.log.cleaner.round import GivenUpError, LogGoneError
        from leafcuttr.log.cleaner.worker import ChildEndedError

        log = target.log
        name = log.topic_partition
        with trio.CancelScope() as scope:
            self._working[name] = scope
            try:
                await self._rounds(log, target)
                self._warned.discard(name)
            except LogGoneError:
                pass
            except GivenUpError as error:
                self._give_up(name, str(error), damage=error.damage)
            except ChildEndedError as error:
                self._give_up(name, str(error), damage=True)
            except OSError as error:
                self._give_up(name, error.strerror or str(error), damage=False)
            except BrokerError as error:
                self._give_up(name, str(error), damage=False)
            finally:
                self._working.pop(name, None)

    def _give_up(self, name: TopicPartition, reason: str, *, damage: bool) -> None:
        self._postponed.add(name)
        if damage:
            self.uncleanable[name] = reason
            _log.error("%s cannot be compacted and is left aside until the next start: %s", name, reason)
        elif name not in self._warned:
            self._warned.add(name)
            _log.warning("compacting %s failed, it is tried again: %s", name, reason)

    async def _rounds(self, log: Log, target: "Cleanable") -> None:
        from leafcuttr.log.cleaner.round import CleaningRound
        from leafcuttr.log.cleaner.worker import CleaningProcess

        name, first_dirty = log.topic_partition, target.first_dirty
        cleaning = CleaningRound(log, self._logs, self._settings, self._clock, self._pool, self._rate)
        await self._secure(name, target.end)
        child = self._idle.pop() if self._idle else None
        if child is None or not child.running:
            child = await CleaningProcess.start()
        self._children.add(child)
        finished = False
        try:
            while first_dirty < target.end:
                done = await cleaning.run(child, first_dirty, target.end)
                cleaning.check_log()
                await trio.to_thread.run_sync(self._checkpoint_of(name).put, name, done.end)
                reach("compaction.checkpoint-written")
                _log.info(
                    "%s is compacted from offset %d to %d: %d of %d records, %d bytes of %d, %.1f s",
                    name, first_dirty, done.end, done.kept, done.records, done.written, done.read, done.seconds,
                )  # fmt: skip
                first_dirty = done.end
                self.rounds += 1
                self.read_bytes += done.read
                self.written_bytes += done.written
                self.removed_records += done.records - done.kept
                self.busy_seconds += done.seconds
            finished = True
        finally:
            self._children.discard(child)
            if finished:
                self._idle.append(child)
            else:
                await child.end()

    # Processes

    def _rate(self) -> float:
        """The limit of each process; 0 for none."""
        rate = self._settings.float("log.cleaner.io.max.bytes.per.second")
        rate /= max(self._settings.int("log.cleaner.threads"), 1)
        return rate if rate < _UNLIMITED else 0.0

    async def _follow_rate(self) -> None:
        """Send a new limit to the processes that clean."""
        known, changed = self._rate(), self._changed
        while True:
            await changed.wait()
            changed = self._changed  # before this one is sent: the next may come meanwhile
            rate = self._rate()
            if rate != known:
                from leafcuttr.log.cleaner.worker import ChildEndedError

                known = rate
                for child in tuple(self._children):
                    with suppress(ChildEndedError):
                        await child.send("rate", {"rate": rate})

    async def _end_children(self) -> None:
        while self._idle:
            await self._idle.pop().end()
