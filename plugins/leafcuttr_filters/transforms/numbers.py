"""Numbers as Java has them: how they wrap, and how they are written."""

import math
import struct
from typing import Final

BITS: Final = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_LEAST_PLAIN: Final = 1e-3
_MOST_PLAIN: Final = 1e7


def wrapped(value: int, bits: int) -> int:
    """The lowest bits, as a cast of Java takes them."""
    half = 1 << bits - 1
    return (value + half & (1 << bits) - 1) - half


def whole(value: float, bits: int) -> int:
    """A double as a whole number: cut off, and held at the ends of an int, or of a long (JLS 5.1.3)."""
    if math.isnan(value):
        return 0
    held = max(bits, 32)
    ends = 1 << held - 1
    cut = -ends if value <= -ends else ends - 1 if value >= ends else int(value)
    return wrapped(cut, bits)


def single(value: float) -> float:
    """The float nearest to it, as the double that has the same shortest text. Raises OverflowError."""
    packed = struct.pack("<f", value)
    for digits in range(6, 10):
        text = f"{value:.{digits}g}"
        if struct.pack("<f", float(text)) == packed:
            return float(text)
    return struct.unpack("<f", packed)[0]  # type: ignore[no-any-return]


def text_of_double(value: float) -> str:
    """As Java's `Double.toString`."""
    size = abs(value)
    if value == 0 or _LEAST_PLAIN <= size < _MOST_PLAIN:
        return repr(value)
    sign, digits, exponent = _parts(value)
    return f"{'-' if sign else ''}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _parts(value: float) -> tuple[bool, str, int]:
    """The sign, the shortest digits that tell the number, and the power of ten of the first of them."""
    mantissa, _, exponent = f"{abs(value)!r}".partition("e")
    before, _, behind = mantissa.partition(".")
    digits = (before + behind).lstrip("0")
    power = (
        int(exponent or 0) + len(before) - 1 - (len(before + behind) - len(digits) if before == "0" else 0)
    )
    return math.copysign(1, value) < 0, digits.rstrip("0") or "0", power
