"""What MQTT clients have sent, as a client of Kafka reads it."""

from __future__ import annotations

import uuid
from typing import Any, NamedTuple


class Stored(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: dict[str, bytes]
    """The last one of each name; `all_headers` has all of them."""
    all_headers: list[tuple[str, bytes]]
    timestamp: int
    partition: int


def records(bootstrap: str, topic: str) -> list[Stored]:
    """All records of a topic, partition after partition, by librdkafka."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": str(uuid.uuid4()), "enable.auto.commit": False}
    )
    found = []
    try:
        for partition in sorted(consumer.list_topics(topic, timeout=30).topics[topic].partitions):
            left = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=30)[1]
            if not left:
                continue
            consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
            while True:
                message = consumer.poll(30)
                assert message is not None, f"{topic}-{partition} ends before {left}"
                assert message.error() is None, message.error()
                given: list[Any] = list(message.headers() or [])
                headers: list[tuple[str, bytes]] = [(name, value or b"") for name, value in given]
                found.append(
                    Stored(
                        message.key(),
                        message.value(),
                        dict(headers),
                        headers,
                        message.timestamp()[1],
                        partition,
                    )
                )
                offset = message.offset()
                assert offset is not None
                if offset >= left - 1:
                    break
    finally:
        consumer.close()
    return found
