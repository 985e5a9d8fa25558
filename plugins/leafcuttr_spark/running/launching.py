"""What a JVM that did not start had to say: PySpark knows that it has ended, and its words are on standard error.

Until it has started, standard error of this process is a pipe, whose lines go on to where it led, but for stack traces.
The JVM keeps that pipe for its life, so what it and its workers write goes through a thread here afterwards.
"""

import os
import re
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

_STANDARD_ERROR: Final = 2
_KEPT: Final = 50
"""Lines that are kept."""
_LONGEST: Final = 4000
"""Characters of one."""
_PIECE: Final = 1 << 16
_STACK: Final = re.compile(r"\s+at \S|Caused by: |\s+\.\.\. \d+ more")
_RAISED: Final = re.compile(r'Exception in thread "[^"]*" (?:[a-z]\w*\.)*([A-Z][\w$]*)(?:: (.*))?$')
_NOISE: Final = re.compile(
    r"WARNING: |Picked up |NOTE: |Using |Setting |To adjust |Error: A fatal exception "
)
_MOST: Final = 3
"""Lines of what is no exception."""
_END_S: Final = 2.0
"""For the pipe to be read to its end, once its JVM has ended."""


class Launch:
    """Of one JVM at most."""

    def __init__(self) -> None:
        self._has_started = False
        self._lines: deque[str] = deque(maxlen=_KEPT)
        self._thread: threading.Thread | None = None

    @contextmanager
    def heard(self) -> Iterator[None]:
        """A JVM is started within, and has started where nothing is raised."""
        try:
            out, back = os.dup(_STANDARD_ERROR), os.dup(_STANDARD_ERROR)
        except OSError:
            # There is no standard error.
            yield
            return
        read, write = os.pipe()
        self._thread = threading.Thread(
            target=self._copy, args=(read, out), name="standard error of Spark", daemon=True
        )
        self._thread.start()
        os.dup2(write, _STANDARD_ERROR)
        os.close(write)
        try:
            yield
            self._has_started = True
        finally:
            os.dup2(back, _STANDARD_ERROR)
            os.close(back)

    def why_not(self) -> str:
        """In one line why it did not start; empty if it has said nothing."""
        if self._thread is not None:
            self._thread.join(_END_S)
        lines = [line.strip() for line in self._lines if line.strip() and not _STACK.match(line)]
        for line in lines:
            if (raised := _RAISED.match(line)) is not None:
                return raised[2] or raised[1]
        return " ".join([line for line in lines if not _NOISE.match(line)][:_MOST])

    def _copy(self, read: int, out: int) -> None:
        rest = b""
        with suppress(OSError):
            while piece := os.read(read, _PIECE):
                if self._has_started:
                    _write(out, rest + piece)
                    rest = b""
                    continue
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    self._take(line, out)
                if len(rest) > _PIECE:
                    self._take(rest, out)
                    rest = b""
        if rest:
            self._take(rest, out)
        os.close(read)
        os.close(out)

    def _take(self, line: bytes, out: int) -> None:
        text = line[:_LONGEST].decode(errors="replace").rstrip("\r")
        self._lines.append(text)
        if not _STACK.match(text) and not _RAISED.match(text):
            _write(out, line + b"\n")


def _write(out: int, data: bytes) -> None:
    # Where nobody reads it any more it is lost, and the JVM goes on.
    with suppress(OSError):
        while data:
            data = data[os.write(out, data) :]
