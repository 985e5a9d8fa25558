"""Spans of time, as people say them."""

import time
from typing import Final

_UNITS: Final = ((86_400, "d"), (3600, "h"), (60, "min"))


def ago(time_ms: int | None) -> str | None:
    return None if time_ms is None else f"{span(max(0, time.time() - time_ms / 1000))} ago"


def span(seconds: float) -> str:
    for size, unit in _UNITS:
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
