"""All logs of the data directories: opened at start, created, deleted, kept safe, closed.

What the manager guarantees:

- One process holds the directory. What cannot be used is a StartError of one line.
- A start after a clean stop reads one file for all partitions, not their folders; after a crash it reads what lies
  behind the last soft checkpoint. One damaged partition is offline, the others serve (`recovery`).
- Folders that the metadata does not name are left alone, with one warning for all.
- Everything that uses the disk for long runs in worker threads, everything that goes through many partitions in
  short turns. `load` and `close` are the exceptions: no client is served then.

What is done in one of the directories is in `directory`; there is one today. The methods belong to the loop's thread,
but for `prepare` and `discard`.
"""

import resource
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import trio

from leafcuttr import crashpoints
from leafcuttr.config.settings import Settings
from leafcuttr.errors import BrokerError, StartError
from leafcuttr.log.cleaner.checkpoint import CleanerCheckpoint
from leafcuttr.log.cleaner.cleaner import Cleaner
from leafcuttr.log.directory import LogDirectory
from leafcuttr.log.files.pool import FilePool
from leafcuttr.log.files.write_pressure import WritePressure
from leafcuttr.log.layout.directory import DataDirectory
from leafcuttr.log.layout.folders import LogSpec
from leafcuttr.log.log import Log
from leafcuttr.log.recovery.known import Reread
from leafcuttr.runtime.pacing import Pace
from leafcuttr.runtime.runtime import Runtime
from leafcuttr_sdk import TopicPartition

__all__ = ["LogManager", "LogSpec"]

_RESERVED_DESCRIPTORS: Final = 512
_FEWEST_FILES: Final = 64
_MOST_FILES: Final = 16_384


