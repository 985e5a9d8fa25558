"""`schemas check` and `schemas diff`."""

import sys
from typing import Any

import click

from leafcuttr_registry.people.client import RegistryClient, subject_path
from leafcuttr_registry.people.command.options import registry_options, schema_options
from leafcuttr_registry.people.files import body_of
from leafcuttr_registry.people.schemas import HttpSchemas, format_named
from leafcuttr_sdk.cli import command_context
from leafcuttr_sdk.errors import PluginError
from leafcuttr_sdk.schemas import Difference, SchemaError

_DIRECTIONS = ("backward", "forward", "full")


@click.command("check", short_help="Say whether a schema could be registered.")
@click.argument("subject")
@click.argument("file")
@schema_options
@click.option("--version", metavar="N|latest", help="Only against this version.")
@registry_options
def check(
    client: RegistryClient,
    subject: str,
    file: str,
    type: str | None,
    references: tuple[str, ...],
    version: str | None,
) -> None:
    """Say whether a schema is compatible as the subject asks, without registering it: against its versions, or one.

    For CI: nothing is changed, and the exit status tells. A subject that is not there takes any schema.

    Exit status: 0 compatible, 1 not compatible or no schema, 2 wrong usage.

    \b
    Examples:
      leafcuttr schemas check orders-value orders.avsc
      leafcuttr schemas check orders-value orders.avsc --version latest
    """
    context = command_context()
    body = body_of(file, type, references)
    path = f"/compatibility{subject_path(subject, 'versions')}"
    answer = client.post(path if version is None else f"{path}/{version}", body, verbose=True)
    if not isinstance(answer, dict) or "is_compatible" not in answer:
        raise PluginError("the registry answers without is_compatible")
    fits = bool(answer["is_compatible"])
    if context.as_json:
        context.print_json(answer)
    else:
        context.print_line("compatible" if fits else "not compatible")
        for message in answer.get("messages") or ():
            context.print_line(f"  {message}")
    sys.exit(0 if fits else 1)


@click.command("diff", short_help="Say what one version cannot read of another, and why.")
@click.argument("subject")
@click.argument("other", metavar="FILE|VERSION")
@schema_options
@click.option(
    "--version", default="latest", show_default=True, metavar="N|latest", help="The version to compare."
)
@click.option(
    "--direction",
    type=click.Choice(_DIRECTIONS),
    default="full",
    show_default=True,
    help="backward: what the new one cannot read of the old; forward: what the old cannot read of the new.",
)
@registry_options
def diff(
    client: RegistryClient,
    subject: str,
    other: str,
    type: str | None,
    references: tuple[str, ...],
    version: str,
    direction: str,
) -> None:
    """Compare a version of a subject with the schema of a file, or with another version, which is the new one. It is
    compared here, with LeafCuttr's rules, whatever registry the version is from.

    Exit status: 0 each can read the other as --direction asks, 1 not, or it cannot be done, 2 wrong usage.

    \b
    Examples:
      leafcuttr schemas diff orders-value orders.avsc
      leafcuttr schemas diff orders-value 3 --version 1 --direction backward
    """
    context, schemas = command_context(), HttpSchemas(client)
    old = client.get(subject_path(subject, "versions", version))
    if other.isdecimal() or other == "latest":
        new = client.get(subject_path(subject, "versions", other))
    else:
        new = body_of(other, type, references)
    (kind, before), (new_kind, after) = (
        schemas.parsed(old, f"version {old['version']}"),
        schemas.parsed(new, other),
    )
    if kind != new_kind:
        raise PluginError(f"version {old['version']} is of type {kind}, the new schema of type {new_kind}")
    format = format_named(kind)
    found: list[tuple[str, Difference]] = []
    try:
        if direction != "forward":
            found += [("backward", each) for each in format.differences(after, before)]
        if direction != "backward":
            found += [("forward", each) for each in format.differences(before, after)]
    except SchemaError as error:
        raise PluginError(str(error)) from None
    if context.as_json:
        context.print_json([{"direction": name, **each._asdict()} for name, each in found])
    elif found:
        context.print_table(("DIRECTION", "TYPE", "PATH", "OLD", "NEW", "WHY"), map(_row, found))
    else:
        context.print_line("no differences that matter")
    sys.exit(1 if found else 0)


def _row(found: tuple[str, Difference]) -> tuple[Any, ...]:
    direction, each = found
    return direction, each.type, each.path or "/", _short(each.old), _short(each.new), each.message


def _short(text: str | None) -> str | None:
    return text if text is None or len(text) <= 40 else f"{text[:37]}..."
