"""Which partition a record goes to: Java's default partitioner (KIP-480, KIP-794). Pure."""

import random
import struct
from functools import lru_cache
from typing import Final

from leafcuttr.state.topics import Topic

_STICKS_BYTES: Final = 16 * 1024
"""Java's batch.size: so much of a topic's records without a key go to one partition before the next has its turn."""
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
    """Where Java's producer sends a record with this key."""
    positive = _remembered(key) if len(key) <= _REMEMBERED_KEY else murmur2(key) & 0x7FFFFFFF
    return positive % partitions


@lru_cache(maxsize=4096)
def _remembered(key: bytes) -> int:
    return murmur2(key) & 0x7FFFFFFF


class Sticky:
    """Where records without a key go: some to one partition, so that they share batches, then some to another."""

    def __init__(self) -> None:
        self._at: dict[bytes, tuple[int, int]] = {}

    def take(self, topic: Topic, size: int) -> int:
        """The partition for a record of this many bytes."""
        number, left = self._at.get(topic.id) or (-1, 0)
        if left <= 0 or number >= len(topic.partitions) or topic.partitions[number].log.offline is not None:
            number, left = self._next(topic, number), _STICKS_BYTES
        self._at[topic.id] = (number, left - size)
        return number

    def forget(self, topic: Topic) -> None:
        """The topic is gone."""
        self._at.pop(topic.id, None)

    @staticmethod
    def _next(topic: Topic, before: int) -> int:
        partitions = topic.partitions
        usable = [each.index for each in partitions if each.log.offline is None and each.index != before]
        if usable:
            return random.choice(usable)
        return before if 0 <= before < len(partitions) else 0
