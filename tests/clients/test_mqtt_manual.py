"""What the manual shows of MQTT: its two samples, its compose file, and a mapping that is given by environment.

programs/mqtt_manual/producer.sample is the manual's text. In listener.sample the port is 1883 and the client id another
than the producer's: with one id they would take each other over.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.broker_process import BrokerProcess, running_broker
from support.client_programs import PROGRAMS
from support.own_network import own_network
from support.waiting import until

MANUAL = PROGRAMS / "mqtt_manual"
PATIENCE_S = 60
DEVICE = """
import paho.mqtt.publish
paho.mqtt.publish.single("test/topic/temperature", "21.5", qos=1, client_id="thermometer")
paho.mqtt.publish.single("test/topic/humidity", "40", qos=2, client_id="thermometer")
paho.mqtt.publish.single("test/topic", "goes to no Kafka topic", qos=1)
"""
COMPOSE = {
    "KAFKA_LC_MQTT_BROKER_ENABLE": "true",
    "KAFKA_LISTENERS": "CONTROLLER://localhost:9091,HOST://0.0.0.0:9092,DOCKER://0.0.0.0:9093",
    "KAFKA_ADVERTISED_LISTENERS": "HOST://localhost:9092,DOCKER://kafka:9093",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,DOCKER:PLAINTEXT,HOST:PLAINTEXT",
    "KAFKA_NODE_ID": "1",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9091",
    "KAFKA_INTER_BROKER_LISTENER_NAME": "DOCKER",
    "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
}
"""The manual's, with MQTT switched on."""
MAPPING = {"KAFKA_MQTT_TOPIC_MAPPING_TEST/TOPIC/+": "from-mqtt"}

Inside = tuple[str, ...]


@pytest.fixture(scope="module")
def inside() -> Iterator[Inside]:
    with own_network() as words:
        yield words


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, inside: Inside) -> Iterator[BrokerProcess]:
    """As the compose file starts it, on the ports that it names, and MQTT on 1883."""
    folder = tmp_path_factory.mktemp("manual")
    config = folder / "server.properties"
    config.write_text(f"log.dirs={folder / 'data'}\n")
    with running_broker(folder, config=config, environ={**COMPOSE, **MAPPING}, before=inside) as process:
        yield process


def run(inside: Inside, *words: str) -> str:
    done = subprocess.run(
        [*inside, sys.executable, *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_samples_talk_to_each_other(broker: BrokerProcess, inside: Inside, tmp_path: Path) -> None:
    """They send credentials while none are set, which are accepted."""
    heard = tmp_path / "listener"
    with heard.open("w") as out:
        listening = [*inside, sys.executable, "-u", str(MANUAL / "listener.sample")]
        listener = subprocess.Popen(listening, stdout=out, stderr=subprocess.STDOUT)
        try:
            until(lambda: "Subscribed to topic: 'test/topic'" in heard.read_text(), "the listener")
            said = ""
            for count in (1, 2):
                said = run(inside, str(MANUAL / "producer.sample"))
                assert "Connected successfully to MQTT broker." in said
                until(lambda: heard.read_text().count("Message Received!") == count, "the message")  # noqa: B023
            assert "Payload: Hello, MQTT from Python!" in heard.read_text()
            listener.send_signal(signal.SIGINT)
            listener.wait(PATIENCE_S)
        finally:
            listener.kill()
            listener.wait()
    assert "Message published (mid: 1)." in said
    assert "Client disconnected. Script exit." in heard.read_text()


@pytest.mark.parametrize("reader", ["read_kafka_python", "read_confluent"])
def test_kafka_clients_read_what_a_device_sent(broker: BrokerProcess, inside: Inside, reader: str) -> None:
    run(inside, "-c", DEVICE)
    found = [
        json.loads(line)
        for line in run(inside, str(MANUAL / f"{reader}.py"), "localhost:9092", "from-mqtt", "2").splitlines()
    ]
    assert [(one["key"], one["value"]) for one in found] == [
        ("test/topic/temperature", "21.5"),
        ("test/topic/humidity", "40"),
    ]
    for one, qos in zip(found, ("1", "2"), strict=True):
        headers = dict(one["headers"])
        assert headers["mqtt.topic"] == one["key"]
        assert headers["mqtt.client_id"] == "thermometer"
        assert headers["mqtt.qos"] == qos
        assert headers["mqtt.retain"] in ("0", "false")


def test_it_says_that_everybody_may_connect(broker: BrokerProcess) -> None:
    """One line, and none of names that are unknown."""
    assert broker.log.count("port 1883 may use mqtt of plugin mqtt without authentication (mqtt.host)") == 1
    assert "no known setting" not in broker.log
