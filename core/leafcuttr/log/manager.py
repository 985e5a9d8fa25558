"""All logs of one data directory: opened at start, created, deleted, kept safe, closed.

What the manager promises, and to whom:

- One process holds the directory. What cannot be used is a StartError of one line.
- A start after a clean stop reads one file for all partitions, not their folders; after a crash it reads what lies
  behind the last soft checkpoint. One damaged partition is offline, the others serve (`recovery`).
- Folders that the metadata does not name are left alone, with one warning for all.
- Everything that touches the disk for long runs in worker threads, everything that looks at many partitions in short
  turns. `load` and `close` are the exceptions: nobody is served then.

The methods belong to the loop's thread, but for `prepare` and `discard`. Longer than other modules because what is in
`logs`, and what the files say of it, changes only here.
"""

import contextlib
import logging
import resource
import time
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import trio

from leafcuttr import crashpoints
from leafcuttr.config.settings import Settings
from leafcuttr.errors import BrokerError, StartError, StorageError
from leafcuttr.log.cleaner.checkpoint import CleanerCheckpoint
from leafcuttr.log.cleaner.cleaner import Cleaner
from leafcuttr.log.files.atomic import replace_file
from leafcuttr.log.files.failed_sync import SyncFailedError, sync_directory
from leafcuttr.log.files.free_space import FreeSpace
from leafcuttr.log.files.pool import FilePool
from leafcuttr.log.files.write_pressure import WritePressure
from leafcuttr.log.layout.checkpoints import PARTITION_METADATA, DamagedCheckpointError, read_topic_id
from leafcuttr.log.layout.directory import DataDirectory
from leafcuttr.log.layout.folders import (
    DELETE,
    STRAY,
    LogSpec,
    holds_records,
    make_folder,
    partition_of,
    renamed,
)
from leafcuttr.log.layout.partition_state import boot_id, encode_entry, read_state
from leafcuttr.log.log import Log
from leafcuttr.log.recovery.inspection import Inspection
from leafcuttr.log.recovery.known import MAX_OFFSET, Known, Reread
from leafcuttr.log.recovery.recovery import restore
from leafcuttr.log.resources import LogResources
from leafcuttr.log.upkeep.deletion import Deletion
from leafcuttr.log.upkeep.soft_checkpoint import StateRecord, remove_old_snapshots, state_of
from leafcuttr.log.upkeep.upkeep import Upkeep
from leafcuttr.runtime.pacing import Pace
from leafcuttr.runtime.runtime import Runtime
from leafcuttr_sdk import TopicPartition

__all__ = ["LogManager", "LogSpec"]

CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
_SYNCERS: Final = 8  # syncs at once when closing: file systems commit those of several files together
_RESERVED_DESCRIPTORS: Final = 512
_FEWEST_FILES: Final = 64
_MOST_FILES: Final = 16_384

_log = logging.getLogger(__name__)


