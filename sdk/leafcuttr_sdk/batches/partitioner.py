"""Which partition a record goes to: Java's default partitioner (KIP-480, KIP-794). Pure."""

import random
import struct
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

STICKS_BYTES: Final = 16 * 1024
"""Java's batch.size: so much of a topic's records without a key goes to one partition before another is chosen."""

_REMEMBERED_KEY: Final = 64
_WORD: Final = struct.Struct("<I")
_MASK: Final = 0xFFFFFFFF
_M: Final = 0x5BD1E995
_SEED: Final = 0x9747B28C


def murmur2(data: bytes) -> int:
    """The 32 bits of org.apache.kafka.common.utils.Utils.murmur2, unsigned."""
    length = len(data)
    hashed = _SEED ^ length
    whole = length & ~3
    for (word,) in _WORD.iter_unpack(memoryview(data)[:whole]):
        word = word * _M & _MASK
        hashed = (hashed * _M & _MASK) ^ ((word ^ (word >> 24)) * _M & _MASK)
    if length != whole:
        hashed = (hashed ^ int.from_bytes(data[whole:], "little")) * _M & _MASK
    hashed = (hashed ^ (hashed >> 13)) * _M & _MASK
    return hashed ^ (hashed >> 15)


def partition_of(key: bytes, partitions: int) -> int:
    """Where Java's producer sends a record with this key, in a topic with so many partitions."""
    positive = _remembered(key) if len(key) <= _REMEMBERED_KEY else murmur2(key) & 0x7FFFFFFF
    return positive % partitions


@lru_cache(maxsize=4096)
def _remembered(key: bytes) -> int:
    return murmur2(key) & 0x7FFFFFFF


class Sticky:
    """Where one topic's records without a key go: some to one partition, so that they share batches, then some to
    another."""

    __slots__ = ("_left", "partition")

    def __init__(self) -> None:
        self.partition = -1
        """The last that was chosen; -1 before the first."""
        self._left = 0

    def take(self, size: int, usable: Iterable[int]) -> int:
        """The partition for a record whose value has this many bytes. `usable` are the partitions to choose from
        (`range(count)`), used only when another one is chosen."""
        if self._left <= 0:
            others = [partition for partition in usable if partition != self.partition]
            if others:
                self.partition = random.choice(others)
            elif self.partition < 0:
                self.partition = 0
            self._left = STICKS_BYTES
        self._left -= size
        return self.partition

    def leave(self) -> None:
        """Choose another partition for the next record: this one takes none now."""
        self._left = 0
