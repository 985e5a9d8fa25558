"""Schemas in files, and their references on the command line, as bodies of requests."""

import sys
from pathlib import Path
from typing import Any, Final

import click

from leafcuttr_sdk.errors import PluginError

_TYPES: Final = {".avsc": "AVRO", ".json": "JSON", ".proto": "PROTOBUF"}
_STDIN: Final = "-"


def body_of(file: str, type: str | None, references: tuple[str, ...]) -> dict[str, Any]:
    """`{"schema": ..., "schemaType": ..., "references": [...]}` of a file, or of the standard input for `-`. Raises
    PluginError, click.UsageError."""
    if type is None:
        type = _TYPES.get(Path(file).suffix.lower())
        if type is None:
            raise click.UsageError(
                f"{file}: which type of schema it is does not follow from its name (.avsc, .json, .proto); say --type"
            )
    try:
        data = sys.stdin.buffer.read() if file == _STDIN else Path(file).read_bytes()
        text = data.decode()
    except OSError as error:
        raise PluginError(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise PluginError(f"{file} is not UTF-8, at byte {error.start}") from None
    body: dict[str, Any] = {"schema": text}
    if type.upper() != "AVRO":
        body["schemaType"] = type.upper()
    if references:
        body["references"] = [_reference(each) for each in references]
    return body


def _reference(given: str) -> dict[str, Any]:
    name, equals, target = given.partition("=")
    subject, _, version = target.rpartition(":")
    if not subject:
        subject, version = target, "latest"
    if not equals or not name or not subject:
        raise click.UsageError(f"--reference {given}: write NAME=SUBJECT or NAME=SUBJECT:VERSION")
    if version != "latest" and not version.isdecimal():
        raise click.UsageError(f"--reference {given}: {version!r} is no version")
    return {"name": name, "subject": subject, "version": -1 if version == "latest" else int(version)}
