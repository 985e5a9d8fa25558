"""What is done to logs between checkpoints: syncs that are due, offset checkpoints, files of dropped
segments.

Works on the logs that the soft checkpoint has found changed, so that ten thousand idle partitions cost
nothing. The disk is only waited for in worker threads; what they find is published on the loop.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import trio

from leafcuttr import crashpoints
from leafcuttr.config.settings import Settings
from leafcuttr.log.files.failed_sync import SyncFailedError, sync_directory, sync_file
from leafcuttr.log.layout.checkpoints import (
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    DamagedCheckpointError,
    read_offsets,
    write_offsets,
)
from leafcuttr.log.log import Log
from leafcuttr.log.segment.segment import Segment, segment_name
from leafcuttr.log.segment.sync import sync_segment
from leafcuttr.runtime.complaints import Complaints
from leafcuttr_sdk import Clock, TopicPartition

_log = logging.getLogger(__name__)


class Upkeep:
    """The logs that something is due for. `points_known`: there is a checkpoint of recovery points."""

    def __init__(self, directory: Path, clock: Clock, settings: Settings) -> None:
        self.pending_deletes: set[Log] = set()
        self._directory = directory
        self._clock = clock
        self._settings = settings
        self._unsynced: dict[Log, int] = {}  # and since when (ms) there is something to sync
        # What the two offset checkpoints on the disk say; only changed together with them, under the lock.
        self._points: dict[TopicPartition, int] = {}
        self.points_known = False
        self._starts: dict[TopicPartition, int] = {}
        self._writing = threading.Lock()
        self._complain = Complaints(_log)
        self._age_checked_ms: int | None = None  # as the next one
        self._starts_written_ms: int | None = None  # None until the loop runs: before that, no clock ticks

    def _elapsed_ms(self) -> int:
        """Not the time of day, which may be set back: what is due would wait for as long."""
        return int(self._clock.monotonic() * 1000)

    def noticed(self, changed: Iterable[Log]) -> None:
        """Logs that have changed since the last call."""
        now_ms = self._elapsed_ms()
        for log in changed:
            if log.log_end_offset > log.recovery_point:
                self._unsynced.setdefault(log, now_ms)
            if log.pending_deletes:
                self.pending_deletes.add(log)

    async def sync_due(self) -> None:
        """Sync rolled segments, and whole logs that are due by flush.ms. One whose files cannot be
        opened is named and stays due; one whose sync fails goes offline, and is not synced again."""
        now_ms = self._elapsed_ms()
        checks_age = self._checks_age(now_ms)
        for log, since_ms in list(self._unsynced.items()):
            try:
                if log.offline is None:
                    await self._sync(log, now_ms - since_ms if checks_age else -1)
            except SyncFailedError as error:
                log.handle_failed_sync(error)
            except OSError as error:
                reason = error.strerror or str(error)
                self._complain(f"sync: {reason}", "syncing %s failed: %s", log.topic_partition, reason)
            if log.offline is not None or log.log_end_offset <= log.recovery_point:
                del self._unsynced[log]

    def _checks_age(self, now_ms: int) -> bool:
        """Whether to search for logs that are due by flush.ms: every log.flush.scheduler.interval.ms if that
        is given. Kafka's default, hardly ever, would leave a topic's flush.ms without effect."""
        name = "log.flush.scheduler.interval.ms"
        if self._settings.given(name) is None:
            return True
        if self._age_checked_ms is not None and now_ms - self._age_checked_ms < self._settings.int(name):
            return False
        self._age_checked_ms = now_ms
        return True

    async def _sync(self, log: Log, unsynced_ms: int) -> None:
        """`unsynced_ms` is -1 if flush.ms is not checked this time."""
        if unsynced_ms >= log.config.flush_ms:
            end = log.log_end_offset
            if log.flush_indexes():
                self._unsynced[log] = self._elapsed_ms()
                await trio.to_thread.run_sync(log.flush, end)
            return
        active = log.segments[-1].base_offset
        if log.recovery_point < active:
            rolled = [
                segment
                for segment, after in zip(log.segments, log.segments[1:], strict=False)
                if after.base_offset > log.recovery_point
            ]
            await trio.to_thread.run_sync(_sync_all, rolled, log.directory, active)
            log.recovery_point = max(log.recovery_point, active)

    def read_offsets(self) -> tuple[Mapping[TopicPartition, int], Mapping[TopicPartition, int]]:
        """Recovery points and log start offsets as the checkpoints have them, at start. Raises OSError."""
        points, starts = (self._read(name) for name in (RECOVERY_POINTS, LOG_START_OFFSETS))
        self.points_known = points is not None
        self._points, self._starts = points or {}, starts or {}
        return self._points, self._starts

    def _read(self, name: str) -> dict[TopicPartition, int] | None:
        path = self._directory / name
        try:
            return read_offsets(path) if path.exists() else None
        except DamagedCheckpointError as error:
            _log.warning("%s: it is not used, and the start reads more of the logs", error)
            return None

    def begin_points(self) -> None:
        """In a directory without partitions: from now on a partition without a recovery point is one of which nothing
        was ever synced, and not one whose recovery point is lost. Raises OSError."""
        if not self.points_known:
            write_offsets(self._directory / RECOVERY_POINTS, {})
            self.points_known = True

    def recovery_point(self, name: TopicPartition) -> int:
        """What the checkpoint on the disk says of a log."""
        return self._points.get(name, 0)

    def write_offsets(self, logs: Mapping[TopicPartition, Log], seen: Mapping[TopicPartition, Log]) -> None:
        """Write both offset checkpoints of the logs in `seen`, if they have changed. Blocks: worker thread.

        A log that is no longer in `logs` is left out: its name may belong to another one already. Raises OSError.
        """
        with self._writing:
            current = {name: log for name, log in seen.items() if logs.get(name) is log}
            self._write(
                {name: log.recovery_point for name, log in current.items()},
                {name: log.log_start_offset for name, log in current.items() if log.log_start_offset},
            )

    def write_starts(self, logs: Mapping[TopicPartition, Log], seen: Mapping[TopicPartition, Log]) -> None:
        """Write the checkpoint of log start offsets alone, as `write_offsets` does. Of several calls that wait for each
        other the first writes what all of them are about. Blocks: worker thread. Raises OSError."""
        with self._writing:
            self._write(
                self._points,
                {
                    name: log.log_start_offset
                    for name, log in seen.items()
                    if log.log_start_offset and logs.get(name) is log
                },
            )

    def _write(self, points: dict[TopicPartition, int], starts: dict[TopicPartition, int]) -> None:
        if points != self._points:
            write_offsets(self._directory / RECOVERY_POINTS, points)
            self._points = points
        if starts != self._starts:
            write_offsets(self._directory / LOG_START_OFFSETS, starts)
            self._starts = starts

    def forget_offsets(self, name: TopicPartition, present: Callable[[], set[TopicPartition]]) -> None:
        """Before a partition `name` is made: no checkpoint may name an earlier one of that name, or a
        crash would find the new one damaged. All that is not `present` is forgotten with it, so that a topic of
        many partitions costs one write. Blocks: worker thread. Raises OSError."""
        with self._writing:
            if name in self._points or name in self._starts:
                there = present() - {name}
                self._write(
                    {kept: offset for kept, offset in self._points.items() if kept in there},
                    {kept: offset for kept, offset in self._starts.items() if kept in there},
                )

    async def checkpoint(self, logs: Mapping[TopicPartition, Log]) -> None:
        """Write both offset checkpoints of these logs. Raises OSError."""
        crashpoints.reach("checkpoint.synced")
        await trio.to_thread.run_sync(self.write_offsets, logs, dict(logs))

    async def checkpoint_starts_if_due(self, logs: Mapping[TopicPartition, Log]) -> None:
        """As `checkpoint`, every log.flush.start.offset.checkpoint.interval.ms. Raises OSError."""
        now_ms = self._elapsed_ms()
        if self._starts_written_ms is None:
            self._starts_written_ms = now_ms
        due_ms = self._starts_written_ms + self._settings.int("log.flush.start.offset.checkpoint.interval.ms")
        if now_ms >= due_ms:
            self._starts_written_ms = now_ms
            await trio.to_thread.run_sync(self.write_offsets, logs, dict(logs))

    async def remove_segments(self) -> int:
        """Remove dropped segments whose delay is over; returns how many files went."""
        gone, now_ms = 0, self._elapsed_ms()
        for log in list(self.pending_deletes):
            try:
                while log.pending_deletes and log.pending_deletes[0].at_ms <= now_ms:
                    gone += await trio.to_thread.run_sync(log.delete_scheduled_files, now_ms)
            except OSError as error:
                reason = error.strerror or str(error)
                self._complain(
                    f"removal: {reason}", "removing files of %s failed: %s", log.topic_partition, reason
                )
            if not log.pending_deletes:
                self.pending_deletes.discard(log)
        return gone


def _sync_all(segments: Iterable[Segment], folder: Path, active: int) -> None:
    for segment in segments:
        try:
            sync_segment(segment)
        except FileNotFoundError:
            continue  # retention has been faster
    # With the producers as they were at the new recovery point the next start need not read what lies before it.
    with suppress(OSError):
        sync_file(folder / f"{segment_name(active)}.snapshot")
        sync_directory(folder)
