"""The options that say which brokers a command talks to.

`produce` and `consume` take them one by one (`broker_option`, `property_option`), the commands of the operator take a
`Target`. They are declared in the SDK, whose commands of plugins have the same.
"""

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import click

from leafcuttr.cli.common.client_properties import all_properties
from leafcuttr.cli.common.output import printable
from leafcuttr.cli.common.target import Target
from leafcuttr_sdk import _cli_options as shared

_ANY_BYTES: Final = frozenset(
    {"files", "every_key", "key_separator", "null", "separator", "delimiter", "condition"}
)
"""Arguments of `produce` and `consume` that need not be UTF-8; of a header its value need not."""
Command = Callable[..., None]
F = TypeVar("F", bound=Callable[..., Any])


def broker_option(function: F) -> F:
    """`--bootstrap-server`."""
    return shared.bootstrap_server("address")(function)


def property_option(function: F, *, as_in_kafka: bool = True) -> F:
    """`-X key=value` and `--client-config FILE`: any setting of Java's clients or of librdkafka, as `properties`; -X
    wins. `as_in_kafka`: also as `--command-config`."""

    @functools.wraps(function)
    def with_properties(*, properties: tuple[str, ...], client_config: Path | None, **rest: Any) -> Any:
        check_utf8({"properties": properties, **rest})
        return function(properties=all_properties(properties, client_config), **rest)

    one = shared.properties("properties")
    many = shared.client_config("client_config", as_in_kafka=as_in_kafka)
    return cast(F, one(many(with_properties)))


def check_utf8(given: Mapping[str, object]) -> None:
    """Raise click.UsageError for a word that is not UTF-8: names must be, and confluent-kafka crashes on others.

    What becomes bytes of a record, or separates records, may be any bytes; so may paths.
    """
    for name, words in given.items():
        if name in _ANY_BYTES:
            continue
        for word in words if isinstance(words, tuple) else (words,):
            text = word.partition("=")[0] if name == "headers" and isinstance(word, str) else word
            if isinstance(text, str):
                try:
                    text.encode()
                except UnicodeEncodeError:
                    raise click.UsageError(f"{printable(text)}: not UTF-8") from None


def target_options(function: Command) -> Command:
    """`--bootstrap-server`, `-X` and `--timeout` as the argument `target`."""

    @functools.wraps(function)
    def with_target(*, address: str, properties: tuple[str, ...], timeout: float, **rest: Any) -> None:
        function(target=Target(address, properties, timeout), **rest)

    return broker_option(property_option(_timeout_option(with_target)))


def _timeout_option(function: Command) -> Command:
    return shared.timeout("timeout")(function)
