"""Quotas over half a minute, with a real client and a broker of its own: within 10 % of what they say. What a client
gets at first, and on new connections, beside Apache Kafka."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from leafcuttr.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from leafcuttr.wire.messages.api_versions import ApiVersionsRequest
from leafcuttr.wire.messages.metadata import MetadataRequest
from support import jars, librdkafka
from support.broker_process import BrokerProcess, running_broker
from support.logs import batch
from support.real_kafka import real_kafka
from support.wire_client import PATIENCE_S, WireClient, produce_request

SECONDS = 30.0
RATE = 2_000_000.0
pytestmark = pytest.mark.long


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with running_broker(tmp_path) as broker:
        yield broker


@pytest.fixture
def addresses(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Of both brokers, by name."""
    with real_kafka(tmp_path / "kafka") as kafka, running_broker(tmp_path / "ours") as ours:
        yield {"Kafka": str(kafka), "LeafCuttr": ours.address}


def limit(broker: BrokerProcess | str, kind: str, name: str | None, quota: str, value: float) -> None:
    entry = RequestEntryData(
        entity=[EntityData(entity_type=kind, entity_name=name)],
        ops=[OpData(key=quota, value=value, remove=False)],
    )
    with WireClient(broker if isinstance(broker, str) else broker.address) as client:
        (answer,) = client.ask(AlterClientQuotasRequest(entries=[entry], validate_only=False), 1).entries
    assert answer.error_code == 0


def produce(address: str, topic: str, client_id: str, until: float, size: int = 1000) -> int:
    """As much as the broker takes until then; how many bytes it has acknowledged by then."""
    acknowledged = 0

    def count(error: KafkaError | None, _: object) -> None:
        nonlocal acknowledged
        if error is None and time.monotonic() < until:
            acknowledged += size

    producer = Producer(
        {
            "bootstrap.servers": address,
            "client.id": client_id,
            "batch.size": 100_000,
            "linger.ms": 5,
            "queue.buffering.max.messages": 4000,
        }
    )
    value = bytes(size)
    while time.monotonic() < until:
        try:
            producer.produce(topic, value, on_delivery=count)
        except BufferError:
            producer.poll(0.01)
    producer.purge()
    producer.flush(10)
    return acknowledged


@pytest.mark.parametrize("clients", [1, 20])
def test_producers(broker: BrokerProcess, clients: int) -> None:
    """One, and several that share the quota of their client id."""
    librdkafka.create(broker.address, "t", 4)
    limit(broker, "client-id", "slow", "producer_byte_rate", RATE)
    until = time.monotonic() + SECONDS
    got = [0] * clients

    def run(number: int) -> None:
        got[number] = produce(broker.address, "t", "slow", until)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(got) / SECONDS == pytest.approx(RATE, rel=0.1)


def test_a_consumer(broker: BrokerProcess) -> None:
    librdkafka.create(broker.address, "t", 1)
    produce(broker.address, "t", "fast", time.monotonic() + 3)
    limit(broker, "user", None, "consumer_byte_rate", RATE)
    with closing(
        Consumer({"bootstrap.servers": broker.address, "group.id": "g", "enable.auto.commit": False})
    ) as consumer:
        consumer.assign([TopicPartition("t", 0, 0)])
        began, got = time.monotonic(), 0
        while time.monotonic() < began + SECONDS:
            for message in consumer.consume(1000, 0.05):
                assert message.error() is None
                got += len(message.value() or b"")
                if message.offset() >= 60_000:
                    consumer.seek(TopicPartition("t", 0, 0))
        assert got / SECONDS == pytest.approx(RATE, rel=0.1)


def test_the_time_of_the_loop(broker: BrokerProcess) -> None:
    """A client that asks without end takes its 20 % of a core, by the system's account of the process: to that the
    loop's own work is added, which is nobody's (some 60 us for each time that a connection is held back)."""
    for number in range(50):
        librdkafka.create(broker.address, f"t{number}")
    limit(broker, "client-id", "test", "request_percentage", 20.0)  # which is what the client below says
    ticks = _processor_s(broker)
    until = time.monotonic() + SECONDS
    with WireClient(broker.address) as client:
        while time.monotonic() < until:
            client.ask(MetadataRequest(topics=None), 12)
    assert 0.16 < (_processor_s(broker) - ticks) / SECONDS < 0.3


