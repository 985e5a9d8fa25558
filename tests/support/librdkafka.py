"""What tests ask of librdkafka: records sent and the broker's word on each, settings changed, records read."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import partial
from typing import Any

from support.waiting import until
from support.wire_client import WireClient

PATIENCE_S = 60.0


def admin(address: str) -> Any:
    """An AdminClient. Keep it until its futures are done: without it they fail."""
    from confluent_kafka.admin import AdminClient

    return AdminClient({"bootstrap.servers": address})


def create(address: str, topic: str, partitions: int = 1, **config: str) -> None:
    """Create a topic and wait until all of it takes requests (Kafka answers before); names of settings with `_` for
    `.`."""
    from confluent_kafka.admin import NewTopic

    settings = {name.replace("_", "."): value for name, value in config.items()}
    client = admin(address)
    for future in client.create_topics([NewTopic(topic, partitions, 1, config=settings)]).values():
        future.result(PATIENCE_S)

    with WireClient(address) as wire:
        for partition in range(partitions):
            until(partial(_takes_requests, wire, topic, partition), f"a leader for {topic}-{partition}")


def _takes_requests(wire: WireClient, topic: str, partition: int) -> bool:
    # The first version of Kafka 4, which Kafka 2.1 has too.
    return wire.list_offset(topic, -1, partition=partition, version=1).error_code == 0


def delete(address: str, topic: str) -> None:
    """Delete a topic."""
    client = admin(address)
    client.delete_topics([topic])[topic].result(PATIENCE_S)


def alter(address: str, kind: str, name: str, settings: dict[str, str | None]) -> None:
    """Change settings of a `topic` or `broker` ("" for all brokers) by IncrementalAlterConfigs; None takes one back.

    Raises KafkaException with the broker's error.
    """
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

    changes = [
        ConfigEntry(
            key,
            value or "",
            incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
        )
        for key, value in settings.items()
    ]
    resource = ConfigResource(kind, name, incremental_configs=changes)
    client = admin(address)
    for future in client.incremental_alter_configs([resource]).values():
        future.result(PATIENCE_S)


def send(
    address: str,
    topic: str,
    values: Iterable[bytes],
    *,
    timestamp: int,
    key: bytes | None = None,
    partition: int = 0,
    **settings: Any,
) -> list[int | str]:
    """Produce records and wait; for each its offset, or the name of the error that the client reports.

    `settings` are librdkafka's with `_` for `.`.
    """
    from confluent_kafka import Producer

    conf = {name.replace("_", "."): value for name, value in settings.items()}
    producer = Producer({"bootstrap.servers": address, "linger.ms": 0} | conf)
    outcome: list[int | str] = []

    def told(error: Any, message: Any) -> None:
        outcome.append(error.name() if error else message.offset())

    for value in values:
        producer.produce(topic, value, key=key, partition=partition, timestamp=timestamp, on_delivery=told)
    assert producer.flush(PATIENCE_S) == 0
    return outcome


def read(
    address: str, topic: str, count: int, *, partition: int = 0, offset: int = 0, **settings: Any
) -> list[Any]:
    """The next `count` messages from an offset on."""
    from confluent_kafka import Consumer, TopicPartition

    conf = {name.replace("_", "."): value for name, value in settings.items()}
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": "none", "enable.auto.commit": False} | conf
    )
    try:
        consumer.assign([TopicPartition(topic, partition, offset)])
        got: list[Any] = []
        while len(got) < count:
            some = consumer.consume(count - len(got), PATIENCE_S)
            assert some, f"{len(got)} of {count} messages came"
            for message in some:
                assert message.error() is None, message.error()
            got += some
        return got
    finally:
        consumer.close()


def watermarks(address: str, topic: str, partition: int = 0) -> tuple[int, int]:
    """Log start offset and end offset, as ListOffsets tells them."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": address, "group.id": "none"})
    try:
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), PATIENCE_S)
        return int(low), int(high)
    finally:
        consumer.close()


class Group:
    """A consumer of a group that has subscribed; it reads from the beginning where nothing is committed.

    `settings` are librdkafka's with `_` for `.`.
    """

    def __init__(self, address: str, group: str, topics: list[str], **settings: Any) -> None:
        from confluent_kafka import Consumer

        conf = {name.replace("_", "."): value for name, value in settings.items()}
        given = {"bootstrap.servers": address, "group.id": group, "auto.offset.reset": "earliest"}
        self._consumer = Consumer(given | {"enable.auto.commit": False} | conf)
        self.assigned = self.lost = 0  # how often partitions came, and went
        self._consumer.subscribe(topics, on_assign=self._came, on_revoke=self._went)

    def _came(self, *_: object) -> None:
        self.assigned += 1

    def _went(self, *_: object) -> None:
        self.lost += 1

    def take(self, count: int, *, seconds: float = PATIENCE_S) -> list[Any]:
        """The next `count` messages; errors that the client gets over by itself are passed over."""
        got: list[Any] = []
        deadline = time.monotonic() + seconds
        while len(got) < count:
            assert time.monotonic() < deadline, f"{len(got)} of {count} messages came"
            message = self._consumer.poll(0.5)
            if message is not None and message.error() is None:
                got.append(message)
        return got

    def commit(self) -> None:
        """Commit what has been taken, and wait for the broker's word. Raises KafkaException."""
        self._consumer.commit(asynchronous=False)

    def close(self) -> None:
        self._consumer.close()
