"""Opening one partition at start: what is taken as recorded, and what is read again.

What is taken as recorded is, in this order:

1. its line in the state file, if that was written by a clean stop or in this boot of the machine: the log up to there
   is taken as it is, only what lies behind is read;
2. otherwise the recovery point, up to which the log was synced: the segment that holds it and all later ones are read.

The reading is `rescan`'s, which is imported for the first log that needs it. What it cuts is no loss of what was
promised: what was acknowledged is in the page cache, which outlives the process, and what the loss of power takes was
never synced.

Damage before that (a file missing or too short, a batch that is not sound although it was synced) is not repaired
here: the partition comes back offline, with the reason, and the others serve. `leafcuttr repair` is for that.
"""

import logging
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from leafcuttr.log.cleaner.swap import finish_exchanges
from leafcuttr.log.files.atomic import TEMPORARY
from leafcuttr.log.files.failed_sync import forget_cached, is_marked, unmark
from leafcuttr.log.files.pending_delete import PendingDelete
from leafcuttr.log.files.pool import FilePool
from leafcuttr.log.layout.checkpoints import (
    PARTITION_METADATA,
    DamagedCheckpointError,
    read_topic_id,
    uuid_text,
    write_topic_id,
)
from leafcuttr.log.layout.folders import LogSpec, make_folder, segments_in
from leafcuttr.log.layout.partition_state import PartitionState
from leafcuttr.log.layout.suffixes import DELETED, SUFFIXES
from leafcuttr.log.log import Log
from leafcuttr.log.producers.snapshot import is_sound
from leafcuttr.log.producers.state import ProducerStateTable
from leafcuttr.log.recovery.epoch_checkpoint import EpochCheckpoint
from leafcuttr.log.recovery.known import DamagedLogError, Known
from leafcuttr.log.resources import LogResources
from leafcuttr.log.segment.scan import DamagedSegmentError
from leafcuttr.log.segment.segment import LAST_BASE, Segment, segment_name

_log = logging.getLogger(__name__)

# How much behind the last index entry is checked before a checkpoint is used: usually some kilobytes.
_CHECKED_END: Final = 16 * 1024 * 1024


def restore(spec: LogSpec, folder: Path, known: Known, *, exists: bool, resources: LogResources) -> Log:
    """The log of `spec`, offline if it is damaged. Blocks on the disk; raises nothing about this one
    partition."""
    try:
        return _Restore(spec, folder, known, resources).log(exists)
    except (DamagedLogError, DamagedCheckpointError, DamagedSegmentError) as error:
        reason = str(error)
    except OSError as error:
        reason = f"{error.filename or folder}: {error.strerror or error}"
    _log.error("%s is offline: %s", spec.topic_partition, reason)
    state = known.state
    start = state.log_start_offset if state else known.log_start_offset
    log = Log(
        spec.topic_partition,
        folder,
        spec.config,
        segments=[],
        log_start_offset=start,
        log_end_offset=max(state.log_end_offset if state else known.recovery_point, start),
        recovery_point=known.recovery_point,
        resources=resources,
        offline=reason,
    )
    log.sync_failed = is_marked(folder)
    return log


