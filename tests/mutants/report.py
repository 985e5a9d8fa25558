"""What the person who runs it reads: a line for each mutant, survivors as entries of a list, a table at the end."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from mutants.equivalents import Equivalent
from mutants.mutation import Mutant

_COLUMNS: Final = ("generated", "chosen", "killed", "timeout", "equivalent", "survived", "seconds")
_WIDTH: Final = 100


@dataclass(slots=True)
class Tally:
    """What became of the mutants of one module."""

    module: str
    generated: int = 0
    chosen: int = 0
    seconds: float = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    survivors: list[Mutant] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    """Entries of the list that do not hold, a sentence each."""

    @property
    def failed(self) -> bool:
        return bool(self.survivors or self.wrong)


def progress(at: str, outcome: str, seconds: float, mutant: Mutant, test: str) -> str:
    text = mutant.description
    if len(text) > _WIDTH:
        text = text[: _WIDTH - 3] + "..."
    return f"[{at}] {outcome:10} {seconds:5.1f} s  {text}" + (f"  ({test})" if test else "")


def as_entry(mutant: Mutant) -> str:
    """A survivor as `equivalent.toml` would have it, without its reason. JSON's strings are TOML's."""
    entry = {"module": mutant.module, "function": mutant.function, "old": mutant.old, "new": mutant.new}
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in entry.items()]
    if mutant.nth > 1:
        lines.append(f"nth = {mutant.nth}")
    return "\n".join(["[[equivalent]]", *lines, 'reason = ""'])


def stale(listed: Iterable[Equivalent], generated: Iterable[Mutant]) -> list[str]:
    """Entries that no mutant of their module matches any more."""
    keys = {mutant.key for mutant in generated}
    return [f"{entry.where}: there is no such mutant any more" for entry in listed if entry.key not in keys]


def table(tallies: list[Tally]) -> str:
    rows: list[tuple[str, ...]] = [("module", *_COLUMNS)]
    for tally in tallies:
        outcomes = tally.outcomes
        figures = (tally.generated, tally.chosen, *(outcomes[name] for name in _COLUMNS[2:-1]), tally.seconds)
        rows.append((tally.module, *(f"{figure:.0f}" for figure in figures)))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            [
                row[0].ljust(widths[0]),
                *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
            ]
        )
        for row in rows
    )
