"""`schemas list` and `schemas get`."""

from typing import Any
from urllib.parse import quote

import click

from leafcuttr_registry.people.client import RegistryClient, all_versions, subject_path
from leafcuttr_registry.people.command.options import registry_options
from leafcuttr_sdk.cli import command_context
from leafcuttr_sdk.errors import PluginError


@click.command("list", short_help="List subjects, or the versions of one.")
@click.argument("subject", required=False)
@click.option("--prefix", metavar="TEXT", help="Only subjects that begin with it.")
@click.option("--deleted", is_flag=True, help="With those that are deleted, but not for good.")
@registry_options
def list_subjects(client: RegistryClient, subject: str | None, prefix: str | None, deleted: bool) -> None:
    """List the subjects with their latest versions, or all versions of one subject.

    Exit status: 0 done, 1 it cannot be done, 2 wrong usage.

    \b
    Examples:
      leafcuttr schemas list
      leafcuttr schemas list orders-value
      leafcuttr schemas list --prefix orders --json
    """
    context = command_context()
    if subject is not None:
        numbers = client.get(subject_path(subject, "versions"), deleted=deleted)
        found = [client.get(subject_path(subject, "versions", each), deleted=deleted) for each in numbers]
    else:
        found = all_versions(client, prefix, latestOnly=True, deleted=deleted)
    if context.as_json:
        context.print_json(found)
        return
    context.print_table(
        ("SUBJECT", "VERSION", "ID", "TYPE", "REFERENCES", "SCHEMA"), [_row(each) for each in found]
    )


def _row(body: Any) -> tuple[object, ...]:
    text = " ".join(str(body["schema"]).split())
    return (
        body["subject"],
        body["version"],
        body["id"],
        body.get("schemaType") or "AVRO",
        len(body.get("references") or ()) or None,
        text if len(text) <= 60 else f"{text[:57]}...",
    )


@click.command("get", short_help="Print a schema.")
@click.argument("which", metavar="ID|SUBJECT")
@click.argument("version", default="latest")
@click.option("--deleted", is_flag=True, help="Also if it is deleted, but not for good.")
@registry_options
def show(client: RegistryClient, which: str, version: str, deleted: bool) -> None:
    """Print a schema: by its id, by its guid, or a version of a subject, the latest one by default.

    Without --json only the text of the schema is printed, as it was registered. A subject whose name is a number:
    write it with --json list, or as :.:NAME.

    Exit status: 0 done, 1 there is no such schema, 2 wrong usage.

    \b
    Examples:
      leafcuttr schemas get 7
      leafcuttr schemas get orders-value > orders.avsc
      leafcuttr schemas get orders-value 3 --json
    """
    context = command_context()
    if which.isdecimal():
        body = client.get(f"/schemas/ids/{which}")
    elif len(which) == 36 and which.count("-") == 4:
        body = client.get(f"/schemas/guids/{quote(which, safe='')}")
    else:
        body = client.get(subject_path(which, "versions", version), deleted=deleted)
    if not isinstance(body, dict) or "schema" not in body:
        raise PluginError("the registry answers without a schema")
    if context.as_json:
        context.print_json(body)
    else:
        click.echo(body["schema"])
