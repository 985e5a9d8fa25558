"""`leafcuttr greenhouse`: sends readings to any Kafka, and shows what a broker with the plugin has last seen."""

import json

import click

from leafcuttr_greenhouse.reading import parse
from leafcuttr_sdk import (
    admin_server_option,
    bootstrap_server_options,
    command_context,
    complete_topics,
    json_option,
)


@click.group()
def command() -> None:
    """Readings of a greenhouse.

    Exit status: 0 done, 1 a broker refuses or does not answer, 2 wrong usage.
    """


@command.command()
@bootstrap_server_options
@json_option
@click.argument("readings", nargs=-1, required=True, metavar="READING...")
@click.option("--topic", default="greenhouse", show_default=True, shell_complete=complete_topics)
def send(readings: tuple[str, ...], topic: str) -> None:
    """Send readings, each as in `7 21.5`.

    \b
    Examples:
      leafcuttr greenhouse send '7 21.5' '8 19'
    """
    from confluent_kafka import Producer

    try:
        parsed = [parse(text) for text in readings]
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    context = command_context()
    producer = context.client(Producer, {"message.timeout.ms": round(context.timeout_s * 1000)})
    failed: list[str] = []
    with context.progress("readings", len(parsed)) as advance:
        for reading in parsed:
            producer.produce(
                topic,
                reading.encode(),
                str(reading.sensor),
                on_delivery=lambda error, _: failed.append(str(error)) if error else advance(1),
            )
        producer.flush()
    if failed:
        context.fail(failed[0])
    if context.as_json:
        context.print_json({"topic": topic, "stored": len(parsed)})
    else:
        context.print_line(f"{len(parsed)} readings stored")


@command.command()
@bootstrap_server_options
@admin_server_option
@json_option
@click.argument("sensor", required=False, type=int)
def latest(sensor: int | None) -> None:
    """Print the latest reading of each sensor, or of one.

    \b
    Examples:
      leafcuttr greenhouse latest
      leafcuttr greenhouse latest 7 --json
    """
    context = command_context()
    query = "" if sensor is None else f"?sensor={sensor}"
    path = f"/plugins/greenhouse/latest{query}"
    try:
        with context.open_admin(path) as answer:
            found = json.load(answer)
    except OSError as error:
        context.fail(f"{context.admin_address}{path}: {error}")
    if context.as_json:
        context.print_json(found)
    else:
        context.print_table(("SENSOR", "CELSIUS"), found.items())
