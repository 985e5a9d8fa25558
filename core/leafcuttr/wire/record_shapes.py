"""Records with headers, read by the shapes that earlier ones of their partition had.

A producer's records resemble each other: the same header names in the same order, often values of the same sizes. What
has been read number by number is learnt here, and what is like it can be read in fewer steps:

- where all sizes are the same, one call of `struct` cuts key, value and headers apart (`Shapes.tail`);
- where the sizes of the headers are the same, but not those of key and value, it cuts the headers (`Shapes.headers`);
- where only the names are the same, the headers are cut at their sizes, name by name (`Shapes.headers` too).

Each compares all bytes that are not key or value with those that were learnt, and says nothing if any differs. Then the
record is read number by number, or refused (`wire/record_frames.py`): a shape never decides what is well formed.

    | size of the key | key | size of the value | value | number of headers, 1st name, size of its value | value | ...
    `----- piece -----'     `------ piece ------'       `-------------------- piece --------------------'

What is learnt is bounded, and so is the time that goes on learning (`Shapes.learn_tail`).
"""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain
from struct import Struct
from textwrap import dedent
from typing import Any, Final, TypeAlias

from leafcuttr.wire.primitives import write_varlong
from leafcuttr_sdk.records import Headers

KeyValueHeaders: TypeAlias = tuple[bytes | None, bytes | None, Headers]
"""Key, value and headers."""
TailReader: TypeAlias = Callable[[bytes, int], KeyValueHeaders | None]
"""The tail that begins at the position, None if it has another shape. The data must hold as many bytes from there on as
the shape has."""
HeadersReader: TypeAlias = Callable[[bytes, int, int], Headers | None]
"""The headers between two positions, None if it does not know their names."""

LONGEST_TAIL: Final = 8192
"""Bytes of a tail beyond which it is not learnt."""
LONGEST_HEADERS: Final = 1024
"""Bytes of headers beyond which they are not learnt. None that are may have a size of three bytes."""
MOST_HEADERS: Final = 16
"""Headers of a record beyond which they are not learnt."""
MOST_SIZES: Final = 64
"""Sizes of which tails are known at once."""
TAILS_OF_A_SIZE: Final = 4
"""Different tails of the same size that are learnt, each in the place of the one before, until the size is given up."""
MOST_NAMES: Final = 4
"""Different header names, of equally many headers, that are known at once: they are tried one after the other."""
FREE: Final = 64
"""What is learnt before misses have to pay for it."""
PRICE: Final = 16
"""Misses that pay for learning once."""
FORGET_AFTER: Final = 1 << 16
"""Misses after which all is forgotten: the producer may have changed."""
TRIES: Final = 16
"""Records in a row whose headers differ from those before, after which a shape does not look for equal ones."""


MISFITS: Final = 8
"""Headers of a known size but of another shape, after which that size is read by the names alone."""


def no_tail(data: bytes, at: int) -> None:
    """The reader for a size of which no tail is known."""


def no_names(data: bytes, at: int, end: int) -> None:
    """The reader for headers of which no names are known."""


