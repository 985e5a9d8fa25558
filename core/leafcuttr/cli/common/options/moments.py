"""Moments and durations on the command line, as milliseconds; and as text for people.

A moment without a zone is in UTC, as in Kafka's own tools.
"""

import re
from datetime import UTC, datetime
from typing import Final

import click

_ISO: Final = re.compile(
    # A number has at most as many digits as a long, so that all that is made of it is a number too.
    r"P(?:(?P<weeks>\d{1,19})W)?(?:(?P<days>\d{1,19})D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d{1,19})H)?(?:(?P<minutes>\d{1,19})M)?(?:(?P<seconds>\d{1,19}(?:\.\d{1,3})?)S)?)?",
    re.ASCII,
)
_SHORT: Final = re.compile(r"(\d{1,19})(ms|s|m|h|d|w)", re.ASCII)
_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_LONGEST_MS: Final = 1 << 62
_MOST_DIGITS: Final = 19


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


def parse_moment(text: str) -> int | None:
    """Milliseconds since the epoch, or None for what is no moment."""
    if text.isascii() and text.isdigit() and len(text) > 8:  # shorter is a date like 20261120
        return int(text) if len(text) <= _MOST_DIGITS and int(text) < _LONGEST_MS else None
    try:
        then = datetime.fromisoformat(text)
        if then.tzinfo is None:
            then = then.replace(tzinfo=UTC)
        found = round(then.timestamp() * 1000)
    except (ValueError, OverflowError):
        return None
    return found if found >= 0 else None


def parse_duration(text: str) -> int | None:
    """Milliseconds, or None for what is no duration."""
    short = _SHORT.fullmatch(text)
    if short:
        total = int(short[1]) * _MS[short[2]]
    else:
        iso = _ISO.fullmatch(text)
        if iso is None or text == "P":
            return None
        seconds = float(iso["seconds"] or 0)
        parts = {"w": iso["weeks"], "d": iso["days"], "h": iso["hours"], "m": iso["minutes"]}
        total = round(seconds * 1000) + sum(int(parts[unit] or 0) * _MS[unit] for unit in parts)
    return total if total < _LONGEST_MS else None


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
        number, ms = divmod(ms, _MS[unit])
        if number:
            parts.append(f"{number}{unit}")
    return " ".join(parts[:2])
