"""One data directory: what belongs to it, and the partitions that are in it.

That is the lock and the identity (`layout.directory`), the state file, the checkpoints, the free space and the refusal
that follows from it, deletions that are under way, and the logs themselves. The manager has a list of these objects.

Methods belong to the loop's thread, but for `prepare` and `discard`.
"""

import contextlib
import logging
from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from leafcuttr import crashpoints
from leafcuttr.config.settings import Settings
from leafcuttr.errors import StorageError
from leafcuttr.log.cleaner.checkpoint import CleanerCheckpoint
from leafcuttr.log.files.atomic import replace_file
from leafcuttr.log.files.failed_sync import sync_directory
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
    partition_of,
    renamed,
    write_folder_files,
)
from leafcuttr.log.layout.partition_state import PartitionState, boot_id, encode_entry, read_state
from leafcuttr.log.layout.suffixes import CLEAN_SHUTDOWN
from leafcuttr.log.log import Log
from leafcuttr.log.recovery.known import MAX_OFFSET, Known, Reread
from leafcuttr.log.recovery.recovery import restore
from leafcuttr.log.resources import LogResources
from leafcuttr.log.upkeep.clean_stop import close_logs
from leafcuttr.log.upkeep.deletion import Deletion
from leafcuttr.log.upkeep.soft_checkpoint import StateRecord, state_of
from leafcuttr.log.upkeep.upkeep import Upkeep
from leafcuttr.runtime.runtime import Runtime
from leafcuttr_sdk import TopicPartition

if TYPE_CHECKING:
    from leafcuttr.log.recovery.inspection import Inspection

_log = logging.getLogger(__name__)


class _Records(NamedTuple):
    """What a start finds in a directory before it opens a log: whether the last broker stopped cleanly, or in this boot
    of the machine; the lines of the state file that hold; recovery points and log start offsets; partition folders."""

    clean: bool
    same_boot: bool
    known: Mapping[TopicPartition, PartitionState]
    points: Mapping[TopicPartition, int]
    starts: Mapping[TopicPartition, int]
    folders: set[TopicPartition]


_NO_RECORDS: Final = _Records(False, False, {}, {}, {}, set())


