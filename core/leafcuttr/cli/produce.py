"""`leafcuttr produce`: lines of standard input (or files) become records.

Exit status: 0 every record is acknowledged, 1 one is not, 2 wrong usage.
"""

import sys
from typing import Any, BinaryIO

import click

from leafcuttr.cli.client import (
    TIMEOUT_S,
    broker_option,
    client,
    client_settings,
    count,
    fail,
    property_option,
)


@click.command()
@broker_option
@property_option
@click.argument("topic")
@click.argument("files", nargs=-1, type=click.File("rb"))
@click.option(
    "--key-separator", "-K", metavar="TEXT", help="Split each line into key and value at the first of these."
)
@click.option("--partition", "-p", type=click.IntRange(0), help="Send everything to this partition.")
@click.option(
    "--compression",
    "-z",
    default="none",
    show_default=True,
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
)
@click.option(
    "--header", "-H", "headers", multiple=True, metavar="KEY=VALUE", help="Add a header to each record."
)
@click.option("--quiet", "-q", is_flag=True, help="Do not say how many records were sent.")
def command(
    address: str,
    properties: tuple[str, ...],
    topic: str,
    files: tuple[BinaryIO, ...],
    key_separator: str | None,
    partition: int | None,
    compression: str,
    headers: tuple[str, ...],
    quiet: bool,
) -> None:
    """Send each line of the input as a record; ends when every one is acknowledged.

    \b
    Examples:
      echo hello | leafcuttr produce greetings
      leafcuttr produce events events.log -z zstd
      echo 'alice:42' | leafcuttr produce scores -K :

    Exit status: 0 every record is acknowledged, 1 one is not or no broker answers, 2 wrong usage.
    """
    from confluent_kafka import KafkaException, Producer

    pairs = []
    for header in headers:
        name, equals, text = header.partition("=")
        if not equals:
            raise click.UsageError(f"--header {header}: expected KEY=VALUE")
        pairs.append((name, text.encode()))
    settings = client_settings(address, properties, **{"compression.type": compression, "linger.ms": 20})
    settings.setdefault("message.timeout.ms", int(TIMEOUT_S * 1000))
    producer = client(Producer, settings)
    sent = 0
    errors: list[object] = []

    def delivered(error: object, _: object) -> None:
        if error is not None:
            errors.append(error)

    separator = key_separator.encode() if key_separator else None
    target: dict[str, Any] = {} if partition is None else {"partition": partition}
    try:
        for source in files or (sys.stdin.buffer,):
            for line in source:
                value, key = line.rstrip(b"\r\n"), None
                if separator is not None:
                    key, found, rest = value.partition(separator)
                    if not found:
                        producer.flush()
                        raise click.UsageError(
                            f"line {sent + 1} has no {key_separator!r}; those before it are sent"
                        )
                    value = rest
                while True:
                    try:
                        producer.produce(
                            topic, value, key, headers=pairs or None, on_delivery=delivered, **target
                        )
                        break
                    except BufferError:
                        producer.poll(0.1)
                sent += 1
                producer.poll(0)
                if errors:
                    fail(errors[0], address)
        producer.flush()
    except KafkaException as error:
        fail(error, address)
    if errors:
        fail(errors[0], address)
    if not quiet:
        click.echo(f"{count(sent, 'record')} acknowledged", err=True)
