"""`leafcuttr mqtt`: what is connected and kept, by the admin port; publish and subscribe, by MQTT."""

import json
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote, urlencode

import click

from leafcuttr_mqtt.people.security_options import security_given, security_options
from leafcuttr_mqtt.topics.names import why_no_filter, why_no_name
from leafcuttr_sdk.cli import admin_server_option, bootstrap_server_options, command_context, json_option
from leafcuttr_sdk.errors import PluginError

if TYPE_CHECKING:
    from leafcuttr_mqtt.packets.types import Properties, Publish
    from leafcuttr_mqtt.people.client import MqttClient

F = TypeVar("F", bound=Callable[..., Any])
Row = dict[str, Any]
_UNITS: Final = ((86_400, "d"), (3600, "h"), (60, "min"))


def _looks(function: F) -> F:
    """The options of a command that asks the admin port."""
    return bootstrap_server_options(admin_server_option(json_option(function)))


@click.group("mqtt")
def mqtt() -> None:
    """Look at the MQTT broker, publish and subscribe.

    Clients, sessions, retained messages and mappings come from the admin port of the broker. What changes something
    (disconnect, delete, clear) has to run on the machine of the broker.
    """


# Clients


@mqtt.group("clients", invoke_without_command=True, short_help="List the connected clients; disconnect one.")
@_looks
@click.pass_context
def clients(context: click.Context) -> None:
    """List the clients that are connected.

    Exit status: 0 done, 1 it cannot be done, 2 wrong usage.

    \b
    Examples:
      leafcuttr mqtt clients
      leafcuttr mqtt clients --json
    """
    if context.invoked_subcommand is None:
        columns = (
            "CLIENT",
            "ADDRESS",
            "PROTOCOL",
            "USER",
            "CONNECTED",
            "SUBSCRIPTIONS",
            "IN FLIGHT",
            "WAITING",
        )
        _show_list(
            "/clients",
            columns,
            lambda row: (
                row["client_id"],
                row["address"],
                row["protocol"],
                row["user_name"],
                _ago(row["connected_ms"]),
                row["subscriptions"],
                row["in_flight"],
                row["waiting"],
            ),
        )


@clients.command("show", short_help="Show one connected client.")
@_looks
@click.argument("client_id")
def show_client(client_id: str) -> None:
    """Show a client that is connected, with its subscriptions.

    Exit status: 0 done, 1 no such client is connected, 2 wrong usage.

    \b
    Examples:
      leafcuttr mqtt clients show sensor-7
    """
    _show_one(f"/clients/{quote(client_id, safe='')}")


@clients.command("disconnect", short_help="End the connection of a client.")
@_looks
@click.argument("client_id")
def disconnect(client_id: str) -> None:
    """End the connection of a client, by DISCONNECT with the reason "administrative action". Its will is published, and
    its session is kept. Most clients connect again at once.

    Exit status: 0 done, 1 no such client is connected, 2 wrong usage.

    \b
    Examples:
      leafcuttr mqtt clients disconnect sensor-7
    """
    _change(f"/clients/{quote(client_id, safe='')}", lambda _: f"disconnected {client_id}")


# Sessions


@mqtt.group("sessions", invoke_without_command=True, short_help="List sessions; delete one.")
@_looks
@click.pass_context
def sessions(context: click.Context) -> None:
    """List the sessions, those whose clients are away among them.

    Exit status: 0 done, 1 it cannot be done, 2 wrong usage.

    \b
    Examples:
      leafcuttr mqtt sessions
      leafcuttr mqtt sessions --json
    """
    if context.invoked_subcommand is None:
        columns = (
            "CLIENT",
            "AWAY",
            "EXPIRES AFTER",
            "SUBSCRIPTIONS",
            "IN FLIGHT",
            "WAITING",
            "BYTES",
            "OLDEST",
        )
        _show_list(
            "/sessions",
            columns,
            lambda row: (
                row["client_id"],
                None if row["connected"] else _ago(row["disconnected_ms"]),
                "never" if row["expiry_s"] is None else _span(row["expiry_s"]),
                row["subscriptions"],
                row["in_flight"],
                row["waiting"],
                row["waiting_bytes"],
                _ago(row["oldest_ms"]),
            ),
        )


