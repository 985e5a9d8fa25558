"""paho-mqtt and mosquitto's tools as users of the broker, with ACLs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from typing import Any, NamedTuple

import pytest
import trustme
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

    def __init__(
        self, broker: MqttBroker, name: str, password: str = PASSWORD, *, tls: Secured | None = None
    ) -> None:
        self.connected: Queue[int] = Queue()
        self.subscribed: Queue[list[int]] = Queue()
        self.published: Queue[int] = Queue()
        self.got: Queue[str] = Queue()
        self.client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
        port = broker.port
        if tls is None:
            self.client.username_pw_set(name, password)
        else:
            self.client.tls_set(str(tls.trusted), str(tls.own), str(tls.own))
            port = tls.tls
        self.client.on_connect = lambda *found: self.connected.put(found[3].value)
        self.client.on_subscribe = lambda *found: self.subscribed.put([each.value for each in found[3]])
        self.client.on_publish = lambda *found: self.published.put(found[3].value)
        self.client.on_message = lambda *found: self.got.put(found[2].topic)
        self.client.connect(broker.host, port)
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


class Secured(NamedTuple):
    broker: MqttBroker
    tls: int
    """The port of its listener for TLS."""
    trusted: Path
    own: Path
    """The certificate of alice, and its key."""


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[Secured]:
    """alice, who shows a certificate, may publish to `free` and read it."""
    authority, data = trustme.CA(), tmp_path / "data"
    server, trusted, own = (tmp_path / name for name in ("server.pem", "ca.pem", "client.pem"))
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(server))
    authority.cert_pem.write_to_path(str(trusted))
    made = authority.issue_cert(
        common_name="alice", organization_name="Farm", organization_unit_name="Sensors"
    )
    made.private_key_and_cert_chain_pem.write_to_path(str(own))
    for operation in ("write", "read"):
        leafcuttr("acls", "add", "CN=alice,OU=Sensors,O=Farm", operation, "--topic", "mqtt/free", data=data)
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "mqtt.auth": "mtls",
        "mqtt.tls.host": "127.0.0.1",
        "mqtt.tls.port": "0",
        "mqtt.tls.ssl.keystore.location": str(server),
        "mqtt.tls.ssl.truststore.location": str(trusted),
        "mqtt.tls.ssl.client.auth": "required",
    }
    with running_mqtt(tmp_path, settings) as found:
        assert found.process is not None
        tls = int(found.process.about["plugin_listeners"]["mqtt.tls"].rpartition(":")[2])
        yield Secured(found, tls, trusted, own)


@pytest.mark.client("paho-mqtt")
def test_paho_with_a_certificate(secured: Secured) -> None:
    with Paho(secured.broker, "", tls=secured) as alice:
        assert alice.answer == 0
        assert alice.subscribe("free", "secret") == [1, NOT_AUTHORIZED]
        assert [alice.publish(topic) for topic in ("free", "secret")] == [0, NOT_AUTHORIZED]
        assert alice.got.get(timeout=PATIENCE_S) == "free"


@pytest.mark.client("mosquitto_pub, mosquitto_sub")
@pytest.mark.skipif(shutil.which("mosquitto_sub") is None, reason="not installed: mosquitto_sub")
def test_mosquitto_with_a_certificate(secured: Secured) -> None:
    at = ("-h", "127.0.0.1", "-p", str(secured.tls), "-V", "mqttv5", "--cafile", str(secured.trusted))
    shown = ("--cert", str(secured.own), "--key", str(secured.own))

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*words], capture_output=True, text=True, timeout=PATIENCE_S)

    published = run("mosquitto_pub", *at, *shown, "-q", "1", "-r", "-t", "free", "-m", "yes")
    assert published.returncode == 0, published.stderr
    assert run("mosquitto_sub", *at, *shown, "-t", "free", "-C", "1", "-W", "30").stdout == "yes\n"
    assert "denied" in run("mosquitto_sub", *at, *shown, "-t", "secret", "-E").stderr
    assert run("mosquitto_sub", *at, "-t", "free", "-E").returncode
