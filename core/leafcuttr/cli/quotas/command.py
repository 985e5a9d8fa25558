"""`leafcuttr quotas`: what `kafka-configs.sh` does with quotas."""

import functools
from collections.abc import Callable
from typing import Any

import click

from leafcuttr.cli.common.failures import Failure
from leafcuttr.cli.common.options.target import target_options
from leafcuttr.cli.common.output import count, json_option, print_json, print_table
from leafcuttr.cli.common.pairs import pairs
from leafcuttr.cli.common.target import Target
from leafcuttr.cli.quotas.stored import CLIENT, IP, USER, LimitedEntity, alter, find


def _entity_options(function: Callable[..., None]) -> Callable[..., None]:
    """Whom it is about, as the argument `entity`."""

    @click.option("--user", metavar="NAME", help="A user.")
    @click.option("--user-defaults", is_flag=True, help="All users that have no quota of their own.")
    @click.option("--client", metavar="ID", help="A client id; with a user, of this user.")
    @click.option("--client-defaults", is_flag=True, help="All client ids that have no quota of their own.")
    @click.option("--ip", metavar="ADDRESS", help="An IP address.")
    @click.option("--ip-defaults", is_flag=True, help="All addresses that have no quota of their own.")
    @functools.wraps(function)
    def with_entity(
        *,
        user: str | None,
        user_defaults: bool,
        client: str | None,
        client_defaults: bool,
        ip: str | None,
        ip_defaults: bool,
        **rest: Any,
    ) -> None:
        parts: dict[str, str | None] = {}
        for kind, name, is_default in (
            (USER, user, user_defaults),
            (CLIENT, client, client_defaults),
            (IP, ip, ip_defaults),
        ):
            if is_default and name is not None:
                raise click.UsageError(f"a name and the default of one type: {name}")
            if is_default or name is not None:
                parts[kind] = name
        if IP in parts and len(parts) > 1:
            raise click.UsageError("an address has quotas of its own: no user and no client with it")
        function(entity=LimitedEntity(parts), **rest)

    return with_entity


@click.group()
def command() -> None:
    """Set, remove and list the quotas of users, client ids and addresses in a running cluster.

    Exit status: 0 done, 1 the broker refused or cannot be reached, 2 wrong usage.
    """


@command.command("set", short_help="Set quotas.")
@target_options
@_entity_options
@click.argument("quotas", nargs=-1, required=True, metavar="QUOTA=NUMBER...")
def set_quotas(target: Target, entity: LimitedEntity, quotas: tuple[str, ...]) -> None:
    """Set quotas of a user, a client id, the two together, or an address; all of them or none.

    Of users and client ids: producer_byte_rate and consumer_byte_rate (bytes a second), request_percentage (of the
    time of the broker's event loop), controller_mutation_rate (partitions created or deleted a second). Of addresses:
    connection_creation_rate (connections a second).

    \b
    Examples:
      leafcuttr quotas set --user alice producer_byte_rate=1048576 request_percentage=10
      leafcuttr quotas set --user-defaults --client reports consumer_byte_rate=1048576
      leafcuttr quotas set --ip 192.0.2.7 connection_creation_rate=20
    """
    _check_named(entity)
    changes: dict[str, float | None] = {}
    for name, text in pairs("QUOTA=NUMBER", quotas).items():
        try:
            changes[name] = float(text)
        except ValueError:
            raise click.UsageError(f"{name}={text}: a quota is a number") from None
    alter(target, entity, changes)
    click.echo(f"{entity}: {count(len(changes), 'quota')} set")


@command.command(short_help="Remove quotas.")
@target_options
@_entity_options
@click.argument("quotas", nargs=-1, metavar="[QUOTA]...")
def remove(target: Target, entity: LimitedEntity, quotas: tuple[str, ...]) -> None:
    """Remove quotas, without names all that this user, client id or address has.

    \b
    Examples:
      leafcuttr quotas remove --user alice request_percentage
      leafcuttr quotas remove --ip 192.0.2.7
    """
    _check_named(entity)
    present = {name for each in find(target, entity.parts, strict=True) for name in each.values}
    missing = [name for name in quotas if name not in present]
    if missing or not present:
        raise Failure(
            f"{entity}: there is no quota {missing[0]}" if missing else f"{entity}: there is no quota"
        )
    removed = dict.fromkeys(quotas or sorted(present))
    alter(target, entity, removed)
    click.echo(f"{entity}: {count(len(removed), 'quota')} removed")


@command.command("list", short_help="List quotas.")
@target_options
@_entity_options
@json_option
def list_quotas(target: Target, entity: LimitedEntity, as_json: bool) -> None:
    """List all quotas, or those of a user, a client id or an address.

    \b
    Examples:
      leafcuttr quotas list
      leafcuttr quotas list --user alice --json
    """
    found = find(target, entity.parts, strict=False)
    if as_json:
        print_json([{"entity": dict(each.entity.parts), "quotas": dict(each.values)} for each in found])
        return
    print_table(
        ("USER", "CLIENT", "IP", "QUOTA", "VALUE"),
        (
            (*(each.entity.shown(kind) for kind in (USER, CLIENT, IP)), name, f"{value:.15g}")
            for each in found
            for name, value in sorted(each.values.items())
        ),
    )


def _check_named(entity: LimitedEntity) -> None:
    if not entity.parts:
        raise click.UsageError("expected whom it is for: --user, --client, --ip, or their defaults")
