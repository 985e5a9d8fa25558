"""`configs alter`: what a person may write. How it is set, and through which client, is in `entries` and `quotas`."""

from pathlib import Path
from typing import Any

import click

from leafcuttr.cli.common.failures import Failure
from leafcuttr.cli.common.options.target import target_options
from leafcuttr.cli.common.output import ItemResults, count, json_option, printable
from leafcuttr.cli.common.pairs import pairs, read_properties
from leafcuttr.cli.common.target import Target
from leafcuttr.cli.configs import entries, quotas
from leafcuttr.cli.configs.entity_types import (
    EntityType,
    complete_entity_types,
    complete_names,
    parse_entity_type,
)
from leafcuttr.cli.configs.entries import Change, ConfigOperation


@click.command(short_help="Set and remove settings and quotas.")
@target_options
@json_option
@click.argument("entity_type", type=parse_entity_type, metavar="KIND", shell_complete=complete_entity_types)
@click.argument("name", required=False, shell_complete=complete_names)
@click.option(
    "--default", is_flag=True, help="Of all brokers, clients, users or addresses that have none of their own."
)
@click.option("--client", metavar="ID", help="Of a user: the quota of this client id of the user.")
@click.option("--set", "-s", "sets", multiple=True, metavar="KEY=VALUE", help="Set it; may be repeated.")
@click.option(
    "--delete", "-d", "deletes", multiple=True, metavar="KEY", help="Remove it, so that its default applies."
)
@click.option("--append", "appends", multiple=True, metavar="KEY=VALUE", help="Add to a list.")
@click.option("--subtract", "subtracts", multiple=True, metavar="KEY=VALUE", help="Remove from a list.")
@click.option(
    "--file",
    "-f",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Set what the KEY=VALUE lines of a file say.",
)
@click.option("--dry-run", is_flag=True, help="Let the broker check it and change nothing.")
def alter(
    target: Target,
    as_json: bool,
    entity_type: EntityType,
    name: str | None,
    default: bool,
    client: str | None,
    dry_run: bool,
    **words: Any,
) -> None:
    """Change settings of a topic, broker or group, or quotas of a client, user or address; all of them or none.

    KIND is topic, broker, group, broker-logger, client-metrics, or client, user, ip for quotas.

    \b
    Examples:
      leafcuttr configs alter topic orders --set retention.ms=86400000 --delete cleanup.policy
      leafcuttr configs alter topic orders --append cleanup.policy=compact
      leafcuttr configs alter broker 1 --set log.cleaner.threads=2
      leafcuttr configs alter broker --default --set log.retention.ms=86400000
      leafcuttr configs alter client reports --set consumer_byte_rate=1048576
      leafcuttr configs alter user alice --client reports --delete consumer_byte_rate
    """
    if default == (name is not None):
        raise click.UsageError(
            f"expected the name of one {entity_type.name}" + " or --default" * entity_type.has_default
        )
    if default and not entity_type.has_default:
        raise click.UsageError(f"a {entity_type.name} has no default")
    if client is not None and entity_type.name != "user":
        raise click.UsageError("--client: only with user")
    changes = _changes(**words)
    if entity_type.quota and any(change.operation > ConfigOperation.DELETE for change in changes):
        raise click.UsageError("a quota is a number: --append and --subtract are for lists")
    results = ItemResults("name", as_json)
    entity = quotas.Entity(name) if client is None else quotas.Entity(name, "client", client)
    said = f"{entity_type.name} {entity}"
    try:
        if entity_type.quota:
            quotas.alter(target, entity_type, entity, changes, dry_run)
        else:
            entries.alter(target, entity_type, name or "", changes, dry_run)
    except Failure as failure:
        results.failed(said, failure.message, changed=False)
    else:
        done = "would be changed" if dry_run else "changed"
        results.done(said, f"{said}: {count(len(changes), 'setting')} {done}", changed=not dry_run)
        if entity_type.name == "broker":
            _say_what_is_unknown(changes)
    results.finish()


def _say_what_is_unknown(changes: list[Change]) -> None:
    from leafcuttr.cli.common.installed import installed
    from leafcuttr.config.findings import unknown_to_brokers
    from leafcuttr.plugins.catalogue import catalog_of

    for change in changes:
        if change.operation != ConfigOperation.SET or unknown_to_brokers(change.name) is None:
            continue
        warning = unknown_to_brokers(change.name, catalog_of(installed()))
        if warning is not None:
            click.echo(f"leafcuttr: {printable(warning)}", err=True)


def _changes(
    sets: tuple[str, ...],
    deletes: tuple[str, ...],
    appends: tuple[str, ...],
    subtracts: tuple[str, ...],
    file: Path | None,
) -> list[Change]:
    listed = {} if file is None else _from_file(file)
    changes = [
        *(Change(ConfigOperation.SET, *item) for item in (listed | pairs("--set", sets)).items()),
        *(Change(ConfigOperation.DELETE, name, None) for name in dict.fromkeys(deletes)),
        *(Change(ConfigOperation.APPEND, *item) for item in pairs("--append", appends).items()),
        *(Change(ConfigOperation.SUBTRACT, *item) for item in pairs("--subtract", subtracts).items()),
    ]
    if not changes:
        raise click.UsageError(
            "expected something to change: --set, --delete, --append, --subtract or --file"
        )
    names = [change.name for change in changes]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise click.UsageError(f"{', '.join(twice)}: more than one change of it")
    return changes


def _from_file(file: Path) -> dict[str, str]:
    try:
        return read_properties(file)
    except OSError as error:
        raise click.UsageError(f"{file}: {error.strerror}") from None
    except ValueError as error:
        raise click.UsageError(str(error)) from None
