"""Java's hash of a string, by which Kafka chooses the partition of an internal topic for an id."""

import encodings.utf_16_le  # noqa: F401 - else read at the first use, when there may be no descriptor for it
from functools import lru_cache
from operator import mul
from typing import Final

_POWERS: Final = [pow(31, exponent, 1 << 32) for exponent in range(255, -1, -1)]
_NEXT: Final = pow(31, 256, 1 << 32)


_REMEMBERED: Final = 255
"""Characters of the longest text whose hash is remembered: a transaction asks for that of its id with each record."""


def java_hash(text: str) -> int:
    """Java's String.hashCode: over UTF-16 units, 32 bits, signed."""
    return _remembered(text) if len(text) <= _REMEMBERED else _hash(text)


def _hash(text: str) -> int:
    units = memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H").tolist()
    first = len(units) % len(_POWERS)
    value = sum(map(mul, units[:first], _POWERS[-first:])) if first else 0
    # An id may have 32767 characters, and its client sends it often: a loop over them would take milliseconds.
    for at in range(first, len(units), len(_POWERS)):
        value = (_NEXT * value + sum(map(mul, units[at : at + len(_POWERS)], _POWERS))) & 0xFFFFFFFF
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


_remembered: Final = lru_cache(maxsize=1024)(_hash)
