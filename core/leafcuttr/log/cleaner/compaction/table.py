"""The table of keys of one round: for each key the batch that holds its last record, in bounded memory.

The value is the base offset of that batch, not the offset of the record: one number is shared by all records of a
batch, and which of a batch's records is the last is seen when the batch is at hand. A key of up to 30 bytes stands for
itself; a longer one is replaced by 31 bytes of its BLAKE2b, so that the two can never be mistaken for each other.
"""

import sys
from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from itertools import repeat
from typing import Final

_WHOLE: Final = 30  # a bytes object of 31 takes 64 bytes of memory, as one of 16 does
_SMALL_OBJECT: Final = 48
_OBJECT: Final = 64
_PLACE: Final = 30  # bytes of a dictionary for each key when it is full and about to grow
_NEARLY: Final = 0.9
_CHECK_EVERY: Final = 256  # keys between two checks of the memory


def _digest(key: bytes) -> bytes:
    return key if len(key) <= _WHOLE else blake2b(key, digest_size=_WHOLE + 1).digest()


def names(keys: Sequence[bytes], longest: int) -> Sequence[bytes]:
    """What the table knows the keys by."""
    return keys if longest <= _WHOLE else list(map(_digest, keys))


class KeyTable:
    """See the module's docstring. `limit` is in bytes of this process's memory; check `full` after each `put`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._latest: dict[bytes, int] = {}
        self._with_nulls: set[int] = set()
        self._counts: dict[int, int] = {}
        self._object = _SMALL_OBJECT
        self._batches = 0
        self._check_at = 0

    def __len__(self) -> int:
        return len(self._latest)

    def put(self, keys: Sequence[bytes], longest: int, base_offset: int, *, nulls: bool) -> None:
        """The batch at `base_offset` is the latest that has these keys; whether it has records without a value."""
        self._batches += 1
        if longest > 15:
            self._object = _OBJECT
            keys = names(keys, longest)
        if len(keys) == 1:
            self._latest[keys[0]] = base_offset
        else:
            self._latest.update(dict.fromkeys(keys, base_offset))
        if nulls:
            self._with_nulls.add(base_offset)

    def close(self) -> None:
        """No more keys come: count how many records of each batch stay."""
        self._counts = Counter(self._latest.values())

    def staying(self, base_offset: int) -> int:
        """How many records of a batch that was put are the last of their keys. After `close`."""
        return self._counts.get(base_offset, 0)

    def has_nulls(self, base_offset: int) -> bool:
        """Whether a batch that was put has records without a value."""
        return base_offset in self._with_nulls

    def latest(self, keys: Sequence[bytes], longest: int) -> list[int]:
        """For each key the base offset of the last batch that has it, -1 for one that is not in the table."""
        return list(map(self._latest.get, names(keys, longest), repeat(-1)))

    @property
    def full(self) -> bool:
        """Whether the memory is used up. The table grows in steps; the next one counts before it is taken."""
        count = len(self._latest)
        if count < self._check_at:
            return False
        self._check_at = count + _CHECK_EVERY
        table = sys.getsizeof(self._latest)
        if count * _PLACE > table * _NEARLY:
            table *= 3  # while it grows, it and one of twice the size exist side by side
        counts = min(self._batches, count) * 2 * _PLACE
        beside = counts + sys.getsizeof(self._with_nulls)
        return table + beside + count * self._object > self._limit
