"""An MQTT broker, 3.1.1 and 5.0, that stores chosen MQTT topics in Kafka topics.

This module is imported at every start, also where the broker is off: it says what there is and imports nothing heavy.

    `server`    the service: listeners, connections, authentication, keep alive
    `routing`   from publishers to subscribers: sessions by client id, retained messages, wills, one append a turn
    `packets`   bytes and packets, no I/O
    `topics`    topic names and filters, the tree of subscriptions
    `session`   the state of a session, no I/O
    `mapping`   which messages go to which Kafka topics, and as what records
    `bridge`    bridges to other MQTT brokers
    `storage`   sessions, queues, retained messages and wills in internal topics
    `people`    the admin port, metrics, `$SYS`, `leafcuttr mqtt`
    settings    what can be set
    messages    a message on its way through all of these
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from leafcuttr_sdk.plugin import Plugin
from leafcuttr_sdk.services import Service, ServiceSpec

if TYPE_CHECKING:
    import click

    from leafcuttr_sdk.admin import AdminRoute, HealthCheck
    from leafcuttr_sdk.broker import Broker
    from leafcuttr_sdk.cli import CliCommand
    from leafcuttr_sdk.metrics import MetricReading
    from leafcuttr_sdk.settings import Setting

PLUGIN: Final = Plugin(
    name="mqtt",
    api_version=1,
    summary="An MQTT broker, 3.1.1 and 5.0, whose messages are stored in Kafka topics",
    enabled_by="lc.mqtt.broker.enable",
    extra="mqtt",
    modules=("trio_websocket",),
)


def leafcuttr_register_settings() -> "Iterable[Setting]":
    from leafcuttr_mqtt.bridge.settings import settings as bridge_settings
    from leafcuttr_mqtt.mapping.settings import settings as mapping_settings
    from leafcuttr_mqtt.settings import settings

    yield from settings()
    yield from mapping_settings()
    yield from bridge_settings()


def leafcuttr_register_cli_commands() -> "Iterable[CliCommand]":
    from leafcuttr_sdk.cli import CliCommand

    return [CliCommand("mqtt", "look at the MQTT broker, publish and subscribe", _load)]


def leafcuttr_register_admin_routes(broker: "Broker") -> "Iterable[AdminRoute]":
    from leafcuttr_mqtt.people.admin import routes

    return routes(broker)


def leafcuttr_register_health_checks(broker: "Broker") -> "Iterable[HealthCheck]":
    from leafcuttr_mqtt.people.admin import health_checks

    return health_checks(broker)


def leafcuttr_register_metrics(broker: "Broker") -> "Iterable[MetricReading]":
    from leafcuttr_mqtt.people.metrics import readings

    return readings(broker)


def leafcuttr_register_services() -> Iterable[ServiceSpec]:
    return [ServiceSpec("mqtt", _make)]


def _make(broker: "Broker") -> Service:
    from leafcuttr_mqtt.server.service import MqttBroker

    return MqttBroker(broker)


def _load() -> "click.Command":
    from leafcuttr_mqtt.people.command import mqtt

    return mqtt
