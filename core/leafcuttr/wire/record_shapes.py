"""Records with headers, read by the shapes that earlier ones of their partition had.

A producer's records resemble each other: the same header names in the same order, often the same values, or values of
the same sizes. What has been read number by number is learnt here, and what is like it can be read in fewer steps. A
partition's records are read in one of three ways, and the next is taken once one does not fit them:

- by sets: while there are few different sets of headers, they are found by their bytes, and equal ones are one object;
- by sizes: where all sizes come back, one call of `struct` cuts key, value and headers apart;
- by names: only the names and their order come back. Headers are cut at their sizes, one after the other. Those that
  have few different values are found by their bytes, as sets are. While nearly all keys and values have the sizes of
  the first ones, one call of `struct` cuts these out.

Each compares all bytes that are not key, value or header value with those that were learnt, and gives None if any
differs. Then the record is read number by number, or refused (`wire/record_frames.py`): a shape never decides what is
well formed. What is learnt is bounded, and so is the time that goes on learning.

    | size of the key | key | size of the value | value | number of headers, 1st name, size of its value | value | ...
                                                        `----------------- piece ----------------'

The key, and all behind it, is the record's tail here.
"""

from collections.abc import Callable, Sequence
from itertools import chain
from struct import Struct
from typing import Final, NamedTuple

from leafcuttr.wire.primitives import write_varlong
from leafcuttr.wire.shape_readers import (
    LONGEST_TAIL,
    SIZES,
    TailReader,
    front_maker,
    names_maker,
    size_maker,
)
from leafcuttr_sdk.records import Headers, StoredRecord
from leafcuttr_sdk.types import TopicPartition

LONGEST_HEADERS: Final = 1024
"""Bytes of headers beyond which they are not learnt."""
MOST_HEADERS: Final = 16
"""Headers of a record beyond which their sizes and names are not learnt."""
MOST_SETS: Final = 64
"""Different sets of headers that are known at once."""
MORE_OFTEN: Final = 4
"""How many records a new set may come with, at the least, for sets to be begun anew once so many are known."""
MOST_SIZES: Final = 4
"""Tails of different sizes, one after the other, after which records are read by names."""
MOST_NAMES: Final = 4
"""Different header names that are known at once: they are tried one after the other."""
MOST_VALUES: Final = 2048
"""Headers that are known at once by their bytes, of all names."""
FREE: Final = 8
"""Readers by names that may be made before misses have to pay for them."""
PRICE: Final = 512
"""Misses that pay for one: to compile it takes about as long."""
FORGET_AFTER: Final = 1 << 16
"""Misses after which all is forgotten: the producer may have changed."""
STRAYS: Final = 64
"""Records with a key or value of another size than the first of their names, after which it is asked how many there
are."""
SELDOM: Final = 16
"""Of how many records a stray may be one, on average, for keys and values to be cut out by their sizes further on."""
WIDE: Final = 64
"""Bytes of a header's value from which on its size takes more than one byte."""