class _Restore:
    """One restoration: what is given, shared by its steps."""

    def __init__(self, spec: LogSpec, folder: Path, known: Known, resources: LogResources) -> None:
        self.spec = spec
        self.folder = folder
        self.known = known
        self.resources = resources
        self.pool = resources.pool

    def log(self, exists: bool) -> Log:
        state = self.known.state
        if not exists:
            return self._new_folder(state)
        if state is not None and self.known.clean and self._size_of(state) == state.segments[-1].size:
            return self._as_known(state, self._segments_of(state), [])
        self._check_topic_id()
        finish_exchanges(self.folder)
        bases = segments_in(self.folder)
        self._check_end(bases[-1] if bases else 0)
        if is_marked(self.folder):
            return self._from_disk(bases)
        if state is not None and self._holds(state, bases) and self._ends_soundly(state):
            return self._from_state(state, bases)
        return self._from_recovery_point(bases)

    def _new_folder(self, state: PartitionState | None) -> Log:
        """Folders are made before the metadata names them, so a missing one is damage, unless all that the
        loss of power can have taken with it is an empty log."""
        if (state is not None and state.log_end_offset) or self.known.recovery_point:
            raise DamagedLogError(f"its folder {self.folder} is missing")
        _log.info("%s: the empty folder is made again", self.spec.topic_partition)
        make_folder(self.folder, self.spec.topic_id)
        return self._created()

    def _created(self) -> Log:
        for path in self.folder.iterdir():
            # Indexes, whose log file the loss of power has taken.
            if path.suffix in SUFFIXES:
                path.unlink()
        EpochCheckpoint(self.folder).settle([], self.known.log_start_offset)
        if self.known.log_start_offset:
            return self._build([], 0, 0, 0, 0, None, [])
        return Log.create(self.spec.topic_partition, self.folder, self.spec.config, resources=self.resources)

    def _check_topic_id(self) -> None:
        path = self.folder / PARTITION_METADATA
        found = read_topic_id(path)
        if found is None:
            write_topic_id(path, self.spec.topic_id)
        elif found != self.spec.topic_id:
            raise DamagedLogError(
                f"{self.folder} holds data of another topic (id {uuid_text(found)}, "
                f"not {uuid_text(self.spec.topic_id)})"
            )

    def _check_end(self, base_offset: int) -> None:
        """Offsets that no answer can name must never come about."""
        if base_offset > LAST_BASE:
            name = segment_name(base_offset)
            raise DamagedLogError(f"{self.folder}/{name}.log: no segment begins behind offset {LAST_BASE}")

    # From the state file

    def _size_of(self, state: PartitionState) -> int:
        """Bytes in the file of the last segment that the state knows; -1 without that file."""
        path = f"{self.folder}/{segment_name(state.segments[-1].base_offset)}.log"
        try:
            return os.stat(path).st_size  # noqa: PTH116 - 10,000 times at a start
        except FileNotFoundError:
            return -1

    def _holds(self, state: PartitionState, bases: list[int]) -> bool:
        """Whether the state is that of the files in the folder. Segments at the head may have gone since."""
        present = set(bases)
        kept = [segment for segment in state.segments if segment.base_offset in present]
        size = self._size_of(state)
        if self.spec.config.compact and not self.known.clean and self._compacted_since(state, bases):
            return False
        if size < 0 and not state.log_end_offset:
            return False  # an empty log: its names were not synced
        if self.known.clean and len(kept) != len(state.segments):
            gone = next(s.base_offset for s in state.segments if s.base_offset not in present)
            raise DamagedLogError(f"{self.folder}/{segment_name(gone)}.log is missing")
        last = state.segments[-1]
        if size >= last.size:
            return tuple(kept) == state.segments[len(state.segments) - len(kept) :]
        if size < 0 and not kept and bases and bases[0] >= state.log_end_offset:
            return False  # retention has dropped all of them, and the log goes on behind
        name = segment_name(last.base_offset)
        if state.log_end_offset <= self.known.recovery_point:
            raise DamagedLogError(
                f"{self.folder}/{name}.log has {max(size, 0)} bytes, {last.size} were synced"
            )
        _log.warning(
            "%s: %s.log has %d bytes, the last checkpoint knew of %d: it is read from the recovery point %d on",
            self.spec.topic_partition,
            name,
            max(size, 0),
            last.size,
            self.known.recovery_point,
        )
        return False

    def _ends_soundly(self, state: PartitionState) -> bool:
        """Whether the end that the state knows of is there. A disk that went and came back in the same boot has lost
        what was not synced like one that lost its power, and files may have kept their sizes."""
        last, end = state.segments[-1], state.log_end_offset
        if self.known.clean or not last.size or end <= self.known.recovery_point:
            return True
        segment = Segment(str(self.folder), last.base_offset, pool=FilePool(3), size=last.size)
        try:
            position = segment.index.boundary_at_most(last.size - 1)
            if last.size - position <= _CHECKED_END:
                for _ in segment.scan(position, check_crc=True):
                    pass
        except (DamagedSegmentError, FileNotFoundError) as error:
            _log.warning(
                "%s: the last checkpoint knew of offsets up to %d, but %s; it is read from the recovery point %d on",
                self.spec.topic_partition,
                end,
                error,
                self.known.recovery_point,
            )
            return False
        finally:
            segment.close()
        return True

    def _compacted_since(self, state: PartitionState, bases: list[int]) -> bool:
        """Whether compaction may have exchanged a segment that the state knows: the last one if it is sealed by now,
        another if its size is not what it was."""
        present = set(bases)
        return (
            bases[-1:] > [state.segments[-1].base_offset]
            or any(
                os.stat(f"{self.folder}/{segment_name(segment.base_offset)}.log").st_size != segment.size  # noqa: PTH116
                for segment in state.segments[:-1]
                if segment.base_offset in present
            )
        )

    def _segments_of(self, state: PartitionState, present: Iterable[int] | None = None) -> list[Segment]:
        wanted = None if present is None else set(present)
        return [
            Segment(
                str(self.folder),
                s.base_offset,
                pool=self.pool,
                size=s.size,
                largest_timestamp=s.max_timestamp,
            )
            for s in state.segments
            if wanted is None or s.base_offset in wanted
        ]

    def _as_known(
        self, state: PartitionState, segments: list[Segment], pending_deletes: list[PendingDelete]
    ) -> Log:
        producers = ProducerStateTable.from_dump(state.producers) if state.producers else None
        return self._build(
            segments, state.log_end_offset, state.log_start_offset, state.recovery_point, state.leader_epoch,
            producers, pending_deletes,
        )  # fmt: skip

    def _from_state(self, state: PartitionState, bases: list[int]) -> Log:
        segments = self._segments_of(state, bases)
        last = segments[-1]
        newer = [base for base in bases if base > last.base_offset]
        pending_deletes = self._leftovers(state.log_end_offset)
        if not newer and self._size_of(state) == last.size:
            self._check_reaches(state.log_end_offset)
            return self._as_known(state, segments, pending_deletes)
        from leafcuttr.log.recovery.rescan import Rescan

        producers = ProducerStateTable.from_dump(state.producers)
        rescan = Rescan(self.spec, self.folder, self.known, self.pool)
        number, end = len(segments) - 1, state.log_end_offset
        end = rescan.read(segments, number, newer, producers, last.size, end, self.known.recovery_point)
        self._check_reaches(end)
        self._forget_snapshots(end)
        point = max(state.recovery_point, self.known.recovery_point)
        return self._build(
            segments,
            end,
            state.log_start_offset,
            min(point, end),
            state.leader_epoch,
            producers,
            pending_deletes,
        )

    def _check_reaches(self, end: int) -> None:
        """Nothing that was synced may be missing at the end. Raises DamagedLogError."""
        point = self.known.recovery_point
        if end < point:
            raise DamagedLogError(f"{self.folder} ends at offset {end}, synced up to {point}")

    # From the recovery point

    def _from_disk(self, bases: list[int]) -> Log:
        """After a sync that has failed: nothing counts but what was synced before it and what is read from the disk
        itself. The mark is removed last."""
        _log.warning(
            "%s: a sync of it has failed; it is read from the disk from offset %d on",
            self.spec.topic_partition,
            self.known.recovery_point,
        )
        first = max((base for base in bases if base <= self.known.recovery_point), default=0)
        forget_cached(str(self.folder / f"{segment_name(base)}.log") for base in bases if base >= first)
        log = self._from_recovery_point(bases)
        log.flush()
        unmark(self.folder)
        return log

    def _from_recovery_point(self, bases: list[int]) -> Log:
        point = self.known.recovery_point
        pending_deletes = self._leftovers(point)
        if not bases:
            if point:
                raise DamagedLogError(f"{self.folder} holds no segment, {point} records were synced")
            log = self._created()
            log.pending_deletes.extend(pending_deletes)
            return log
        first = max((number for number, base in enumerate(bases) if base <= point), default=0)
        segments = [self._synced_segment(base) for base in bases[:first]]
        from leafcuttr.log.recovery.replay import producers_at
        from leafcuttr.log.recovery.rescan import Rescan

        epochs = EpochCheckpoint(self.folder)
        rescan = Rescan(self.spec, self.folder, self.known, self.pool, epochs)
        segments.append(rescan.unread(bases[first]))
        producers = producers_at(self.folder, segments[:-1], bases[first])
        end = rescan.read(segments, first, bases[first + 1 :], producers, 0, bases[first], point)
        self._check_reaches(end)
        self._forget_snapshots(end)
        settled = epochs.settle(segments, end)
        return self._build(
            segments, end, self.known.log_start_offset, min(point, end), settled[-1][0] if settled else 0,
            producers, pending_deletes,
        )  # fmt: skip

    def _synced_segment(self, base: int) -> Segment:
        for suffix in (".index", ".timeindex"):
            path = self.folder / f"{segment_name(base)}{suffix}"
            if not path.exists():
                raise DamagedLogError(f"{path} is missing")
        return Segment.open(str(self.folder), base, pool=self.pool)

    def _forget_snapshots(self, end: int) -> None:
        """Snapshots of what is lost: once the log has grown past them again, a later recovery would take batches
        for duplicates that never came back. And those that were lost themselves."""
        for name in self.folder.glob("*.snapshot"):
            if name.stem.isdecimal() and (int(name.stem) > end or not is_sound(name)):
                name.unlink()

    def _leftovers(self, end: int) -> list[PendingDelete]:
        """Files of segments that were dropped before the crash; halves of files that were being replaced."""
        paths = [str(path) for path in self.folder.iterdir() if path.name.endswith((DELETED, TEMPORARY))]
        return [PendingDelete(paths, 0)] if paths else []

    def _begin_at(self, start: int, segments: list[Segment], end: int) -> list[Segment]:
        """Of what was deleted on demand, the loss of power has taken the end: nothing is left to serve. The log goes on
        at its start offset, because what comes next must not get offsets that count as deleted."""
        self._check_end(start)
        _log.warning("%s: it ends at offset %d, before its start; it goes on at its start offset %d",
                     self.spec.topic_partition, end, start)  # fmt: skip
        for suffix in SUFFIXES:
            (self.folder / f"{segment_name(start)}{suffix}").unlink(missing_ok=True)
        from leafcuttr.log.recovery.rescan import remove

        preallocate = self.spec.config.segment_bytes if self.spec.config.preallocate else 0
        fresh = Segment.create(
            str(self.folder), start, pool=self.pool, preallocate=preallocate,
            sync_writes=self.spec.config.lc_log_sync_always,
        )  # fmt: skip
        remove(self.spec, segments, "all that is in it is deleted", end, end)
        return [fresh]

    def _build(
        self,
        segments: list[Segment],
        end: int,
        start: int,
        recovery_point: int,
        leader_epoch: int,
        producers: ProducerStateTable | None,
        pending_deletes: list[PendingDelete],
    ) -> Log:
        start = max(start, self.known.log_start_offset, segments[0].base_offset if segments else 0)
        if start > end:
            segments, end = self._begin_at(start, segments, end), start
        log = Log(
            self.spec.topic_partition,
            self.folder,
            self.spec.config,
            segments=segments,
            log_start_offset=start,
            log_end_offset=end,
            recovery_point=recovery_point,
            leader_epoch=leader_epoch,
            producers=producers,
            resources=self.resources,
        )
        log.pending_deletes.extend(pending_deletes)
        return log