@sessions.command("show", short_help="Show one session.")
@_looks
@click.argument("client_id")
def show_session(client_id: str) -> None:
    """Show the session of a client, with its subscriptions.

    Exit status: 0 done, 1 there is no such session, 2 wrong usage.

    \b
    Examples:
      leafcuttr mqtt sessions show dashboard
    """
    _show_one(f"/sessions/{quote(client_id, safe='')}")


@sessions.command("delete", short_help="End the session of a client.")
@_looks
@click.argument("client_id")
def delete_session(client_id: str) -> None:
    """End the session of a client: its subscriptions, and the messages that wait for it, are gone. If it is connected,
    its connection is ended first.

    Exit status: 0 done, 1 there is no such session, 2 wrong usage.

    \b
    Examples:
      leafcuttr mqtt sessions delete dashboard
    """
    _change(f"/sessions/{quote(client_id, safe='')}", lambda _: f"deleted the session of {client_id}")


# Retained messages


@mqtt.group("retained", invoke_without_command=True, short_help="List the retained messages; clear some.")
@_looks
@click.option("--filter", "topic_filter", metavar="FILTER", help="Topics that this filter matches.")
@click.pass_context
def retained(context: click.Context, topic_filter: str | None) -> None:
    """List the topics that have a retained message, without the messages: `leafcuttr mqtt subscribe` shows these.

    Exit status: 0 done, 1 it cannot be done, 2 wrong usage.

    \b
    Examples:
      leafcuttr mqtt retained --filter 'devices/#'
    """
    if context.invoked_subcommand is None:
        path = "/retained"
        if topic_filter is not None:
            path += f"?{urlencode({'filter': _valid_filter(topic_filter)})}"
        _show_list(
            path,
            ("TOPIC", "BYTES", "QOS", "PUBLISHED", "BY"),
            lambda row: (
                row["topic"],
                row["bytes"],
                row["qos"],
                _ago(row["published_ms"]),
                row["client_id"] or None,
            ),
        )


@retained.command("clear", short_help="Delete retained messages.")
@_looks
@click.argument("topic_filter", metavar="FILTER")
def clear(topic_filter: str) -> None:
    """Delete the retained messages of the topics that FILTER matches.

    Exit status: 0 done, also if there were none, 1 it cannot be done, 2 wrong usage.

    \b
    Examples:
      leafcuttr mqtt retained clear 'devices/old/#'
    """
    path = f"/retained?{urlencode({'filter': _valid_filter(topic_filter)})}"
    _change(path, lambda told: f"cleared {told['cleared']} retained message{'s' * (told['cleared'] != 1)}")


# Mappings


@mqtt.group("mappings", invoke_without_command=True, short_help="List the mappings; test a topic.")
@_looks
@click.pass_context
def mappings(context: click.Context) -> None:
    """List which MQTT topics are stored in which Kafka topics.

    Exit status: 0 done, 1 it cannot be done, 2 wrong usage.

    \b
    Examples:
      leafcuttr mqtt mappings
    """
    if context.invoked_subcommand is None:
        _show_list(
            "/mappings",
            ("FILTER", "KAFKA TOPIC", "KEY"),
            lambda row: (row["filter"], row["kafka_topic"], row["key"]),
        )


@mappings.command("test", short_help="Show where a message would be stored.")
@_looks
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
    found: list[Row] = _ask(f"/mappings/test?{query}")["targets"]
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


# Messages


def _speaks(function: F) -> F:
    """The options of a command that speaks MQTT."""
    function = security_options(function)
    for option in (
        click.option("--password", envvar="LEAFCUTTR_MQTT_PASSWORD", metavar="TEXT", help="With --username."),
        click.option(
            "--username", "-u", envvar="LEAFCUTTR_MQTT_USERNAME", metavar="TEXT", help="If it asks for one."
        ),
        click.option(
            "--mqtt-server",
            envvar="LEAFCUTTR_MQTT_SERVER",
            metavar="ADDRESS",
            help="The MQTT broker: HOST:PORT or a URL, as wss://HOST:PORT; mqtt, mqtts, ws, wss.  [default: what the "
            "admin port says]",
        ),
    ):
        function = option(function)
    return bootstrap_server_options(admin_server_option(function))