class LogManager:
    """See the module's docstring. `logs` is for reading only."""

    def __init__(
        self, found: Sequence[DataDirectory], runtime: Runtime, settings: Settings, pressure: WritePressure
    ) -> None:
        self.logs: dict[TopicPartition, Log] = {}
        self._runtime = runtime
        self._settings = settings
        self._pool = FilePool(_most_open_files(), runtime.descriptors)
        self.directories = [LogDirectory(each, runtime, settings, self._pool, pressure) for each in found]
        self._directory_of: dict[TopicPartition, LogDirectory] = {}
        self.cleaner = Cleaner(self.logs, self._cleaned, settings, runtime.clock, self._pool, self._secure)
        self._turn = trio.Lock()
        self._closed = False
        self.reread = Reread()
        self.load_seconds = 0.0

    @classmethod
    def open(
        cls,
        directory: Path,
        *,
        runtime: Runtime,
        settings: Settings,
        node_id: int,
        cluster_id: str | None = None,
        pressure: WritePressure | None = None,
    ) -> "LogManager":
        """Lock the directory; `load` brings in the logs. Raises StartError."""
        found = DataDirectory.open(directory, node_id=node_id, cluster_id=cluster_id)
        return cls([found], runtime, settings, pressure or WritePressure())

    @property
    def directory(self) -> Path:
        """The first data directory, where the metadata is too."""
        return self.directories[0].path

    @property
    def cluster_id(self) -> str:
        return self.directories[0].cluster_id

    @property
    def stopped_cleanly(self) -> bool:
        """Whether the last broker on it stopped cleanly; true for a new directory."""
        return all(each.stopped_cleanly for each in self.directories)

    @property
    def refusal(self) -> str | None:
        """Why clients may write nothing more to a directory; None if they may everywhere."""
        return next((each.refusal for each in self.directories if each.refusal is not None), None)

    @property
    def open_files(self) -> int:
        """How many files of logs are kept open."""
        return len(self._pool)

    @property
    def most_open_files(self) -> int:
        return self._pool.limit

    @property
    def holds_many_files(self) -> bool:
        """Whether so many files are open for regions alone, half as many as may be kept open, that no reader should get
        regions of several."""
        return self._pool.let_go > self._pool.limit // 2

    # Start

    def load(self, specs: Sequence[LogSpec], *, deleted: Collection[bytes] = ()) -> None:
        """Open the logs that the metadata names, recovering them as needed; begin to remove the folders of topics whose
        ids are in `deleted`. Blocks. Raises StartError if the directory itself cannot be read; a damaged
        partition is offline instead."""
        began = time.monotonic()
        for directory in self.directories:
            with _start_of(directory):
                directory.read_records()
        of_each: dict[LogDirectory, list[LogSpec]] = {directory: [] for directory in self.directories}
        for spec in specs:
            of_each[self._holder(spec)].append(spec)
        named = {spec.topic_partition for spec in specs}
        for directory, held in of_each.items():
            with _start_of(directory):
                directory.load(held, named, frozenset(deleted), self.reread)
            self.logs.update(directory.logs)
            self._directory_of.update(dict.fromkeys(directory.logs, directory))
        self.load_seconds = time.monotonic() - began

    def _holder(self, spec: LogSpec) -> LogDirectory:
        """The directory that holds a partition at start: the first with its folder, or else the one that has recorded
        it. An empty one that the loss of power has taken may be made again in any."""
        name, directories = spec.topic_partition, self.directories
        held = next((each for each in directories if each.has_folder(name)), None)
        return held or next((each for each in directories if each.has_recorded(spec)), directories[0])

    # Partitions

    def get(self, topic_partition: TopicPartition) -> Log | None:
        return self.logs.get(topic_partition)

    def prepare(self, spec: LogSpec) -> None:
        """Make the files of a new partition (callable in a worker thread), where there are fewest. Raises StorageError;
        then there are none.

        They are made under the name of a deleted folder, so that a crash before `adopt` leaves nothing that would
        be taken for a partition. After it, the metadata names the partition: an empty one is made again at start.
        """
        directory = min(self.directories, key=lambda each: len(each.logs))
        directory.prepare(spec)
        self._directory_of[spec.topic_partition] = directory

    def discard(self, spec: LogSpec) -> None:
        """Take back what `prepare` made (callable in a worker thread)."""
        directory = self._directory_of.pop(spec.topic_partition, None)
        if directory is not None:
            directory.discard(spec)

    def adopt(self, spec: LogSpec) -> Log:
        """Publish a prepared partition: its folder gets its name. It is offline if that fails."""
        name = spec.topic_partition
        log = self.logs[name] = self._directory_of[name].adopt(spec)
        return log

    def create(self, spec: LogSpec) -> Log:
        """`prepare` and `adopt` in one. Raises StorageError."""
        self.prepare(spec)
        return self.adopt(spec)

    def delete(self, topic_partition: TopicPartition) -> None:
        """Forget the partition and rename its folder; the files are removed after file.delete.delay.ms. Waiters
        are notified. A folder that cannot be renamed stays, as one that no topic has."""
        if self.logs.pop(topic_partition, None) is not None:
            self.cleaner.forget(topic_partition)
            self._directory_of.pop(topic_partition).delete(topic_partition)

    def _cleaned(self, name: TopicPartition) -> CleanerCheckpoint:
        return self._directory(name).cleaned

    def _directory(self, name: TopicPartition) -> LogDirectory:
        """Where a partition is; for one that has been deleted meanwhile any will do."""
        return self._directory_of.get(name, self.directories[0])

    # Background work, called again and again by the server

    async def inspect(self) -> None:
        """Check every log that the start has taken as recorded; damaged ones go offline."""
        async with self._turn:
            for directory in self.directories:
                await directory.inspect()

    async def soft_checkpoint(self) -> None:
        """Record what has changed, about once a second; then sync what is due. Raises OSError."""
        async with self._turn:
            for directory in self.directories:
                await directory.soft_checkpoint()

    async def checkpoint(self) -> None:
        """Sync rolled segments, then write recovery points and log start offsets. Raises OSError."""
        async with self._turn:
            for directory in self.directories:
                await directory.checkpoint()

    async def keep_log_starts(self) -> None:
        """Make the log start offsets durable as they are now: what DeleteRecords has answered may not come back.
        Written in a worker thread, once for all partitions. Raises StorageError."""
        for directory in self.directories:
            await directory.keep_log_starts()
        crashpoints.reach("delete-records.kept")

    async def watch_free_space(self) -> None:
        """See whether the disk has space for what clients produce. Raises OSError."""
        for directory in self.directories:
            await directory.watch_free_space()

    async def _secure(self, name: TopicPartition, offset: int) -> None:
        """Have the recovery point of a log on the disk be at least `offset`, up to which it is synced. Raises
        OSError."""
        directory = self._directory(name)
        if directory.upkeep.recovery_point(name) < offset:
            async with self._turn:
                await directory.upkeep.checkpoint(directory.logs)

    async def apply_retention(self) -> int:
        """Apply retention to all logs; returns the bytes freed."""
        pace, freed = Pace(), 0
        for log in list(self.logs.values()):
            try:
                freed += log.apply_retention(self._runtime.clock.now_ms())
            except BrokerError as error:
                self._runtime.complaints("retention", "%s", error)
            if log.pending_deletes:
                self._directory(log.topic_partition).upkeep.pending_deletes.add(log)
            await pace.turn()
        return freed

    async def remove_deleted(self) -> int:
        """Remove the files of deleted partitions and segments that are due, in worker threads; returns how
        many folders and segments went."""
        elapsed_ms = int(self._runtime.clock.monotonic() * 1000)
        return sum([await directory.remove_deleted(elapsed_ms) for directory in self.directories])

    async def expire_producers(self) -> int:
        """Forget idempotent producers that have been silent for producer.id.expiration.ms; returns how
        many."""
        pace, gone = Pace(), 0
        expiration_ms = self._settings.int("producer.id.expiration.ms")
        for log in list(self.logs.values()):
            if log.offline is None and log.has_producers:
                gone += log.producers.expire(self._runtime.clock.now_ms(), expiration_ms)
            await pace.turn()
        return gone

    # Stop

    def release(self) -> None:
        """Give up a start before `load`: release the locks, and leave the directories as they are."""
        self._closed = True
        for directory in self.directories:
            directory.release()

    def close(self) -> bool:
        """The clean stop: everything synced and recorded, the locks of the directories released. Nothing may be staged.
        Blocks.

        Doing it twice is harmless. What cannot be written is logged, and the answer is False; the next start recovers
        it then.
        """
        if self._closed:
            return True
        self._closed = True
        fine = True
        for directory in self.directories:
            fine = directory.close() and fine
        return fine


@contextmanager
def _start_of(directory: LogDirectory) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StartError(
            f"data directory {directory.path} cannot be used: {error.strerror} ({error.filename})"
        ) from error


def _most_open_files() -> int:
    """How many files the logs may keep open: half of what the process may have beyond what it needs
    otherwise."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(min(soft // 4, _FEWEST_FILES), min((soft - _RESERVED_DESCRIPTORS) // 2, _MOST_FILES))
