"""The options that say which brokers a command talks to.

`produce` and `consume` take them one by one (`broker_option`, `property_option`), the commands of the operator take a
`Target`.
"""

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import click

from leafcuttr.cli.common.output import printable
from leafcuttr.cli.common.target import TIMEOUT_S, Target

_ANY_BYTES: Final = frozenset(
    {"files", "every_key", "key_separator", "null", "separator", "delimiter", "condition"}
)
"""Arguments of `produce` and `consume` that need not be UTF-8; of a header its value need not."""
Command = Callable[..., None]
F = TypeVar("F", bound=Callable[..., Any])


def broker_option(function: F) -> F:
    """`--bootstrap-server`, with the short form that kcat has."""
    return click.option(
        "--bootstrap-server",
        "-b",
        "address",
        default="localhost:9092",
        show_default=True,
        envvar="LEAFCUTTR_BOOTSTRAP_SERVER",
        metavar="HOST:PORT",
        help="A broker of the cluster.",
    )(function)


def property_option(function: F) -> F:
    """`-X key=value` and `--client-config FILE`: any setting of librdkafka, as `properties`; -X wins."""

    @functools.wraps(function)
    def with_properties(*, properties: tuple[str, ...], client_config: Path | None, **rest: Any) -> Any:
        _check_utf8({"properties": properties, **rest})
        listed = () if client_config is None else _settings_of(client_config)
        return function(properties=(*listed, *properties), **rest)

    one = click.option(
        "-X",
        "properties",
        multiple=True,
        metavar="KEY=VALUE",
        help="A setting of librdkafka; may be repeated.",
    )
    many = click.option(
        "--client-config",
        "-F",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="A file of such settings, one a line. Put passwords there.",
    )
    return cast(F, one(many(with_properties)))


def _check_utf8(given: Mapping[str, object]) -> None:
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
    """The lines of a file of settings that say something. Raises click.UsageError."""
    try:
        lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"--client-config {file}: {error}") from None
    words = [line for line in lines if line and not line.startswith(("#", "!"))]
    for word in words:
        if "=" not in word:
            # Not the line itself: it may be half a password.
            raise click.UsageError(f"--client-config {file}: a line is no KEY=VALUE")
    return tuple("=".join(part.strip() for part in word.split("=", 1)) for word in words)


def target_options(function: Command) -> Command:
    """`--bootstrap-server`, `-X` and `--timeout` as the argument `target`, for commands that use librdkafka."""

    @functools.wraps(function)
    def with_target(*, address: str, properties: tuple[str, ...], timeout: float, **rest: Any) -> None:
        function(target=Target(address, properties, timeout), **rest)

    return broker_option(property_option(_timeout_option(with_target)))


def plain_target_options(function: Command) -> Command:
    """The same without `-X`, for commands that use `wire_client`: no TLS, no SASL."""

    @functools.wraps(function)
    def with_target(*, address: str, timeout: float, **rest: Any) -> None:
        function(target=Target(address, timeout=timeout), **rest)

    return broker_option(_timeout_option(with_target))


def _timeout_option(function: Command) -> Command:
    return click.option(
        "--timeout",
        type=click.FloatRange(0.1, 3600),
        default=TIMEOUT_S,
        show_default=True,
        metavar="SECONDS",
        help="How long one answer may take.",
    )(function)
