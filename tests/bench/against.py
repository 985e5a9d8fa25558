"""One tree beside another: which rows, in which turns, and whether a figure has become worse.

A change that is not meant to be felt is held against the tree before it. Nothing of this is for the page.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from data import Entry
from page import FIGURES
from rows import OURS, Row, Side

PAIRS: Final = 5
LEAST: Final = 0.97
"""What a figure may fall to; a price, of which less is better, is turned round first."""
MORE_IS_BETTER: Final = frozenset({"records_per_s", "transactions_per_s", "mb_per_s"})
NO_MEASURE: Final = frozenset({"errors", "acked", "failed", "idle_cpu_percent", "max_ms"})
"""Counts that say whether a run went well, the one slowest request, and a share too small for a ratio."""


@dataclass(frozen=True)
class Line:
    """One figure of one row. `ratio` is how good this tree is by the other one: 2.0 is twice as good."""

    row: str
    figure: str
    here: float
    there: float
    ratio: float

    @property
    def less(self) -> bool:
        return self.ratio < LEAST

    def __str__(self) -> str:
        mark = f"  less than {LEAST}" if self.less else ""
        name = FIGURES.get(self.figure, (self.figure,))[0]
        return f"{self.row:20} {name:30} {self.here:14,.3f} {self.there:14,.3f}  {self.ratio:5.2f}{mark}"


def interpreter_of(tree: Path) -> Path:
    return tree.absolute() / ".venv" / "bin" / "python"


def rows(chosen: Sequence[Row], tree: Path) -> Iterator[Row]:
    """Each row with our side twice, of this tree and of the other; what a setting costs here is no matter of that."""
    other = Side("there", interpreter=str(interpreter_of(tree)))
    for row in chosen:
        if OURS in row.sides:
            yield replace(row, sides=(OURS, other), pairs=True)


def turns(row: Row, pairs: int) -> Iterator[tuple[Row, int]]:
    """What to measure, with the number of runs: a row that wants a directory of its own for one run gets a new one for
    each pair, and the sides begin in turn."""
    if not (row.alone and row.runs == 1):
        yield row, pairs
        return
    for number in range(pairs):
        yield (replace(row, sides=row.sides[::-1]) if number % 2 else row), 1


def lines(row: Row, entries: Sequence[Entry]) -> list[Line]:
    """One for each figure, over the entries of a row's turns."""
    here, there = (side.name for side in row.sides)
    found = []
    for figure, value in entries[0].figures.items():
        if figure in NO_MEASURE:
            continue
        columns = [[entry.figures[figure].medians[side] for entry in entries] for side in (here, there)]
        if not all(columns[1]) or not all(columns[0]):
            continue
        if len(entries) == 1:
            ratio = value.ratio or 1.0  # of the pairs in it
        else:
            ratio = statistics.median(one / other for one, other in zip(*columns, strict=True))
        better = ratio if figure in MORE_IS_BETTER else 1 / ratio
        found.append(Line(row.name, figure, *map(statistics.median, columns), better))
    return found
