"""Positions in a partition as a person writes them: the ends, offsets, distances from the end, and times."""

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

from leafcuttr_sdk.conditions.times import TIMES, parse_int64, parse_time

__all__ = ["HELP", "TIMES", "Position", "PositionKind", "parse_position", "parse_time"]

HELP: Final = "earliest|latest|OFFSET|-COUNT|TIME"


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
        return Position(PositionKind.OFFSET, parse_int64(text))
    if re.fullmatch(r"-[0-9]+", text):
        return Position(PositionKind.BEFORE_END, parse_int64(text[1:]))
    try:
        if text[:1] == "@" and text[1:].isascii() and text[1:].isdigit():
            return Position(PositionKind.TIME, parse_int64(text[1:]))
        return Position(PositionKind.TIME, parse_time(text.removeprefix("@"), now_ms))
    except ValueError:
        positions = "earliest, latest, an offset, -COUNT (before the end)"
        raise ValueError(f"{text!r} is no position in a partition: {positions} or a time: {TIMES}") from None
