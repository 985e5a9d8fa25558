"""Durations as Go's time.ParseDuration reads them: `300ms`, `1.5h`, `1m30s`; and written in the same way."""

import re
from typing import Final

_UNITS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
"""Both characters that look like mu are Go's: U+00B5 and U+03BC."""
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_LONGEST_S: Final = (2**63 - 1) / 1e9
"""Go counts nanoseconds in 64 bits."""
ALLOWED: Final = "a duration such as 300ms, 2s or 1m30s"


def parse_duration(text: str) -> float:
    """Seconds. Raises ValueError for what Go refuses: no unit, a space, more than 292 years."""
    sign, rest = (-1.0, text[1:]) if text.startswith("-") else (1.0, text.removeprefix("+"))
    if rest == "0":
        return 0.0
    total, at = 0.0, 0
    while at < len(rest):
        part = _PART.match(rest, at)
        if part is None:
            raise ValueError(f"{text!r} is no duration")
        total += float(part[1]) * _UNITS[part[2]]
        at = part.end()
    if not rest or total > _LONGEST_S:
        raise ValueError(f"{text!r} is no duration")
    return sign * total


def show_duration(seconds: float) -> str:
    """`250ms`, `1.5s`, `2m`, `1h30m`: for people, to the millisecond."""
    if seconds < 1:
        return f"{seconds * 1000:.6g}ms" if seconds else "0s"
    parts: list[str] = []
    for unit in ("h", "m"):
        count, seconds = divmod(seconds, _UNITS[unit])
        if count:
            parts.append(f"{count:.0f}{unit}")
    seconds = round(seconds, 3)
    if seconds or not parts:
        parts.append(f"{seconds:g}s")
    return "".join(parts)
