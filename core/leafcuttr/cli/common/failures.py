"""How a command fails: one line on standard error and an exit status, never a traceback.

This module does no I/O with a broker and knows no client library.
"""

import errno
import os
import traceback
from typing import IO, Any, Final

import click

from leafcuttr.errors import ErrorCode

AGAIN_S: Final = 0.1
"""How long to wait before the next try."""
DEBUG: Final = "LEAFCUTTR_DEBUG"
"""The variable under which the traceback of what a plugin raised comes before the line."""
_CANNOT_WRITE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EPIPE})
"""The errors of an output that is full, broken or closed. Those of a file carry its name besides."""


class Failure(click.ClickException):
    """The broker refused or cannot be reached: `leafcuttr: MESSAGE` on standard error, exit status 1.

    `code` is the error code of Kafka's protocol, or None. Commands of plugins may choose another status.
    """

    def __init__(self, message: str, code: int | None = None, *, status: int = 1) -> None:
        super().__init__(message)
        self.code = code
        self.exit_code = status  # type: ignore[misc]  # click reads it of the exception

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"leafcuttr: {self.message}", file=file, err=file is None)


def reason(code: int, text: str | None = None) -> str:
    """What an error code of Kafka's protocol says: the broker's own text if it sent one, and the code's name.

    It follows the name of the thing that failed and a colon.
    """
    try:
        name = ErrorCode(code).name
    except ValueError:
        return f"{text or 'refused'} (error {code})"
    return f"{(text or name.replace('_', ' ').lower()).rstrip('.')} ({name})"


def is_of_output(error: OSError) -> bool:
    """Whether standard output cannot be written."""
    return error.errno in _CANNOT_WRITE and error.filename is None


def show_traceback(error: BaseException) -> None:
    """On standard error, if `DEBUG` says so."""
    if os.environ.get(DEBUG, "0") not in ("", "0"):
        click.echo("".join(traceback.format_exception(error)), nl=False, err=True)