class Shapes:
    """The shapes of one partition's records. `read` gives the record if it has a known one. What it does not know, and
    has been read otherwise, is to be told to `learn`."""

    def __init__(self, partition: TopicPartition) -> None:
        self.partition: Final = partition
        self._forget()

    def _forget(self) -> None:
        self.records = 0
        """How many have been read, added by the caller. It tells how many of them were missed."""
        self._missed = self._made = 0
        self._sets: dict[bytes, Headers] = {}
        self._long: dict[bytes, Headers] = {}
        self.of_long = self._long.get
        self._by_size: list[Callable[[TailReader], TailReader]] = []
        self._names: list[_Names] = []
        self._left = MOST_VALUES
        self._way = self._learn_set
        self.read: TailReader = front_maker()(*self.partition, self._sets, *SIZES)

    def learn(
        self,
        data: bytes,
        at: int,
        headers_at: int,
        end: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
    ) -> None:
        """Learn a tail that stands between two positions and was not known, and its headers, which are not empty."""
        self._missed += 1
        if self._missed >= FORGET_AFTER:
            self._forget()
        if end - headers_at > LONGEST_HEADERS:
            return
        if end - at <= LONGEST_TAIL:
            self._way(data[at:end], headers_at - at, key, value, headers)
        elif len(self._long) < MOST_SETS:
            self._long[data[headers_at:end]] = headers

    def _learn_set(
        self, tail: bytes, headers_at: int, key: bytes | None, value: bytes | None, headers: Headers
    ) -> None:
        if len(self._sets) >= MOST_SETS:
            if self.records < MORE_OFTEN * MOST_SETS:
                self._sets.clear()
                self._way = self._learn_sizes
                self._way(tail, headers_at, key, value, headers)
                return
            self._sets.clear()
            self.records = 0
        self._sets[tail[headers_at:]] = headers

    def _learn_sizes(
        self, tail: bytes, headers_at: int, key: bytes | None, value: bytes | None, headers: Headers
    ) -> None:
        if len(self._by_size) >= MOST_SIZES:
            self._by_size.clear()
            self.read = no_reader
            self._way = self._learn_names
            self._way(tail, headers_at, key, value, headers)
            return
        self._by_size.insert(0, _by_size(self.partition, tail, key, value, headers))
        self._chain(self._by_size)

    def _learn_names(
        self, tail: bytes, headers_at: int, key: bytes | None, value: bytes | None, headers: Headers
    ) -> None:
        if len(headers) > MOST_HEADERS or self._made >= FREE + self._missed // PRICE:
            return
        names = tuple(name for name, _ in headers)
        known = next((one for one in self._names if one.names == names), None)
        if known is None:
            self._names.insert(0, _Names(names, self, _front(key, value)))
            for gone in self._names[MOST_NAMES:]:
                self._left += gone.forget()
            del self._names[MOST_NAMES:]
            known = self._names[0]
        elif not known.are_wider(headers):
            return
        known.widen(headers)
        self._make()

    def keep(self) -> bool:
        """Whether one more header may be known by its bytes; it is counted then."""
        self._left -= 1
        if self._left < 0:
            # Of the name with the most values these come back the least.
            most = max(self._names, key=_Names.most_values)
            self._left += 1 + most.cut_apart()
            self._make()
            return False
        return True

    def _make(self) -> None:
        self._made += 1
        self.read_by_names()

    def read_by_names(self) -> None:
        """In the ways that they are read in now."""
        self._chain([names.reader for names in self._names])

    def _chain(self, makers: Sequence[Callable[[TailReader], TailReader]]) -> None:
        """Try these, one after the other."""
        reader: TailReader = no_reader
        for maker in reversed(makers):
            reader = maker(reader)
        self.read = reader


def no_reader(data: bytes, at: int, end: int, offset: int, timestamp: int) -> None:
    """Knows no shape."""


class _Known(dict[bytes, tuple[str, bytes]]):
    """Headers with one name, by their bytes. `keep` says whether another one may be known."""

    __slots__ = ("_keep", "_name", "_piece")

    def __init__(self, name: str, piece: bytes, keep: Callable[[], bool]) -> None:
        super().__init__()
        self._name = name
        self._piece = piece
        self._keep = keep

    def __missing__(self, header: bytes) -> tuple[str, bytes]:
        """Bytes with a value of another name, or without a value, are a KeyError."""
        begin = len(self._piece) + 1  # the value's size takes a byte
        if not header.startswith(self._piece) or len(header) < begin:
            raise KeyError(header)
        made = self._name, header[begin:]
        if self._keep():
            self[header] = made
        return made


class _Front(NamedTuple):
    """A key and a value of these sizes: what stands before each of them, and what cuts all four out."""

    key_size: bytes
    value_size: bytes
    struct: Struct
    has_key: bool


def _front(key: bytes | None, value: bytes | None) -> _Front | None:
    """That of such ones, with sizes in the fewest bytes. None if the value is null, which is rare."""
    if value is None:
        return None
    size, value_size, content = _number(-1 if key is None else len(key)), _number(len(value)), key or b""
    struct = Struct(f"{len(size)}s{len(content)}s{len(value_size)}s{len(value)}s")
    return _Front(size, value_size, struct, key is not None)


