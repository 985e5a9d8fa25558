"""Positions in a partition as a person writes them: the ends, offsets, distances from the end, and times."""

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

from leafcuttr.cli.common.options.moments import parse_duration, parse_moment

HELP: Final = "earliest|latest|OFFSET|-COUNT|TIME"
_MOST_DIGITS: Final = 19
TIMES: Final = "2026-11-21T08:30:00Z, 2026-11-21 (UTC), -90m (units ms s m h d w), now or @EPOCH_MS"


class PositionKind(Enum):
    """What the number of a Position means."""

    EARLIEST = "the first offset there is"
    LATEST = "the end"
    OFFSET = "that offset"
    BEFORE_END = "so many offsets before the end"
    TIME = "the first record of that time or later; milliseconds since the Unix epoch"


@dataclass(frozen=True, slots=True)
class Position:
    """Where in each partition."""

    kind: PositionKind
    number: int = 0


def parse_position(text: str, now_ms: int) -> Position:
    """A Position from the command line. A bare number is an offset, one after `@` a time. Raises ValueError."""
    words = {
        "earliest": PositionKind.EARLIEST,
        "beginning": PositionKind.EARLIEST,
        "latest": PositionKind.LATEST,
        "end": PositionKind.LATEST,
    }
    if text in words:
        return Position(words[text])
    if text.isascii() and text.isdigit():
        return Position(PositionKind.OFFSET, _int64(text))
    if re.fullmatch(r"-[0-9]+", text):
        return Position(PositionKind.BEFORE_END, _int64(text[1:]))
    try:
        if text[:1] == "@" and text[1:].isascii() and text[1:].isdigit():
            return Position(PositionKind.TIME, _int64(text[1:]))
        return Position(PositionKind.TIME, parse_time(text.removeprefix("@"), now_ms))
    except ValueError:
        positions = "earliest, latest, an offset, -COUNT (before the end)"
        raise ValueError(f"{text!r} is no position in a partition: {positions} or a time: {TIMES}") from None


def parse_time(text: str, now_ms: int) -> int:
    """Milliseconds since the Unix epoch: ISO 8601, epoch milliseconds, or relative as `-1h`. Raises ValueError."""
    if text == "now":
        return now_ms
    ago = parse_duration(text[1:]) if text.startswith("-") else None
    if ago is not None:
        return max(0, now_ms - ago)
    if text.isascii() and text.isdigit():
        return _int64(text)
    found = parse_moment(text)
    if found is None:
        raise ValueError(f"{text!r} is no time: {TIMES}")
    return found


def _int64(digits: str) -> int:
    digits = digits.lstrip("0") or "0"
    if len(digits) > _MOST_DIGITS or int(digits) > 2**63 - 1:
        raise ValueError(f"{digits} is beyond what an offset or a time can be")
    return int(digits)
