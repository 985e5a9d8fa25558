"""Which pairs of schemas were found compatible. A subject with thousands of versions is compared with all of them at
each new one, and more than one request may be needed until all have been."""

from collections import OrderedDict
from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

from leafcuttr_registry.checks.levels import Directions

_MOST: Final = 100_000
"""Pairs that are remembered, some 100 bytes each."""


class KnownCompatible:
    """Those that were found, or asked about, last."""

    def __init__(self) -> None:
        self._pairs: OrderedDict[bytes, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._pairs)

    def of(self, type: str, new: bytes, ask: Directions, *, lenient: bool) -> "CompatibleWith":
        """Of a new schema, in these directions. `new` tells it from all others of this type."""
        return CompatibleWith(
            self, blake2b(repr((type, ask.backward, ask.forward, lenient, new)).encode()).digest()
        )

    def has(self, pair: bytes) -> bool:
        if pair not in self._pairs:
            return False
        self._pairs.move_to_end(pair)
        return True

    def add(self, pair: bytes) -> None:
        self._pairs[pair] = None
        if len(self._pairs) > _MOST:
            self._pairs.popitem(last=False)

    def clear(self) -> None:
        self._pairs.clear()


class CompatibleWith:
    """What is known of one new schema. `old` tells a schema from all others of its type."""

    def __init__(self, known: KnownCompatible, new: bytes) -> None:
        self._known = known
        self._new = new

    def __contains__(self, old: bytes) -> bool:
        return self._known.has(self._pair(old))

    def add(self, olds: Iterable[bytes]) -> None:
        for old in olds:
            self._known.add(self._pair(old))

    def _pair(self, old: bytes) -> bytes:
        return blake2b(self._new + old, digest_size=16).digest()