class LogDirectory:
    """See the module's docstring. `logs` are those that lie here; for reading only. `upkeep` is for the manager."""

    def __init__(
        self,
        data: DataDirectory,
        runtime: Runtime,
        settings: Settings,
        pool: FilePool,
        pressure: WritePressure,
    ) -> None:
        self.path = data.path
        self.cluster_id = data.cluster_id
        self.directory_id = data.directory_id
        self.logs: dict[TopicPartition, Log] = {}
        self.cleaned = CleanerCheckpoint(self.path)
        self.upkeep = Upkeep(self.path, runtime.clock, settings)
        self.stopped_cleanly = True
        """Whether the last broker on it stopped cleanly; true for a new directory."""
        self._data = data
        self._resources = LogResources(runtime, pool, pressure)
        self._free_space = FreeSpace(self.path, settings, self._resources)
        self._ids: dict[TopicPartition, bytes] = {}
        self._prepared: dict[TopicPartition, Log] = {}
        self._record = StateRecord(self.path)
        self._deletion = Deletion()
        self._inspection: Inspection | None = None  # of the logs that the start has found
        self._found = _NO_RECORDS

    @property
    def refusal(self) -> str | None:
        """Why clients may write nothing more here; None if they may."""
        return self._resources.refusal

    # Start

    def read_records(self) -> None:
        """Read what the last broker has recorded here, and which partitions have a folder: the first step of a start.
        Blocks. Raises OSError."""
        self._free_space.check()
        state = read_state(self.path)
        clean = (self.path / CLEAN_SHUTDOWN).exists() and state is not None and state.clean
        same_boot = state is not None and state.boot_id != "" and state.boot_id == boot_id()
        known = state.partitions if state is not None and (state.clean or same_boot) else {}
        self._found = _Records(clean, same_boot, known, *self.upkeep.read_offsets(), self._folders())

    def has_folder(self, name: TopicPartition) -> bool:
        """Whether the start has found a folder of the partition here."""
        return name in self._found.folders

    def has_recorded(self, spec: LogSpec) -> bool:
        """Whether records of the partition were here, so that its folder must not be missing."""
        name, entry = spec.topic_partition, self._found.known.get(spec.topic_partition)
        return bool(self._found.points.get(name)) or (entry is not None and entry.topic_id == spec.topic_id)

    def load(
        self,
        specs: Sequence[LogSpec],
        named: Set[TopicPartition],
        deleted: frozenset[bytes],
        reread: Reread,
    ) -> None:
        """Open the logs of this directory, recovering them as needed, and begin to remove the folders of topics whose
        ids are in `deleted`; the second step of a start. `named` are all partitions that the metadata names, whichever
        directory they are in. Blocks. Raises OSError if the directory itself cannot be read; a damaged partition is
        offline instead."""
        clean, same_boot, known, points, starts, folders = self._found
        self._found = _NO_RECORDS
        self.stopped_cleanly = clean or not specs
        if not specs:
            self.upkeep.begin_points()
        folders -= self._finish_deletions(folders, named, deleted)
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
                points.get(name, 0) if self.upkeep.points_known else MAX_OFFSET,
                reread,
            )
            folder = self.path / str(name)
            log = restore(spec, folder, facts, exists=name in folders, resources=self._resources)
            self.logs[name] = log
            self._ids[name] = spec.topic_id
            as_recorded = entry is not None and (
                (log.offline and not log.sync_failed) or state_of(log, spec.topic_id) == entry
            )
            self._record.keep(name, log, encode_entry(name, entry) if entry and as_recorded else None)
            if log.pending_deletes:
                self.upkeep.pending_deletes.add(log)
        if self.logs:
            from leafcuttr.log.recovery.inspection import Inspection

            self._inspection = Inspection()
            self._inspection.add(self.logs)
        self._warn_of_strays(folders - self.logs.keys())
        crashpoints.reach("start.loaded")
        # From here on this start is one that has not stopped cleanly yet. Synced, because a mark that came
        # back with the power would have the next start rely on sizes of files that have grown since.
        marker = self.path / CLEAN_SHUTDOWN
        if marker.exists():
            marker.unlink()
            sync_directory(self.path)
        crashpoints.reach("start.unmarked")

    def _folders(self) -> set[TopicPartition]:
        """The partitions that have a folder. Folders of deleted ones are queued for removal."""
        found = set()
        for path in self.path.iterdir():
            partition = partition_of(path.name)
            if partition is not None and path.is_dir():
                found.add(partition)
            elif path.name.endswith(DELETE) and path.is_dir():
                self._deletion.add(path, 0)
        return found

    def _finish_deletions(
        self, folders: set[TopicPartition], known: Set[TopicPartition], deleted: frozenset[bytes]
    ) -> set[TopicPartition]:
        """Rename what a crash has left of deleted topics; returns which partitions that were. A folder without records
        and without a topic id is one of them, unless its name is `known` (to the metadata): the loss of power
        may have taken both. All is synced, because the metadata forgets these topics next."""
        gone = set()
        for name in folders if deleted else folders - known:
            folder = self.path / str(name)
            with contextlib.suppress(DamagedCheckpointError):
                topic_id = read_topic_id(folder / PARTITION_METADATA)
                lost = topic_id is None and name not in known and not holds_records(folder)
                if topic_id in deleted or lost:
                    aside = self.path / renamed(name, DELETE)
                    folder.rename(aside)
                    self._deletion.add(aside, 0)
                    gone.add(name)
        if gone:
            sync_directory(self.path)
        return gone

    def _warn_of_strays(self, strays: set[TopicPartition]) -> None:
        if strays:
            names = ", ".join(str(stray) for stray in sorted(strays)[:5])
            more = f" and {len(strays) - 5} more" if len(strays) > 5 else ""
            _log.warning(
                "%s holds folders of partitions that no topic has, which are left alone: %s%s",
                self.path,
                names,
                more,
            )

    # Partitions

    def prepare(self, spec: LogSpec) -> None:
        """Make the files of a new partition (callable in a worker thread). Raises StorageError; then there
        are none.

        They are made under the name of a deleted folder, so that a crash before `adopt` leaves nothing that would
        be taken for a partition. After it, the metadata names the partition: an empty one is made again at start.
        """
        name = spec.topic_partition
        folder = self.path / renamed(name, DELETE)
        try:
            self._make_way(name)
            self.upkeep.forget_offsets(name, lambda: set(self.logs))
            self.cleaned.forget(name)
            folder.mkdir()
            self._resources.descriptors.opening(lambda: write_folder_files(folder, spec.topic_id))
            self._prepared[name] = Log.create(name, folder, spec.config, resources=self._resources)
        except OSError as error:
            self._deletion.add(folder, 0)
            where = self.path / str(name)
            raise StorageError(f"The folder {where} cannot be made: {error.strerror or error}") from error

    def _make_way(self, name: TopicPartition) -> None:
        """Set aside what no topic has where a new partition has to be."""
        folder = self.path / str(name)
        if not folder.exists():
            return
        if not self._resources.descriptors.opening(lambda: holds_records(folder)):
            aside = self.path / renamed(name, DELETE)
            folder.rename(aside)
            self._deletion.add(aside, 0)
        else:
            aside = self.path / renamed(name, STRAY)
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
        folder = self.path / str(name)
        try:
            log.directory.rename(folder)
            log.directory = folder
        except OSError as error:
            log.offline = f"The folder {folder} cannot be made: {error.strerror or error}"
            _log.error("%s is offline: %s", name, log.offline)
        self.logs[name] = log
        self._ids[name] = spec.topic_id
        return log

    def delete(self, topic_partition: TopicPartition) -> None:
        """Forget the partition and rename its folder; the files are removed after file.delete.delay.ms. Waiters
        are notified. A folder that cannot be renamed stays, as one that no topic has."""
        log = self.logs.pop(topic_partition, None)
        if log is None:
            return
        self._ids.pop(topic_partition, None)
        self._record.forget(topic_partition)
        log.offline = log.offline or f"{topic_partition} is deleted"
        folder = self.path / str(topic_partition)
        aside = self.path / renamed(topic_partition, DELETE)
        try:
            folder.rename(aside)
        except OSError as error:
            _log.warning("renaming %s failed, it is left behind: %s", folder, error.strerror or error)
        else:
            log.directory = aside
            self._deletion.add(aside, log.elapsed_ms + log.config.file_delete_delay_ms)
            crashpoints.reach("topic-delete.renamed")
        log.notify()

    # Background work, one turn at a time

    async def inspect(self) -> None:
        """Check every log that the start has taken as recorded; damaged ones go offline."""
        while self._inspection:
            await self._inspection.go_on(self.logs, self._ids)

    async def soft_checkpoint(self) -> None:
        """Record what has changed; then sync what is due. Raises OSError."""
        if self._inspection:
            await self._inspection.go_on(self.logs, self._ids)
        try:
            changed = await self._record.gather(self.logs, self._ids)
            self.upkeep.noticed(changed)
            await self._record.write()
        finally:
            await self.upkeep.sync_due()
        await self.upkeep.checkpoint_starts_if_due(self.logs)

    async def checkpoint(self) -> None:
        """Sync rolled segments, then write recovery points and log start offsets. Raises OSError."""
        await self.upkeep.sync_due()
        await self.upkeep.checkpoint(self.logs)

    async def keep_log_starts(self) -> None:
        """Make the log start offsets durable as they are now, in a worker thread. Raises StorageError."""
        try:
            await trio.to_thread.run_sync(self.upkeep.write_starts, self.logs, dict(self.logs))
        except OSError as error:
            reason = f"The log start offsets in {self.path} cannot be written: {error.strerror or error}"
            self._resources.complaints("log start offsets", "%s", reason)
            raise StorageError(reason) from error

    async def watch_free_space(self) -> None:
        """See whether there is space for what clients produce. Raises OSError."""
        await self._free_space.watch()

    async def remove_deleted(self, elapsed_ms: int) -> int:
        """Remove the files of deleted partitions and segments that are due, in worker threads; returns how many
        folders and segments went."""
        return await self._deletion.remove_due(elapsed_ms) + await self.upkeep.remove_segments()

    # Stop

    def release(self) -> None:
        """Release the lock. The directory stays as it is."""
        self._data.close()

    def close(self) -> bool:
        """The clean stop: everything synced and recorded, the lock released. What cannot be written is logged, and
        False returned. Blocks."""
        fine = False
        try:
            fine = close_logs(self.path, self.logs, self._ids, self._record)
            if fine:
                crashpoints.reach("shutdown.synced")
                self._record.write_clean()
                self.upkeep.write_offsets(self.logs, self.logs)
                replace_file(self.path / CLEAN_SHUTDOWN, b'{"version":0,"brokerEpoch":-1}')
                crashpoints.reach("shutdown.checkpointed")
        except OSError as error:
            fine = False
            reason = error.strerror or str(error)
            self._resources.complaints(
                reason, "the clean stop cannot be recorded in %s: %s", self.path, reason
            )
        finally:
            self._data.close()
        return fine
