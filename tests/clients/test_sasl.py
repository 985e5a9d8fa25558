"""Clients that others wrote log in by each mechanism, over TLS: each writes records and reads them in a group."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support import jars
from support.broker_process import running_broker
from support.tls_peer import Certificates
from support.waiting import free_port

Fresh = Callable[[str], str]
VALUES = [b"%d:" % at + b"x" * 500 for at in range(500)]
NAME, PASSWORD = "alice", "open, the = door"
MECHANISMS = pytest.mark.parametrize(
    "mechanism",
    ["SCRAM-SHA-512", *(pytest.param(one, marks=pytest.mark.long) for one in ("PLAIN", "SCRAM-SHA-256"))],
)


class Secured(NamedTuple):
    address: str
    trusted: str
    certificates: Certificates


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    from confluent_kafka.admin import (
        AdminClient,
        ScramCredentialInfo,
        ScramMechanism,
        UserScramCredentialUpsertion,
    )

    folder = tmp_path_factory.mktemp("sasl")
    ours = Certificates(folder)
    address, open_address = (f"127.0.0.1:{free_port()}" for _ in range(2))
    settings = {
        "listeners": f"SASL_SSL://{address},PLAINTEXT://{open_address}",
        "ssl.keystore.location": ours.issue("127.0.0.1").file,
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "offsets.topic.num.partitions": "1",
    }
    with running_broker(folder / "data", settings):
        admin = AdminClient({"bootstrap.servers": open_address})
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            upsertion = UserScramCredentialUpsertion(
                NAME, ScramCredentialInfo(mechanism, 4096), PASSWORD.encode()
            )
            for future in admin.alter_user_scram_credentials([upsertion]).values():
                future.result(60)
        yield Secured(address, ours.trusted, ours)


def librdkafka_settings(secured: Secured, mechanism: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": secured.address,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": secured.trusted,
        "sasl.mechanism": mechanism,
        "sasl.username": NAME,
        "sasl.password": PASSWORD,
    }


@MECHANISMS
@pytest.mark.client("confluent-kafka")
def test_confluent_kafka(secured: Secured, fresh: Fresh, mechanism: str) -> None:
    from confluent_kafka import Consumer, Producer

    given = librdkafka_settings(secured, mechanism)
    topic = fresh("topic")
    producer = Producer(given)
    for value in VALUES:
        producer.produce(topic, value)
    assert producer.flush(60) == 0
    reader = Consumer({**given, "group.id": fresh("group"), "auto.offset.reset": "earliest"})
    reader.subscribe([topic])
    found: list[bytes] = []
    while len(found) < len(VALUES):
        message = reader.poll(60)
        assert message is not None and message.error() is None
        found.append(message.value() or b"")
    reader.close()
    assert found == VALUES


@MECHANISMS
@pytest.mark.client("kafka-python")
def test_kafka_python(secured: Secured, fresh: Fresh, mechanism: str) -> None:
    from kafka import KafkaConsumer, KafkaProducer

    topic = fresh("topic")
    given: dict[str, Any] = {
        "bootstrap_servers": secured.address,
        "security_protocol": "SASL_SSL",
        "ssl_context": secured.certificates.client(),
        "sasl_mechanism": mechanism,
        "sasl_plain_username": NAME,
        "sasl_plain_password": PASSWORD,
    }
    producer = KafkaProducer(**given, acks="all", linger_ms=5)
    sent = [producer.send(topic, value) for value in VALUES]
    producer.flush(60)
    assert [each.get(60).offset for each in sent] == list(range(len(VALUES)))
    producer.close()
    reader = KafkaConsumer(topic, **given, group_id=fresh("group"), auto_offset_reset="earliest")
    found: list[bytes] = []
    while len(found) < len(VALUES):
        some = reader.poll(60_000)
        assert some
        found += [each.value for records in some.values() for each in records]
    reader.close()
    assert found == VALUES


@MECHANISMS
@pytest.mark.client("aiokafka")
def test_aiokafka(secured: Secured, fresh: Fresh, mechanism: str) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    topic = fresh("topic")
    given: dict[str, Any] = {
        "bootstrap_servers": secured.address,
        "security_protocol": "SASL_SSL",
        "ssl_context": secured.certificates.client(),
        "sasl_mechanism": mechanism,
        "sasl_plain_username": NAME,
        "sasl_plain_password": PASSWORD,
    }

    async def both() -> list[bytes]:
        async with AIOKafkaProducer(**given, linger_ms=5) as producer:
            for each in [await producer.send(topic, value) for value in VALUES]:
                await each
        found: list[bytes] = []
        async with AIOKafkaConsumer(
            topic, **given, group_id=fresh("group"), auto_offset_reset="earliest"
        ) as reader:
            while len(found) < len(VALUES):
                some = await reader.getmany(timeout_ms=60_000)
                found += [each.value for records in some.values() for each in records]
        return found

    assert asyncio.run(both()) == VALUES


@MECHANISMS
@pytest.mark.client("kcat")
@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed (apt-get install kcat)")
def test_kcat(secured: Secured, fresh: Fresh, mechanism: str) -> None:
    topic = fresh("topic")
    lines = "".join(f"line {at}\n" for at in range(500))
    settings = librdkafka_settings(secured, mechanism)
    options = [word for name, value in settings.items() for word in ("-X", f"{name}={value}")]

    def kcat(*arguments: str, given: str = "") -> str:
        command = ["kcat", "-t", topic, *options, *arguments]
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    kcat("-P", given=lines)
    assert kcat("-C", "-o", "beginning", "-e", "-q") == lines


@pytest.mark.client("Kafka's Java tools", version="4.3.1")
@pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing()))
@pytest.mark.long
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_java(secured: Secured, fresh: Fresh, tmp_path: Path, mechanism: str) -> None:
    """`kafka-configs` creates and deletes a user too."""
    topic = fresh("topic")
    config = tmp_path / "client.properties"
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    config.write_text(
        "security.protocol=SASL_SSL\n"
        f"ssl.truststore.type=PEM\nssl.truststore.location={secured.trusted}\n"
        f"sasl.mechanism={mechanism}\n"
        f"sasl.jaas.config=org.apache.kafka.common.security.{module} required "
        f'username="{NAME}" password="{PASSWORD}";\n'
    )
    lines = "".join(f"line {at}\n" for at in range(500))

    def tool(name: str, *arguments: str, given: str | None = None) -> str:
        command = jars.java("4.3.1", name, "--bootstrap-server", secured.address, *arguments)
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    tools = "org.apache.kafka.tools"
    tool(f"{tools}.ConsoleProducer", "--topic", topic, "--producer.config", str(config), given=lines)
    read = ("--topic", topic, "--from-beginning", "--max-messages", "500", "--timeout-ms", "60000")
    found = tool(f"{tools}.consumer.ConsoleConsumer", *read, "--consumer.config", str(config))
    assert "".join(line for line in found.splitlines(keepends=True) if line.startswith("line ")) == lines
    user = ("--entity-type", "users", "--entity-name", fresh("user"), "--command-config", str(config))
    tool(
        "kafka.admin.ConfigCommand",
        *user,
        "--alter",
        "--add-config",
        "SCRAM-SHA-256=[iterations=5000,password=p]",
    )
    tool("kafka.admin.ConfigCommand", *user, "--alter", "--delete-config", "SCRAM-SHA-256")
