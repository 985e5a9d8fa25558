"""Places in a partition as a person writes them: the ends, offsets, distances from the end, and times."""

import datetime
import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

_UNITS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_RELATIVE: Final = re.compile(r"-(\d+)(ms|s|m|h|d|w)\Z")
HELP: Final = "earliest|latest|OFFSET|-COUNT|TIME"
TIMES: Final = "2026-11-21T08:30:00Z, 2026-11-21 (UTC), -90m (units ms s m h d w), now or @EPOCH_MS"


class Kind(Enum):
    """What the number of a Point means."""

    EARLIEST = "the first offset there is"
    LATEST = "the end"
    OFFSET = "that offset"
    BEFORE_END = "so many offsets before the end"
    TIME = "the first record of that time or later; milliseconds since the Unix epoch"


@dataclass(frozen=True, slots=True)
class Point:
    """Where in each partition."""

    kind: Kind
    number: int = 0


def parse_point(text: str, now_ms: int) -> Point:
    """A Point from the command line. A bare number is an offset, one after `@` a time. Raises ValueError."""
    words = {"earliest": Kind.EARLIEST, "beginning": Kind.EARLIEST, "latest": Kind.LATEST, "end": Kind.LATEST}
    if text in words:
        return Point(words[text])
    if text.isascii() and text.isdigit():
        return Point(Kind.OFFSET, _int64(int(text), text))
    if re.fullmatch(r"-[0-9]+", text):
        return Point(Kind.BEFORE_END, _int64(-int(text), text))
    try:
        return Point(Kind.TIME, parse_time(text.removeprefix("@"), now_ms))
    except ValueError:
        places = "earliest, latest, an offset, -COUNT (before the end)"
        raise ValueError(f"{text!r} is no place in a partition: {places} or a time: {TIMES}") from None


def parse_time(text: str, now_ms: int) -> int:
    """Milliseconds since the Unix epoch: ISO 8601, epoch milliseconds, or relative as `-1h`. Raises ValueError."""
    if text == "now":
        return now_ms
    relative = _RELATIVE.match(text)
    if relative:
        return max(0, now_ms - int(relative[1]) * _UNITS[relative[2]])
    if text.isascii() and text.isdigit():
        return _int64(int(text), text)
    try:
        moment = datetime.datetime.fromisoformat(text)
        # Without a zone it is UTC, as in Kafka's own tools.
        return max(
            0, round((moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)).timestamp() * 1000)
        )
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"{text!r} is no time: {TIMES}") from None


def _int64(number: int, text: str) -> int:
    if number > 2**63 - 1:
        raise ValueError(f"{text} is beyond what an offset or a time can be")
    return number
