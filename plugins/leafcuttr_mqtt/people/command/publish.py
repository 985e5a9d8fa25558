"""`leafcuttr mqtt publish`."""

import sys
from collections.abc import Iterable

import click

from leafcuttr_mqtt.people.command.speaking import connected, speaks
from leafcuttr_mqtt.topics.names import why_no_name


@click.command("publish", short_help="Publish a message.")
@speaks
@click.argument("topic")
@click.argument("message", required=False)
@click.option(
    "--qos", "-q", type=click.IntRange(0, 2), default=1, show_default=True, help="Quality of service."
)
@click.option("--retain", "-r", is_flag=True, help="Keep it for later subscribers. An empty one deletes it.")
@click.option("--lines", "-l", is_flag=True, help="Publish each line of the standard input.")
@click.option("--content-type", metavar="TYPE", help="As application/json.")
@click.option(
    "--property", "-P", "pairs", multiple=True, metavar="NAME=VALUE", help="A user property; may be repeated."
)
@click.option(
    "--expiry", type=click.IntRange(0, 0xFFFFFFFF), metavar="SECONDS", help="How long it is worth delivering."
)
def publish(
    mqtt_server: str | None,
    username: str | None,
    password: str | None,
    topic: str,
    message: str | None,
    qos: int,
    retain: bool,
    lines: bool,
    content_type: str | None,
    pairs: tuple[str, ...],
    expiry: int | None,
) -> None:
    """Publish MESSAGE, or what the standard input has, to TOPIC, and wait until it is acknowledged.

    Exit status: 0 acknowledged, 1 refused or no broker, 2 wrong usage.

    \b
    Examples:
      leafcuttr mqtt publish devices/7/temperature 21.5
      leafcuttr mqtt publish devices/7/config --retain < config.json
      seq 100 | leafcuttr mqtt publish numbers --lines
    """
    from leafcuttr_mqtt.packets.types import Properties

    if wrong := why_no_name(topic):
        raise click.UsageError(f"{topic!r} is no topic for a message: {wrong}")
    if lines and message is not None:
        raise click.UsageError("--lines takes no MESSAGE")
    for pair in pairs:
        if "=" not in pair:
            raise click.UsageError(f"--property {pair}: write NAME=VALUE")
    split = [pair.partition("=") for pair in pairs]
    properties = Properties(
        content_type=content_type,
        message_expiry_interval=expiry,
        user_properties=tuple((name, value) for name, _, value in split),
    )
    with connected(mqtt_server, username, password) as client:
        for payload in _payloads(message, lines):
            client.publish(topic, payload, qos, retain, properties)


def _payloads(message: str | None, lines: bool) -> Iterable[bytes]:
    if message is not None:
        yield message.encode("utf-8", "surrogateescape")
    elif lines:
        for line in sys.stdin.buffer:
            yield line.rstrip(b"\r\n")
    else:
        yield sys.stdin.buffer.read()
