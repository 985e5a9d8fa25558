"""Zigzag varints of whole arrays (KIP-98): those at many positions of a buffer, and those of many numbers.

A varint has seven bits in each byte, the lowest first; all bytes but the last have the high bit. Numbers of 32 bits
take up to five bytes, those of 64 up to ten.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from leafcuttr_sdk.batches import BatchError

Longs = npt.NDArray[np.int64]
Octets = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

_INT_BYTES: Final = 5
_LONG_BYTES: Final = 10


def read_ints(data: Octets, at: Longs) -> tuple[Longs, Longs]:
    """The numbers of 32 bits at these positions, and the positions behind them. Raises BatchError for more than 32
    bits, IndexError where the data ends."""
    first = data[at].astype(np.int64)
    if not (first > 0x7F).any():
        return (first >> 1) ^ -(first & 1), at + 1
    number, behind = _more(data, at, first, _INT_BYTES)
    if (number > 0xFFFFFFFF).any():
        raise BatchError("a number of the records exceeds 32 bits")
    return (number >> 1) ^ -(number & 1), behind


def read_longs(data: Octets, at: Longs) -> tuple[Longs, Longs]:
    """As `read_ints`, for numbers of 64 bits."""
    first = data[at].astype(np.int64)
    if not (first > 0x7F).any():
        return (first >> 1) ^ -(first & 1), at + 1
    number, behind = _more(data, at, first, _LONG_BYTES)
    unsigned = number.view(np.uint64)
    return (unsigned >> np.uint64(1)).view(np.int64) ^ -(number & 1), behind


def _more(data: Octets, at: Longs, first: Longs, longest: int) -> tuple[Longs, Longs]:
    """The numbers before their zigzag, whose first bytes are given."""
    more = first > 0x7F
    # Most have two bytes at most: then all are read at once.
    second = np.take(data, at + 1, mode="clip").astype(np.int64)
    if not (more & (second > 0x7F)).any():
        behind = at + 1 + more
        if behind.max() > len(data):
            raise IndexError("the data ends within a number")
        return np.where(more, first & 0x7F | second << 7, first), behind
    number = first & 0x7F
    behind = at + 1
    index = np.flatnonzero(more)
    shift = 7
    while len(index):
        byte = data[behind[index]].astype(np.int64)
        if shift == 63 and (byte > 1).any():
            raise BatchError("a number of the records exceeds 64 bits")
        number[index] |= (byte & 0x7F) << shift
        behind[index] += 1
        index = index[byte > 0x7F]
        shift += 7
        if len(index) and shift >= 7 * longest:
            raise BatchError(f"a number of the records has more than {longest} bytes")
    return number, behind


class Varints:
    """The bytes of many numbers: a row of `matrix` for each, of which the first `sizes` count."""

    __slots__ = ("matrix", "sizes")

    def __init__(self, numbers: Longs) -> None:
        zigzag = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
        largest = int(zigzag.max()) if len(zigzag) else 0
        width = max(1, -(-largest.bit_length() // 7))
        if width == 1:
            self.matrix: Octets = zigzag.astype(np.uint8)[:, np.newaxis]
            self.sizes: Longs = np.ones(len(zigzag), np.int64)
            return
        shifted = [zigzag >> np.uint64(7 * place) for place in range(width)]
        self.sizes = np.ones(len(zigzag), np.int64)
        for rest in shifted[1:]:
            self.sizes += rest > 0
        self.matrix = np.empty((len(zigzag), width), np.uint8)
        for place, rest in enumerate(shifted):
            low = (rest & np.uint64(0x7F)).astype(np.uint8)
            if place + 1 < width:
                low |= (shifted[place + 1] > 0).astype(np.uint8) << np.uint8(7)
            self.matrix[:, place] = low

    @property
    def used(self) -> Mask:
        """Which bytes of the matrix count."""
        width = self.matrix.shape[1]
        if width == 1:
            return np.ones(self.matrix.shape, np.bool_)
        return np.arange(width) < self.sizes[:, np.newaxis]
