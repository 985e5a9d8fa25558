"""What the commands that talk to a broker share: the address option, librdkafka clients, errors as one line.

They work against any Kafka. confluent-kafka is imported when the first client is made, not before. Exit status of
all of them: 0 done, 1 the broker refused or cannot be reached, 2 wrong usage.
"""

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn, TypeVar

import click

TIMEOUT_S = 15.0
REACH_S = 5.0
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
    """`-X key=value`: any setting of librdkafka."""
    return click.option(
        "-X",
        "properties",
        multiple=True,
        metavar="KEY=VALUE",
        help="A setting of librdkafka; may be repeated.",
    )(function)


def json_option(function: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")(function)


def client_settings(address: str, properties: Sequence[str] = (), **more: Any) -> dict[str, Any]:
    """Settings of a librdkafka client. Raises click.UsageError for a property without `=`."""
    settings: dict[str, Any] = {"bootstrap.servers": address, "log_level": 2, **more}
    for item in properties:
        name, equals, value = item.partition("=")
        if not equals:
            raise click.UsageError(f"-X {item}: expected KEY=VALUE")
        settings[name] = value
    return settings


def admin(address: str, properties: Sequence[str] = ()) -> Any:
    """A client that has reached the broker; ends the command with one line if it cannot."""
    from confluent_kafka.admin import AdminClient

    made = client(AdminClient, client_settings(address, properties))
    topics(made, address)
    return made


def client(kind: Any, settings: dict[str, Any]) -> Any:
    """Make a client of a class of confluent-kafka. Raises click.UsageError for a setting that it does not know."""
    from confluent_kafka import KafkaException

    try:
        return kind(settings)
    except KafkaException as error:
        raise click.UsageError(error.args[0].str()) from None


def topics(made: Any, address: str) -> Any:
    """The topics by name, as the first word with a broker; ends the command with one line if none answers."""
    from confluent_kafka import KafkaException

    try:
        return made.list_topics(timeout=REACH_S).topics
    except KafkaException as error:
        fail(error, address)


def fail(error: Any, address: str) -> NoReturn:
    """End the command with one line that says what the broker (or the way to it) said."""
    from confluent_kafka import KafkaError, KafkaException

    cause = error.args[0] if isinstance(error, KafkaException) and error.args else error
    if isinstance(cause, KafkaError):
        unreachable = (
            KafkaError._TRANSPORT,
            KafkaError._ALL_BROKERS_DOWN,
            KafkaError._TIMED_OUT,
            KafkaError._MSG_TIMED_OUT,
        )
        text = (
            f"no broker answers at {address}"
            if cause.code() in unreachable
            else f"{cause.str()} ({cause.name()})"
        )
    elif isinstance(cause, TimeoutError):
        text = f"{address} does not answer"
    else:
        text = str(cause)
    click.echo(f"leafcuttr: {text}", err=True)
    sys.exit(1)


def wait_all(futures: dict[Any, Any], address: str, done: Callable[[Any], str]) -> None:
    """Wait for every answer of an admin call; says what is done, and fails at the end if anything failed."""
    failed = 0
    for name, future in futures.items():
        try:
            future.result(TIMEOUT_S)
            click.echo(done(name))
        except Exception as error:
            failed += 1
            cause: Any = error.args[0] if error.args else error
            text = cause.str() if hasattr(cause, "str") else str(cause)
            click.echo(f"leafcuttr: {name}: {text}", err=True)
    if failed:
        sys.exit(1)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table for people; plain aligned text where the output is not a terminal."""
    texts = [[str(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table

        table = Table(*columns, box=None, header_style="bold")
        for row in texts:
            table.add_row(*row)
        Console().print(table)
        return
    widths = [max(len(cells[at]) for cells in [list(columns), *texts]) for at in range(len(columns))]
    for cells in [list(columns), *texts]:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip())


def count(number: int, what: str) -> str:
    """`1 partition`, `2 partitions`."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def print_json(value: object) -> None:
    click.echo(json.dumps(value, ensure_ascii=False))
