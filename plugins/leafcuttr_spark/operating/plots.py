"""Plots of a pipeline's last batches, as one SVG: rows a second, lag, the time that batches took, rows of state."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Final, NamedTuple

from leafcuttr_spark.operating.history import Point

WIDTH: Final = 720
_PLOT: Final = 130
"""Height of one plot with its title."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 80, 16, 26, 20
_MOST_COLUMNS: Final = WIDTH - _LEFT - _RIGHT
"""Points of a line: more than there are pixels would not be seen."""


class _Plot(NamedTuple):
    title: str
    value: Callable[[Point], float | None]


_PLOTS: Final = (
    _Plot("rows a second", lambda point: point.rows / point.seconds if point.seconds else None),
    _Plot("lag, records", lambda point: point.lag_records),
    _Plot("lag, seconds", lambda point: point.lag_s),
    _Plot("seconds of a batch", lambda point: point.seconds),
    _Plot("rows of state", lambda point: point.state_rows),
    _Plot("dead letters of the run", lambda point: point.dead_letters),
)


def svg_of(pipeline: str, points: Sequence[Point]) -> str:
    """A whole document. Plots without a value, or with zeros alone behind the first two, are left out."""
    drawn = [
        plot for number, plot in enumerate(_PLOTS) if number < 2 or any(plot.value(one) for one in points)
    ]
    height = 34 + _PLOT * len(drawn) + 16
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        f'<text x="{_LEFT}" y="22" font-size="15" font-weight="bold">{escape(pipeline)}: {_span(points)}</text>',
    ]
    for number, plot in enumerate(drawn):
        parts += _plot(plot, points, 34 + _PLOT * number)
    return "\n".join([*parts, "</svg>", ""])


def _plot(plot: _Plot, points: Sequence[Point], top: float) -> list[str]:
    floor, ceiling = top + _PLOT - _BOTTOM, top + _TOP
    known = [(point.at_ms, float(value)) for point in points if (value := plot.value(point)) is not None]
    most = _rounded_up(max((value for _, value in known), default=1.0))
    parts = [f'<text x="{_LEFT}" y="{top + 16:.0f}" fill="#333">{escape(plot.title)}</text>']
    for part in (0.0, 0.5, 1.0):
        y = floor - (floor - ceiling) * part
        parts.append(f'<path d="M{_LEFT} {y:.1f}H{WIDTH - _RIGHT}" stroke="#ddd"/>')
        parts.append(
            f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" fill="#666">{most * part:g}</text>'
        )
    line = [f"{x:.1f},{floor - (floor - ceiling) * value / most:.1f}" for x, value in _columns(known, points)]
    if len(line) == 1:
        at, _, height = line[0].partition(",")
        parts.append(f'<circle cx="{at}" cy="{height}" r="2" fill="#1f6feb"/>')
    elif line:
        parts.append(f'<polyline points="{" ".join(line)}" fill="none" stroke="#1f6feb" stroke-width="1.5"/>')
    return parts


def _columns(known: Sequence[tuple[int, float]], points: Sequence[Point]) -> list[tuple[float, float]]:
    """The largest value of each column of pixels, by time."""
    if not known:
        return []
    first, last = points[0].at_ms, points[-1].at_ms
    found: dict[int, float] = {}
    for at_ms, value in known:
        share = (at_ms - first) / (last - first) if last > first else 0.5
        column = round(min(max(share, 0.0), 1.0) * _MOST_COLUMNS)
        found[column] = max(value, found.get(column, value))
    return [(_LEFT + column, value) for column, value in sorted(found.items())]


def _rounded_up(value: float) -> float:
    """1, 2 or 5 times a power of ten."""
    if value <= 0:
        return 1.0
    scale = 1.0
    while scale * 10 <= value:
        scale *= 10
    while scale > value:
        scale /= 10
    return next(scale * step for step in (1, 2, 5, 10) if scale * step >= value * (1 - 1e-9))


def _span(points: Sequence[Point]) -> str:
    if not points:
        return "no batches"
    first, last = (datetime.fromtimestamp(one.at_ms / 1000, UTC) for one in (points[0], points[-1]))
    count = f"{len(points)} batch{'' if len(points) == 1 else 'es'}"
    return f"{count}, {first:%Y-%m-%d %H:%M:%S} to {last:%Y-%m-%d %H:%M:%S} UTC"
