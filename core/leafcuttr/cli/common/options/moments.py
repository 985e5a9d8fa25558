"""Moments and durations on the command line, as milliseconds; and as text for people.

A moment without a zone is in UTC, as in Kafka's own tools.
"""

from datetime import UTC, datetime

import click

from leafcuttr_sdk.conditions.times import UNITS_MS, parse_duration, parse_moment

__all__ = ["duration", "moment", "parse_duration", "parse_moment", "show_duration", "show_moment"]


def moment(text: str) -> int:
    """An option's type: `2026-11-20T10:00:00`, with a zone if wanted, or ms since the epoch. Raises BadParameter."""
    found = parse_moment(text)
    if found is None:
        raise click.BadParameter(
            f"{text!r}: expected a moment like 2026-11-20T10:00:00 (UTC), 2026-11-20T10:00:00+01:00, "
            "or milliseconds since 1970"
        )
    return found


def duration(text: str) -> int:
    """An option's type: `90s`, `2h`, `7d`, or ISO 8601 as Kafka's tools take it, in ms. Raises BadParameter."""
    found = parse_duration(text)
    if found is None:
        raise click.BadParameter(f"{text!r}: expected a duration like 90s, 2h, 7d or P1DT2H30M")
    return found


def show_moment(ms: int | None) -> str | None:
    """`2026-11-20T10:00:00.000Z`, or None where Kafka says that there is none (-1)."""
    if ms is None or ms < 0:
        return None
    try:
        then = datetime.fromtimestamp(ms // 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return str(ms)
    return f"{then:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z"


def show_duration(ms: int) -> str:
    """`3d 4h`, `5m 10s`, `0.250s`: the two largest units."""
    if ms < 1000:
        return f"{max(ms, 0) / 1000:.3f}s"
    parts = []
    for unit in ("d", "h", "m", "s"):
        number, ms = divmod(ms, UNITS_MS[unit])
        if number:
            parts.append(f"{number}{unit}")
    return " ".join(parts[:2])
