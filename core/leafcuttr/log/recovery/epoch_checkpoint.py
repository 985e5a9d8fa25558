"""The `leader-epoch-checkpoint` of one partition at a start: used as it is, or corrected from the batches.

A log has one leader epoch unless Kafka has written it, but the file is Kafka's, other tools read it, and the epoch that
new batches get comes from it. So no damage in it may cost the partition, which is whole without it. As in Kafka, lines
that lie behind the log end go; what cannot be read, or contradicts the batches, is written anew from them.
"""

import logging
from collections.abc import Iterable
from pathlib import Path

from leafcuttr.log.layout.checkpoints import (
    LEADER_EPOCHS,
    DamagedCheckpointError,
    read_leader_epochs,
    write_leader_epochs,
)
from leafcuttr.log.layout.epochs import EpochsWalk
from leafcuttr.log.segment.segment import Segment
from leafcuttr.wire.batch import BatchHeader

_log = logging.getLogger(__name__)

_Lines = list[tuple[int, int]]


class EpochCheckpoint:
    """The file of the partition in `folder`, as it is. Raises OSError."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / LEADER_EPOCHS
        self._fault: str | None = None
        self._lines: _Lines = []
        try:
            self._lines = read_leader_epochs(self._path)
        except DamagedCheckpointError as error:
            self._fault = str(error).partition(": ")[2]
        self._seen = EpochsWalk(self._lines)

    def batch(self, header: BatchHeader) -> None:
        """A batch that the start has read, in order."""
        self._seen.batch(self._path, 0, header)

    def settle(self, segments: Iterable[Segment], end: int, *, current: int | None = None) -> _Lines:
        """The lines that hold for a log of these segments that ends before offset `end`; what was wrong is written anew
        and named in one line. `current` is its leader epoch where that is known from elsewhere. Raises OSError,
        DamagedSegmentError."""
        kept = [line for line in self._lines if line[1] <= end and (current is None or line[0] <= current)]
        fault, base = self._fault, kept
        if fault is None and kept != self._lines:
            epoch, start = self._lines[-1]
            fault = f"epoch {epoch} from offset {start} on is not in the log, which ends at {end}"
            if current is not None and epoch > current:
                fault = f"epoch {epoch} is above the log's, which is {current}"
        elif fault is None:
            if not self._seen.judge().checkpoint_wrong and (current is None or _last(kept) == current):
                return kept
            fault, base, kept = "its epochs are not those of the batches", self._lines, []
        if not kept or (current is not None and _last(kept) != current):
            kept = [line for line in _walked(segments, base) if line[1] <= end]
        if current is not None:
            kept = [line for line in kept if line[0] < current] + [
                next((line for line in kept if line[0] == current), (current, end))
            ]
        kept = kept or [(0, 0)]
        if kept != self._lines:
            write_leader_epochs(self._path, kept)
            now = ", ".join(f"{epoch} from offset {start}" for epoch, start in kept[-3:])
            _log.warning("%s: %s; it is put right from the batches: epoch %s", self._path, fault, now)
        return kept


def _last(lines: _Lines) -> int:
    return lines[-1][0] if lines else 0


def _walked(segments: Iterable[Segment], lines: _Lines) -> _Lines:
    """What every batch of the log says, held against what could be read of the checkpoint."""
    walk = EpochsWalk(lines)
    for segment in segments:
        for position, header in segment.scan():
            walk.batch(Path(segment.path(".log")), position, header)
    return walk.judge().epochs
