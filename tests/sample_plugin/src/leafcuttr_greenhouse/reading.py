"""A reading: the number of a sensor and a temperature. Six bytes in a record, `7 21.5` for people."""

import struct
from typing import NamedTuple

_LAYOUT = struct.Struct(">Hf")
BYTES = _LAYOUT.size


class Reading(NamedTuple):
    sensor: int
    celsius: float

    def __str__(self) -> str:
        return f"{self.sensor} {self.celsius:.1f}"

    def encode(self) -> bytes:
        return _LAYOUT.pack(self.sensor, self.celsius)


def decode(data: bytes) -> Reading:
    """Raises ValueError for bytes that are no reading."""
    if len(data) != BYTES:
        raise ValueError(f"{len(data)} bytes are no reading: it has {BYTES}")
    return Reading(*_LAYOUT.unpack(data))


def parse(text: str) -> Reading:
    """Raises ValueError for text that is no reading."""
    words = text.split()
    try:
        sensor, celsius = int(words[0]), float(words[1])
    except (ValueError, IndexError):
        raise ValueError(
            f"{text!r} is no reading: it is a number and a temperature, as in `7 21.5`"
        ) from None
    if len(words) != 2 or not 0 <= sensor < 65536:
        raise ValueError(f"{text!r} is no reading: sensors are numbered from 0 to 65535")
    return Reading(sensor, celsius)
