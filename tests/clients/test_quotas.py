"""Quotas with the clients and tools that people have: they are told to wait, and lose nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from support import jars, quotas
from support.secured_clients import java_tool
from support.waiting import until
from support.wire_client import WireClient

Fresh = Callable[[str], str]
RATE = 50_000
# What a broker gives one that is new comes on top: Kafka ten seconds of the rate, LeafCuttr one.
COUNT = 600 if os.environ.get("LEAFCUTTR_CLIENTS_BOOTSTRAP") else 150
SIZE = 1000


@contextmanager
def limited(address: str, client_id: str, quota: str, value: float) -> Iterator[None]:
    with WireClient(address) as wire, quotas.limited(wire, client_id, quota, value):
        yield


@pytest.mark.client("confluent-kafka")
def test_librdkafka(bootstrap: str, fresh: Fresh) -> None:
    from confluent_kafka import Consumer, Producer, TopicPartition

    topic, name = fresh("topic"), fresh("slow")
    told: list[float] = []
    delivered: list[int] = []
    settings = {
        "bootstrap.servers": bootstrap,
        "client.id": name,
        "throttle_cb": lambda event: told.append(event.throttle_time),
    }
    with limited(bootstrap, name, "producer_byte_rate", RATE):
        producer = Producer(settings | {"batch.size": 20_000, "linger.ms": 5})
        for _ in range(COUNT):
            producer.produce(
                topic, bytes(SIZE), partition=0, on_delivery=lambda error, one: delivered.append(one.offset())
            )
        assert producer.flush(60) == 0
    assert delivered == list(range(COUNT))
    assert max(told) > 0
    told.clear()
    with (
        limited(bootstrap, name, "consumer_byte_rate", RATE),
        closing(
            Consumer(settings | {"group.id": fresh("group"), "auto.offset.reset": "earliest"})  # type: ignore[arg-type]
        ) as consumer,
    ):
        consumer.assign([TopicPartition(topic, 0, 0)])
        got: list[int] = []

        def read() -> bool:
            got.extend(one.offset() for one in consumer.consume(COUNT, 1) if one.error() is None)
            return len(got) >= COUNT

        until(read, "all records")
    assert got == list(range(COUNT))
    assert max(told) > 0


@pytest.mark.long
@pytest.mark.client("kafka-python")
def test_kafka_python(bootstrap: str, fresh: Fresh) -> None:
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition

    topic, name = fresh("topic"), fresh("slow")

    def longest(client: Any, metric: str) -> float:
        return max(
            value
            for group in client.metrics().values()
            for found, value in group.items()
            if found == metric and value == value
        )

    with limited(bootstrap, name, "producer_byte_rate", RATE):
        producer = KafkaProducer(bootstrap_servers=bootstrap, client_id=name, linger_ms=5)
        sent = [producer.send(topic, bytes(SIZE), partition=0) for _ in range(COUNT)]
        assert [one.get(60).offset for one in sent] == list(range(COUNT))
        assert longest(producer, "throttle-time-max") > 0
        producer.close()
    with limited(bootstrap, name, "consumer_byte_rate", RATE):
        consumer = KafkaConsumer(bootstrap_servers=bootstrap, client_id=name, auto_offset_reset="earliest")
        consumer.assign([TopicPartition(topic, 0)])
        got: list[int] = []

        def read() -> bool:
            got.extend(one.offset for some in consumer.poll(1000).values() for one in some)
            return len(got) >= COUNT

        until(read, "all records")
        assert longest(consumer, "throttle-time-max") > 0
        consumer.close()
    assert got == list(range(COUNT))


@pytest.mark.client("aiokafka")
async def test_aiokafka(bootstrap: str, fresh: Fresh) -> None:
    """Which knows of no quotas: the broker does not read what it sends meanwhile."""
    import asyncio

    import trio
    from aiokafka import AIOKafkaProducer

    topic, name = fresh("topic"), fresh("slow")

    async def produce() -> list[int]:
        async with AIOKafkaProducer(
            bootstrap_servers=bootstrap, client_id=name, request_timeout_ms=60_000
        ) as producer:
            sent = [await producer.send(topic, bytes(SIZE), partition=0) for _ in range(COUNT)]
            return [(await one).offset for one in sent]

    with limited(bootstrap, name, "producer_byte_rate", RATE):
        found = await trio.to_thread.run_sync(asyncio.run, produce())
    assert found == list(range(COUNT))


@pytest.mark.client("Kafka's Java tools", version="4.3.1")
@pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing()))
@pytest.mark.long
@pytest.mark.parametrize("version", ["4.3.1", "3.9.1"])
def test_kafka_configs(bootstrap: str, fresh: Fresh, version: str) -> None:
    user, client = fresh("user"), fresh("client")

    def configs(*words: str) -> str:
        return java_tool(version, bootstrap, "kafka.admin.ConfigCommand", *words)

    of_user = ("--entity-type", "users", "--entity-name", user)
    both = (*of_user, "--entity-type", "clients", "--entity-name", client)
    everybody = ("--entity-type", "users", "--entity-default")
    address = ("--entity-type", "ips", "--entity-name", "192.0.2.1")
    configs("--alter", *of_user, "--add-config", "producer_byte_rate=1048576,request_percentage=12.5")
    configs("--alter", *of_user, "--add-config", "SCRAM-SHA-256=[iterations=5000,password=p]")
    configs("--alter", *both, "--add-config", "consumer_byte_rate=2048")
    configs("--alter", *everybody, "--add-config", "controller_mutation_rate=10000")
    configs("--alter", *address, "--add-config", "connection_creation_rate=5")
    said = configs("--describe", *of_user)
    assert "producer_byte_rate=1048576.0" in said and "request_percentage=12.5" in said
    assert "SCRAM credential configs for user-principal" in said and "iterations=5000" in said
    assert "consumer_byte_rate=2048.0" in configs("--describe", *both)
    assert "controller_mutation_rate=10000.0" in configs("--describe", *everybody)
    assert "connection_creation_rate=5.0" in configs("--describe", *address)
    assert user in configs("--describe", "--entity-type", "users")
    configs("--alter", *of_user, "--delete-config", "producer_byte_rate,request_percentage")
    configs("--alter", *of_user, "--delete-config", "SCRAM-SHA-256")
    configs("--alter", *both, "--delete-config", "consumer_byte_rate")
    configs("--alter", *everybody, "--delete-config", "controller_mutation_rate")
    configs("--alter", *address, "--delete-config", "connection_creation_rate")
    assert "producer_byte_rate" not in configs("--describe", *of_user)


@pytest.mark.client("Kafka's Java tools", version="4.3.1")
@pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing()))
@pytest.mark.long
def test_java(bootstrap: str, fresh: Fresh) -> None:
    """Its producer says how long it was held back."""
    topic, name = fresh("topic"), fresh("slow")
    with limited(bootstrap, name, "producer_byte_rate", RATE):
        said = java_tool(
            "4.3.1",
            bootstrap,
            "org.apache.kafka.tools.ProducerPerformance",
            *(
                "--topic",
                topic,
                "--num-records",
                str(COUNT),
                "--record-size",
                str(SIZE),
                "--throughput",
                "-1",
            ),
            *("--producer-props", f"bootstrap.servers={bootstrap}", f"client.id={name}", "--print-metrics"),
        )
    (line,) = [one for one in said.splitlines() if "produce-throttle-time-max" in one]
    assert float(line.rpartition(":")[2]) > 0
