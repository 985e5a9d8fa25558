"""What has been measured: docs/explanation/performance.json, one entry for each row of the page.

An entry carries the commit and the date of its measurement, so that rows can be measured anew one by one, and so that
one can ask what has changed since (`stale`). A row is measured at a commit only if the tree had no other changes;
otherwise the entry says so, and is stale from the beginning.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATH = ROOT / "docs" / "explanation" / "performance.json"
MEASURED = ("core", "sdk", "plugins", "tests/bench")
"""What must be as committed for a measurement to be one of its commit."""

Figures = Mapping[str, float]


@dataclass(frozen=True)
class Value:
    """One figure: the median of each side by the side's name, and what the first is by the second."""

    medians: dict[str, float]
    ratio: float | None


@dataclass(frozen=True)
class Entry:
    """The figures of one row. `seconds` is what the whole measurement took."""

    commit: str
    changed: bool
    date: str
    machine: str
    runs: int
    seconds: float | None
    figures: dict[str, Value]


def load(path: Path = PATH) -> dict[str, Entry]:
    if not path.exists():
        return {}
    rows = json.loads(path.read_text(encoding="utf-8"))
    return {
        name: Entry(**{**row, "figures": {key: Value(**value) for key, value in row["figures"].items()}})
        for name, row in rows.items()
    }


def save(entries: Mapping[str, Entry], path: Path = PATH) -> None:
    rows = {name: asdict(entry) for name, entry in entries.items()}
    path.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def entry(samples: Mapping[str, Sequence[Figures]], *, pairs: bool, seconds: float) -> Entry:
    """What is kept of one measurement: `samples` has the figures of each run by side, ours first."""
    ours, *others = samples
    names = [name for name, value in samples[ours][0].items() if not isinstance(value, str)]
    figures = {}
    for name in names:
        columns = {side: [run[name] for run in runs] for side, runs in samples.items()}
        figures[name] = Value(
            {side: _short(statistics.median(column)) for side, column in columns.items()},
            _ratio(columns[ours], columns[others[0]], pairs=pairs) if others else None,
        )
    return Entry(
        commit=_git("rev-parse", "HEAD").strip(),
        changed=bool(_git("status", "--porcelain", "--", *MEASURED).strip()),
        date=f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}",
        machine=machine(),
        runs=len(samples[ours]),
        seconds=round(seconds, 1),
        figures=figures,
    )


def machine() -> str:
    return (
        f"{os.cpu_count()} cores, {platform.platform()}, Python {sys.version.split()[0]}, "
        f"confluent-kafka {version('confluent-kafka')}"
    )


def _ratio(ours: Sequence[float], theirs: Sequence[float], *, pairs: bool) -> float | None:
    """Of the medians, or the median of the ratios of runs that belong together."""
    if not all(theirs if pairs else [statistics.median(theirs)]):
        return None
    if pairs:
        return _short(statistics.median(mine / other for mine, other in zip(ours, theirs, strict=True)))
    return _short(statistics.median(ours) / statistics.median(theirs))


def _short(value: float) -> float:
    """Five digits: what a measurement can bear, and a diff that can be read."""
    return float(f"{value:.5g}")


def stale(
    paths: Mapping[str, Sequence[str]], entries: Mapping[str, Entry], root: Path = ROOT
) -> Iterator[tuple[str, str]]:
    """The rows that should be measured anew, with the reason. `paths`: what each row depends on."""
    for name, depends in paths.items():
        found = entries.get(name)
        if found is None:
            yield name, "was never measured"
        elif found.changed:
            yield name, f"was measured on a tree with changes over {found.commit[:9]}"
        elif not _has(found.commit, root):
            yield name, f"was measured at {found.commit[:9]}, which this repository does not have"
        elif files := _git("diff", "--name-only", found.commit, "--", *depends, root=root).splitlines():
            more = f" and {len(files) - 3} more" if len(files) > 3 else ""
            yield name, f"changed since {found.commit[:9]} ({found.date}): {', '.join(files[:3])}{more}"


def _has(commit: str, root: Path) -> bool:
    done = subprocess.run(["git", "cat-file", "-e", f"{commit}^{{commit}}"], cwd=root, capture_output=True)
    return done.returncode == 0


def _git(*words: str, root: Path = ROOT) -> str:
    return subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True).stdout