def test_connections_of_an_address(broker: BrokerProcess) -> None:
    limit(broker, "ip", None, "connection_creation_rate", 10)
    until, served = time.monotonic() + SECONDS, 0
    while time.monotonic() < until:
        with WireClient(broker.address) as client:
            client.ask(ApiVersionsRequest(), 0)
            served += 1
    assert served / SECONDS == pytest.approx(10, rel=0.1)


def test_others_are_not_slowed(broker: BrokerProcess) -> None:
    """A client that is held back does not keep another from its answers."""
    librdkafka.create(broker.address, "t", 1)
    limit(broker, "client-id", "slow", "producer_byte_rate", 100_000)
    until = time.monotonic() + 10
    thread = threading.Thread(target=produce, args=(broker.address, "t", "slow", until))
    thread.start()
    took = []
    with WireClient(broker.address) as client:
        while time.monotonic() < until:
            began = time.monotonic()
            client.ask(ApiVersionsRequest(), 0)
            took.append(time.monotonic() - began)
            time.sleep(0.005)
    thread.join()
    assert sorted(took)[len(took) * 99 // 100] < 0.1


beside_kafka = pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing()))
WINDOWS_S = 10
"""All of `quota.window.num` but one."""
RECORDS = 40_000


@beside_kafka
def test_what_consumers_get_at_first(addresses: dict[str, str]) -> None:
    """Also after a rest a quota holds within 10 % in each half minute. Within that, ours is even: Kafka gives what its
    windows hold at once, and then nothing until they are over."""

    def run(address: str) -> tuple[list[float], list[float]]:
        librdkafka.create(address, "t", 1, retention_ms="-1")
        librdkafka.send(address, "t", [bytes(1000)] * RECORDS, timestamp=1)
        limit(address, "client-id", "reader", "consumer_byte_rate", RATE)
        new = got_by(address, [5, SECONDS])
        # So long a client has to rest: the windows of a broker are of the system's time.
        time.sleep(WINDOWS_S + 2)
        return new, got_by(address, [5, SECONDS, 2 * SECONDS])

    with ThreadPoolExecutor() as threads:
        got = dict(zip(addresses, threads.map(run, addresses.values()), strict=True))
    for name, (new, rested) in got.items():
        rel = 0.15 if name == "Kafka" else 0.1
        halves = [new[1], rested[1], rested[2] - rested[1]]
        assert halves == pytest.approx([SECONDS] * 3, rel=rel)
        for beginning in (new[0], rested[0]):
            assert (beginning > 8) == (name == "Kafka")


def got_by(address: str, times: list[float]) -> list[float]:
    """How much of what its rate gives in a second a consumer has had by then: the topic, again and again."""
    settings = {"bootstrap.servers": address, "group.id": "g", "client.id": "reader"}
    found: list[float] = []
    with closing(Consumer({**settings, "enable.auto.commit": False})) as consumer:
        consumer.assign([TopicPartition("t", 0, 0)])
        began, got = time.monotonic(), 0
        for end in times:
            while time.monotonic() < began + end:
                for message in consumer.consume(1000, 0.05):
                    assert message.error() is None
                    got += len(message.value() or b"")
                    if message.offset() == RECORDS - 1:
                        consumer.seek(TopicPartition("t", 0, 0))
            found.append(got / RATE)
    return found


@beside_kafka
def test_new_connections_of_one_that_is_held_back(addresses: dict[str, str]) -> None:
    """The first request of each is done, and only then is it held back: of the time of requests for one window."""
    for address in addresses.values():
        librdkafka.create(address, "t", 1)
        limit(address, "client-id", "test", "producer_byte_rate", 1000)
        for number in range(3):
            with WireClient(address) as client:
                answer = client.ask(produce_request("t", batch(1, size=100_000), 0, -1), 11)
                assert answer.responses[0].partition_responses[0].error_code == 0
                assert answer.throttle_time_ms > 1000 * PATIENCE_S * number, (
                    "it did not wait for those before"
                )
        limit(address, "client-id", "test", "request_percentage", 0.001)
        waits = []
        for _ in range(10):
            with WireClient(address) as client:
                waits.append(client.ask(MetadataRequest(topics=[]), 12).throttle_time_ms)
        assert max(waits) == 1000


def _processor_s(broker: BrokerProcess) -> float:
    fields = Path(f"/proc/{broker.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100
