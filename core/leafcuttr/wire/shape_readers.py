"""The source of readers of records that have a known shape: see `wire/record_shapes.py`, which keeps what is learnt.

Each is a function that is compiled for the number of headers, and the way in which each is read. What it compares with
is given to the function that makes it, so that partitions with other names share its code.
"""

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from itertools import chain
from struct import error
from textwrap import dedent
from typing import Any, Final, TypeAlias

from leafcuttr_sdk.records import StoredRecord

TailReader: TypeAlias = Callable[[bytes, int, int, int, int], StoredRecord | None]
"""The record whose tail stands between two positions, with this offset and timestamp; None if its shape is unknown."""

LONGEST_TAIL: Final = 8192
"""Bytes of a tail beyond which its record is not read by a shape, because the tail is copied for that. Its headers are
found by their bytes, if these are of a few sets (`Shapes.of_long`)."""


_RETURN: Final = "return new(StoredRecord, (topic, partition, offset, timestamp, {key}, value, {headers}))"
"""The record as it is handed out: to make it of another one would take a fifth of the time."""


def _variables(stem: str, count: int) -> list[str]:
    return [f"{stem}{number}" for number in range(count)]


@cache
def size_maker(count: int, key: str) -> Callable[..., TailReader]:
    """Make readers of tails of one size with so many headers, of which the key is the variable `key` or "None"."""
    names, values, pieces = (_variables(stem, count) for stem in ("name", "value", "piece"))
    cut = ", ".join(chain(*zip(pieces, values, strict=True)))
    return _compiled(f"""
        def make(topic, partition, unpack, pieces, names, size, other):
            {", ".join(names)}, = names
            def read(data, at, end, offset, timestamp):
                if end - at == size:
                    key_size, key, value_size, value, {cut} = unpack(data, at)
                    if (key_size, value_size, {", ".join(pieces)}) == pieces:
                        {_RETURN.format(key=key, headers=f"({_headers(names, values)})")}
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
SIZES: Final = (_SHORT, _TWO, _SECOND)
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
_FIXED_FRONT: Final = """
                try:
                    size, key, more, value = unpack(data, at)
                    if size != key_size or more != value_size:
                        return stray(data, at, end, offset, timestamp)
                    tail = data[at + front:end]"""
"""The same by one call of `struct`. What it cuts out may lie beyond the end: then there is no tail left."""
_TOO_SHORT: Final = """
                except error:
                    return stray(data, at, end, offset, timestamp)"""


@cache
def front_maker() -> Callable[..., TailReader]:
    """Make readers of tails whose headers are known by their bytes."""
    return _compiled(f"""
        def make(topic, partition, known, short, two, second):
            def read(data, at, end, offset, timestamp):{_FRONT}
                    headers = known[tail[end_:]]
                except (IndexError, KeyError):
                    return None
                {_RETURN.format(key="key", headers="headers")}
            return read
        """)


@lru_cache(maxsize=64)
def names_maker(ways: str, key: str) -> Callable[..., TailReader]:
    """Make readers of tails whose headers have the same names, each read in its way. If a `key` is given, "key" or
    "None", of those that have a key, or none, and a value of known sizes: `stray` reads the others. The lengths are
    those of the pieces, and for the way `c` with the size of the value."""
    lines, found, tests, end = "", "", "", "0" if key else "end_"
    for n, way in enumerate(ways):
        start = f"{end} + " if end != "0" else ""
        if way == "c":
            lines += f"""
                    begin{n} = {start}length{n}
                    end{n} = begin{n} + sizes{n}[tail[{end}:begin{n}]]"""
        else:
            lines += f"""
                    begin{n} = {start}length{n}
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
        stop = f"end{n}" if n < len(ways) - 1 else ""  # the last one ends with the tail
        found += f"known{n}[tail[{end}:{stop}]], " if way == "k" else f"(name{n}, tail[begin{n}:{stop}]), "
        end = f"end{n}"
    unpacked = (
        "; ".join(
            f"{', '.join(_variables(stem, len(ways)))}, = {stem}s"
            for stem in ("name", "piece", "length", "known", "sizes")
        )
        .replace("sizess", "all_sizes")
        .replace("knowns", "all_known")
    )
    given = ", stray, unpack, key_size, value_size, front" if key else ""
    return _compiled(f"""
        def make(topic, partition, names, pieces, lengths, all_known, all_sizes, other{given}, short, two, second):
            {unpacked}
            def read(data, at, end, offset, timestamp):{_FIXED_FRONT if key else _FRONT}{lines}
                    if {end} != {"len(tail)" if key else "size_"}{tests}:
                        return other(data, at, end, offset, timestamp)
                    {_RETURN.format(key=key or "key", headers=f"({found})")}
                except (IndexError, KeyError):
                    return other(data, at, end, offset, timestamp){_TOO_SHORT if key else ""}
            return read
        """)


def _compiled(source: str) -> Callable[..., Any]:
    scope: dict[str, Any] = {"error": error, "new": tuple.__new__, "StoredRecord": StoredRecord}
    exec(compile(dedent(source), "<leafcuttr record shapes>", "exec"), scope)
    made: Callable[..., Any] = scope["make"]
    return made
