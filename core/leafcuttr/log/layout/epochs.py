"""The leader epochs of a partition's batches, which no CRC covers, held against its `leader-epoch-checkpoint`.

An epoch that is too high is no small thing: a consumer remembers it, commits it with its offset, and then takes the
metadata of the true, lower epoch for old. Nothing is read or written here.

The checkpoint says from which offset on which epoch holds. A batch that says otherwise is wrong, unless so many
batches agree with each other that the checkpoint must be: a broker that died may not have written the newest line.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from leafcuttr.wire.batch import BatchHeader

NO_EPOCH = -1


@dataclass(slots=True)
class Run:
    """Batches behind each other with one leader epoch. `log` and `position` are of the first."""

    epoch: int
    first_offset: int
    log: Path
    position: int
    batches: int = 1


class Judged(NamedTuple):
    """`epochs`: what the checkpoint should say; `wrong`: the runs with another epoch than the one beside them."""

    epochs: list[tuple[int, int]]
    wrong: list[tuple[Run, int]]
    checkpoint_wrong: bool


def epoch_due(epochs: Sequence[tuple[int, int]], offset: int, claimed: int) -> int:
    """The leader epoch of a batch at `offset` that claims `claimed`; before the first line an older one is as good."""
    number = bisect_right(epochs, offset, key=lambda entry: entry[1])
    if claimed == NO_EPOCH or not epochs:
        return claimed
    if number:
        return epochs[number - 1][0]
    return claimed if 0 <= claimed <= epochs[0][0] else epochs[0][0]


class EpochsWalk:
    """Takes the batches of one partition as they go by, in order."""

    def __init__(self, checkpoint: Sequence[tuple[int, int]]) -> None:
        self._checkpoint = list(checkpoint)
        self._starts = [start for _, start in checkpoint]
        self._runs: list[Run] = []
        self._until = -1  # the run ends before this offset, where the checkpoint begins another epoch

    def batch(self, log: Path, position: int, header: BatchHeader) -> None:
        if header.leader_epoch == NO_EPOCH:
            return
        last = self._runs[-1] if self._runs else None
        offset = header.base_offset
        if last is not None and last.epoch == header.leader_epoch and offset < self._until:
            last.batches += 1
            return
        self._runs.append(Run(header.leader_epoch, offset, log, position))
        following = bisect_right(self._starts, offset)
        self._until = self._starts[following] if following < len(self._starts) else 1 << 63

    def judge(self) -> Judged:
        epochs = self._learned(self._believed())
        wrong = [
            (run, due)
            for run in self._runs
            if (due := epoch_due(epochs, run.first_offset, run.epoch)) != run.epoch
        ]
        current = self._checkpoint[-1][0] if self._checkpoint else 0
        believed = epochs[: len(self._checkpoint)] == self._checkpoint
        return Judged(epochs, wrong, not believed or bool(epochs and epochs[-1][0] != current))

    def _believed(self) -> list[tuple[int, int]]:
        """The checkpoint, unless one and the same other epoch is in more batches than agree with it."""
        agree, others = 0, Counter[int]()
        for run in self._runs:
            if epoch_due(self._checkpoint, run.first_offset, run.epoch) == run.epoch:
                agree += run.batches
            elif run.first_offset < self._starts[-1] or run.epoch < self._checkpoint[-1][0]:
                others[run.epoch] += run.batches
        most = max(others.values(), default=0)
        return [] if most > max(agree, 1) else list(self._checkpoint)

    def _learned(self, epochs: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """`epochs`, with those behind its last line that the batches show: in two at least, and not gone back on."""
        totals = Counter[int]()
        for run in self._runs:
            totals[run.epoch] += run.batches
        for number, run in enumerate(self._runs):
            if run.epoch <= (epochs[-1][0] if epochs else -1) or (
                epochs and run.first_offset < epochs[-1][1]
            ):
                continue
            if totals[run.epoch] < 2 and (self._checkpoint or len(self._runs) > 1):
                continue
            later = self._runs[number:]
            against = sum(each.batches for each in later if each.epoch < run.epoch)
            if 2 * against < sum(each.batches for each in later):
                epochs.append((run.epoch, run.first_offset))
        return epochs
