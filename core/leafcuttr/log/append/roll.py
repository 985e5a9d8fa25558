"""Rolling: closing the active segment and beginning the next one.

The file work is apart from taking over its result, so that it can be done in a worker thread while the loop serves.
Order: producer snapshot, then the new files, then the new segment becomes the active one. A crash between leaves an
empty or missing file for recovery to find, never a gap.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from leafcuttr.crashpoints import reach
from leafcuttr.log.append.rules import jitter_ms
from leafcuttr.log.layout.suffixes import SUFFIXES
from leafcuttr.log.producers.snapshot import write_snapshot
from leafcuttr.log.segment.segment import Segment, segment_name

if TYPE_CHECKING:
    from leafcuttr.log.state import LogState


def roll(log: "LogState") -> None:
    """See `Log.roll`."""
    if log.busy:
        raise RuntimeError(f"{log.topic_partition}: cannot roll while batches are staged")
    active = log.segments[-1]
    if active.size:
        try:
            fresh = new_segment(log, active, log.log_end_offset)
        except OSError:
            # The active segment goes on growing: a file that begins inside it would end the next recovery.
            discard(log, log.log_end_offset)
            raise
        take_over(log, fresh)
        log.tail = None


def new_segment(log: "LogState", active: Segment, base_offset: int) -> Segment:
    """The files of the segment that begins at `base_offset`; the active one is sealed. Changes nothing that the loop
    reads but the index files of `active`, whose entries stay the same. Raises OSError."""
    reach("roll.before")
    active.seal()
    reach("roll.sealed")
    snapshot = Path(log.directory_name, f"{segment_name(base_offset)}.snapshot")
    log.resources.descriptors.opening(lambda: write_snapshot(snapshot, log.producers))
    reach("roll.snapshot-written")
    _remove_empty(log, base_offset)
    preallocate = log.config.segment_bytes if log.config.preallocate else 0
    segment = Segment.create(
        log.directory_name, base_offset, pool=log.pool, preallocate=preallocate, sync_writes=log.rules.sync
    )
    reach("roll.file-created")
    return segment


def take_over(log: "LogState", segment: Segment) -> Segment:
    """Make it the active segment (on the loop)."""
    if segment.directory != log.directory_name:
        # The topic was deleted while a worker made the files; the old name may soon be another topic's.
        segment.move_to(log.directory_name)
    log.segments.append(segment)
    tail = log.tail
    if tail is not None and tail.base_offset == segment.base_offset:
        tail.segment, segment.created_ms = segment, tail.created_ms
    log.roll_jitter_ms = jitter_ms(log.config.segment_jitter_ms, log.config.segment_ms)
    reach("roll.done")
    return segment


def discard(log: "LogState", from_offset: int) -> None:
    """Remove files of a segment that a failed roll has left behind. Raises OSError."""
    if log.segments[-1].base_offset < from_offset:
        _remove_empty(log, from_offset)


def _remove_empty(log: "LogState", base_offset: int) -> None:
    for suffix in SUFFIXES:
        if suffix != ".snapshot":
            path = Path(log.directory_name, segment_name(base_offset) + suffix)
            if path.exists():
                os.unlink(path)  # noqa: PTH108
