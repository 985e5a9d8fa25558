"""One round over one log: what a process is told to clean, and what comes of it put into the log.

Which log, and when, is the cleaner's choice. Imported once there is something to clean.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

import trio

from leafcuttr.config.settings import Settings
from leafcuttr.crashpoints import reach
from leafcuttr.log.cleaner.job import Cleaned, Done, Failed, KnownProducer, Round, cleaned_of
from leafcuttr.log.cleaner.policy import groups
from leafcuttr.log.cleaner.swap import announce, exchange, withdraw
from leafcuttr.log.cleaner.worker import CleaningProcess
from leafcuttr.log.files.failed_sync import sync_directory
from leafcuttr.log.files.pool import FilePool
from leafcuttr.log.layout.suffixes import CLEANED, SWAP
from leafcuttr.log.log import Log
from leafcuttr.log.segment.segment import Segment
from leafcuttr.log.segment.txn_index import AbortedTransaction
from leafcuttr_sdk import Clock, TopicPartition

_SMALLEST_CHUNK: Final = 64 * 1024
_LARGEST_CHUNK: Final = 16 * 1024 * 1024
_LARGEST_TABLE: Final = (
    1 << 40
)  # more than any machine has; log.cleaner.dedupe.buffer.size has no limit itself


class LogGoneError(Exception):
    """The log is deleted, offline, or has deleted what was being cleaned."""


class GivenUpError(Exception):
    """The round cannot be finished; the message says why. `damage`: it never can."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed.reason)
        self.damage = failed.damage


class CleaningRound:
    """Of one log of `logs`, as often as it is run. `rate` is the limit of reading and writing (bytes/s; 0: none)."""

    def __init__(
        self,
        log: Log,
        logs: Mapping[TopicPartition, Log],
        settings: Settings,
        clock: Clock,
        pool: FilePool,
        rate: Callable[[], float],
    ) -> None:
        self._log = log
        self._logs = logs
        self._settings = settings
        self._clock = clock
        self._pool = pool
        self._rate = rate

    async def run(self, child: CleaningProcess, first_dirty: int, end: int) -> Done:
        """Compact what is before the offset `end`. Raises LogGoneError, GivenUpError, ChildEndedError, OSError."""
        log = self._log
        segments = tuple(log.segments)
        self.check_log()
        aborted = await log.off_loop(
            lambda may_block: log.aborted_transactions(segments[0].base_offset, end, may_block=may_block)
        )
        round_ = await trio.to_thread.run_sync(self._plan, segments, first_dirty, end, aborted)
        base = -1
        try:
            await child.send("round", _plain(round_))
            if self._rate() != round_.rate:  # changed since it was planned
                await child.send("rate", {"rate": self._rate()})
            reach("compaction.begun")
            while True:
                message = await child.receive()
                match message.pop("type"):
                    case "cleaned":
                        cleaned = cleaned_of(message)
                        bases = {source.base for source in round_.groups[cleaned.group]}
                        base = min(bases)
                        await self._take([s for s in segments if s.base_offset in bases], cleaned)
                        await child.send("go", {})
                    case "done":
                        return Done(**message)
                    case _:
                        raise GivenUpError(Failed(**message))
        except BaseException:
            if child.running:
                await child.end()  # it may be writing still
            _remove_unfinished(log, [group[0].base for group in round_.groups if group[0].base >= base])
            raise

    def _plan(
        self,
        segments: tuple[Segment, ...],
        first_dirty: int,
        end: int,
        aborted: list[AbortedTransaction],
    ) -> Round:
        """In a worker thread."""
        settings, log = self._settings, self._log
        config = log.config
        threads = max(settings.int("log.cleaner.threads"), 1)
        table = min(max(settings.int("log.cleaner.dedupe.buffer.size") / threads, 0.0), _LARGEST_TABLE)
        load = min(max(settings.float("log.cleaner.io.buffer.load.factor"), 0.0), 1.0)
        chunk = settings.int("log.cleaner.io.buffer.size") // threads
        return Round(
            directory=log.directory_name,
            groups=groups(segments, end, config.segment_bytes, config.segment_index_bytes),
            first_dirty=first_dirty,
            now_ms=self._clock.now_ms(),
            delete_retention_ms=config.delete_retention_ms,
            index_interval=config.index_interval_bytes,
            chunk=min(max(chunk, _SMALLEST_CHUNK), _LARGEST_CHUNK),
            table_bytes=int(table * load),
            rate=self._rate(),
            producers={
                entry.producer_id: KnownProducer(entry.last_offset, entry.epoch) for entry in log.producers
            }
            if log.has_producers
            else {},
            aborted=aborted,
        )

    async def _take(self, old: list[Segment], cleaned: Cleaned) -> None:
        """Put a cleaned segment in the place of `old`. Raises LogGoneError, OSError."""
        if not cleaned.changed:
            return
        log = self._log
        reach("compaction.cleaned")
        directory, base = log.directory_name, old[0].base_offset
        self.check_log(old)
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(announce, directory, base)
            try:
                self.check_log(old)
            except LogGoneError:
                withdraw(directory, base, SWAP)
                raise
            new = Segment(
                directory,
                base,
                pool=self._pool,
                size=cleaned.size,
                largest_timestamp=cleaned.largest_timestamp,
                created_ms=old[0].created_ms,
            )
            new.largest_timestamp_offset = cleaned.largest_timestamp_offset
            exchange(log, old, new)
            await trio.to_thread.run_sync(sync_directory, log.directory_name)

    def check_log(self, old: Sequence[Segment] = ()) -> None:
        """Raises LogGoneError unless the log serves and `old` are segments of it."""
        log, old = self._log, list(old)
        if log.offline is not None or self._logs.get(log.topic_partition) is not log:
            raise LogGoneError
        if old:
            at = log.segments.index(old[0]) if old[0] in log.segments else -1
            if at < 0 or log.segments[at : at + len(old)] != old:
                raise LogGoneError


def _plain(round_: Round) -> dict[str, object]:
    return {**round_._asdict(), "producers": {str(key): value for key, value in round_.producers.items()}}


def _remove_unfinished(log: Log, bases: Iterable[int]) -> None:
    """Remove what the process was writing when the round ended early."""
    with suppress(OSError):
        for base in bases:
            withdraw(log.directory_name, base, CLEANED)