class Shapes:
    """The shapes of one partition's records. `tail(size, no_tail)` reads tails of that size, and
    `headers(size, by_names)` headers of that size."""

    def __init__(self) -> None:
        self._tails: dict[int, TailReader] = {}
        self._seen: dict[int, int] = {}  # different tails by their size
        self._headers: dict[int, HeadersReader] = {}
        self._names: dict[
            int, tuple[list[tuple[str, ...]], HeadersReader]
        ] = {}  # by their number, as it is encoded
        self._missed = self._learnt = 0
        self.tail = self._tails.get
        self.headers = self._headers.get

    def by_names(self, data: bytes, at: int, end: int) -> Headers | None:
        """The headers between two positions, if their names are known."""
        if len(self._headers) < MOST_SIZES and end - at not in self._headers:
            return None  # read in full this once, it is learnt and then read faster
        known = self._names.get(data[at])
        return None if known is None else known[1](data, at, end)

    def learn_tail(self, data: bytes, at: int, end: int, tail: KeyValueHeaders) -> None:
        """Learn a tail that has been read between two positions, and was not known.

        To learn takes as long as to read two or three records. So what is learnt beyond the first few has to be paid
        for by many misses: where no record resembles another one, little is lost."""
        size = end - at
        if size > LONGEST_TAIL or not self._may_learn():
            return
        seen = self._seen.get(size, 0)
        if seen >= TAILS_OF_A_SIZE or (not seen and len(self._seen) >= MOST_SIZES):
            self._tails.pop(size, None)
            return
        key, value, headers = tail
        if value is None:
            return
        front = [(key or b"", _number(-1 if key is None else len(key))), (value, _number(len(value)))]
        reader = _shape_reader(data[at:end], headers, front, "None" if key is None else "key")
        if reader is not None:
            self._learnt += 1
            self._seen[size] = seen + 1
            self._tails[size] = reader

    def learn_headers(self, data: bytes, at: int, end: int, headers: Headers) -> None:
        """Learn headers that have been read between two positions, and were not known."""
        size = end - at
        if size > LONGEST_HEADERS or len(headers) > MOST_HEADERS or not self._may_learn():
            return
        if len(self._headers) < MOST_SIZES and size not in self._headers:
            reader = _shape_reader(data[at:end], headers, (), "", self._misfit(size))
            self._headers[size] = reader or self.by_names
            self._learnt += 1
        names = tuple(name for name, _ in headers)
        known = self._names[data[at]][0] if data[at] in self._names else []
        if names in known:
            return
        known = [names, *known[: MOST_NAMES - 1]]
        by_names: HeadersReader = no_names
        for each in reversed(known):
            pieces = [piece[:-1] for piece in _header_pieces(each, (0,) * len(each))]
            by_names = _names_maker(len(each))(pieces, [len(piece) for piece in pieces], each, by_names)
        self._names[data[at]] = known, by_names
        self._learnt += 1

    def _misfit(self, size: int) -> HeadersReader:
        """Reads headers of the size that have not the shape which is known of it."""
        left = MISFITS

        def read(data: bytes, at: int, end: int) -> Headers | None:
            nonlocal left
            left -= 1
            if not left:
                self._headers[size] = self.by_names
            return self.by_names(data, at, end)

        return read

    def _may_learn(self) -> bool:
        self._missed += 1
        if self._missed % FORGET_AFTER == 0:
            for known in (self._tails, self._seen, self._headers, self._names):
                known.clear()
        return self._learnt < FREE + self._missed // PRICE


def _shape_reader(
    block: bytes,
    headers: Headers,
    front: Sequence[tuple[bytes, bytes]],
    key: str,
    other: HeadersReader | None = None,
) -> Callable[..., Any] | None:
    """The reader of what has the shape of the block: `front`, each behind its piece, and headers. None where a value is
    null, or a number takes more bytes than it needs: that is rare."""
    values = [value for _, value in headers if value is not None]
    if not len(values) == len(headers) <= MOST_HEADERS:
        return None
    names = tuple(name for name, _ in headers)
    parts = [*(part for part, _ in front), *values]
    pieces = (*(piece for _, piece in front), *_header_pieces(names, [len(value) for value in values]))
    begin = sum(len(part) + len(piece) for part, piece in front)
    if len(block) - begin > LONGEST_HEADERS or b"".join(chain(*zip(pieces, parts, strict=True))) != block:
        return None
    codes = [f"{len(piece)}s{len(part)}s" for piece, part in zip(pieces, parts, strict=True)]
    unpack, unpack_front = (Struct("".join(some)).unpack_from for some in (codes, codes[: len(front)]))
    return _shape_maker(len(headers), key)(unpack, unpack_front, pieces, names, begin, len(block), other)


