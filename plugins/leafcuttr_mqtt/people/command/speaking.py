"""Commands that speak MQTT to the broker."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from leafcuttr_mqtt.people.command.asking import ask
from leafcuttr_mqtt.people.security_options import security_given, security_options
from leafcuttr_sdk.cli import admin_server_option, bootstrap_server_options, command_context
from leafcuttr_sdk.errors import PluginError

if TYPE_CHECKING:
    from leafcuttr_mqtt.people.client import MqttClient

F = TypeVar("F", bound=Callable[..., Any])


def speaks(function: F) -> F:
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


def connected(mqtt_server: str | None, username: str | None, password: str | None) -> "MqttClient":
    from leafcuttr_mqtt.people.client import MqttClient

    if password is not None and username is None:
        raise click.UsageError("--password needs --username")
    context, security = command_context(), security_given()
    address = mqtt_server or _mqtt_address(tls=security.wanted)
    return MqttClient(address, context.timeout_s, user_name=username, password=password, security=security)


def _mqtt_address(*, tls: bool) -> str:
    """Where the broker listens, as seen from here: by the host that its admin port has."""
    listeners: dict[str, str] = ask("/")["listeners"]
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
