"""The broker is killed again and again while MQTT clients publish and subscribe with QoS 1 and 2: no acknowledged
message is missing in its Kafka topics or at a subscriber whose session stays, no message with QoS 2 is there twice, no
session is lost, and each publisher's messages are in order.

The clients: publishers on a socket of their own and paho's, on mapped topics (one Kafka topic, or two for one message)
and on one that is not mapped; subscribers of all of it, one of which goes away now and then. They keep their sessions
through every kill; what they have acknowledged is compared, at the end, with what Kafka's consumer reads and with what
the subscribers got.

The gate kills a few times, `--long` 100 times at random moments and at the named points of the log's write path;
`--kills` as often as one likes. `--crash-seed` repeats the plan of a run, not its timing.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from crash.broker_run import BrokerRun
from crash.mqtt_workers import (
    PahoPublisher,
    PahoSubscriber,
    Publisher,
    Subscriber,
    name_and_number,
)
from support.waiting import free_port, until

POINTS = {
    "append.staged": 60,
    "append.written": 60,
    "append.published": 60,
    "delete-records.moved": 1,
    "delete-records.kept": 1,
    "soft-checkpoint.renamed": 1,
    "writer.before-write": 20,
    "writer.written": 20,
}
"""With one of how many passes the kill comes."""
PLAIN, SYNCED, FIRST, SECOND = "plain", "synced", "first", "second"
"""Kafka topics: of `one/...`; of `synced/...`, in sync mode; both of `both/...`."""
PATIENCE_S = 120

AnyPublisher = Publisher | PahoPublisher
AnySubscriber = Subscriber | PahoSubscriber


def settings(port: int) -> dict[str, str]:
    return {
        "lc.mqtt.broker.enable": "true",
        "mqtt.host": "127.0.0.1",
        "mqtt.port": str(port),
        "mqtt.topic.mapping.one/#": PLAIN,
        "mqtt.topic.mapping.synced/#": SYNCED,
        "mqtt.topic.mapping.both/#": FIRST,
        "mqtt.topic.mapping.both/+": SECOND,
        "log.flush.offset.checkpoint.interval.ms": "700",
        "num.partitions": "2",
    }


def create_topics(bootstrap: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    made = admin.create_topics(
        [
            NewTopic(PLAIN, 2, 1),
            NewTopic(SYNCED, 2, 1, config={"lc.log.sync.always": "true"}),
            NewTopic(FIRST, 2, 1),
            NewTopic(SECOND, 2, 1),
        ]
    )
    for one in made.values():
        one.result(60)


def kafka_topics_of(topic: str) -> tuple[str, ...]:
    return {"one": (PLAIN,), "synced": (SYNCED,), "both": (FIRST, SECOND), "none": ()}[
        topic.partition("/")[0]
    ]


class Stored(NamedTuple):
    """A record; `number` is its header `mqtt.message.number`."""

    partition: int
    offset: int
    value: bytes
    number: str
    timestamp: int


def read_all(bootstrap: str, topic: str) -> list[Stored]:
    """The records of a topic as Kafka's consumer reads them, those of a partition together and in order."""
    from confluent_kafka import Consumer, KafkaError, TopicPartition

    consumer: Any = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    found: list[Stored] = []
    try:
        partitions = consumer.list_topics(topic, 60).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        left = set(partitions)
        while left:
            message = consumer.poll(60)
            assert message is not None, f"{topic} cannot be read"
            if message.error() is not None:
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                left.discard(message.partition())
            else:
                headers = dict(message.headers() or ())
                number = headers.get("mqtt.message.number", b"").decode()
                where = message.partition(), message.offset()
                found.append(Stored(*where, message.value(), number, message.timestamp()[1]))
    finally:
        consumer.close()
    return sorted(found)


def compare(
    publisher: AnyPublisher, where: str, payloads: Sequence[bytes], wanted: set[int], qos: int
) -> None:
    """What is at one place of a publisher's messages. Raises AssertionError with what is wrong."""
    numbers = [number for name, number in map(name_and_number, payloads) if name == publisher.name]
    counts = Counter(numbers)
    missing = sorted(wanted - counts.keys())
    assert not missing, (
        f"{publisher.name}, QoS {qos}: {len(missing)} acknowledged messages are not {where}: {missing[:10]}"
    )
    if qos == 2:
        twice = sorted(number for number, count in counts.items() if count > 1)
        assert not twice, f"{publisher.name}, QoS 2: {len(twice)} messages are {where} twice: {twice[:10]}"
    first = list(dict.fromkeys(numbers))
    for topic in publisher.topics:  # the order of a topic
        own = [number for number in first if publisher.topic_of(number) == topic]
        assert own == sorted(own), (
            f"{publisher.name}, QoS {qos}: {topic} is not in order {where}: {disorder(own)}"
        )


def disorder(numbers: Sequence[int]) -> list[int]:
    """The place of the first one that is lower than the one before."""
    at = next(index for index in range(1, len(numbers)) if numbers[index] < numbers[index - 1])
    return list(numbers[max(at - 5, 0) : at + 5])


