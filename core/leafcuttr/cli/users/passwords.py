"""Where the password of a user comes from: a prompt on a terminal, a file, or standard input. Never the command line,
which others on the machine can read."""

import sys
from pathlib import Path

import click


def read_password(name: str, file: Path | None) -> bytes:
    """Without the end of its line. Raises click.UsageError for one that is empty or not UTF-8."""
    if file is not None:
        try:
            found = file.read_bytes()
        except OSError as error:
            raise click.UsageError(f"--password-file {file}: {error.strerror}") from None
    elif sys.stdin.isatty():
        text: str = click.prompt(f"Password of {name}", hide_input=True, confirmation_prompt=True, err=True)
        found = text.encode()
    else:
        found = sys.stdin.buffer.readline()
    found = found.removesuffix(b"\n").removesuffix(b"\r")
    try:
        found.decode()
    except UnicodeDecodeError:
        raise click.UsageError("the password is not UTF-8") from None
    if not found or b"\n" in found:
        raise click.UsageError("the password is empty" if not found else "the password has several lines")
    return found
