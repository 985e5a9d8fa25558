"""The options that say which brokers a command talks to.

`produce` and `consume` take them one by one (`broker_option`, `property_option`), the commands of the operator take a
`Target`. They are declared in the SDK, whose commands of plugins have the same.
"""

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import click

from leafcuttr.cli.common.output import printable
from leafcuttr.cli.common.pairs import read_properties
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


def property_option(function: F) -> F:
    """`-X key=value` and `--client-config FILE`: any setting of Java's clients or of librdkafka, as `properties`; -X
    wins."""

    @functools.wraps(function)
    def with_properties(*, properties: tuple[str, ...], client_config: Path | None, **rest: Any) -> Any:
        check_utf8({"properties": properties, **rest})
        return function(properties=all_properties(properties, client_config), **rest)

    one, many = shared.properties("properties"), shared.client_config("client_config")
    return cast(F, one(many(with_properties)))


def all_properties(given: tuple[str, ...], file: Path | None) -> tuple[str, ...]:
    """Those of the file, then those of the line. Raises click.UsageError."""
    return (*(() if file is None else _settings_of(file)), *given)


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


def _settings_of(file: Path) -> tuple[str, ...]:
    """The lines of a file of settings that say something. Raises click.UsageError.

    A file whose name ends in .properties is read as Java reads it; of others each line is KEY=VALUE as it stands.
    """
    try:
        if file.suffix == ".properties":
            return tuple(f"{name}={value}" for name, value in read_properties(file).items())
        lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"--client-config {file}: {error}") from None
    except ValueError as error:
        raise click.UsageError(f"--client-config: a line is no KEY=VALUE: {error}") from None
    words = [line for line in lines if line and not line.startswith(("#", "!"))]
    for word in words:
        if "=" not in word:
            # Not the line itself: it may be half a password.
            raise click.UsageError(f"--client-config {file}: a line is no KEY=VALUE")
    return tuple("=".join(part.strip() for part in word.split("=", 1)) for word in words)


def target_options(function: Command) -> Command:
    """`--bootstrap-server`, `-X` and `--timeout` as the argument `target`."""

    @functools.wraps(function)
    def with_target(*, address: str, properties: tuple[str, ...], timeout: float, **rest: Any) -> None:
        function(target=Target(address, properties, timeout), **rest)

    return broker_option(property_option(_timeout_option(with_target)))


def _timeout_option(function: Command) -> Command:
    return shared.timeout("timeout")(function)
