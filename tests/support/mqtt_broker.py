"""An MQTT broker for real clients: LeafCuttr in a process of its own, or one that runs already."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from support.broker_process import BrokerProcess, running_broker

MAPPED = "mapped"
"""What is published below it is stored in the Kafka topic of the same name."""
SETTINGS = {
    "lc.mqtt.broker.enable": "true",
    "mqtt.host": "127.0.0.1",
    "mqtt.port": "0",
    "mqtt.ws.host": "127.0.0.1",
    "mqtt.ws.port": "0",
    f"mqtt.topic.mapping.{MAPPED}/#": MAPPED,
}


class MqttBroker(NamedTuple):
    host: str
    port: int
    web_sockets: int | None
    """The port of its WebSockets."""
    process: BrokerProcess | None
    """None: another broker, which stores nothing in Kafka topics."""

    @property
    def kafka(self) -> str | None:
        """`host:port` for Kafka's clients."""
        return self.process.address if self.process else None

    @classmethod
    def named(cls, text: str) -> MqttBroker:
        """`HOST:PORT` or `HOST:PORT,PORT OF WEBSOCKETS`."""
        address, _, web = text.partition(",")
        host, _, port = address.rpartition(":")
        return cls(host, int(port), int(web) if web else None, None)

    @classmethod
    def of(cls, process: BrokerProcess) -> MqttBroker:
        host, _, port = process.about["plugin_listeners"]["mqtt"].rpartition(":")
        web = process.about["plugin_listeners"].get("mqtt.ws")
        return cls(host, int(port), int(web.rpartition(":")[2]) if web else None, process)


@contextmanager
def running_mqtt(
    folder: Path, settings: dict[str, str] | None = None, *, environ: dict[str, str] | None = None
) -> Iterator[MqttBroker]:
    """LeafCuttr with MQTT on free ports until the end of the context, whose stop must be clean."""
    with running_broker(folder, {**SETTINGS, **(settings or {})}, environ=environ) as process:
        yield MqttBroker.of(process)
