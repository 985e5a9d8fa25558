"""Lines of a file, a pipe or a terminal, one at a time and never longer than a bound.

While nothing comes from a pipe or a terminal, the reader calls `idle` now and then, so that a program that waits for
input still handles what the broker sends.
"""

import os
import re
import select
from collections.abc import Callable, Iterator
from typing import IO, Final

_CHUNK: Final = 1 << 18
_IDLE_S: Final = 0.2


class TooLongError(ValueError):
    """A line is longer than a record may be."""


def lines(
    source: IO[bytes], limit: int, idle: Callable[[], None], took: Callable[[int], None] = lambda _: None
) -> Iterator[bytes]:
    """The lines without their ends (LF or CRLF). `took` is called with the number of bytes read.

    Raises TooLongError for a line of more than `limit` bytes; those before it have been yielded then.
    """
    rest = bytearray()
    for chunk in chunks(source, idle):
        took(len(chunk))
        *ended, last = chunk.split(b"\n")
        for line in ended:
            if rest:
                line = bytes(rest + line)
                rest.clear()
            if len(line) > limit:
                raise TooLongError(f"longer than {limit:,} bytes")
            yield line.removesuffix(b"\r")
        rest += last
        if len(rest) > limit:
            raise TooLongError(f"longer than {limit:,} bytes")
    if rest:
        yield bytes(rest).removesuffix(b"\r")


def whole(source: IO[bytes], limit: int, idle: Callable[[], None]) -> bytes:
    """All of it. Raises TooLongError as soon as more than `limit` bytes have been read."""
    parts, size = [], 0
    for chunk in chunks(source, idle):
        parts.append(chunk)
        size += len(chunk)
        if size > limit:
            raise TooLongError(f"longer than {limit:,} bytes")
    return b"".join(parts)


def chunks(source: IO[bytes], idle: Callable[[], None]) -> Iterator[bytes]:
    """What is there, as it comes. Raises OSError."""
    number = source.fileno()
    while True:
        # A regular file is always ready.
        while not select.select([number], [], [], _IDLE_S)[0]:
            idle()
        chunk = os.read(number, _CHUNK)
        if not chunk:
            return
        yield chunk


def unescaped(text: str) -> bytes:
    r"""A separator as it is typed: `\t`, `\n`, `\r`, `\0`, `\\` and `\xHH` are the bytes they name."""
    named = {"t": "\t", "n": "\n", "r": "\r", "0": "\0", "\\": "\\"}

    def one(found: re.Match[str]) -> str:
        return named.get(found[1]) or os.fsdecode(bytes([int(found[1][1:], 16)]))

    return os.fsencode(re.sub(r"\\([tnr0\\]|x[0-9a-fA-F]{2})", one, text))
