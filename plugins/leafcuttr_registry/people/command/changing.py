"""`schemas delete`, `schemas mode` and `schemas config`."""

from typing import Any

import click

from leafcuttr_registry.people.client import RegistryClient, RegistryError, subject_path
from leafcuttr_registry.people.command.options import registry_options
from leafcuttr_sdk.cli import command_context
from leafcuttr_sdk.errors import PluginError

_LEVELS = (
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
    "NONE",
)
_MODES = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT")
_SOFT_FIRST = (40405, 40407)


@click.command("delete", short_help="Delete a version, or a whole subject.")
@click.argument("subject")
@click.argument("version", required=False)
@click.option("--permanent", is_flag=True, help="For good; deleted first if it is not yet.")
@click.option("--yes", is_flag=True, help="Without a question.")
@registry_options
def delete(client: RegistryClient, subject: str, version: str | None, permanent: bool, yes: bool) -> None:
    """Delete a version of a subject, or all of them. What is deleted is still found by its id, until it is deleted for
    good.

    Exit status: 0 done, 1 it cannot be done, 2 wrong usage.

    \b
    Examples:
      leafcuttr schemas delete orders-value 3
      leafcuttr schemas delete orders-value --permanent --yes
    """
    context = command_context()
    what = f"version {version} of {subject}" if version is not None else f"all versions of {subject}"
    if not yes:
        click.confirm(f"Delete {what}{' for good' if permanent else ''}?", abort=True, err=True)
    path = subject_path(subject) if version is None else subject_path(subject, "versions", version)
    try:
        answer = client.delete(path, permanent=permanent or None)
    except RegistryError as error:
        if not permanent or error.code not in _SOFT_FIRST:
            raise
        client.delete(path)
        answer = client.delete(path, permanent=True)
    if context.as_json:
        context.print_json(answer)
    else:
        numbers = answer if isinstance(answer, list) else [answer]
        context.print_line(f"deleted {subject}: {', '.join(map(str, numbers))}")


@click.command("config", short_help="Print the compatibility of a subject, or change it.")
@click.argument("subject", required=False)
@click.option(
    "--set", "level", type=click.Choice(_LEVELS, case_sensitive=False), help="The new compatibility."
)
@click.option("--delete", is_flag=True, help="Back to what holds for all.")
@registry_options
def config(client: RegistryClient, subject: str | None, level: str | None, delete: bool) -> None:
    """Print the compatibility that is asked of new schemas: of all subjects, or of one. Or set it.

    Exit status: 0 done, 1 it cannot be done, 2 wrong usage.

    \b
    Examples:
      leafcuttr schemas config
      leafcuttr schemas config orders-value --set FULL
      leafcuttr schemas config orders-value --delete
    """
    _scope(client, "config", "compatibility", "compatibilityLevel", subject, level, delete)


@click.command("mode", short_help="Print the mode of a subject, or change it.")
@click.argument("subject", required=False)
@click.option("--set", "mode", type=click.Choice(_MODES, case_sensitive=False), help="The new mode.")
@click.option("--delete", is_flag=True, help="Back to what holds for all.")
@click.option("--force", is_flag=True, help="IMPORT also where there are schemas.")
@registry_options
def mode(client: RegistryClient, subject: str | None, mode: str | None, delete: bool, force: bool) -> None:
    """Print whether schemas may be registered: in all subjects, or in one. Or set it.

    Exit status: 0 done, 1 it cannot be done, 2 wrong usage.

    \b
    Examples:
      leafcuttr schemas mode
      leafcuttr schemas mode orders-value --set READONLY
    """
    _scope(client, "mode", "mode", "mode", subject, mode, delete, force=force or None)


def _scope(
    client: RegistryClient,
    kind: str,
    field: str,
    shown: str,
    subject: str | None,
    value: str | None,
    delete: bool,
    **query: Any,
) -> None:
    if value is not None and delete:
        raise click.UsageError("--set and --delete exclude each other")
    if delete and subject is None and kind == "mode":
        raise click.UsageError("--delete needs a SUBJECT")
    context = command_context()
    path = f"/{kind}" if subject is None else subject_path(subject).replace("/subjects", f"/{kind}", 1)
    if delete:
        answer = client.delete(path)
    elif value is not None:
        answer = client.put(path, {field: value.upper()}, **query)
    else:
        answer = client.get(path, defaultToGlobal=True)
    if context.as_json:
        context.print_json(answer)
        return
    found = answer.get(shown, answer.get(field)) if isinstance(answer, dict) else None
    if found is None:
        raise PluginError(f"the registry answers without {shown}")
    context.print_line(str(found))
