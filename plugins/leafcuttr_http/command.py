"""`leafcuttr http`: what a person does for the HTTP proxy on the command line."""

import sys
from pathlib import Path

import click

from leafcuttr_http.passwords import Hash, check_name, read_passwords, set_password
from leafcuttr_sdk.cli import command_context


@click.group("http")
def http() -> None:
    """Manage the HTTP proxy."""


@http.command("passwd", short_help="Set the password of a name.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("name")
@click.option("--stdin", is_flag=True, help="Read the password from the first line of the standard input.")
@click.option("--delete", is_flag=True, help="Take the name out of the file.")
def passwd(file: Path, name: str, stdin: bool, delete: bool) -> None:
    """Set the password of a name in a file for lc.http.proxy.passwords.file.

    The file is made if there is none. A running broker reads it again within a second or two. You type the password
    twice, and it is not shown.

    Exit status: 0 done, 1 the file cannot be read or written, or has no such name, 2 wrong usage.

    \b
    Examples:
      leafcuttr http passwd passwords alice
      echo 'open sesame' | leafcuttr http passwd passwords alice --stdin
      leafcuttr http passwd passwords alice --delete
    """
    if wrong := check_name(name):
        raise click.UsageError(f"{name!r}: {wrong}")
    context = command_context()
    try:
        if file.exists():
            read_passwords(file)  # what is wrong with it is said before a password is typed
        kept = None if delete else Hash.of(_password(stdin))
        if not set_password(file, name, kept) and delete:
            context.fail(f"{file} has no name {name!r}")
    except OSError as error:
        context.fail(f"{file} cannot be written: {error.strerror}")


def _password(stdin: bool) -> str:
    password: str
    if stdin:
        try:
            password = sys.stdin.buffer.readline().decode().rstrip("\r\n")
        except UnicodeDecodeError:
            raise click.UsageError("the password is not UTF-8") from None
    else:
        password = click.prompt("Password", hide_input=True, confirmation_prompt=True)
    if not password:
        raise click.UsageError("the password is empty")
    return password
