"""Which log is cleaned next, and how far: Kafka's rules, from what the broker knows of its segments.

Only what no longer changes is cleaned: segments before the active one, before the last stable offset, forced to the
disk, and older than min.compaction.lag.ms. Of that, what lies behind the log's checkpoint is dirty. A log is due when
the dirty share of what could be cleaned is above min.cleanable.dirty.ratio, or when something dirty is older than
max.compaction.lag.ms. `first_timestamp` may read from the disk: callable in a worker thread. Nothing is changed here.
"""

import itertools
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from leafcuttr.log.append.rules import LONG_MAX
from leafcuttr.log.log import Log
from leafcuttr.log.segment.segment import MAX_RELATIVE, Segment

if TYPE_CHECKING:
    from leafcuttr.log.cleaner.job import SourceSegment


class Cleanable(NamedTuple):
    """A log, and the offsets from which and before which it can be cleaned. `overdue_ms` is above 0 when the largest
    lag is exceeded."""

    log: Log
    first_dirty: int
    end: int
    ratio: float
    overdue_ms: int

    @property
    def due(self) -> bool:
        return self.end > self.first_dirty and (
            self.overdue_ms > 0 or self.ratio > self.log.config.min_cleanable_dirty_ratio
        )


def cleanable(log: Log, checkpoint: int | None, now_ms: int) -> Cleanable:
    """Where the log stands. A checkpoint that is not of this log counts for nothing. May block; raises OSError."""
    segments = tuple(log.segments)
    first_dirty = _first_dirty(log, segments, checkpoint)
    end = _first_uncleanable(log, segments, first_dirty, now_ms)
    sizes = [(segment.size, after.base_offset) for segment, after in itertools.pairwise(segments)]
    clean = sum(size for size, after in sizes if after <= first_dirty)
    dirty = sum(size for size, after in sizes if first_dirty < after <= end)
    ratio = dirty / (clean + dirty) if dirty else 0.0
    overdue = _overdue_ms(log, segments, first_dirty, now_ms) if dirty else 0
    return Cleanable(log, first_dirty, end if dirty else first_dirty, ratio, overdue)


def _first_dirty(log: Log, segments: Sequence[Segment], checkpoint: int | None) -> int:
    start = max(log.log_start_offset, segments[0].base_offset)
    if checkpoint is None or not start <= checkpoint <= log.log_end_offset:
        return start
    return checkpoint


def _first_uncleanable(log: Log, segments: Sequence[Segment], first_dirty: int, now_ms: int) -> int:
    """The base of the first segment that has to stay as it is."""
    fixed = min(log.last_stable_offset, log.recovery_point)
    lag = log.config.min_compaction_lag_ms
    for segment, after in itertools.pairwise(segments):
        if after.base_offset > fixed:
            return segment.base_offset
        if lag > 0 and after.base_offset > first_dirty and _newest(segment) > now_ms - lag:
            return segment.base_offset
    return segments[-1].base_offset


def _newest(segment: Segment) -> int:
    if segment.largest_timestamp >= 0 or not segment.size:
        return segment.largest_timestamp
    return int(os.stat(segment.path(".log")).st_mtime * 1000)  # noqa: PTH116


def _overdue_ms(log: Log, segments: Sequence[Segment], first_dirty: int, now_ms: int) -> int:
    lag = log.config.max_compaction_lag_ms
    if lag >= LONG_MAX:
        return 0
    dirty = (segment for segment, after in itertools.pairwise(segments) if after.base_offset > first_dirty)
    first = [stamp for stamp in (segment.first_timestamp() for segment in dirty) if stamp > 0]
    return max(now_ms - lag - min(first), 0) if first else 0


_ENTRY: Final = 8
_TIME_ENTRY: Final = 12


def groups(
    segments: Sequence[Segment], end: int, segment_bytes: int, index_bytes: int
) -> "list[list[SourceSegment]]":
    """The segments before the offset `end`, in groups of which each fits into one: by the size of the log, of its
    indexes, and by the range of offsets that an index can name. Blocks on the sizes of the indexes; raises OSError."""
    from leafcuttr.log.cleaner.job import SourceSegment

    found: list[list[SourceSegment]] = []
    size = entries = times = 0
    for segment, after in itertools.pairwise(segments):
        if segment.base_offset >= end:
            break
        source = SourceSegment(segment.base_offset, segment.size, after.base_offset)
        more, more_times = len(segment.index) * _ENTRY, len(segment.time_index) * _TIME_ENTRY
        fits = (
            found
            and size + segment.size <= segment_bytes
            and entries + more <= index_bytes
            and times + more_times <= index_bytes
            and source.end - 1 - found[-1][0].base <= MAX_RELATIVE
        )
        if fits:
            found[-1].append(source)
            size, entries, times = size + segment.size, entries + more, times + more_times
        else:
            found.append([source])
            size, entries, times = segment.size, more, more_times
    return found
