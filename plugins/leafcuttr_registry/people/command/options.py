"""The options of all commands, and what they make: a client of the registry."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import click

from leafcuttr_registry.people.client import DEFAULT_URL, URL_VARIABLE, RegistryClient
from leafcuttr_sdk.cli import json_option

F = TypeVar("F", bound=Callable[..., Any])


def registry_options(function: F) -> F:
    """`--registry`, `--cafile`, `--insecure`, `--timeout` and `--json`; the function gets a `RegistryClient` first."""

    @functools.wraps(function)
    def with_client(
        *arguments: Any,
        registry: str | None,
        cafile: str | None,
        insecure: bool,
        timeout: float,
        **others: Any,
    ) -> Any:
        client = RegistryClient(registry, timeout, ca_file=cafile, insecure=insecure)
        return function(client, *arguments, **others)

    wrapped: Any = with_client
    for option in (
        click.option(
            "--timeout",
            type=click.FloatRange(0.1),
            default=30.0,
            show_default=True,
            metavar="SECONDS",
            help="How long one answer may take.",
        ),
        click.option("--insecure", is_flag=True, help="Take any certificate of the registry."),
        click.option(
            "--cafile",
            metavar="FILE",
            type=click.Path(exists=True, dir_okay=False),
            help="Certificates (PEM) that the registry's has to be signed by.  [default: the system's]",
        ),
        click.option(
            "--registry",
            metavar="URL",
            envvar=URL_VARIABLE,
            help=f"Where the registry is, with user:password@ if it wants them.  [default: {DEFAULT_URL}]",
        ),
    ):
        wrapped = option(wrapped)
    return cast(F, json_option(wrapped))


def schema_options(function: F) -> F:
    """`--type` and `--reference` of a schema in a file."""
    for option in (
        click.option(
            "--reference",
            "references",
            multiple=True,
            metavar="NAME=SUBJECT[:VERSION]",
            help="A schema that this one refers to, and what it calls it; may be repeated.",
        ),
        click.option(
            "--type",
            "type",
            metavar="TYPE",
            help="AVRO, JSON, PROTOBUF, or one of a plugin.  [default: by the name of the file]",
        ),
    ):
        function = option(function)
    return function
