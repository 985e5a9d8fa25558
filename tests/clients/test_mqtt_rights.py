"""paho-mqtt and mosquitto's tools as users of the broker, with ACLs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from typing import Any

import pytest
from paho.mqtt.client import CallbackAPIVersion, Client, MQTTProtocolVersion

from support.mqtt_broker import MAPPED, MqttBroker, running_mqtt

pytestmark = pytest.mark.long
PATIENCE_S = 60
PASSWORD = "a long one"
NOT_AUTHORIZED, WRONG = 0x87, 0x86


def leafcuttr(*words: str, data: Path, given: str = "") -> None:
    command = [sys.executable, "-m", "leafcuttr", *words, "--data", str(data)]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MqttBroker]:
    """alice may publish to `free`, and to what is mapped; bob may read these."""
    folder = tmp_path_factory.mktemp("secured")
    data = folder / "data"
    for name, operation in (("alice", "write"), ("bob", "read")):
        leafcuttr("users", "create", name, data=data, given=PASSWORD)
        for topic in (MAPPED, "mqtt/free"):
            leafcuttr("acls", "add", name, operation, "--topic", topic, data=data)
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "mqtt.auth": "basic",
        "mqtt.authenticators": "broker",
    }
    with running_mqtt(folder, settings) as found:
        yield found


class Paho:
    """A client of MQTT 5.0; what it hears is in queues."""

    def __init__(self, broker: MqttBroker, name: str, password: str = PASSWORD) -> None:
        self.connected: Queue[int] = Queue()
        self.subscribed: Queue[list[int]] = Queue()
        self.published: Queue[int] = Queue()
        self.got: Queue[str] = Queue()
        self.client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
        self.client.username_pw_set(name, password)
        self.client.on_connect = lambda *found: self.connected.put(found[3].value)
        self.client.on_subscribe = lambda *found: self.subscribed.put([each.value for each in found[3]])
        self.client.on_publish = lambda *found: self.published.put(found[3].value)
        self.client.on_message = lambda *found: self.got.put(found[2].topic)
        self.client.connect(broker.host, broker.port)
        self.client.loop_start()
        self.answer = self.connected.get(timeout=PATIENCE_S)

    def __enter__(self) -> Paho:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.disconnect()
        self.client.loop_stop()

    def subscribe(self, *filters: str) -> list[int]:
        self.client.subscribe([(each, 1) for each in filters])
        return self.subscribed.get(timeout=PATIENCE_S)

    def publish(self, topic: str, **more: Any) -> int:
        self.client.publish(topic, b"x", 1, **more)
        return self.published.get(timeout=PATIENCE_S)


@pytest.mark.client("paho-mqtt")
def test_paho(broker: MqttBroker) -> None:
    with Paho(broker, "bob", "wrong") as other:
        assert other.answer == WRONG
    with Paho(broker, "alice") as alice, Paho(broker, "bob") as bob:
        assert (alice.answer, bob.answer) == (0, 0)
        assert bob.subscribe("free", "secret", "#") == [1, NOT_AUTHORIZED, 1]
        assert alice.subscribe("free") == [NOT_AUTHORIZED]
        assert [alice.publish(topic) for topic in ("free", "secret", f"{MAPPED}/1")] == [0, NOT_AUTHORIZED, 0]
        assert bob.publish("free") == NOT_AUTHORIZED
        assert [bob.got.get(timeout=PATIENCE_S) for _ in range(2)] == ["free", f"{MAPPED}/1"]
        assert bob.got.empty()


@pytest.mark.client("mosquitto_pub, mosquitto_sub")
@pytest.mark.skipif(shutil.which("mosquitto_sub") is None, reason="not installed: mosquitto_sub")
@pytest.mark.parametrize("protocol", ["mqttv311", "mqttv5"])
def test_mosquitto(broker: MqttBroker, protocol: str) -> None:
    at = ("-h", broker.host, "-p", str(broker.port), "-V", protocol, "-P", PASSWORD)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*words], capture_output=True, text=True, timeout=PATIENCE_S)

    def publish(topic: str) -> None:
        run("mosquitto_pub", *at, "-u", "alice", "-q", "1", "-r", "-t", topic, "-m", topic)

    for topic in ("free", "secret"):
        publish(topic)
    found = run("mosquitto_sub", *at, "-u", "bob", "-t", "#", "-W", "2", "-C", "1")
    assert found.stdout == "free\n"
    refused = run("mosquitto_sub", *at, "-u", "bob", "-t", "secret", "-E")
    assert "denied" in refused.stderr
    assert run("mosquitto_sub", *at, "-u", "nobody", "-t", "#", "-E").returncode
