"""What is done to logs between checkpoints: syncs that are due, offset checkpoints, files of dropped
segments.

Works on the logs that the soft checkpoint has found changed, so that ten thousand idle partitions cost
nothing. The disk is only waited for in worker threads; what they find is published on the loop.
"""

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path

import trio

from leafcuttr import crashpoints
from leafcuttr.config.settings import Settings
from leafcuttr.log.checkpoints import LOG_START_OFFSETS, RECOVERY_POINTS, write_offsets
from leafcuttr.log.log import Log
from leafcuttr.log.segment import Segment
from leafcuttr_sdk import Clock, TopicPartition

_log = logging.getLogger(__name__)


class Upkeep:
    """The logs that something is due for."""

    def __init__(self, directory: Path, clock: Clock, settings: Settings) -> None:
        self.doomed: set[Log] = set()
        self._directory = directory
        self._clock = clock
        self._settings = settings
        self._unsynced: set[Log] = set()
        self._start_offsets: dict[TopicPartition, int] = {}
        self._points: dict[TopicPartition, int] = {}
        self._started = clock.now_ms()

    def noticed(self, changed: Iterable[Log]) -> None:
        """Logs that have changed since the last call."""
        now_ms = self._clock.now_ms()
        for log in changed:
            if log.log_end_offset > log.recovery_point:
                self._unsynced.add(log)
                if log.unflushed_since_ms < 0:
                    log.unflushed_since_ms = now_ms
            if log.doomed:
                self.doomed.add(log)

    async def sync_due(self) -> None:
        """Sync rolled segments, and whole logs that flush.ms asks for. One that fails is named and stays
        due."""
        now_ms = self._clock.now_ms()
        for log in list(self._unsynced):
            if log.offline is not None:
                self._unsynced.discard(log)
                continue
            try:
                await self._sync(log, now_ms)
            except OSError as error:
                _log.error("syncing %s failed: %s", log.topic_partition, error.strerror or error)
            if log.log_end_offset <= log.recovery_point:
                log.unflushed_since_ms = -1
                self._unsynced.discard(log)

    async def _sync(self, log: Log, now_ms: int) -> None:
        if 0 <= log.unflushed_since_ms <= now_ms - log.config.flush_ms:
            log.flush_indexes()
            log.unflushed_since_ms = -1
            await trio.to_thread.run_sync(log.flush)
            return
        active = log.segments[-1].base_offset
        if log.recovery_point < active:
            rolled = [
                segment
                for segment, after in zip(log.segments, log.segments[1:], strict=False)
                if after.base_offset > log.recovery_point
            ]
            await trio.to_thread.run_sync(_sync_all, rolled)
            log.recovery_point = max(log.recovery_point, active)

    async def write_offsets(self, logs: Mapping[TopicPartition, Log]) -> None:
        """Write both offset checkpoints, those that have changed. Raises OSError."""
        points = {name: log.recovery_point for name, log in logs.items()}
        crashpoints.reach("checkpoint.synced")
        if points != self._points:
            await trio.to_thread.run_sync(write_offsets, self._directory / RECOVERY_POINTS, points)
            self._points = points
        await self._write_start_offsets(logs)

    async def write_start_offsets_if_due(self, logs: Mapping[TopicPartition, Log]) -> None:
        """Write the log start offsets, every log.flush.start.offset.checkpoint.interval.ms. Raises
        OSError."""
        now_ms = self._clock.now_ms()
        if now_ms - self._started >= self._settings.int("log.flush.start.offset.checkpoint.interval.ms"):
            self._started = now_ms
            await self._write_start_offsets(logs)

    async def _write_start_offsets(self, logs: Mapping[TopicPartition, Log]) -> None:
        starts = {name: log.log_start_offset for name, log in logs.items() if log.log_start_offset}
        if starts != self._start_offsets:
            await trio.to_thread.run_sync(write_offsets, self._directory / LOG_START_OFFSETS, starts)
            self._start_offsets = starts

    async def remove_segments(self, now_ms: int) -> int:
        """Remove dropped segments whose delay is over; returns how many files went."""
        gone = 0
        for log in list(self.doomed):
            try:
                while log.doomed and log.doomed[0].at_ms <= now_ms:
                    gone += await trio.to_thread.run_sync(log.delete_scheduled_files, now_ms)
            except OSError as error:
                _log.warning("removing files of %s failed: %s", log.topic_partition, error.strerror or error)
            if not log.doomed:
                self.doomed.discard(log)
        return gone


def _sync_all(segments: Iterable[Segment]) -> None:
    for segment in segments:
        try:
            segment.sync()
        except FileNotFoundError:
            continue  # retention has been faster