class _Names:
    """Header names in their order. How a header is read is said by a letter: `k` finds it by its bytes, `c` cuts it
    apart, `w` does so where its size may take two bytes."""

    def __init__(self, names: tuple[str, ...], shapes: Shapes, front: _Front | None) -> None:
        self.names = names
        self._shapes = shapes
        self._front = front
        self._strays = 0
        self._since = shapes.records
        self._free: TailReader = no_reader
        self._pieces = [piece[:-1] for piece in _pieces(names, (0,) * len(names))]
        self._ways = ["k" if len(piece) < WIDE else "c" for piece in self._pieces]
        self._known = [
            _Known(name, piece, shapes.keep) for name, piece in zip(names, self._pieces, strict=True)
        ]
        self._sizes = [{piece + bytes((2 * size,)): size for size in range(WIDE)} for piece in self._pieces]

    def reader(self, other: TailReader) -> TailReader:
        """What does not have these names, or a way does not fit, `other` reads."""
        ways, front = "".join(self._ways), self._front
        lengths = [len(piece) + (way == "c") for piece, way in zip(self._pieces, ways, strict=True)]
        parts = *self._shapes.partition, self.names, self._pieces, lengths, self._known, self._sizes, other
        self._free = names_maker(ways, "")(*parts, *SIZES)
        if front is None:
            return self._free
        maker = names_maker(ways, "key" if front.has_key else "None")
        unpack, size = front.struct.unpack_from, front.struct.size
        return maker(*parts, self._stray, unpack, front.key_size, front.value_size, size, *SIZES)

    def _stray(self, data: bytes, at: int, end: int, offset: int, timestamp: int) -> StoredRecord | None:
        """Read what does not fit the front. It is given up if that is not seldom."""
        self._strays += 1
        if self._strays >= STRAYS:
            records = self._shapes.records
            if records - self._since < SELDOM * STRAYS:
                self._front = None
                self._shapes.read_by_names()
            self._strays, self._since = 0, records
        return self._free(data, at, end, offset, timestamp)

    def are_wider(self, headers: Headers) -> bool:
        """Whether one of these is too long for the way it is read in."""
        return any(
            way != "w" and value is not None and len(value) >= WIDE
            for way, (_, value) in zip(self._ways, headers, strict=True)
        )

    def widen(self, headers: Headers) -> None:
        """Read those that are too long in another way from now on."""
        for at, (_, value) in enumerate(headers):
            if value is not None and len(value) >= WIDE:
                self._ways[at] = "w"

    def most_values(self) -> int:
        return max(map(len, self._known))

    def cut_apart(self) -> int:
        """Find the header with the most values by its bytes no more; of several that have as many, the last one: what
        is another one each time, as the id of a trace, mostly is added last. Returns how many were known."""
        enough = self.most_values() - 1  # others may have been found in the record that is being read
        at = max(at for at, known in enumerate(self._known) if len(known) >= enough)
        self._ways[at] = "c"
        count = len(self._known[at])
        self._known[at].clear()
        return count

    def forget(self) -> int:
        """Returns how many headers were known."""
        count = sum(map(len, self._known))
        for known in self._known:
            known.clear()
        return count


def _by_size(
    partition: TopicPartition, tail: bytes, key: bytes | None, value: bytes | None, headers: Headers
) -> Callable[[TailReader], TailReader]:
    """What makes the reader of tails in which all sizes are those of this one. One that reads nothing where a value is
    null, or a number takes more bytes than it needs: that is rare."""
    values = [value for _, value in headers if value is not None]
    if value is None or not len(values) == len(headers) <= MOST_HEADERS:
        return lambda other: other
    names = tuple(name for name, _ in headers)
    parts = [key or b"", value, *values]
    pieces = (
        _number(-1 if key is None else len(key)), _number(len(value)), *_pieces(names, [len(one) for one in values])
    )  # fmt: skip
    if b"".join(chain(*zip(pieces, parts, strict=True))) != tail:
        return lambda other: other
    unpack = Struct("".join(f"{len(piece)}s{len(part)}s" for piece, part in zip(pieces, parts, strict=True)))
    maker = size_maker(len(headers), "None" if key is None else "key")
    return lambda other: maker(*partition, unpack.unpack_from, pieces, names, unpack.size, other)


def _pieces(names: Sequence[str], sizes: Sequence[int]) -> list[bytes]:
    """What stands in front of the value of each header, in the fewest bytes."""
    encoded = [name.encode("utf-8", "surrogateescape") for name in names]
    pieces = [_number(len(name)) + name + _number(size) for name, size in zip(encoded, sizes, strict=True)]
    return [_number(len(names)) + pieces[0], *pieces[1:]]


def _number(value: int) -> bytes:
    out = bytearray()
    write_varlong(out, value)
    return bytes(out)
