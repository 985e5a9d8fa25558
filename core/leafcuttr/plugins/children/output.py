"""What a child prints, as lines for the log, within bounds. No I/O.

    lines = BoundedLines(now)
    for line in lines.received(data, now): ...
    for line in lines.ended(now): ...

A line is cut at `LONGEST` characters. `BURST` lines may come at once, and `RATE` a second for longer: what is beyond is
counted, and said in one line as soon as lines may come again. `may_read` says how many bytes are to be read now: of a
child that prints without end no more than `BYTES` a second, so that it waits and not the broker.
"""

from collections.abc import Iterator
from typing import Final

LONGEST: Final = 2000
"""Characters of a line."""
BURST: Final = 1000
RATE: Final = 100.0
"""Lines a second."""
BYTES: Final = 4 << 20
_MOST: Final = 4 * LONGEST
"""Bytes of a line that are kept: no more characters than bytes."""


class BoundedLines:
    """`now` are seconds of a clock that only goes forward. `last` is the last line that was not empty; `left_out`
    counts those that were not to be logged."""

    def __init__(self, now: float) -> None:
        self.last = ""
        self.left_out = 0
        self._begun = bytearray()
        self._cut = False
        self._tokens = float(BURST)
        self._bytes = float(BYTES)
        self._now = now
        self._untold = 0

    def may_read(self, now: float) -> int:
        """Bytes; 0: later."""
        self._advance(now)
        return int(self._bytes)

    def received(self, data: bytes | bytearray, now: float) -> Iterator[str]:
        """The lines that are to be logged."""
        self._advance(now)
        self._bytes -= len(data)
        *whole, rest = data.split(b"\n")
        for piece in whole:
            self._add(piece)
            yield from self._line()
        self._add(rest)

    def ended(self, now: float) -> Iterator[str]:
        """There is no more: the rest of it."""
        self._advance(now)
        if self._begun:
            yield from self._line()
        yield from self._told()

    def _advance(self, now: float) -> None:
        passed = max(now - self._now, 0.0)
        self._now = now
        self._tokens = min(self._tokens + passed * RATE, BURST)
        self._bytes = min(self._bytes + passed * BYTES, BYTES)

    def _add(self, piece: bytes | bytearray) -> None:
        free = _MOST - len(self._begun)
        self._begun += piece[:free]
        self._cut = self._cut or len(piece) > free

    def _line(self) -> Iterator[str]:
        line = _printable(self._begun, cut=self._cut)
        self._begun.clear()
        self._cut = False
        if not line:
            return
        self.last = line
        if self._tokens < 1:
            self.left_out += 1
            self._untold += 1
            return
        yield from self._told()
        self._tokens -= 1
        yield line

    def _told(self) -> Iterator[str]:
        if self._untold:
            count, self._untold = self._untold, 0
            yield f"({count} line{'s' if count > 1 else ''} left out)"


def _printable(data: bytearray, *, cut: bool) -> str:
    """Without control characters, which could make a line of their own in a log, or colour a terminal."""
    text = "".join(
        character if character.isprintable() else " "
        for character in data.decode(errors="backslashreplace").expandtabs(4).rstrip()
    )
    return text if len(text) <= LONGEST and not cut else text[: LONGEST - 1] + "…"
