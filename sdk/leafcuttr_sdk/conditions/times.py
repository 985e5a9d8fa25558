"""Moments and durations as people write them, in milliseconds.

A moment without a zone is in UTC, as in Kafka's own tools.
"""

import re
from datetime import UTC, datetime
from typing import Final

TIMES: Final = "2026-11-21T08:30:00Z, 2026-11-21 (UTC), -90m (units ms s m h d w), now or @EPOCH_MS"
"""How a time is written."""
UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}

_ISO: Final = re.compile(
    # A number has at most as many digits as a long, so that all that is made of it is a number too.
    r"P(?:(?P<weeks>\d{1,19})W)?(?:(?P<days>\d{1,19})D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d{1,19})H)?(?:(?P<minutes>\d{1,19})M)?(?:(?P<seconds>\d{1,19}(?:\.\d{1,3})?)S)?)?",
    re.ASCII,
)
_SHORT: Final = re.compile(r"(\d{1,19})(ms|s|m|h|d|w)", re.ASCII)
_LONGEST_MS: Final = 1 << 62
_MOST_DIGITS: Final = 19


def parse_time(text: str, now_ms: int) -> int:
    """Milliseconds since the Unix epoch: ISO 8601, epoch milliseconds, or relative as `-1h`. Raises ValueError."""
    if text == "now":
        return now_ms
    ago = parse_duration(text[1:]) if text.startswith("-") else None
    if ago is not None:
        return max(0, now_ms - ago)
    if text.isascii() and text.isdigit():
        return parse_int64(text)
    found = parse_moment(text)
    if found is None:
        raise ValueError(f"{text!r} is no time: {TIMES}")
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
        total = int(short[1]) * UNITS_MS[short[2]]
    else:
        iso = _ISO.fullmatch(text)
        if iso is None or text == "P":
            return None
        seconds = float(iso["seconds"] or 0)
        parts = {"w": iso["weeks"], "d": iso["days"], "h": iso["hours"], "m": iso["minutes"]}
        total = round(seconds * 1000) + sum(int(parts[unit] or 0) * UNITS_MS[unit] for unit in parts)
    return total if total < _LONGEST_MS else None


def parse_int64(digits: str) -> int:
    """A number that an offset or a time can be. Raises ValueError for a larger one."""
    digits = digits.lstrip("0") or "0"
    if len(digits) > _MOST_DIGITS or int(digits) > 2**63 - 1:
        raise ValueError(f"{digits} is beyond what an offset or a time can be")
    return int(digits)