def _header_pieces(names: Sequence[str], sizes: Sequence[int]) -> list[bytes]:
    """What stands in front of the value of each header, in the fewest bytes."""
    encoded = [name.encode("utf-8", "surrogateescape") for name in names]
    pieces = [_number(len(name)) + name + _number(size) for name, size in zip(encoded, sizes, strict=True)]
    return [_number(len(names)) + pieces[0], *pieces[1:]]


def _number(value: int) -> bytes:
    out = bytearray()
    write_varlong(out, value)
    return bytes(out)


@cache
def _shape_maker(count: int, key: str) -> Callable[..., Callable[..., Any]]:
    """Make readers of tails with so many headers, of which the key is the variable `key` or "None", or else ("") of
    headers alone. While headers are equal to those before, they are not even cut apart, and are one object."""
    names, values, pieces = (_variables(stem, count) for stem in ("name", "value", "piece"))
    found = "".join(f"({name}, {value}), " for name, value in zip(names, values, strict=True))
    cut = ", ".join(chain(*zip(pieces, values, strict=True)))
    if key:
        arguments, end, differs, result = "data, at", "at + size", "None", f"{key}, value, headers"
        cut, pieces = f"key_size, key, value_size, value, {cut}", ["key_size", "value_size", *pieces]
        cut_front = """key_size, key, value_size, value = unpack_front(data, at)
                        if (key_size, value_size) != front:
                            return None"""
    else:
        arguments, end, differs, result = "data, at, end", "end", "other(data, at, end)", "headers"
        cut_front = "pass"
    return _compiled(f"""
        def make(unpack, unpack_front, pieces, names, begin, size, other):
            {", ".join(names)}, = names
            front = pieces[:2]
            left, before = {TRIES}, (b"", ())
            def read({arguments}):
                nonlocal left, before
                block = None
                if left:
                    block = data[at + begin : {end}]
                    known, headers = before
                    if block == known:
                        {cut_front}
                        left = {TRIES}
                        return {result}
                    left -= 1
                {cut} = unpack(data, at)
                if ({", ".join(pieces)},) != pieces:
                    return {differs}
                headers = ({found})
                if block is not None:
                    before = block, headers
                return {result}
            return read
        """)


@cache
def _names_maker(count: int) -> Callable[..., HeadersReader]:
    """Make readers of so many headers with the same names. What has other names, `other` reads."""
    lines = "".join(
        f"""
                    size{n} = data[stop{n} := {f"end{n - 1}" if n else "at"} + length{n}]
                    begin{n} = stop{n} + 1
                    if size{n} > 127:
                        size{n} += data[begin{n}] - 1 << 7
                        begin{n} += 1
                    end{n} = begin{n} + (size{n} >> 1)"""
        for n in range(count)
    )
    starts = ["at", *_variables("end", count)]
    alike = " and ".join(f"data[{starts[n]}:stop{n}] == piece{n}" for n in range(count))
    found = "".join(f"(name{n}, data[begin{n}:end{n}]), " for n in range(count))
    return _compiled(f"""
        def make(pieces, lengths, names, other):
            {", ".join(_variables("piece", count))}, = pieces
            {", ".join(_variables("length", count))}, = lengths
            {", ".join(_variables("name", count))}, = names
            def read(data, at, end):
                try:{lines}
                except IndexError:
                    return other(data, at, end)
                null = ({" | ".join(_variables("size", count))}) & 1
                if end{count - 1} == end <= at + {LONGEST_HEADERS} and not null and {alike}:
                    return ({found})
                return other(data, at, end)
            return read
        """)


def _variables(stem: str, count: int) -> list[str]:
    return [f"{stem}{number}" for number in range(count)]


def _compiled(source: str) -> Callable[..., Any]:
    scope: dict[str, Any] = {}
    exec(compile(dedent(source), "<leafcuttr record shapes>", "exec"), scope)
    made: Callable[..., Any] = scope["make"]
    return made