class Clients:
    """All of them, and how they are compared."""

    def __init__(self, port: int, dice: random.Random, *, thorough: bool) -> None:
        every = ["one/a", "one/b", "both/a", "none/a", "synced/a"]
        self.publishers: list[AnyPublisher] = [
            Publisher(port, "raw-1", 1, every),
            Publisher(port, "raw-2", 2, every),
            PahoPublisher(port, "paho-2", 2, ["one/c", "both/c", "none/c"]),
        ]
        filters = {"one/#": 2, "both/#": 2, "none/#": 2, "synced/#": 2}
        lower = dict.fromkeys(filters, 1)
        self.subscribers: list[AnySubscriber] = [
            Subscriber(port, "sub-2", filters),
            Subscriber(port, "sub-1", lower, leaves=random.Random(dice.random())),
            PahoSubscriber(port, "paho-sub-2", filters),
        ]
        if thorough:
            self.publishers += [
                Publisher(port, "raw-plain-1", 1, ["one/d"]),
                Publisher(port, "raw-both-2", 2, ["both/d"]),
                PahoPublisher(port, "paho-1", 1, ["one/e", "synced/e"]),
            ]
            self.subscribers.append(
                Subscriber(port, "sub-away-2", filters, leaves=random.Random(dice.random()))
            )

    @property
    def all(self) -> list[AnyPublisher | AnySubscriber]:
        return [*self.publishers, *self.subscribers]

    def start(self) -> None:
        """Subscribers first: from their SUBACK on they are to get everything."""
        for each in self.subscribers:
            each.start()
        until(lambda: all(each.ready.is_set() for each in self.subscribers), "SUBACKs", seconds=PATIENCE_S)
        for each in self.publishers:
            each.start()

    def check(self) -> None:
        for each in self.all:
            each.check()

    def get_on(self) -> None:
        """Wait until each has got on since now."""
        before = {each.name: each.progress for each in self.all}
        slow = ""

        def done() -> bool:
            nonlocal slow
            self.check()
            slow = ", ".join(each.name for each in self.all if each.progress <= before[each.name])
            return not slow

        try:
            until(done, "the clients to get on", seconds=PATIENCE_S)
        except TimeoutError as error:
            raise AssertionError(f"{error}: {slow} did not") from None

    def finish(self) -> None:
        """Everything that was begun is acknowledged, and delivered."""
        for each in self.publishers:
            each.finish()
        until(
            lambda: self.check() or all(each.finished for each in self.publishers),
            "acknowledgements",
            seconds=PATIENCE_S,
        )
        total = sum(each.begun for each in self.publishers)
        # Counted as they come: to go through all of them again and again would take the processor from the clients.
        distinct: dict[str, set[bytes]] = {each.name: set() for each in self.subscribers}
        counted = Counter[str]()

        def delivered() -> bool:
            self.check()
            for each in self.subscribers:
                new = each.received[counted[each.name] :]
                counted[each.name] += len(new)
                distinct[each.name].update(new)
            return all(len(found) >= total for found in distinct.values())

        before = -1
        while sum(counted.values()) > before:  # as long as some come
            before = sum(counted.values())
            with suppress(TimeoutError):  # what is missing is said by name below
                until(delivered, "deliveries", seconds=PATIENCE_S)
                break
        self.end()

    def end(self) -> None:
        for each in self.all:
            if isinstance(each, Publisher | Subscriber):
                each.over.set()
                if each.thread.ident is not None:
                    each.thread.join(30)
            else:
                each.stop()

    def compare(self, bootstrap: str) -> None:
        stored = {topic: read_all(bootstrap, topic) for topic in (PLAIN, SYNCED, FIRST, SECOND)}
        for publisher in self.publishers:
            for topic, records in stored.items():
                wanted = {
                    number
                    for number in publisher.acknowledged
                    if topic in kafka_topics_of(publisher.topic_of(number))
                }
                values = [each.value for each in records]
                try:
                    compare(publisher, f"in {topic}", values, wanted, publisher.qos)
                except AssertionError as error:
                    counts = Counter(values)
                    twice = [str(each) for each in records if counts[each.value] > 1]
                    raise AssertionError("\n".join([str(error), *twice[:20]])) from None
            for subscriber in self.subscribers:
                qos = min(publisher.qos, max(subscriber.filters.values()))
                compare(
                    publisher, f"at {subscriber.name}", list(subscriber.received), publisher.acknowledged, qos
                )


@pytest.mark.timeout(0)
def test_nothing_acknowledged_is_lost(
    tmp_path: Path, seed: int, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    long = bool(request.config.getoption("--long", default=False))
    given = request.config.getoption("--kills", default=None)
    kills = int(given) if given is not None else (100 if long else 4)
    port = free_port()
    run = BrokerRun(tmp_path, seed, settings(port))
    plan = [""] * (kills - kills // 3) + [
        f"{name}:{run.random.randint(1, POINTS[name])}"
        for name in (
            run.random.choice(
                ["append.staged", "append.written", "append.published", *(POINTS if long else ())]
            )
            for _ in range(kills // 3)
        )
    ]
    run.random.shuffle(plan)
    began = time.monotonic()
    clients = Clients(port, run.random, thorough=long)
    try:
        assert run.start()
        create_topics(run.address)
        clients.start()
        for point in plan:
            clients.get_on()
            if point:
                run.arm(point)
                run.killed_by(point)
            else:
                run.kill(2.0 if long else 0.3)
            assert run.start()
        clients.get_on()
        clients.finish()
        clients.compare(run.address)
        run.stop()
        run.verify()
    finally:
        run.end()
        clients.end()
        took = time.monotonic() - began
        with capsys.disabled():
            print(
                f"\nmqtt: seed {seed}, {run.kills} kills in {took:.0f} s, {3600 * run.kills / took:.0f} an hour, "
                f"{sum(each.progress for each in clients.publishers)} messages acknowledged, "
                f"{sum(each.progress for each in clients.subscribers)} delivered, "
                f"slowest start {run.slowest_start:.2f} s"
            )
            for note in run.notes:
                print(f"  {note}")
