"""Avro's binary encoding (specification, "Binary Encoding"), the parts that checking and decoding share.

Data come from peers. What they claim is compared with what is there before anything is made of it: a length with the
bytes that are left, a count with the bytes that so many items take at least. Items that take no bytes, and fields of
such types, are counted: `MOST_EMPTY` in one datum.
"""

from typing import Final

from leafcuttr_registry.avro.types import (
    ArrayType,
    AvroType,
    FixedType,
    MapType,
    PrimitiveType,
    RecordType,
    UnionType,
    children,
)
from leafcuttr_sdk.schemas import DataError

MOST_EMPTY: Final = 100_000
MOST_FRAMES: Final = 600
"""How deep values of recursive types may be nested, in calls of functions of one value within another: Python allows
1000, and the schema has some of its own. A linked list takes three for each element."""
_LEAST: Final = {"null": 0, "float": 4, "double": 8}
_ROUNDS: Final = 4
_CAP: Final = 1 << 40


class Fault(Exception):
    """What is wrong with data; `path` is filled from the inside out."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path: list[str | int] = []

    def error(self) -> DataError:
        # Keys of maps may be of any length, and have any letters.
        path = "".join(f"/{_shown(token)}" for token in reversed(self.path[-50:]))
        return DataError(f"{path}: {self.reason}" if path else self.reason)


def _shown(token: str | int) -> str:
    text = str(token)
    text = text if len(text) <= 60 else f"{text[:57]}..."
    return text if text.isprintable() else ascii(text)[1:-1]


class Limits:
    """What one datum has used up. Closures of one codec share it."""

    __slots__ = ("depth", "empty")

    def __init__(self) -> None:
        self.depth = 0
        self.empty = 0

    def begin(self) -> None:
        self.depth = 0
        self.empty = MOST_EMPTY

    def spend(self, empty: int) -> None:
        self.empty -= empty
        if self.empty < 0:
            raise Fault(f"more than {MOST_EMPTY} values take no bytes")

    def enter(self, frames: int) -> None:
        self.depth += frames
        if self.depth > MOST_FRAMES:
            raise Fault("a recursive type is nested too deep within itself")


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A long, and where it ends. Raises IndexError at the end of the data."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            break
        shift += 7
        if shift > 63:
            raise Fault("a number has more than ten bytes")
    if value >> 64:
        raise Fault("a number is out of the range of a long")
    return (value >> 1) ^ -(value & 1), at


def length(data: bytes, at: int) -> tuple[int, int]:
    """Where bytes or a string begin and end."""
    size, at = varint(data, at)
    if size < 0:
        raise Fault(f"a length of {size}")
    if size > len(data) - at:
        raise Fault(f"a length of {size} where {len(data) - at} bytes are left")
    return at, at + size


def block(data: bytes, at: int, least: int, empty: int, limits: Limits) -> tuple[int, int, int]:
    """The items of the next block of an array or map, where they begin, and where they have to end, which is 0 where
    the block does not say so. `least`: bytes of an item. `empty`: values of no bytes in an item that takes none."""
    count, at = varint(data, at)
    end = 0
    if count < 0:
        # "the count is followed by a long block size", for those that skip it.
        count = -count
        size, at = varint(data, at)
        if not 0 <= size <= len(data) - at:
            raise Fault(f"a block of {size} bytes where {len(data) - at} are left")
        end = at + size
    if least:
        if count > (len(data) - at) // least:
            raise Fault(f"{count} items where {len(data) - at} bytes are left")
    elif count:
        limits.spend(count * empty)
    return count, at, end


class Sizes:
    """How many bytes values take at least, and how many values in them take none."""

    def __init__(self, root: AvroType) -> None:
        self._least: dict[int, int] = {}
        self._empty: dict[int, int] = {}
        records = [one for one in _all(root) if isinstance(one, RecordType)]
        records.reverse()
        # Of recursive types each round gives a number that is not too high, and a better one.
        for _ in range(_ROUNDS):
            for record in records:
                least = sum(self.least(field.type) for field in record.fields)
                self._least[id(record)] = min(least, _CAP)

    def least(self, of: AvroType) -> int:
        if isinstance(of, RecordType):
            return self._least.get(id(of), 0)
        if isinstance(of, FixedType):
            return of.size
        if isinstance(of, UnionType):
            return 1 + min(map(self.least, of.branches), default=0)
        return _LEAST.get(of.kind, 1) if isinstance(of, PrimitiveType) else 1

    def empty(self, of: AvroType) -> int:
        """0 where its values take bytes."""
        if self.least(of):
            return 0
        if not isinstance(of, RecordType):
            return 1
        if id(of) not in self._empty:
            self._empty[id(of)] = _CAP  # Within itself it never ends.
            self._empty[id(of)] = min(1 + sum(self.empty(field.type) for field in of.fields), _CAP)
        return self._empty[id(of)]

    def empty_fields(self, of: RecordType) -> int:
        """What a record that takes bytes has in it that takes none."""
        return sum(self.empty(field.type) for field in of.fields) if self.least(of) else 0


def _all(root: AvroType) -> list[AvroType]:
    """Each type that is reached, once; what is in it comes after it."""
    seen: set[int] = set()
    found: list[AvroType] = []
    pending = [root]
    while pending:
        one = pending.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        found.append(one)
        pending += reversed(children(one))
    return found


def value_of(of: AvroType) -> AvroType:
    """The items of an array, the values of a map."""
    assert isinstance(of, ArrayType | MapType)
    return of.items if isinstance(of, ArrayType) else of.values
