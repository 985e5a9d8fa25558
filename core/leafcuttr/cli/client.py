"""What the commands that talk to a broker through librdkafka share: address and settings, clients, errors as one line.

They work against any Kafka. confluent-kafka is imported when the first client is made, not before. Exit status of
all of them: 0 done, 1 the broker refused or cannot be reached, 2 wrong usage.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar, cast

import click

from leafcuttr.cli.failures import Failure, reason
from leafcuttr.cli.output import printable
from leafcuttr.cli.pairs import pairs

TIMEOUT_S = 15.0
REACH_S = 5.0
_ANY_BYTES: Final = frozenset(
    {"files", "every_key", "key_separator", "null", "separator", "delimiter", "condition"}
)
"""Arguments of `produce` and `consume` that need not be UTF-8; of a header its value need not."""
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
        help="A file of such settings, one a line: the place for passwords.",
    )
    return cast(F, one(many(with_properties)))


def _check_utf8(given: Mapping[str, object]) -> None:
    """Raise click.UsageError for a word that is not UTF-8: names must be, and confluent-kafka dies of others.

    What becomes bytes of a record, or stands between records, may be any bytes; so may paths.
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


def client_settings(address: str, properties: Sequence[str] = (), **more: Any) -> dict[str, Any]:
    """Settings of a librdkafka client. Raises click.UsageError for a property without `=`."""
    return {"bootstrap.servers": address, "log_level": 2, **more, **pairs("-X", properties)}


def admin(address: str, properties: Sequence[str] = (), reach: float = REACH_S) -> Any:
    """A client that has reached the broker within `reach` seconds; ends the command with one line if it cannot."""
    from confluent_kafka.admin import AdminClient

    made = client(AdminClient, client_settings(address, properties))
    topics(made, address, reach)
    return made


def client(kind: Any, settings: dict[str, Any]) -> Any:
    """Make a client of a class of confluent-kafka. Raises click.UsageError for a setting that it does not know."""
    from confluent_kafka import KafkaException

    try:
        return kind(settings)
    except KafkaException as error:
        raise click.UsageError(error.args[0].str()) from None


def topics(made: Any, address: str, reach: float = REACH_S) -> Any:
    """The topics by name, as the first word with a broker; ends the command with one line if none answers."""
    from confluent_kafka import KafkaException

    try:
        return made.list_topics(timeout=reach).topics
    except KafkaException as error:
        fail(error, address)


def fail(error: Any, address: str) -> NoReturn:
    """End the command with one line that says what the broker (or the way to it) said."""
    from confluent_kafka import KafkaError, KafkaException

    cause = error.args[0] if isinstance(error, KafkaException) and error.args else error
    code = None
    if isinstance(cause, KafkaError):
        unreachable = (
            KafkaError._TRANSPORT,
            KafkaError._ALL_BROKERS_DOWN,
            KafkaError._TIMED_OUT,
            KafkaError._MSG_TIMED_OUT,
        )
        if cause.code() in unreachable:
            text = f"no broker answers at {address}"
        elif cause.code() > 0:
            # Kafka's own code: with Kafka's name, which librdkafka shortens for some.
            code = cause.code()
            text = reason(code, cause.str().removeprefix("Broker: "))
        else:
            text = f"{cause.str()} ({cause.name()})"
    elif isinstance(cause, TimeoutError):
        text = f"{address} does not answer"
    else:
        text = str(cause)
    raise Failure(text, code)
