"""Options of both commands of `perf`: several words after an option, settings of Java's clients, the address."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from leafcuttr.cli.common.librdkafka.client import client_settings
from leafcuttr.cli.common.librdkafka.properties import for_librdkafka
from leafcuttr.cli.common.options.target import property_option
from leafcuttr.cli.common.pairs import read_properties

_LISTS: Final = ("--producer-props", "--consumer-props", "--command-property")
F = TypeVar("F", bound=Callable[..., Any])


class ManyWords(click.Command):
    """Options of properties take every word up to the next option, as Kafka's scripts have it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        spread: list[str] = []
        option, first = None, False
        for word in args:
            if word.startswith("-"):
                option = word if word in _LISTS else None
                first = True
                spread.append(word)
            elif option is not None:
                spread += [word] if first else [option, word]
                first = False
            else:
                spread.append(word)
        return super().parse_args(ctx, spread)


def _properties(function: F) -> F:
    return property_option(function, as_in_kafka=False)


def connection_options(kind: str) -> Callable[[F], F]:
    """`--bootstrap-server`, properties and files of them, of a `producer` or a `consumer`."""

    def decorate(function: F) -> F:
        options = [
            click.option(
                "--bootstrap-server",
                "--broker-list",
                "-b",
                "address",
                metavar="HOST:PORT",
                help="A broker of the cluster.  [default: bootstrap.servers of the properties, else "
                "LEAFCUTTR_BOOTSTRAP_SERVER, else localhost:9092]",
            ),
            click.option(
                f"--{kind}-props",
                "--command-property",
                "words",
                multiple=True,
                metavar="NAME=VALUE...",
                help="Settings by the names of Java's clients; translated for librdkafka.",
            ),
            click.option(
                f"--{kind}.config",
                "--command-config",
                "file",
                type=click.Path(exists=True, dir_okay=False, path_type=Path),
                metavar="FILE",
                help="A .properties file of such settings; those of the command line win.",
            ),
            _properties,
        ]
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def settings_of(given: dict[str, Any], **usual: Any) -> tuple[str, dict[str, Any]]:
    """The address, and settings for librdkafka: ours, then the file's, then the command line's. Raises UsageError."""
    words: dict[str, str] = {}
    for word in given["words"]:
        name, equals, value = word.partition("=")
        if not equals:
            raise click.UsageError(f"{word}: expected NAME=VALUE")
        words[name] = value
    try:
        named = (read_properties(given["file"]) if given["file"] else {}) | words
        translated = for_librdkafka(named)
    except (ValueError, OSError) as error:
        raise click.UsageError(str(error)) from None
    elsewhere = os.environ.get("LEAFCUTTR_BOOTSTRAP_SERVER", "localhost:9092")
    address = given["address"] or translated.get("bootstrap.servers") or elsewhere
    translated.pop("bootstrap.servers", None)
    return address, client_settings(address, given["properties"], **usual | translated)
