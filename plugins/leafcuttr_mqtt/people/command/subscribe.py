"""`leafcuttr mqtt subscribe`."""

from typing import TYPE_CHECKING

import click

from leafcuttr_mqtt.people.command.asking import Row, valid_filter
from leafcuttr_mqtt.people.command.speaking import connected, speaks
from leafcuttr_sdk.cli import command_context, json_option

if TYPE_CHECKING:
    from leafcuttr_mqtt.packets.types import Properties, Publish


@click.command("subscribe", short_help="Print messages as they come.")
@speaks
@json_option
@click.argument("filters", nargs=-1, required=True, metavar="FILTER...")
@click.option("--qos", "-q", type=click.IntRange(0, 2), default=1, show_default=True, help="The highest one.")
@click.option(
    "--max", "-n", "most", type=click.IntRange(1), metavar="NUMBER", help="End after so many messages."
)
@click.option(
    "--idle", type=click.FloatRange(0.01), metavar="SECONDS", help="End when so long nothing has come."
)
@click.option(
    "--topics/--no-topics", default=True, help="Print the topic before each message.  [default: topics]"
)
def subscribe(
    mqtt_server: str | None,
    username: str | None,
    password: str | None,
    filters: tuple[str, ...],
    qos: int,
    most: int | None,
    idle: float | None,
    topics: bool,
) -> None:
    """Print the messages that come for FILTER, retained ones first, until Ctrl+C.

    With --json each message is an object on a line of its own. A payload that is no UTF-8 is shown in base64, under
    payload_base64.

    Exit status: 0 done, 1 the filter is refused, or no broker, 2 wrong usage.

    \b
    Examples:
      leafcuttr mqtt subscribe 'devices/+/temperature' --topics
      leafcuttr mqtt subscribe '$SYS/broker/clients/#' --idle 1
      leafcuttr mqtt subscribe '#' --json --max 10
    """
    from leafcuttr_mqtt.packets.types import SubscriptionRequest

    requests = tuple(SubscriptionRequest(valid_filter(each), qos) for each in filters)
    context = command_context()
    with connected(mqtt_server, username, password) as client:
        client.subscribe(requests)
        for number, message in enumerate(client.messages(idle), 1):
            if context.as_json:
                context.print_json(_message_row(message))
            else:
                text = message.payload.decode("utf-8", "backslashreplace")
                context.print_line(f"{message.topic} {text}" if topics else text)
            if number == most:
                break


def _message_row(message: "Publish") -> Row:
    import base64

    row: Row = {"topic": message.topic, "qos": message.qos, "retain": message.retain}
    try:
        row["payload"] = message.payload.decode()
    except UnicodeDecodeError:
        row["payload_base64"] = base64.b64encode(message.payload).decode()
    return row | _properties_row(message.properties)


def _properties_row(properties: "Properties") -> Row:
    correlation = properties.correlation_data
    row = {
        "content_type": properties.content_type,
        "response_topic": properties.response_topic,
        "correlation_data": None if correlation is None else correlation.hex(),
        "expires_after_s": properties.message_expiry_interval,
        "user_properties": [list(pair) for pair in properties.user_properties] or None,
    }
    return {name: value for name, value in row.items() if value is not None}
