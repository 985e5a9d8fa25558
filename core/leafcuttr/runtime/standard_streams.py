"""The standard streams of a process, which may be closed: at its start by its parent, later by a plugin."""

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

_STREAMS: Final = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


def open_missing_streams() -> None:
    """Open /dev/null in place of standard streams that are closed at the start, before a socket gets their number."""
    for number, (name, mode) in enumerate(_STREAMS):
        if getattr(sys, name) is None:
            stream = Path(os.devnull).open(mode, encoding="utf-8")  # noqa: SIM115 - open as long as the process
            if stream.fileno() != number:
                os.dup2(stream.fileno(), number)
            setattr(sys, name, stream)


def open_closed_streams() -> None:
    """Open again what was closed since then: `sys.stderr.close()` closes the object of Python, and what it writes to
    is still there. Where that is closed too, the stream stays closed."""
    for number, (name, mode) in enumerate(_STREAMS):
        if not is_open(getattr(sys, name)):
            with suppress(OSError):
                setattr(sys, name, _of_descriptor(number, mode))


def is_open(stream: object) -> bool:
    """Whether something can be written to it, or read from it."""
    try:
        return stream is not None and not getattr(stream, "closed", False)
    except ValueError:  # its buffer was detached
        return False


def _of_descriptor(number: int, mode: str) -> IO[str]:
    # As the interpreter's own are: lines are written at once, and what cannot be encoded is escaped.
    return open(number, mode, buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)
