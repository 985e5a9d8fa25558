"""What each client does on a listener that is not open, however it shows who it is: write records, read them in a group
(see `tests/clients`).

    confluent_kafka(settings, fresh)

`settings` are the client's own words for the address, TLS and the log-in; `fresh` makes names. Each asserts that all
records come back in order, and that offsets can be committed.
"""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from support import jars
from support.secured_broker import NAME, PASSWORD, SecuredBroker

Fresh = Callable[[str], str]
Settings = Mapping[str, Any]
COUNT = 1_000
VALUES = [b"%d:" % at + b"x" * 500 for at in range(COUNT)]
LINES = "".join(f"line {at}\n" for at in range(COUNT))


def confluent_kafka(settings: Settings, fresh: Fresh) -> None:
    from confluent_kafka import Consumer, Producer

    topic = fresh("topic")
    producer = Producer({**settings, "enable.idempotence": True})
    for value in VALUES:
        producer.produce(topic, value)
    assert producer.flush(60) == 0
    reader = Consumer({**settings, "group.id": fresh("group"), "auto.offset.reset": "earliest"})
    reader.subscribe([topic])
    found: list[bytes] = []
    while len(found) < COUNT:
        message = reader.poll(60)
        assert message is not None and message.error() is None
        found.append(message.value() or b"")
    reader.commit(asynchronous=False)
    reader.close()
    assert found == VALUES


def kafka_python(settings: Settings, fresh: Fresh) -> None:
    from kafka import KafkaConsumer, KafkaProducer  # type: ignore[import-untyped]

    topic = fresh("topic")
    producer = KafkaProducer(**settings, acks="all", linger_ms=5)
    sent = [producer.send(topic, value) for value in VALUES]
    producer.flush(60)
    assert [each.get(60).offset for each in sent] == list(range(COUNT))
    producer.close()
    reader = KafkaConsumer(topic, **settings, group_id=fresh("group"), auto_offset_reset="earliest")
    found: list[bytes] = []
    while len(found) < COUNT:
        some = reader.poll(60_000)
        assert some
        found += [each.value for records in some.values() for each in records]
    reader.commit()
    reader.close()
    assert found == VALUES


def aiokafka(settings: Settings, fresh: Fresh) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer  # type: ignore[import-untyped]

    topic = fresh("topic")

    async def both() -> list[bytes]:
        async with AIOKafkaProducer(**settings, linger_ms=5) as producer:
            for each in [await producer.send(topic, value) for value in VALUES]:
                await each
        found: list[bytes] = []
        reader = AIOKafkaConsumer(topic, **settings, group_id=fresh("group"), auto_offset_reset="earliest")
        async with reader:
            while len(found) < COUNT:
                some = await reader.getmany(timeout_ms=60_000)
                assert some
                found += [each.value for records in some.values() for each in records]
            await reader.commit()
        return found

    assert asyncio.run(both()) == VALUES


def kcat(settings: Settings, fresh: Fresh) -> None:
    """By librdkafka's settings; without a group, as it has no end there."""
    options = [word for name, value in settings.items() for word in ("-X", f"{name}={value}")]
    topic = fresh("topic")

    def run(*arguments: str, given: str = "") -> str:
        command = ["kcat", "-t", topic, *options, *arguments]
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("-P", given=LINES)
    assert run("-C", "-o", "beginning", "-e", "-q") == LINES


def java_tool(version: str, address: str, name: str, *arguments: str, given: str | None = None) -> str:
    """One of Kafka's command line tools, by its class; what it prints."""
    command = jars.java(version, name, "--bootstrap-server", address, *arguments)
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def console_producer(version: str) -> str:
    """The class of `kafka-console-producer.sh`."""
    return "kafka.tools.ConsoleProducer" if version < "4" else "org.apache.kafka.tools.ConsoleProducer"


def java_console(version: str, address: str, config: Path, fresh: Fresh) -> None:
    """Kafka's console producer and consumer, with a file of properties."""
    producer, topic = console_producer(version), fresh("topic")
    consumer = "org.apache.kafka.tools.consumer.ConsoleConsumer"
    written = ("--topic", topic, "--producer.config", str(config))
    java_tool(version, address, producer, *written, given=LINES)
    read = ("--topic", topic, "--from-beginning", "--max-messages", str(COUNT), "--timeout-ms", "60000")
    found = java_tool(version, address, consumer, *read, "--consumer.config", str(config))
    assert "".join(line for line in found.splitlines(keepends=True) if line.startswith("line ")) == LINES


def librdkafka_settings(secured: SecuredBroker, security: str) -> dict[str, Any]:
    """`security` is SSL, MTLS, or a mechanism. For OAUTHBEARER the token is not among them."""
    trusted = {"ssl.ca.location": secured.trusted}
    if security in ("SSL", "MTLS"):
        own = {"ssl.certificate.location": secured.own, "ssl.key.location": secured.own}
        at = {"bootstrap.servers": secured.addresses[security], "security.protocol": "SSL"}
        return {**trusted, **at, **(own if security == "MTLS" else {})}
    log_in = {"sasl.mechanism": security}
    if security != "OAUTHBEARER":
        log_in |= {"sasl.username": NAME, "sasl.password": PASSWORD}
    at = {"bootstrap.servers": secured.addresses["SASL_SSL"], "security.protocol": "SASL_SSL"}
    return {**trusted, **at, **log_in}


def python_settings(secured: SecuredBroker, security: str) -> dict[str, Any]:
    """The same, for kafka-python and aiokafka."""
    context = secured.certificates.client()
    if security in ("SSL", "MTLS"):
        if security == "MTLS":
            context.load_cert_chain(secured.own)
        more = {"bootstrap_servers": secured.addresses[security], "security_protocol": "SSL"}
        return {"ssl_context": context, **more}
    log_in = {"sasl_mechanism": security}
    if security != "OAUTHBEARER":
        log_in |= {"sasl_plain_username": NAME, "sasl_plain_password": PASSWORD}
    at = {"bootstrap_servers": secured.addresses["SASL_SSL"], "security_protocol": "SASL_SSL"}
    return {"ssl_context": context, **at, **log_in}
