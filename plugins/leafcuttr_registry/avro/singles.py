"""Numbers of the type float."""

import math
import struct
from typing import Final

_SINGLE: Final = struct.Struct("<f")


def shortest(value: float) -> float:
    """The double with the fewest digits that is this number as a float: 0.1 and not 0.10000000149011612, as Java
    writes it. Beyond the range of a float it is infinite."""
    if value == 0 or not math.isfinite(value):
        return value
    try:
        raw = _SINGLE.pack(value)
    except OverflowError:
        return math.copysign(math.inf, value)
    for digits in range(6, 10):
        found = float(f"{value:.{digits}g}")
        if _SINGLE.pack(found) == raw:
            return found
    return float(_SINGLE.unpack(raw)[0])
