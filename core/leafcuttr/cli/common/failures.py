"""How a command fails: one line on standard error and an exit status, never a traceback.

This module does no I/O with a broker and knows no client library.
"""

from typing import IO, Any, Final

import click

from leafcuttr.errors import ErrorCode

COORDINATOR_NOT_YET: Final = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""What a broker answers while the internal topic of groups or transactions is being made, read, or moved."""
AGAIN_S: Final = 0.1
"""How long to wait before the next try."""


class Failure(click.ClickException):
    """The broker refused or cannot be reached: `leafcuttr: MESSAGE` on standard error, exit status 1.

    `code` is the error code of Kafka's protocol, or None.
    """

    exit_code = 1

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code

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