@mqtt.command("publish", short_help="Publish a message.")
@_speaks
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
    with _client(mqtt_server, username, password) as client:
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


@mqtt.command("subscribe", short_help="Print messages as they come.")
@_speaks
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

    requests = tuple(SubscriptionRequest(_valid_filter(each), qos) for each in filters)
    context = command_context()
    with _client(mqtt_server, username, password) as client:
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


def _client(mqtt_server: str | None, username: str | None, password: str | None) -> "MqttClient":
    from leafcuttr_mqtt.people.client import MqttClient

    if password is not None and username is None:
        raise click.UsageError("--password needs --username")
    context, security = command_context(), security_given()
    address = mqtt_server or _mqtt_address(tls=security.wanted)
    return MqttClient(address, context.timeout_s, user_name=username, password=password, security=security)


def _mqtt_address(*, tls: bool) -> str:
    """Where the broker listens, as seen from here: by the host that its admin port has."""
    listeners: dict[str, str] = _ask("/")["listeners"]
    # mqtt.port may be the one with TLS, by mqtt.ssl.keystore.location.
    address = (tls and listeners.get("mqtt.tls")) or listeners.get("mqtt")
    if address is None:
        hint = "" if tls or "mqtt.tls" not in listeners else "use --tls, or "
        raise PluginError(
            f"the broker has no plain listener of MQTT (mqtt.port); {hint}say by --mqtt-server which to use"
        )
    host, _, port = address.rpartition(":")
    if host in ("0.0.0.0", "::", "[::]"):
        host = command_context().admin_address.rpartition(":")[0]
    return f"{host}:{port}"


# The admin port


def _ask(path: str, method: str = "GET") -> Any:
    """What the admin port answers. Raises PluginError with a line for a person."""
    context = command_context()
    url = f"http://{context.admin_address}/plugins/mqtt{path}"
    try:
        request = urllib.request.Request(url, method=method)
        with urllib.request.urlopen(request, timeout=context.timeout_s) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        raise PluginError(_told(error)) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise PluginError(f"no admin port answers at {context.admin_address}: {reason}") from None


def _told(error: urllib.error.HTTPError) -> str:
    try:
        told = json.load(error)
        code, message = told["error"], told["message"]
    except (OSError, ValueError, KeyError, TypeError):
        return f"the admin port answers {error.code} {error.reason}"
    if code == "not_found":
        return "the broker has no MQTT (lc.mqtt.broker.enable)"
    return str(message)


def _show_list(path: str, columns: tuple[str, ...], cells: Callable[[Row], tuple[object, ...]]) -> None:
    context = command_context()
    found: list[Row] = _ask(path)
    if context.as_json:
        context.print_json(found)
    else:
        context.print_table(columns, [cells(row) for row in found])


def _show_one(path: str) -> None:
    context = command_context()
    found: Row = _ask(path)
    if context.as_json:
        context.print_json(found)
        return
    subscriptions: list[Row] = found.pop("subscriptions")
    for name, value in found.items():
        if name.endswith("_ms"):
            value = _ago(value)
            name = name.removesuffix("_ms")
        context.print_line(f"{name.replace('_', ' ')}: {'-' if value is None else value}")
    context.print_line("")
    context.print_table(
        ("FILTER", "QOS", "NO LOCAL", "RETAIN AS PUBLISHED", "IDENTIFIER"),
        [
            (
                row["filter"],
                row["qos"],
                "yes" if row["no_local"] else "no",
                "yes" if row["retain_as_published"] else "no",
                row["identifier"],
            )
            for row in subscriptions
        ],
    )


def _change(path: str, line: Callable[[Row], str]) -> None:
    context = command_context()
    told: Row = _ask(path, "DELETE")
    if context.as_json:
        context.print_json(told)
    else:
        context.print_line(line(told))


def _valid_filter(text: str) -> str:
    if wrong := why_no_filter(text):
        raise click.UsageError(f"{text!r} is no topic filter: {wrong}")
    return text


def _ago(time_ms: int | None) -> str | None:
    return None if time_ms is None else f"{_span(max(0, time.time() - time_ms / 1000))} ago"


def _span(seconds: float) -> str:
    for size, unit in _UNITS:
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
