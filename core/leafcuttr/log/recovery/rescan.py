"""Reading segments again at start, when they may end in anything.

Each batch is checked (CRC, offsets). The log is cut at the first that is not sound, later segments are removed, indexes
are written anew, and the producer state and the leader epochs are brought up to what is read. From which offset on a
log has to be read is decided in `recovery`.

Two rules decide what becomes of a fault:

- Before the synced offset (the recovery point) nothing may be missing. A fault there is damage of the disk, not the
  end of what a crash has cut short: the partition goes offline (DamagedLogError), and no record is removed.
- Behind it a crash may have lost anything, also from the middle of the file. What lies behind the first fault is not
  known to be what was written, so it is removed, and its offsets are given out again.
"""

import errno
import logging
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from leafcuttr.crashpoints import reach
from leafcuttr.log.files.pool import FilePool
from leafcuttr.log.layout.folders import LogSpec
from leafcuttr.log.layout.suffixes import SUFFIXES
from leafcuttr.log.producers.state import ProducerStateTable
from leafcuttr.log.recovery.displaced import is_displaced, put_right
from leafcuttr.log.recovery.epoch_checkpoint import EpochCheckpoint
from leafcuttr.log.recovery.known import DamagedLogError, Known
from leafcuttr.log.recovery.replay import producers_at, replay
from leafcuttr.log.segment.rebuild import index_fits, rebuild_indexes
from leafcuttr.log.segment.scan import ZEROS, DamagedSegmentError
from leafcuttr.log.segment.segment import Segment
from leafcuttr.log.segment.txn_index import AbortedTransaction
from leafcuttr.wire.batch import BatchHeader

_log = logging.getLogger(__name__)

# A scan of this much takes long enough that a person wants to know why the start takes it.
_LONG_SCAN: Final = 256 * 1024 * 1024


