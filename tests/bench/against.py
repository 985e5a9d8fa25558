"""One tree beside another: which rows, in which turns, and whether a figure has become worse.

A change that is not meant to be felt is held against the tree before it. Nothing of this is for the page.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from load import Figures
from page import FIGURES
from rows import AT_ONCE, OURS, Row

PAIRS: Final = 5
LEAST: Final = 0.97
"""What a figure may fall to; of those of which less is better the ratio is turned round first."""
MORE_IS_BETTER: Final = frozenset({"records_per_s", "transactions_per_s", "mb_per_s"})
LESS_IS_BETTER: Final = frozenset(
    {
        *("cpu_s_per_gb", "cpu_us_per_record", "cpu_s"),
        *("p50_ms", "p99_ms", "p999_ms"),
        *("first_ack_s", "known_s", "stop_s", "first_s"),
        *("idle_mb", "loaded_mb"),
    }
)
FAILURES: Final = frozenset({"errors", "failed"})
"""Not 0 only if something has gone wrong."""
NO_MEASURE: Final = FAILURES | {
    "acked",
    "records",
    "fully_read_groups",
    "seconds",
    "idle_cpu_percent",
    "max_ms",
}
"""Counts that say whether a run went well, the time that the rate is counted over, a share too small for a ratio, and
the one slowest request."""

Samples = Mapping[str, Sequence[Figures]]
"""The figures of each run by side; runs with the same number are a pair."""


@dataclass(frozen=True)
class Line:
    """One figure of one row. Ratios say how good this tree is by the other one: 2.0 is twice as good. `ratio` is the
    median of those of the pairs, `worst` and `best` are their ends: as long as 1 is well between them, it may be noise.
    """

    row: str
    figure: str
    here: float
    there: float
    ratio: float
    worst: float
    best: float

    @property
    def less(self) -> bool:
        return self.ratio < LEAST

    def __str__(self) -> str:
        mark = f"  less than {LEAST}" if self.less else ""
        name = FIGURES.get(self.figure, (self.figure,))[0]
        scatter = f"{self.worst:.2f}..{self.best:.2f}"
        figures = f"{self.here:14,.3f} {self.there:14,.3f}  {self.ratio:5.2f}  {scatter:12}"
        return f"{self.row:20} {name:30} {figures}{mark}".rstrip()


@dataclass(frozen=True)
class Failure:
    """A row that could not be measured, or in which requests have failed on our side."""

    row: str
    why: str

    def __str__(self) -> str:
        return f"{self.row:20} FAILED: {self.why}"


HEAD: Final = f"{'row':20} {'figure':30} {'here':>14} {'there':>14}  ratio  of the pairs"


def interpreter_of(tree: Path) -> Path:
    return tree.absolute() / ".venv" / "bin" / "python"


def rows(chosen: Sequence[Row], tree: Path) -> Iterator[Row]:
    """Each row with our side twice, of this tree and of the other; what a setting costs here is no matter of that.

    What is deleted after a run is gone at once: memory that the host has not handed out yet makes a write cost four
    times as much CPU, so all runs but the first write into the memory of the one before.
    """
    here = replace(OURS, settings=(AT_ONCE,))
    other = replace(here, name="there", interpreter=str(interpreter_of(tree)))
    for row in chosen:
        if OURS in row.sides:
            yield replace(row, sides=(here, other), pairs=True)


def turns(row: Row, pairs: int) -> Iterator[tuple[Row, int]]:
    """What to measure, with the number of runs: a row that wants a directory of its own for one run gets a new one for
    each pair, and the sides begin in turn."""
    if not (row.alone and row.runs == 1):
        yield row, pairs
        return
    for number in range(pairs):
        yield (replace(row, sides=row.sides[::-1]) if number % 2 else row), 1


def joined(parts: Sequence[Samples]) -> Samples:
    """The samples of all turns of a row."""
    return {side: [run for part in parts for run in part[side]] for side in parts[0]}


def lines(row: Row, samples: Samples) -> list[Line]:
    """One for each figure that is a measure. Raises KeyError for one of which nobody has said which way is better."""
    here, there = (samples[side.name] for side in row.sides)
    found = []
    for figure, value in here[0].items():
        if figure in NO_MEASURE or isinstance(value, str):
            continue
        if figure not in MORE_IS_BETTER | LESS_IS_BETTER:
            raise KeyError(figure)
        pairs = [(mine[figure], other[figure]) for mine, other in zip(here, there, strict=True)]
        if not all(mine and other for mine, other in pairs):
            continue
        better = sorted(one / two if figure in MORE_IS_BETTER else two / one for one, two in pairs)
        mine, other = (statistics.median(column) for column in zip(*pairs, strict=True))
        found.append(Line(row.name, figure, mine, other, statistics.median(better), better[0], better[-1]))
    return found


def failures(row: Row, samples: Samples) -> list[Failure]:
    """What went wrong in the runs of this tree."""
    return [
        Failure(row.name, f"{figure}: {run[figure]:g} in run {number}")
        for number, run in enumerate(samples[row.sides[0].name], 1)
        for figure in sorted(FAILURES & run.keys())
        if run[figure]
    ]
