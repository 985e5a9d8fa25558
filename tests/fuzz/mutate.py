"""Changes to a good frame: the ways in which bytes go wrong, with an eye for lengths."""

from __future__ import annotations

import random

_EXTREMES = [
    value.to_bytes(size, "big", signed=True)
    for size in (1, 2, 4, 8)
    for value in (-1, 0, 1, -(1 << (8 * size - 1)), (1 << (8 * size - 1)) - 1)
]
_VARINTS = [
    b"\xff\xff\xff\xff\x07",
    b"\xff\xff\xff\xff\x0f",
    b"\xff" * 10,
    b"\x80\x80\x80\x80\x08",
    b"\x00",
    b"\x01",
]


def mutate(rng: random.Random, frames: list[bytes]) -> bytes:
    """One frame of `frames`, damaged one to four times. The size in front of it is made to fit."""
    frame = bytearray(rng.choice(frames))
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(frame) + 1)
        match rng.randrange(8):
            case 0 | 1 if frame:
                frame[at % len(frame)] ^= 1 << rng.randrange(8)
            case 2:
                extreme = rng.choice(_EXTREMES)
                frame[at : at + len(extreme)] = extreme
            case 3:
                varint = rng.choice(_VARINTS)
                frame[at : at + rng.randint(0, 2)] = varint
            case 4:
                del frame[at:]
            case 5:
                del frame[at : at + rng.randint(1, 8)]
            case 6:
                frame[at:at] = rng.randbytes(rng.randint(1, 16))
            case 7:
                other = rng.choice(frames)
                cut = rng.randrange(len(other) + 1)
                frame[at:] = other[cut:]
    return bytes(frame)


def on_the_wire(rng: random.Random, frame: bytes) -> bytes:
    """With its size in front; once in a while a size that lies."""
    if rng.random() < 0.05:
        return rng.choice([x for x in _EXTREMES if len(x) == 4]) + frame
    return len(frame).to_bytes(4, "big") + frame
