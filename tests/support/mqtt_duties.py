"""What every MQTT client must do with the broker: the list that the programs below tests/clients/programs, the tests of
clients in Python and the matrix in docs/reference/clients.md share.

A program is called with `HOST PORT PREFIX [PORT OF WEBSOCKETS]` and goes through the duties in this order, in topics
below PREFIX. It says `did DUTY: WHAT` for each, a line of its own, and ends with 0; anything else is a failure.

    PREFIX/qos/N     30 messages with QoS N, `0` to `29`, to a subscriber with QoS N
    PREFIX/resumed   what a session is sent that is away: `1-0` to `1-9` with QoS 1, `2-0` to `2-9` with QoS 2
    PREFIX/shared    60 messages with QoS 1, `0` to `59`, for two members of one shared subscription
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from support import jars
from support.client_programs import PROGRAMS, Program, go, node, pinned

MQTT_DUTIES = {
    "connect": "a clean session, with keep alive, that ends with DISCONNECT",
    "QoS 0": "messages come in order, at most once",
    "QoS 1": "each message is acknowledged and comes in order",
    "QoS 2": "each message is acknowledged in two steps and comes exactly once, in order",
    "retained": "the last retained message comes to a later subscriber; an empty one deletes it",
    "will": "is published when a connection breaks, and not after DISCONNECT",
    "session resume": "what came while the client was away comes when it is back, once with QoS 2",
    "shared subscription": "each message comes to one of two members",
    "properties": "MQTT 5.0: content type, response topic, correlation data, user properties, expiry",
}
MESSAGES, AWAY, SHARED = 30, 10, 60


HIVEMQ = "1.4.2"


def hivemq() -> list[str]:
    return jars.hivemq(HIVEMQ, str(PROGRAMS / "hivemq" / "Client.java"))


@dataclass(frozen=True)
class MqttProgram(Program):
    """One client in a program of its own. `web_sockets`: it goes through its duties over them."""

    web_sockets: bool = False


def _js(web_sockets: bool) -> MqttProgram:
    version = pinned("mqtt_js/package.json", r'"mqtt": "(\S+)"')
    name = "MQTT.js over WebSocket" if web_sockets else "MQTT.js"
    return MqttProgram(name, version, partial(node, "mqtt_js"), ("node", "npm"), web_sockets=web_sockets)


MQTT_PROGRAMS = [
    _js(False),
    _js(True),
    MqttProgram(
        "autopaho (paho.golang)",
        pinned("autopaho/go.mod", r"/paho.golang v(\S+)"),
        partial(go, "autopaho"),
        ("go",),
    ),
    MqttProgram("HiveMQ MQTT Client (Java)", HIVEMQ, hivemq, ("java", "mvn")),
]
