"""`schemas export` and `schemas import`: all of a registry, or some subjects, as lines of JSON.

A line is a version as the API gives it, or `{"config": ...}` or `{"mode": ...}` with the subject that it is of.
Versions come in the order of their ids, so that what is referred to comes first.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from leafcuttr_registry.people.client import RegistryClient, RegistryError, all_versions, subject_path
from leafcuttr_registry.people.command.options import registry_options
from leafcuttr_sdk.cli import command_context
from leafcuttr_sdk.errors import PluginError

_NO_CONFIG = 404


@click.command("export", short_help="Write schemas to the standard output.")
@click.option("--prefix", metavar="TEXT", help="Only subjects that begin with it.")
@click.option("--deleted", is_flag=True, help="With those that are deleted, but not for good.")
@registry_options
def export(client: RegistryClient, prefix: str | None, deleted: bool) -> None:
    """Write all versions with their ids and references, and the configs, as lines of JSON to the standard output.

    Exit status: 0 done, 1 it cannot be done, 2 wrong usage.

    \b
    Examples:
      leafcuttr schemas export > schemas.jsonl
      leafcuttr schemas export --prefix orders --registry http://old:8081 | leafcuttr schemas import -
    """
    context = command_context()
    found = all_versions(client, prefix, deleted=deleted)
    versions = sorted(found, key=lambda each: (each["id"], each["subject"], each["version"]))
    for each in versions:
        context.print_json(each)
    subjects = dict.fromkeys(each["subject"] for each in versions)
    for subject in (None, *subjects) if prefix is None else subjects:
        config = _own(client, "config", subject)
        if config is not None:
            level = {
                "compatibility" if name == "compatibilityLevel" else name: config[name] for name in config
            }
            context.print_json({"subject": subject, "config": level})
        mode = _own(client, "mode", subject)
        if mode is not None:
            context.print_json({"subject": subject, "mode": mode["mode"]})


def _own(client: RegistryClient, kind: str, subject: str | None) -> Any:
    """The config or mode that a subject has itself."""
    try:
        return client.get(f"/{kind}" if subject is None else f"/{kind}/{quote(subject, safe='')}")
    except RegistryError as error:
        if error.code // 100 == _NO_CONFIG:
            return None
        raise


@click.command("import", short_help="Register what export has written.")
@click.argument("file")
@click.option(
    "--new-ids", is_flag=True, help="With ids of this registry, in the place of those of the old one."
)
@registry_options
def import_schemas(client: RegistryClient, file: str, new_ids: bool) -> None:
    """Register what `export` has written, `-` from the standard input: each version with the id and number that it had.

    Subjects are put into the mode IMPORT for that, which they can be while they are empty, and back afterwards. With
    --new-ids they are registered as by a client.

    Exit status: 0 done, 1 it is refused, 2 wrong usage.

    \b
    Examples:
      leafcuttr schemas import schemas.jsonl
      leafcuttr schemas import schemas.jsonl --new-ids
    """
    context = command_context()
    lines = list(_lines(_text_of(file)))
    versions = [each for each in lines if "schema" in each]
    importing = [] if new_ids else list(dict.fromkeys(each["subject"] for each in versions))
    done = 0
    try:
        for subject in importing:
            client.put(f"/mode/{quote(subject, safe='')}", {"mode": "IMPORT"})
        with context.progress("versions", len(versions)) as more:
            for each in versions:
                _register(client, each, new_ids)
                done += 1
                more(1)
    except PluginError as error:
        raise PluginError(f"{error} (of {len(versions)} versions {done} are registered)") from None
    finally:
        for subject in importing:
            try:
                client.delete(f"/mode/{quote(subject, safe='')}")
            except PluginError as error:
                click.echo(f"the mode of {subject} may still be IMPORT: {error}", err=True)
    for each in lines:
        _put_back(client, each)
    if context.as_json:
        context.print_json({"versions": done})
    else:
        context.print_line(f"registered {done} versions")


def _text_of(file: str) -> str:
    """Raises PluginError."""
    try:
        return (sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()).decode()
    except OSError as error:
        raise PluginError(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise PluginError(f"{file} is not UTF-8, at byte {error.start}") from None


def _lines(text: str) -> Iterator[dict[str, Any]]:
    """Raises PluginError."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield _read(line)
            except (ValueError, RecursionError) as error:
                raise PluginError(f"line {number}: {error}") from None


def _read(line: str) -> dict[str, Any]:
    """Raises ValueError."""
    found = json.loads(line)
    if isinstance(found, dict) and "subject" in found:
        subject = found["subject"]
        if "schema" in found:
            if isinstance(subject, str) and all(
                isinstance(found.get(each), int) for each in ("id", "version")
            ):
                return found
        elif (subject is None or isinstance(subject, str)) and ("config" in found or "mode" in found):
            return found
    raise ValueError("it is none of the lines that export writes")


def _register(client: RegistryClient, version: dict[str, Any], new_ids: bool) -> None:
    kept = ("schema", "schemaType", "references", "metadata", "ruleSet")
    body = {name: version[name] for name in kept if version.get(name) is not None}
    if not new_ids:
        body |= {"id": version["id"], "version": version["version"]}
    client.post(subject_path(version["subject"], "versions"), body)
    if version.get("deleted"):
        client.delete(subject_path(version["subject"], "versions", version["version"]))


def _put_back(client: RegistryClient, line: dict[str, Any]) -> None:
    for kind in ("config", "mode"):
        if kind in line:
            name = line["subject"]
            path = f"/{kind}" if name is None else f"/{kind}/{quote(name, safe='')}"
            client.put(path, line[kind] if kind == "config" else {"mode": line["mode"]})
