"""Records with headers, read by the shapes that earlier ones of their partition had.

A producer's records resemble each other: the same header names in the same order, often the same values, or values of
the same sizes. What has been read number by number is learnt here, and what is like it can be read in fewer steps. A
partition's records are read in one of three ways, and the next is taken once one does not fit them:

- by sets: while there are few different sets of headers, they are found by their bytes, and equal ones are one object;
- by sizes: where all sizes come back, one call of `struct` cuts key, value and headers apart;
- by names: only the names and their order come back. Headers are cut at their sizes, one after the other. Those that
  have few different values are found by their bytes, as sets are.

Each compares all bytes that are not key, value or header value with those that were learnt, and gives None if any
differs. Then the record is read number by number, or refused (`wire/record_frames.py`): a shape never decides what is
well formed. What is learnt is bounded, and so is the time that goes on learning.

    | size of the key | key | size of the value | value | number of headers, 1st name, size of its value | value | ...
                                                        `----------------- piece ----------------'

The key, and all behind it, is the record's tail here.
"""

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from itertools import chain
from struct import Struct
from textwrap import dedent
from typing import Any, Final, TypeAlias

from leafcuttr.wire.primitives import write_varlong
from leafcuttr_sdk.records import Headers

Fields: TypeAlias = tuple[int, int, bytes | None, bytes | None, Headers]
"""Of a record: offset, timestamp, key, value and headers."""
TailReader: TypeAlias = Callable[[bytes, int, int, int, int], Fields | None]
"""The record whose tail stands between two positions, with this offset and timestamp; None if its shape is unknown."""

LONGEST_TAIL: Final = 8192
"""Bytes of a tail beyond which its record is not read by a shape, because the tail is copied for that. Its headers are
found by their bytes, if these are of a few sets (`Shapes.of_long`)."""
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
WIDE: Final = 64
"""Bytes of a header's value from which on its size takes more than one byte."""


class Shapes:
    """The shapes of one partition's records. `read` gives the record if it has a known one. What it does not know, and
    has been read otherwise, is to be told to `learn`."""

    def __init__(self) -> None:
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
        self.read: TailReader = _front_maker()(self._sets, *_SIZES)

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
        self._by_size.insert(0, _by_size(tail, key, value, headers))
        self._chain(self._by_size)

    def _learn_names(
        self, tail: bytes, headers_at: int, key: bytes | None, value: bytes | None, headers: Headers
    ) -> None:
        if len(headers) > MOST_HEADERS or self._made >= FREE + self._missed // PRICE:
            return
        names = tuple(name for name, _ in headers)
        known = next((one for one in self._names if one.names == names), None)
        if known is None:
            self._names.insert(0, _Names(names, self._keep))
            for gone in self._names[MOST_NAMES:]:
                self._left += gone.forget()
            del self._names[MOST_NAMES:]
            known = self._names[0]
        elif not known.are_wider(headers):
            return
        known.widen(headers)
        self._make()

    def _keep(self) -> bool:
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


class _Names:
    """Header names in their order. How a header is read is said by a letter: `k` finds it by its bytes, `c` cuts it
    apart, `w` does so where its size may take two bytes."""

    def __init__(self, names: tuple[str, ...], keep: Callable[[], bool]) -> None:
        self.names = names
        self._pieces = [piece[:-1] for piece in _pieces(names, (0,) * len(names))]
        self._ways = ["k" if len(piece) < WIDE else "c" for piece in self._pieces]
        self._known = [_Known(name, piece, keep) for name, piece in zip(names, self._pieces, strict=True)]
        self._sizes = [{piece + bytes((2 * size,)): size for size in range(WIDE)} for piece in self._pieces]

    def reader(self, other: TailReader) -> TailReader:
        """What does not have these names, or a way does not fit, `other` reads."""
        maker = _names_maker("".join(self._ways))
        lengths = [len(piece) for piece in self._pieces]
        made: TailReader = maker(self.names, self._pieces, lengths, self._known, self._sizes, other, *_SIZES)
        return made

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
    tail: bytes, key: bytes | None, value: bytes | None, headers: Headers
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
    maker = _size_maker(len(headers), "None" if key is None else "key")
    return lambda other: maker(unpack.unpack_from, pieces, names, unpack.size, other)


def _pieces(names: Sequence[str], sizes: Sequence[int]) -> list[bytes]:
    """What stands in front of the value of each header, in the fewest bytes."""
    encoded = [name.encode("utf-8", "surrogateescape") for name in names]
    pieces = [_number(len(name)) + name + _number(size) for name, size in zip(encoded, sizes, strict=True)]
    return [_number(len(names)) + pieces[0], *pieces[1:]]


def _number(value: int) -> bytes:
    out = bytearray()
    write_varlong(out, value)
    return bytes(out)


