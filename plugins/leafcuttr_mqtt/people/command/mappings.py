"""`leafcuttr mqtt mappings`."""

from urllib.parse import urlencode

import click

from leafcuttr_mqtt.people.command.asking import Row, ask, looks, show_list
from leafcuttr_mqtt.topics.names import why_no_name
from leafcuttr_sdk.cli import command_context


@click.group("mappings", invoke_without_command=True, short_help="List the mappings; test a topic.")
@looks
@click.pass_context
def mappings(context: click.Context) -> None:
    """List which MQTT topics are stored in which Kafka topics.

    Exit status: 0 done, 1 it cannot be done, 2 wrong usage.

    \b
    Examples:
      leafcuttr mqtt mappings
    """
    if context.invoked_subcommand is None:
        show_list(
            "/mappings",
            ("FILTER", "KAFKA TOPIC", "KEY"),
            lambda row: (row["filter"], row["kafka_topic"], row["key"]),
        )


@mappings.command("test", short_help="Show where a message would be stored.")
@looks
@click.argument("topic")
@click.option("--client-id", default="", metavar="ID", help="The publisher's.")
@click.option("--qos", type=click.IntRange(0, 2), default=1, show_default=True, help="The message's.")
def test(topic: str, client_id: str, qos: int) -> None:
    """Show the Kafka topics, keys and headers that a message in TOPIC would get. Nothing is published.

    Exit status: 0 it would be stored, 1 in no Kafka topic, or refused, 2 wrong usage.

    \b
    Examples:
      leafcuttr mqtt mappings test devices/7/temperature
    """
    if wrong := why_no_name(topic):
        raise click.UsageError(f"{topic!r} is no topic for a message: {wrong}")
    context = command_context()
    query = urlencode({"topic": topic, "client_id": client_id, "qos": qos})
    found: list[Row] = ask(f"/mappings/test?{query}")["targets"]
    if context.as_json:
        context.print_json(found)
    elif not found:
        context.print_line(f"no mapping matches {topic}: its messages are in no Kafka topic")
    else:
        columns = ("KAFKA TOPIC", "PARTITION", "KEY", "HEADERS", "NOTE")
        context.print_table(columns, [_target_cells(row) for row in found])
    if not found or any(row["refused"] for row in found):
        raise SystemExit(1)


def _target_cells(row: Row) -> tuple[object, ...]:
    headers = " ".join(f"{name}={value}" for name, value in row["headers"].items())
    note = f"refused: {row['refused']}" if row["refused"] else None if row["exists"] else "there is none yet"
    return row["kafka_topic"], row["partition"], row["key"], headers, note
