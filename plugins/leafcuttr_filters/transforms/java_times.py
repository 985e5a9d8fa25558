"""Patterns of Java's SimpleDateFormat, in UTC: y M d H m s S for numbers, Z and X for zones, and text in quotes.

Reading is as lenient as Java's in one thing only: a number may have more digits than letters, unless another number
follows at once. Days and hours beyond their limits are refused.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TOKEN: Final = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+")
_NUMBERS: Final[dict[str, Callable[[datetime], int]]] = {
    "y": lambda at: at.year,
    "M": lambda at: at.month,
    "d": lambda at: at.day,
    "H": lambda at: at.hour,
    "m": lambda at: at.minute,
    "s": lambda at: at.second,
    "S": lambda at: at.microsecond // 1000,
}
_ZONES: Final = {"Z": "+0000", "X": "Z", "XX": "Z", "XXX": "Z"}
_OFFSET: Final = r"(Z|[+-][0-9]{2}(?::?[0-9]{2})?)"
ALLOWED: Final = "allowed are the letters y M d H m s S Z X, and text in single quotes"


class JavaFormat:
    """One pattern. Raises ValueError for what it does not take."""

    def __init__(self, pattern: str) -> None:
        self.pattern: Final = pattern
        self._parts: list[tuple[str, str]] = []
        at = 0
        while at < len(pattern):
            token = _TOKEN.match(pattern, at)
            if token is None:
                raise ValueError(f"a quote without an end; {ALLOWED}")
            at = token.end()
            letters = token[0] if token[2] else ""
            if letters and letters not in _ZONES and (letters[0] not in _NUMBERS or len(letters) > 9):
                raise ValueError(f"the letters {letters!r}; {ALLOWED}")
            if letters[:1] == "M" and len(letters) > 2:
                raise ValueError(f"names of months ({letters}); {ALLOWED}")
            quoted = token[1]
            text = token[0] if quoted is None else quoted.replace("''", "'") or "'"
            self._parts.append((letters, "" if letters else text))
        self._regex = re.compile("".join(self._reads(index) for index in range(len(self._parts))), re.ASCII)

    def __str__(self) -> str:
        return self.pattern

    def written(self, ms: int) -> str:
        """Raises ValueError for a time that a calendar has not: before the year 1 or after 9999."""
        at = moment(ms)
        return "".join(text or self._writes(letters, at) for letters, text in self._parts)

    def read(self, text: str) -> int:
        """Milliseconds since the epoch. Raises ValueError."""
        found = self._regex.fullmatch(text)
        if found is None:
            raise ValueError("it is not of the format")
        numbers: dict[str, int] = {}
        offset = timedelta()
        for (letters, _), group in zip(
            (part for part in self._parts if part[0]), found.groups(), strict=True
        ):
            if letters in _ZONES:
                offset = _offset(group)
            else:
                numbers[letters[0]] = _year(int(group)) if letters == "yy" and len(group) == 2 else int(group)
        at = datetime(
            numbers.get("y", 1970),
            numbers.get("M", 1),
            numbers.get("d", 1),
            numbers.get("H", 0),
            numbers.get("m", 0),
            numbers.get("s", 0),
            tzinfo=UTC,
        )
        since = at - EPOCH - offset
        return since.days * 86_400_000 + since.seconds * 1000 + numbers.get("S", 0)

    def _reads(self, index: int) -> str:
        letters, text = self._parts[index]
        if not letters:
            return re.escape(text)
        if letters in _ZONES:
            return _OFFSET
        follows = index + 1 < len(self._parts) and self._parts[index + 1][0]
        return rf"([0-9]{{{len(letters)}}})" if follows and follows not in _ZONES else r"([0-9]{1,9})"

    def _writes(self, letters: str, at: datetime) -> str:
        if letters in _ZONES:
            return _ZONES[letters]
        number = _NUMBERS[letters[0]](at)
        return f"{number % 100:02}" if letters == "yy" else f"{number:0{len(letters)}}"


def moment(ms: int) -> datetime:
    """Raises ValueError for a time that a calendar has not."""
    try:
        return EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        raise ValueError("it is beyond the years 1 to 9999") from None


def _offset(text: str) -> timedelta:
    if text == "Z":
        return timedelta()
    digits = text[1:].replace(":", "")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:] or 0))
    return -offset if text[0] == "-" else offset


def _year(of_century: int) -> int:
    """As Java takes two digits: within 80 years before and 20 years after now."""
    now = datetime.now(UTC).year
    year = now - now % 100 + of_century
    return year - 100 if year > now + 20 else year + 100 if year <= now - 80 else year