def _variables(stem: str, count: int) -> list[str]:
    return [f"{stem}{number}" for number in range(count)]


@cache
def _size_maker(count: int, key: str) -> Callable[..., TailReader]:
    """Make readers of tails of one size with so many headers, of which the key is the variable `key` or "None"."""
    names, values, pieces = (_variables(stem, count) for stem in ("name", "value", "piece"))
    cut = ", ".join(chain(*zip(pieces, values, strict=True)))
    return _compiled(f"""
        def make(unpack, pieces, names, size, other):
            {", ".join(names)}, = names
            def read(data, at, end, offset, timestamp):
                if end - at == size:
                    key_size, key, value_size, value, {cut} = unpack(data, at)
                    if (key_size, value_size, {", ".join(pieces)}) == pieces:
                        return offset, timestamp, {key}, value, ({_headers(names, values)})
                return other(data, at, end, offset, timestamp)
            return read
        """)


def _headers(names: Sequence[str], values: Sequence[str]) -> str:
    return "".join(f"({name}, {value}), " for name, value in zip(names, values, strict=True))


_SHORT: Final = tuple(0 if size & 1 or size > 127 else 1 + (size >> 1) for size in range(256))
"""Bytes of a size and what it is the size of, by its first byte; 0 if there are more of them, or there is none."""
_TWO: Final = {size: 2 + ((size & 127) >> 1) for size in range(128, 256, 2)}
"""The same for sizes of two bytes, without the share of the second."""
_SECOND: Final = tuple(size << 6 for size in range(128))
"""The share of the second."""
_SIZES: Final = (_SHORT, _TWO, _SECOND)
_FIELD: Final = """
                    size = tail[{at}]
                    begin = {at} + 1
                    if more := short[size]:
                        end_ = {at} + more
                        {field} = tail[begin:end_]
                    elif size == 1:
                        end_ = begin
                        {field} = None
                    else:
                        end_ = {at} + two[size] + second[tail[begin]]
                        {field} = tail[begin + 1:end_]"""
_FRONT: Final = f"""
                size_ = end - at
                if size_ > {LONGEST_TAIL}:
                    return None
                tail = data[at:end]
                try:{_FIELD.format(field="key", at="0")}{_FIELD.format(field="value", at="end_")}"""
"""Reads key and value of a tail, and leaves the position behind them in `end_`."""


@cache
def _front_maker() -> Callable[..., TailReader]:
    """Make readers of tails whose headers are known by their bytes."""
    return _compiled(f"""
        def make(known, short, two, second):
            def read(data, at, end, offset, timestamp):{_FRONT}
                    headers = known[tail[end_:]]
                except (IndexError, KeyError):
                    return None
                return offset, timestamp, key, value, headers
            return read
        """)


@lru_cache(maxsize=64)
def _names_maker(ways: str) -> Callable[..., TailReader]:
    """Make readers of tails whose headers have the same names, each read in its way."""
    lines, found, tests, end = "", "", "", "end_"
    for n, way in enumerate(ways):
        if way == "c":
            lines += f"""
                    begin{n} = {end} + length{n} + 1
                    end{n} = begin{n} + sizes{n}[tail[{end}:begin{n}]]"""
        else:
            lines += f"""
                    begin{n} = {end} + length{n}
                    end{n} = begin{n} + short[tail[begin{n}]]"""
        if way == "w":
            lines += f"""
                    begin{n} += 1
                    if end{n} < begin{n}:
                        end{n} = begin{n} - 1 + two[tail[begin{n} - 1]] + second[tail[begin{n}]]
                        begin{n} += 1
                        size{n} = 2
                    else:
                        size{n} = 1"""
            tests += f" or tail[{end}:begin{n} - size{n}] != piece{n}"
        found += f"known{n}[tail[{end}:end{n}]], " if way == "k" else f"(name{n}, tail[begin{n}:end{n}]), "
        end = f"end{n}"
    unpacked = (
        "; ".join(
            f"{', '.join(_variables(stem, len(ways)))}, = {stem}s"
            for stem in ("name", "piece", "length", "known", "sizes")
        )
        .replace("sizess", "all_sizes")
        .replace("knowns", "all_known")
    )
    return _compiled(f"""
        def make(names, pieces, lengths, all_known, all_sizes, other, short, two, second):
            {unpacked}
            def read(data, at, end, offset, timestamp):{_FRONT}{lines}
                    if {end} != size_{tests}:
                        return other(data, at, end, offset, timestamp)
                    return offset, timestamp, key, value, ({found})
                except (IndexError, KeyError):
                    return other(data, at, end, offset, timestamp)
            return read
        """)


def _compiled(source: str) -> Callable[..., Any]:
    scope: dict[str, Any] = {}
    exec(compile(dedent(source), "<leafcuttr record shapes>", "exec"), scope)
    made: Callable[..., Any] = scope["make"]
    return made
