"""What `forward.py` prints: medians, what is wanted of them, and the ratios of rows that took turns."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence

Figures = dict[str, float]
Found = Mapping[str, Sequence[Figures]]
"""By row, what each run has measured."""

_RAW = {"records_per_s": (">=", 200_000.0), "rss_mb": ("<=", 120.0)}
WANTED: Mapping[str, Mapping[str, tuple[str, float]]] = {
    "raw 16k": _RAW,
    "raw 1m": _RAW,
    "one": {"records_per_s": (">=", 30_000.0), "rss_mb": ("<=", 120.0)},
    "filter": {"records_per_s": (">=", 80_000.0), "rss_mb": ("<=", 120.0)},
    "allow": {"records_per_s": (">=", 80_000.0), "rss_mb": ("<=", 120.0)},
    "exactly once / at least once, 16k": {"ratio": (">=", 0.8)},
    "exactly once / at least once, 1m": {"ratio": (">=", 0.8)},
    "lag": {"p99_ms": ("<=", 50.0)},
    "first": {"first_s": ("<=", 1.0)},
    "idle": {"idle_ms_per_s": ("<=", 5.0), "idle_rss_mb": ("<=", 120.0)},
    "switch": {"intervals": ("<=", 2.0)},
}
"""By row and figure."""
PAIRS = {
    "exactly once / at least once, 16k": ("raw 16k", "at-least 16k"),
    "exactly once / at least once, 1m": ("raw 1m", "at-least 1m"),
    "here / kaf-relay, 16k": ("raw 16k", "kaf-relay 16k"),
    "here / kaf-relay, 1m": ("raw 1m", "kaf-relay 1m"),
    "here / ceiling, 16k": ("raw 16k", "ceiling 16k"),
    "here / ceiling, 1m": ("raw 1m", "ceiling 1m"),
}
"""Rows whose records a second are compared run by run."""
_MISSED = ": **no**"


def with_ratios(found: Found) -> dict[str, Sequence[Figures]]:
    """The rows, and those that come of two of them."""
    ratios = {
        name: [
            {"ratio": mine["records_per_s"] / other["records_per_s"]}
            for mine, other in zip(found[one], found[beside], strict=True)
        ]
        for name, (one, beside) in PAIRS.items()
        if one in found and beside in found
    }
    return {**found, **ratios}


def table(found: Found) -> Iterator[str]:
    """In Markdown, a line for each figure: its median, the runs' least and most, and what is wanted of it."""
    yield "| row | figure | median | least | most | wanted |"
    yield "|---|---|---:|---:|---:|---|"
    for row, runs in with_ratios(found).items():
        for figure in runs[0]:
            values = [each[figure] for each in runs]
            median = statistics.median(values)
            shown = " | ".join(_shown(value) for value in (median, min(values), max(values)))
            yield f"| {row} | {figure} | {shown} | {_verdict(row, figure, median)} |"


def status(lines: Sequence[str]) -> int:
    """1 where a row is not as good as is wanted."""
    return int(any(_MISSED in line for line in lines))


def _verdict(row: str, figure: str, median: float) -> str:
    kind, limit = WANTED.get(row, {}).get(figure, ("", 0.0))
    if not kind:
        return ""
    reached = median >= limit if kind == ">=" else median <= limit
    words = "at least" if kind == ">=" else "at most"
    return f"{words} {limit:,g}{': yes' if reached else _MISSED}"


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