class Rescan:
    """Reads segments of one partition. `epochs`, if given, gets every batch."""

    def __init__(
        self, spec: LogSpec, folder: Path, known: Known, pool: FilePool, epochs: EpochCheckpoint | None = None
    ) -> None:
        self._spec = spec
        self._folder = folder
        self._known = known
        self._pool = pool
        self._epochs = epochs

    def unread(self, base_offset: int) -> Segment:
        """A segment of which nothing is known but that it is there."""
        return Segment(str(self._folder), base_offset, pool=self._pool, size=0)

    def read(
        self,
        segments: list[Segment],
        number: int,
        newer: list[int],
        producers: ProducerStateTable,
        position: int,
        offset: int,
        synced: int,
    ) -> int:
        """Read `segments[number]` from `position` on, where the batch with `offset` begins, then the `newer` ones (by
        their base offsets), of which nothing is known but their names. `segments` then are those of the log.

        Cuts at the first fault; returns the log end offset. Raises DamagedLogError if that is before `synced`.
        """
        began = time.monotonic()
        todo = [segments[number], *(self.unread(base) for base in newer)]
        del segments[number:]
        fresh = set(newer)
        size = sum(os.stat(s.path(".log")).st_size for s in todo) - position  # noqa: PTH116
        if self._known.reread is not None:
            self._known.reread.partitions += 1
            self._known.reread.bytes += max(size, 0)
        if size >= _LONG_SCAN:
            _log.warning("%s: reading %d MB to recover it", self._spec.topic_partition, size >> 20)
        interval = self._spec.config.index_interval_bytes
        while todo:
            segment = todo.pop(0)
            # A newer segment that does not begin where the log has got to: what was between them is lost. It is
            # removed, and so are all behind it.
            if segment.base_offset in fresh and not self._follows(segment.base_offset, offset):
                remove(
                    self._spec,
                    [segment, *todo],
                    f"no record before it from offset {offset} on",
                    synced,
                    offset,
                )
                break
            if segment.base_offset in fresh:
                offset = segment.base_offset  # behind a gap that compaction has left, if there is one
            # Index entries before `position` are kept. Where there are none, or they do not fit the file, the
            # segment is read from its beginning.
            if self._make_indexes(segment) or not index_fits(segment, position):
                position, offset = 0, segment.base_offset
                # What is read again must not be taken up twice: transactions would end before they begin.
                producers.replace(producers_at(self._folder, segments, offset))
            rebuilt = rebuild_indexes(
                segment, interval, from_position=position, next_offset=offset,
                observe=partial(self._take_up, producers),
                restore=partial(self._restore_place, segment, todo[0].base_offset if todo else None),
            )  # fmt: skip
            segments.append(segment)
            offset, position = rebuilt.next_offset, 0
            if rebuilt.damage is not None:
                # The first fault: the log ends before it, or is damaged if more than that was synced.
                if offset < synced:
                    raise DamagedLogError(f"{rebuilt.damage} (offset {offset}, synced up to {synced})")
                self._cut(segment, rebuilt.end_position, rebuilt.damage)
                if todo:
                    remove(self._spec, todo, "the log ends before it", synced, offset)
                break
            if todo:
                segment.flush_indexes()
        self._flush_last(segments[-1])
        reach("recovery.scanned")
        if size >= _LONG_SCAN:
            took = time.monotonic() - began
            _log.warning("%s: recovered up to offset %d in %.1f s", self._spec.topic_partition, offset, took)
        return offset

    def _flush_last(self, segment: Segment) -> None:
        """What a full disk has no space for stays in memory, as it does while records are appended to this segment:
        reading needs it there, and the next soft checkpoint writes it. Raises OSError for anything else."""
        try:
            segment.flush_indexes()
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise

    def _take_up(
        self, producers: ProducerStateTable, header: BatchHeader, batch: Callable[[], bytes]
    ) -> AbortedTransaction | None:
        if self._epochs is not None:
            self._epochs.batch(header)
        return replay(producers, header, batch)

    def _restore_place(
        self, segment: Segment, following: int | None, position: int, header: BatchHeader, due: int
    ) -> bool:
        """What becomes of a batch whose CRC is right but whose base offset is not `due`: no CRC covers that field. True
        if it has been given the offset that was due, False if the offset that it has is right.

        `displaced` says what the batches behind it show: True if they go on from the offset that is due, so that the
        field is damaged; False if they go on from the one that it has, so that the log has a gap; None if there are
        none. Then it is decided by what can have happened:

        - Its offset is larger, and at or before the recovery point: it was synced like that, the gap was there. Where
          compaction may have been, it has left the gap.
        - Otherwise the log had no gap when this was written. If the machine has not lost its power since, all that was
          written is there, so the field is damaged. If it has, what was before the batch may be lost, and the log is
          cut here (DamagedSegmentError).

        A field that is damaged before the recovery point is damage to what was synced (DamagedLogError).
        """
        file, point, upwards = segment.open_file(), self._known.recovery_point, header.base_offset > due
        compact = self._spec.config.compact and due < self._known.compacted_at_most
        displaced = is_displaced(file, position, os.fstat(file.fd).st_size, due, following)
        what = f"base offset {header.base_offset}, {due} is due"
        # No batch behind it decides, and there was no gap when it was written.
        if displaced is None and (not upwards or header.base_offset > point) and not compact:
            if not self._known.same_boot:
                raise DamagedSegmentError(file.path, position, what)
            displaced = True
        # A gap that batches behind it confirm, unexplained by compaction and behind what was synced, is worth a line.
        if not displaced:
            if upwards and header.base_offset > point and not compact:
                _log.warning("%s: %s: at byte %d: %s; the log goes on behind the gap",
                             self._spec.topic_partition, file.path, position, what)  # fmt: skip
            return False
        # The field is damaged: that is put right, but not in what was synced, where it says that the disk is failing.
        if due < point:
            raise DamagedLogError(f"{file.path}: at byte {position}: {what} (synced up to {point})")
        put_right(file, position, due)
        _log.warning("%s: %s: at byte %d: %s; the batch is sound and has been given it back",
                     self._spec.topic_partition, file.path, position, what)  # fmt: skip
        return True

    def _follows(self, base_offset: int, offset: int) -> bool:
        """Whether a segment may come after the one that ends before `offset`: it begins there, or behind a gap that
        compaction has left. Compaction works only on what was synced before; elsewhere a gap says that what was in it
        is lost, and nothing may come behind that."""
        compacted = self._spec.config.compact and base_offset <= self._known.compacted_at_most
        return base_offset == offset or (base_offset > offset and compacted)

    def _make_indexes(self, segment: Segment) -> bool:
        """Make index files that are missing; then the whole segment has to be read."""
        missing = [s for s in (".index", ".timeindex") if not os.path.exists(segment.path(s))]  # noqa: PTH110
        for suffix in missing:
            Path(segment.path(suffix)).touch()
        return bool(missing)

    def _cut(self, segment: Segment, position: int, damage: DamagedSegmentError) -> None:
        """End the segment at `position`. Zeros behind it are no loss: space that was preallocated, or the length of a
        write whose bytes never came."""
        size = os.stat(segment.path(".log")).st_size  # noqa: PTH116
        zeros = damage.reason == ZEROS
        level = logging.INFO if zeros else logging.WARNING
        _log.log(level, "%s: cutting %d bytes: %s", self._spec.topic_partition, size - position, damage)
        segment.truncate(position)
        reach("recovery.cut")


def remove(spec: LogSpec, segments: list[Segment], reason: str, synced: int, offset: int) -> None:
    """Drop segments for the reason given. Raises DamagedLogError if anything from `offset` on was synced."""
    if offset < synced:
        raise DamagedLogError(f"{segments[0].path('.log')}: {reason} (synced up to {synced})")
    for segment in segments:
        _log.warning("%s: removing segment %d: %s", spec.topic_partition, segment.base_offset, reason)
        segment.close()
        for suffix in SUFFIXES:
            Path(segment.path(suffix)).unlink(missing_ok=True)
