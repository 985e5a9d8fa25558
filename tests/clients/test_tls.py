"""Clients that others wrote over TLS, with certificates of their own: each writes 2,000 records and reads them in a
group."""

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
from support.tls_peer import Certificates, Identity
from support.waiting import free_port

Fresh = Callable[[str], str]
VALUES = [b"%d:" % at + b"x" * 500 for at in range(2_000)]


class Secured(NamedTuple):
    address: str
    certificates: Certificates
    own: Identity


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A listener that requires certificates of its clients."""
    folder = tmp_path_factory.mktemp("tls")
    ours = Certificates(folder)
    address = f"127.0.0.1:{free_port()}"
    settings = {
        "listeners": f"SSL://{address},PLAINTEXT://127.0.0.1:0",
        "ssl.keystore.location": ours.issue("127.0.0.1").file,
        "ssl.truststore.location": ours.trusted,
        "ssl.client.auth": "required",
        "offsets.topic.num.partitions": "1",
    }
    with running_broker(folder / "data", settings):
        yield Secured(address, ours, ours.issue("device.test", common_name="device"))


def librdkafka_settings(secured: Secured) -> dict[str, Any]:
    return {
        "bootstrap.servers": secured.address,
        "security.protocol": "SSL",
        "ssl.ca.location": secured.certificates.trusted,
        "ssl.certificate.location": secured.own.file,
        "ssl.key.location": secured.own.file,
    }


@pytest.mark.client("confluent-kafka")
def test_confluent_kafka(secured: Secured, fresh: Fresh) -> None:
    from confluent_kafka import Consumer, Producer

    topic = fresh("topic")
    producer = Producer({**librdkafka_settings(secured), "enable.idempotence": True})
    for value in VALUES:
        producer.produce(topic, value)
    assert producer.flush(60) == 0
    reader = Consumer(
        {**librdkafka_settings(secured), "group.id": fresh("group"), "auto.offset.reset": "earliest"}
    )
    reader.subscribe([topic])
    found: list[bytes] = []
    while len(found) < len(VALUES):
        message = reader.poll(60)
        assert message is not None and message.error() is None
        found.append(message.value() or b"")
    reader.commit(asynchronous=False)
    reader.close()
    assert found == VALUES


@pytest.mark.client("kafka-python")
def test_kafka_python(secured: Secured, fresh: Fresh) -> None:
    from kafka import KafkaConsumer, KafkaProducer

    topic = fresh("topic")
    given: dict[str, Any] = {
        "bootstrap_servers": secured.address,
        "security_protocol": "SSL",
        "ssl_context": secured.certificates.client(secured.own),
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
    reader.commit()
    reader.close()
    assert found == VALUES


@pytest.mark.client("aiokafka")
def test_aiokafka(secured: Secured, fresh: Fresh) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    topic = fresh("topic")
    given: dict[str, Any] = {
        "bootstrap_servers": secured.address,
        "security_protocol": "SSL",
        "ssl_context": secured.certificates.client(secured.own),
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
            await reader.commit()
        return found

    assert asyncio.run(both()) == VALUES


@pytest.mark.client("kcat")
@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed (apt-get install kcat)")
def test_kcat(secured: Secured, fresh: Fresh) -> None:
    topic = fresh("topic")
    lines = "".join(f"line {at}\n" for at in range(2_000))
    options = [
        word for name, value in librdkafka_settings(secured).items() for word in ("-X", f"{name}={value}")
    ]

    def kcat(*arguments: str, given: str = "") -> str:
        command = ["kcat", "-t", topic, *options, *arguments]
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    kcat("-P", given=lines)
    assert kcat("-C", "-o", "beginning", "-e", "-q") == lines


@pytest.mark.client("Kafka's Java tools", version="4.3.1")
@pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing()))
@pytest.mark.parametrize("version", ["4.3.1", pytest.param("3.9.1", marks=pytest.mark.long)])
def test_java(secured: Secured, fresh: Fresh, tmp_path: Path, version: str) -> None:
    topic = fresh("topic")
    config = tmp_path / "client.properties"
    config.write_text(
        "security.protocol=SSL\n"
        f"ssl.truststore.type=PEM\nssl.truststore.location={secured.certificates.trusted}\n"
        f"ssl.keystore.type=PEM\nssl.keystore.location={_pkcs8(secured, tmp_path)}\n"
    )
    lines = "".join(f"line {at}\n" for at in range(2_000))

    def tool(name: str, *arguments: str, given: str | None = None) -> str:
        command = jars.java(version, name, "--bootstrap-server", secured.address, *arguments)
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    producer, consumer = (
        "org.apache.kafka.tools.ConsoleProducer",
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
    )
    if version.startswith("3"):
        producer, consumer = "kafka.tools.ConsoleProducer", "org.apache.kafka.tools.consumer.ConsoleConsumer"
    tool(producer, "--topic", topic, "--producer.config", str(config), given=lines)
    read = ("--topic", topic, "--from-beginning", "--max-messages", "2000", "--timeout-ms", "60000")
    found = tool(consumer, *read, "--consumer.config", str(config)).splitlines(keepends=True)
    assert "".join(line for line in found if not line.startswith("Option ")) == lines


def _pkcs8(secured: Secured, folder: Path) -> Path:
    """Java reads keys of this form only."""
    from cryptography.hazmat.primitives import serialization

    key = serialization.load_pem_private_key(secured.own.key.encode(), None)
    file = folder / "own.pem"
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        + secured.own.chain.encode()
    )
    return file
