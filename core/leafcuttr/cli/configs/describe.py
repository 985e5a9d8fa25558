"""`configs describe`: what is printed. How it is read, and through which client, is in `entries` and `quotas`."""

from typing import Any

import click

from leafcuttr.cli.common.failures import Failure
from leafcuttr.cli.common.options.target import target_options
from leafcuttr.cli.common.output import json_option, print_json, print_table, printable
from leafcuttr.cli.common.target import Target
from leafcuttr.cli.configs import entries, quotas
from leafcuttr.cli.configs.entity_types import (
    EntityType,
    complete_entity_types,
    complete_names,
    own_sources,
    parse_entity_type,
)
from leafcuttr.cli.configs.entries import DescribedConfig


@click.command(short_help="Print what has been set.")
@target_options
@json_option
@click.argument("entity_type", type=parse_entity_type, metavar="KIND", shell_complete=complete_entity_types)
@click.argument("names", nargs=-1, shell_complete=complete_names)
@click.option(
    "--default", is_flag=True, help="Of all brokers, clients, users or addresses that have none of their own."
)
@click.option("--all", "everything", is_flag=True, help="Every setting, not only those that have been set.")
def describe(
    target: Target,
    as_json: bool,
    entity_type: EntityType,
    names: tuple[str, ...],
    default: bool,
    everything: bool,
) -> None:
    """Print what has been set for topics, brokers, groups and the like; for all of a kind, if none is named.

    KIND is topic, broker, group, broker-logger, client-metrics, or client, user, ip for quotas.

    Clients, users and addresses have quotas.

    \b
    Examples:
      leafcuttr configs describe topic orders
      leafcuttr configs describe topic orders --all --json
      leafcuttr configs describe broker 1
      leafcuttr configs describe broker --default
      leafcuttr configs describe client
    """
    if default and (names or not entity_type.has_default):
        raise click.UsageError(
            "--default and a name exclude each other" if names else f"a {entity_type.name} has no default"
        )
    if entity_type.quota:
        _quotas(target, entity_type, [None] if default else list(names), as_json)
        return
    wanted = list(dict.fromkeys(names)) if names or default else entries.names(target, entity_type)
    found = entries.describe(target, entity_type, wanted, default)
    shown: dict[str, list[DescribedConfig]] = {}
    failed = []
    for name, each in found.items():
        if isinstance(each, Failure):
            failed.append(f"{name}: {each.message}")
        else:
            shown[name] = [entry for entry in each if everything or entry.source in own_sources(entity_type)]
    if as_json:
        print_json(
            [
                {
                    "type": entity_type.name,
                    "name": name or None,
                    "config": [entry._asdict() for entry in each],
                }
                for name, each in shown.items()
            ]
        )
    elif shown or not failed:
        _print(entity_type, shown, everything=bool(names or default))
    if failed:
        raise Failure(printable("; ".join(failed)))


def _print(entity_type: EntityType, shown: dict[str, list[DescribedConfig]], everything: bool) -> None:
    """A table; a name that was given is there even if nothing is set."""
    rows = [
        (name or quotas.DEFAULT, entry.name, "(hidden)" if entry.sensitive else entry.value, entry.source)
        for name, each in shown.items()
        for entry in each or ([DescribedConfig("-", None, "-", False, False)] if everything else [])
    ]
    print_table((entity_type.name.upper(), "SETTING", "VALUE", "SOURCE"), rows)


def _quotas(target: Target, entity_type: EntityType, names: list[Any], as_json: bool) -> None:
    found = quotas.describe(target, entity_type, names)
    if as_json:
        print_json(
            [
                {
                    "type": entity_type.name,
                    "name": entity.name,
                    **({entity.other: entity.other_name} if entity.other else {}),
                    "config": [{"name": name, "value": value} for name, value in sorted(values.items())],
                }
                for entity, values in found.items()
            ]
        )
        return
    print_table(
        (entity_type.name.upper(), "QUOTA", "VALUE"),
        [
            (entity, name, f"{value:.15g}")
            for entity, values in found.items()
            for name, value in sorted(values.items())
        ],
    )
