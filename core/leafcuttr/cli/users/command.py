"""`leafcuttr users`: what `kafka-configs.sh --entity-type users` does with SCRAM credentials, and the first user of a
broker that is not running."""

from collections.abc import Callable
from pathlib import Path

import click

from leafcuttr.cli.common.failures import Failure
from leafcuttr.cli.common.options.store import store_options
from leafcuttr.cli.common.output import json_option, print_json, print_table
from leafcuttr.cli.users.passwords import read_password
from leafcuttr.cli.users.stored import NewPassword, UsersOfCluster, UsersOfDirectory, UserStore
from leafcuttr.state.security.credentials import BY_NAME, ScramMechanism

_ALL = tuple(BY_NAME)
_store_options = store_options(UsersOfCluster, UsersOfDirectory)


def _password_options(function: Callable[..., None]) -> Callable[..., None]:
    mechanism = click.option(
        "--mechanism",
        "mechanisms",
        multiple=True,
        type=click.Choice(_ALL, case_sensitive=False),
        help="Both by default; may be given twice.",
    )
    iterations = click.option(
        "--iterations",
        type=click.IntRange(4096, 16_384),
        default=8192,
        show_default=True,
        help="What each try of a password costs.",
    )
    file = click.option(
        "--password-file",
        type=click.Path(path_type=Path),
        help="A file with the password. Without it there is a prompt, or it is read from standard input.",
    )
    return mechanism(iterations(file(function)))


@click.group()
def command() -> None:
    """Create, change, delete and list the users that may log in.

    They log in by SCRAM, and by PLAIN where the broker's settings name no users for it.

    Exit status: 0 done, 1 no such user, refused, or no broker answers, 2 wrong usage or a directory that is in use.
    """


@command.command(short_help="Create a user.")
@_store_options
@_password_options
@click.argument("name")
def create(
    store: UserStore, name: str, mechanisms: tuple[str, ...], iterations: int, password_file: Path | None
) -> None:
    """Create a user with a password.

    \b
    Examples:
      leafcuttr users create alice < alice.secret
      leafcuttr users create admin --data leafcuttr-data --password-file admin.secret
    """
    if name in store.users():
        raise Failure(
            f"there is a user {name} already; leafcuttr users password {name} changes the password, and with"
            " --mechanism adds one"
        )
    _set(store, name, mechanisms, iterations, password_file)
    click.echo(f"created {name}")


@command.command(short_help="Change the password of a user.")
@_store_options
@_password_options
@click.argument("name")
def password(
    store: UserStore, name: str, mechanisms: tuple[str, ...], iterations: int, password_file: Path | None
) -> None:
    """Change the password of a user. Connections with the old one end.

    Without --mechanism it is changed for the mechanisms that the user has; with it for that one, which the user may not
    have had.

    \b
    Examples:
      leafcuttr users password alice --password-file alice.secret
    """
    found = _known(store, name)
    _set(store, name, mechanisms or tuple(one.sasl_name for one in found), iterations, password_file)
    click.echo(f"changed the password of {name}")


@command.command(short_help="Delete a user.")
@_store_options
@click.option("--mechanism", "mechanisms", multiple=True, type=click.Choice(_ALL, case_sensitive=False))
@click.argument("name")
def delete(store: UserStore, name: str, mechanisms: tuple[str, ...]) -> None:
    """Delete a user, or what it has for a mechanism. Its connections end.

    \b
    Examples:
      leafcuttr users delete alice
    """
    found = _known(store, name)
    wanted = [BY_NAME[one.upper()] for one in mechanisms] or list(found)
    for one in wanted:
        if one not in found:
            raise Failure(f"{name} has nothing for {one.sasl_name}")
    store.delete(name, wanted)
    click.echo(
        f"deleted {name}" if set(wanted) == set(found) else f"deleted what {name} has for {mechanisms[0]}"
    )


@command.command("list", short_help="List users.")
@_store_options
@json_option
def list_users(store: UserStore, as_json: bool) -> None:
    """List the users, with their mechanisms and iterations.

    \b
    Examples:
      leafcuttr users list --json
    """
    found = store.users()
    if as_json:
        print_json(
            [
                {"user": name, "mechanisms": {one.sasl_name: count for one, count in each.items()}}
                for name, each in found.items()
            ]
        )
        return
    print_table(
        ("USER", "MECHANISM", "ITERATIONS"),
        ((name, one.sasl_name, count) for name, each in found.items() for one, count in each.items()),
    )


def _known(store: UserStore, name: str) -> dict[ScramMechanism, int]:
    found = store.users().get(name)
    if found is None:
        raise Failure(f"there is no user {name}")
    return found


def _set(
    store: UserStore, name: str, mechanisms: tuple[str, ...], iterations: int, file: Path | None
) -> None:
    made = [NewPassword(BY_NAME[one.upper()], iterations) for one in dict.fromkeys(mechanisms or _ALL)]
    store.set_password(name, read_password(name, file), made)
