"""Kafka Streams joins two streams and a table over repartition topics, `exactly_once_v2`, and builds its state up again
from the changelogs: after it was killed and lost its disk, and after the broker was killed."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import jars
from support.broker_process import Restarting
from support.librdkafka import PATIENCE_S, admin, create, watermarks
from support.streams_program import SECONDS, VERSION, streams_program
from support.waiting import until

pytestmark = [
    pytest.mark.long,
    pytest.mark.client("Kafka Streams", version=VERSION),
    pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing())),
    pytest.mark.timeout(900),
]
PARTITIONS = 3
ORDERS = 5000
CUSTOMERS = 40
INTERNAL = {
    "by-customer-repartition": "delete",
    "by-name-repartition": "delete",
    "names-changelog": "compact",
    "paid-other-join-store-changelog": "delete",
    "paid-this-join-store-changelog": "delete",
    "sums-changelog": "compact",
}
"""Streams' own topics and their cleanup policies; those of joins hold windows, of which each key comes once."""
SETTINGS = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "5"}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Restarting]:
    one = Restarting(tmp_path / "broker", SETTINGS)
    yield one
    one.end()


def send(address: str, topic: str, pairs: list[tuple[str, str]], since: int) -> None:
    """Keyed as Java's producer would, a millisecond apart."""
    from confluent_kafka import Producer

    failed: list[Any] = []
    settings = {"enable.idempotence": True, "linger.ms": 5, "partitioner": "murmur2_random"}
    producer = Producer({"bootstrap.servers": address} | settings)
    for number, (key, value) in enumerate(pairs):
        told = lambda error, _: error and failed.append(error)  # noqa: E731
        producer.produce(topic, value, key=key, timestamp=since + number, on_delivery=told)
    assert producer.flush(SECONDS) == 0
    assert not failed


class Sums:
    """What a read_committed consumer sees of the output: for each name its steps (orders, amount) in order."""

    def __init__(self, address: str) -> None:
        from confluent_kafka import Consumer, TopicPartition

        self.seen: dict[str, list[tuple[int, int]]] = defaultdict(list)
        settings = {"group.id": "reader", "isolation.level": "read_committed", "enable.auto.commit": False}
        self._consumer = Consumer({"bootstrap.servers": address, "reconnect.backoff.max.ms": 200} | settings)
        self._consumer.assign([TopicPartition("sums", number, 0) for number in range(PARTITIONS)])

    def wait_for(self, total: int) -> None:
        def come() -> bool:
            for message in self._consumer.consume(1000, 0.2):
                if message.error() is None:
                    count, amount = message.value().decode().split()
                    self.seen[message.key().decode()].append((int(count), int(amount)))
            return sum(map(len, self.seen.values())) >= total

        until(come, f"{total} sums", seconds=SECONDS, pause=0.0)

    def close(self) -> None:
        self._consumer.close()


def test_join_through_kills(broker: Restarting, tmp_path: Path) -> None:
    for topic in ("customers", "orders", "payments", "sums"):
        create(broker.address, topic, PARTITIONS)
    chance, since = random.Random(5), int(time.time() * 1000) - 600_000
    customers = [(f"c{number}", f"name{number % 25}") for number in range(CUSTOMERS)]
    orders = [
        (f"o{number}", (chance.randrange(CUSTOMERS), chance.randrange(1000))) for number in range(ORDERS)
    ]
    send(broker.address, "customers", customers, since - 60_000)
    send(broker.address, "orders", [(key, f"c{who} {amount}") for key, (who, amount) in orders], since)
    paid = [each for number, each in enumerate(orders) if number % 10]
    send(broker.address, "payments", [(key, "paid") for key, _ in paid], since + 1000)
    expected: Counter[str] = Counter()
    for _, (who, amount) in paid:
        expected[customers[who][1]] += amount

    sums, state = Sums(broker.address), tmp_path / "state"
    with streams_program(tmp_path / "streams.out", "Orders.java", broker.address, str(state)) as program:
        program.start()
        sums.wait_for(len(paid) // 10)
        program.stop(signal.SIGKILL)
        shutil.rmtree(state)
        program.start()
        sums.wait_for(len(paid) // 2)
        broker.restart(signal.SIGKILL)
        sums.wait_for(len(paid))
        assert program.stop(signal.SIGTERM) == 143, program.tail()
        assert internal(broker.address) == INTERNAL
        before = watermarks(broker.address, "sums")
        program.start()  # there is nothing more to do, and nothing is done twice
        assert program.stop(signal.SIGTERM) == 143, program.tail()
        assert watermarks(broker.address, "sums") == before
    sums.close()
    assert {name: steps[-1][1] for name, steps in sums.seen.items()} == expected
    for steps in sums.seen.values():
        assert [count for count, _ in steps] == list(range(1, len(steps) + 1))
        assert steps == sorted(steps)

    reset = ("--application-id", "orders-app", "--bootstrap-server", broker.address, "--force")
    inputs = ("--input-topics", "customers,orders,payments")
    command = jars.java(VERSION, "org.apache.kafka.tools.StreamsResetter", *reset, *inputs)

    def is_reset() -> bool:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        said = done.stdout + done.stderr
        # The members of the program that was killed last may have left between two requests of the tool.
        left_meanwhile = "leaving members should not be empty" in said
        assert done.returncode == 0 or left_meanwhile, said
        return not left_meanwhile

    until(is_reset, "the reset")
    until(lambda: not internal(broker.address), "the end of Streams' own topics")


def internal(address: str) -> dict[str, str]:
    """The cleanup policies of Streams' own topics, by name without the application's."""
    from confluent_kafka.admin import ConfigResource

    client = admin(address)
    names = [name for name in client.list_topics(timeout=PATIENCE_S).topics if name.startswith("orders-app-")]
    if not names:
        return {}
    asked = client.describe_configs([ConfigResource("topic", name) for name in names])
    told = {resource.name: future.result(PATIENCE_S) for resource, future in asked.items()}
    return {
        name.removeprefix("orders-app-"): config["cleanup.policy"].value
        for name, config in sorted(told.items())
    }