class LogManager:
    """See the module's docstring. `logs` is for reading only."""

    def __init__(
        self, directory: DataDirectory, runtime: Runtime, settings: Settings, pressure: WritePressure
    ) -> None:
        self.logs: dict[TopicPartition, Log] = {}
        self.directory = directory.path
        self.cluster_id = directory.cluster_id
        self.directory_id = directory.directory_id
        self._pool = FilePool(_most_open_files(), runtime.descriptors)
        self._resources = LogResources(runtime, self._pool, pressure)
        self._data = directory
        self._clock = clock = runtime.clock
        self._settings = settings
        self._ids: dict[TopicPartition, bytes] = {}
        self._prepared: dict[TopicPartition, Log] = {}
        self._record = StateRecord(self.directory)
        self._deletion = Deletion()
        self._free_space = FreeSpace(self.directory, settings, self._resources)
        self._upkeep = Upkeep(self.directory, clock, settings)
        self._cleaned = CleanerCheckpoint(self.directory)
        self.cleaner = Cleaner(self.logs, self._cleaned, settings, clock, self._pool, self._secure)
        self._inspection = Inspection()
        self._turn = trio.Lock()
        self._closed = False
        self.reread = Reread()
        self.load_seconds = 0.0
        self.stopped_cleanly = True
        """Whether the broker that was here before has left by itself; a new directory counts as such."""

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
        """Take hold of the directory; `load` brings in the logs. Raises StartError."""
        found = DataDirectory.open(directory, node_id=node_id, cluster_id=cluster_id)
        return cls(found, runtime, settings, pressure or WritePressure())

    @property
    def refusal(self) -> str | None:
        """Why clients may write nothing more; None if they may."""
        return self._resources.refusal

    @property
    def open_files(self) -> int:
        """How many files of logs are kept open."""
        return len(self._pool)

    @property
    def most_open_files(self) -> int:
        return self._pool.limit

    # Start

    def load(self, specs: Sequence[LogSpec], *, deleted: Collection[bytes] = ()) -> None:
        """Open the logs that the metadata names, recovering them as needed; put folders of topics whose ids are in
        `deleted` on their way. Blocks. Raises StartError if the directory itself cannot be read; a damaged
        partition is offline instead."""
        began = time.monotonic()
        try:
            self._load(specs, frozenset(deleted))
        except OSError as error:
            raise StartError(
                f"data directory {self.directory} cannot be used: {error.strerror} ({error.filename})"
            ) from error
        self.load_seconds = time.monotonic() - began

    def _load(self, specs: Sequence[LogSpec], deleted: frozenset[bytes]) -> None:
        self._free_space.check()
        marker = self.directory / CLEAN_SHUTDOWN
        clean = marker.exists()
        state = read_state(self.directory)
        clean = clean and state is not None and state.clean
        same_boot = state is not None and state.boot_id != "" and state.boot_id == boot_id()
        self.stopped_cleanly = clean or not specs
        known = state.partitions if state is not None and (state.clean or same_boot) else {}
        points, starts = self._upkeep.read_offsets()
        if not specs:
            self._upkeep.begin_points()
        folders = self._folders()
        folders -= self._finish_deletions(folders, {spec.topic_partition for spec in specs}, deleted)
        for spec in specs:
            name = spec.topic_partition
            entry = known.get(name)
            if entry is not None and entry.topic_id != spec.topic_id:
                entry = None  # of an earlier topic of this name
            facts = Known(
                # What a broker has written after a clean stop may be lost in part if the machine died since.
                entry if clean or same_boot else None,
                clean,
                max(points.get(name, 0), entry.recovery_point if entry else 0),
                max(starts.get(name, 0), entry.log_start_offset if entry else 0),
                same_boot,
                points.get(name, 0) if self._upkeep.points_known else MAX_OFFSET,
                self.reread,
            )
            folder = self.directory / str(name)
            log = restore(spec, folder, facts, exists=name in folders, resources=self._resources)
            self.logs[name] = log
            self._ids[name] = spec.topic_id
            as_recorded = entry is not None and (
                (log.offline and not log.suspect) or state_of(log, spec.topic_id) == entry
            )
            self._record.keep(name, log, encode_entry(name, entry) if entry and as_recorded else None)
            if log.pending_deletes:
                self._upkeep.pending_deletes.add(log)
        self._inspection.add(self.logs)
        self._warn_of_strays(folders - self.logs.keys())
        crashpoints.reach("start.loaded")
        # From here on this start is one that has not stopped cleanly yet. Synced, because a mark that came
        # back with the power would have the next start trust files that have grown since.
        if marker.exists():
            marker.unlink()
            sync_directory(self.directory)
        crashpoints.reach("start.unmarked")

    def _folders(self) -> set[TopicPartition]:
        """The partitions that have a folder. Folders of deleted ones are put on their way."""
        found = set()
        for path in self.directory.iterdir():
            partition = partition_of(path.name)
            if partition is not None and path.is_dir():
                found.add(partition)
            elif path.name.endswith(DELETE) and path.is_dir():
                self._deletion.add(path, 0)
        return found

    def _finish_deletions(
        self, folders: set[TopicPartition], known: set[TopicPartition], deleted: frozenset[bytes]
    ) -> set[TopicPartition]:
        """Rename what a crash has left of deleted topics; returns which partitions that were. A folder without records
        that does not say whose it was is one of them, unless its name is `known` (to the metadata): the loss of power
        may have taken both. All is synced, because the metadata forgets these topics next."""
        gone = set()
        for name in folders if deleted else folders - known:
            folder = self.directory / str(name)
            with contextlib.suppress(DamagedCheckpointError):
                topic_id = read_topic_id(folder / PARTITION_METADATA)
                lost = topic_id is None and name not in known and not holds_records(folder)
                if topic_id in deleted or lost:
                    aside = self.directory / renamed(name, DELETE)
                    folder.rename(aside)
                    self._deletion.add(aside, 0)
                    gone.add(name)
        if gone:
            sync_directory(self.directory)
        return gone

    def _warn_of_strays(self, strays: set[TopicPartition]) -> None:
        if strays:
            names = ", ".join(str(stray) for stray in sorted(strays)[:5])
            more = f" and {len(strays) - 5} more" if len(strays) > 5 else ""
            _log.warning(
                "%s holds folders of partitions that no topic has, which are left alone: %s%s",
                self.directory,
                names,
                more,
            )

    # Partitions

    def get(self, topic_partition: TopicPartition) -> Log | None:
        return self.logs.get(topic_partition)

    def prepare(self, spec: LogSpec) -> None:
        """Make the files of a new partition (callable in a worker thread). Raises StorageError; then there
        are none.

        They are made under the name of a folder that goes, so that a crash before `adopt` leaves nothing that looks
        like a partition. After it, the metadata names the partition: an empty one is made again at start.
        """
        name = spec.topic_partition
        folder = self.directory / renamed(name, DELETE)
        try:
            self._make_way(name)
            self._upkeep.forget_offsets(name, lambda: set(self.logs))
            self._cleaned.forget(name)
            make_folder(folder, spec.topic_id)
            self._prepared[name] = Log.create(name, folder, spec.config, resources=self._resources)
        except OSError as error:
            self._deletion.add(folder, 0)
            where = self.directory / str(name)
            raise StorageError(f"The folder {where} cannot be made: {error.strerror or error}") from error

    def _make_way(self, name: TopicPartition) -> None:
        """Set aside what no topic has where a new partition has to be."""
        folder = self.directory / str(name)
        if not folder.exists():
            return
        if not holds_records(folder):
            aside = self.directory / renamed(name, DELETE)
            folder.rename(aside)
            self._deletion.add(aside, 0)
        else:
            aside = self.directory / renamed(name, STRAY)
            folder.rename(aside)
            _log.warning("%s holds records that no topic has, and is set aside as %s", folder, aside.name)

    def discard(self, spec: LogSpec) -> None:
        """Take back what `prepare` made (callable in a worker thread)."""
        log = self._prepared.pop(spec.topic_partition, None)
        if log is not None:
            for segment in log.segments:
                segment.close()
            self._deletion.add(log.directory, 0)

    def adopt(self, spec: LogSpec) -> Log:
        """Publish a prepared partition: its folder gets its name. It is offline if that fails."""
        name = spec.topic_partition
        log = self._prepared.pop(name)
        folder = self.directory / str(name)
        try:
            log.directory.rename(folder)
            log.directory = folder
        except OSError as error:
            log.offline = f"The folder {folder} cannot be made: {error.strerror or error}"
            _log.error("%s is offline: %s", name, log.offline)
        self.logs[name] = log
        self._ids[name] = spec.topic_id
        return log

    def create(self, spec: LogSpec) -> Log:
        """`prepare` and `adopt` in one. Raises StorageError."""
        self.prepare(spec)
        return self.adopt(spec)

    def delete(self, topic_partition: TopicPartition) -> None:
        """Forget the partition and rename its folder; the files go after file.delete.delay.ms. Who waits for
        its records is told. A folder that cannot be renamed stays, as one that no topic has."""
        log = self.logs.pop(topic_partition, None)
        if log is None:
            return
        self._ids.pop(topic_partition, None)
        self._record.forget(topic_partition)
        self.cleaner.forget(topic_partition)
        log.offline = log.offline or f"{topic_partition} is deleted"
        folder = self.directory / str(topic_partition)
        aside = self.directory / renamed(topic_partition, DELETE)
        try:
            folder.rename(aside)
        except OSError as error:
            _log.warning("renaming %s failed, it is left behind: %s", folder, error.strerror or error)
        else:
            log.directory = aside
            self._deletion.add(aside, log.elapsed_ms + log.config.file_delete_delay_ms)
            crashpoints.reach("topic-delete.renamed")
        log.notify()

    # What goes on by itself: called again and again by the server

    async def inspect(self) -> None:
        """Look at every log that the start has taken on trust; damaged ones go offline."""
        async with self._turn:
            while len(self._inspection):
                await self._inspection.go_on(self.logs, self._ids)

    async def soft_checkpoint(self) -> None:
        """Record what has changed, about once a second; then sync what is due. Raises OSError."""
        async with self._turn:
            await self._inspection.go_on(self.logs, self._ids)
            try:
                changed = await self._record.gather(self.logs, self._ids)
                self._upkeep.noticed(changed)
                await self._record.write()
            finally:
                await self._upkeep.sync_due()
            await self._upkeep.checkpoint_starts_if_due(self.logs)

    async def checkpoint(self) -> None:
        """Sync rolled segments, then write recovery points and log start offsets. Raises OSError."""
        async with self._turn:
            await self._upkeep.sync_due()
            await self._upkeep.checkpoint(self.logs)

    async def keep_log_starts(self) -> None:
        """Make the log start offsets durable as they are now: what DeleteRecords has answered may not come back.
        Written in a worker thread, once for all partitions. Raises StorageError."""
        try:
            await trio.to_thread.run_sync(self._upkeep.write_starts, self.logs, dict(self.logs))
        except OSError as error:
            reason = f"The log start offsets in {self.directory} cannot be written: {error.strerror or error}"
            self._resources.complaints("log start offsets", "%s", reason)
            raise StorageError(reason) from error
        crashpoints.reach("delete-records.kept")

    async def watch_room(self) -> None:
        """See whether the disk has room for what clients produce. Raises OSError."""
        await self._free_space.watch()

    async def _secure(self, name: TopicPartition, offset: int) -> None:
        """Have the recovery point of a log on the disk be at least `offset`, up to which it is synced. Raises
        OSError."""
        if self._upkeep.recovery_point(name) < offset:
            async with self._turn:
                await self._upkeep.checkpoint(self.logs)

    async def apply_retention(self) -> int:
        """Let go of what retention no longer keeps, in all logs; returns the bytes freed."""
        pace, freed = Pace(), 0
        for log in list(self.logs.values()):
            try:
                freed += log.apply_retention(self._clock.now_ms())
            except BrokerError as error:
                self._resources.complaints("retention", "%s", error)
            if log.pending_deletes:
                self._upkeep.pending_deletes.add(log)
            await pace.turn()
        return freed

    async def remove_deleted(self) -> int:
        """Remove the files of deleted partitions and segments that are due, in worker threads; returns how
        many folders and segments went."""
        elapsed_ms = int(self._clock.monotonic() * 1000)
        return await self._deletion.remove_due(elapsed_ms) + await self._upkeep.remove_segments()

    async def expire_producers(self) -> int:
        """Forget idempotent producers that have been silent for producer.id.expiration.ms; returns how
        many."""
        pace, gone = Pace(), 0
        expiration_ms = self._settings.int("producer.id.expiration.ms")
        for log in list(self.logs.values()):
            if log.offline is None and log.has_producers:
                gone += log.producers.expire(self._clock.now_ms(), expiration_ms)
            await pace.turn()
        return gone

    # Stop

    def let_go(self) -> None:
        """Give up a start before `load`: the directory stays as it is, and others may use it."""
        self._closed = True
        self._data.close()

    def close(self) -> bool:
        """The clean stop: everything synced and recorded, the directory let go. Nothing may be staged.
        Blocks.

        Doing it twice is harmless. What cannot be written is logged, and the answer is False; the next start recovers
        it then.
        """
        if self._closed:
            return True
        self._closed = True
        fine = False
        try:
            fine = self._close_logs()
            if fine:
                crashpoints.reach("shutdown.synced")
                self._record.write_clean()
                self._upkeep.write_offsets(self.logs, self.logs)
                replace_file(self.directory / CLEAN_SHUTDOWN, b'{"version":0,"brokerEpoch":-1}')
                crashpoints.reach("shutdown.checkpointed")
        except OSError as error:
            fine = False
            reason = error.strerror or str(error)
            self._resources.complaints(
                reason, "the clean stop cannot be recorded in %s: %s", self.directory, reason
            )
        finally:
            self._data.close()
        return fine

    def _close_logs(self) -> bool:
        """Finish every log; whether all were."""
        open_logs = [(name, log) for name, log in self.logs.items() if log.offline is None]
        changed = [(name, log) for name, log in open_logs if self._record.changed(name, log)]
        touched = {name for name, _ in changed}
        unsynced = [
            log
            for name, log in open_logs
            if log.log_end_offset > log.recovery_point
            or name in touched
            or log.pending_deletes
            or (log.segments and log.segments[-1].unsealed)  # synced and recorded, but as one that goes on
        ]
        with ThreadPoolExecutor(_SYNCERS) as pool:
            fine = all(list(pool.map(_finish, unsynced)))
        for name, log in open_logs:
            if fine and self._record.changed(name, log):
                self._record.take(name, log, self._ids[name])
        for name, log in self.logs.items():
            if log.suspect:
                self._record.forget(name)
            for segment in log.segments:
                segment.close()
        return fine


def _finish(log: Log) -> bool:
    """Sync a log for a clean stop; whether that worked."""
    try:
        if log.pending_deletes:
            log.delete_scheduled_files(1 << 62, at_most=1 << 30)
        if not log.log_end_offset and not log.config.preallocate:
            return True  # an empty log whose files the power takes is made again
        log.close()
        if log.has_producers:
            remove_old_snapshots(log, [segment.base_offset for segment in log.segments])
        log.flush()
    except SyncFailedError as error:
        log.distrust(error)
        return False
    except OSError as error:
        reason = error.strerror or str(error)
        log.resources.complaints(reason, "closing %s failed: %s", log.topic_partition, reason)
        return False
    return True


def _most_open_files() -> int:
    """How many files the logs may keep open: half of what the process may have beyond what it needs
    otherwise."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(min(soft // 4, _FEWEST_FILES), min((soft - _RESERVED_DESCRIPTORS) // 2, _MOST_FILES))
