"""Zigzag varints, the numbers of records (KIP-98): by their value, the small ones remembered."""

from typing import Final

_REMEMBERED: Final = 4096
_LONG: Final = (1 << 64) - 1
_SIGN: Final = 1 << 63


class Varints(dict[int, bytes]):
    """The bytes of each number. Numbers are signed longs; others wrap."""

    def __missing__(self, value: int) -> bytes:
        number = (value + _SIGN & _LONG) - _SIGN  # the difference of two longs wraps, as Java's does
        rest = (number << 1 ^ number >> 63) & _LONG
        out = bytearray()
        while rest > 0x7F:
            out.append(rest & 0x7F | 0x80)
            rest >>= 7
        out.append(rest)
        encoded = bytes(out)
        if 0 <= value < _REMEMBERED:
            self[value] = encoded
        return encoded


VARINTS: Final = Varints()
