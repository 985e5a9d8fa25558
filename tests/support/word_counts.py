"""What tests of tests/clients/programs/kafka_streams/WordCount.java count: lines of words, and each count of each word.

    expected = send_lines(settings, "lines", 6000, partitions=3)
    counts = Counts(settings, "counts", partitions=3)
    counts.wait_for(expected.total())
    check(counts, expected)

`settings` are librdkafka's.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from support.waiting import until

SECONDS = 180.0
WORDS = [f"word{number}" for number in range(40)]


class Counts:
    """What a read_committed consumer sees of the output: for each word its counts in order."""

    def __init__(self, settings: Mapping[str, Any], topic: str, partitions: int) -> None:
        from confluent_kafka import Consumer, TopicPartition

        self.seen: dict[str, list[int]] = defaultdict(list)
        self.total = 0
        self._consumer = Consumer(
            {
                **settings,
                "group.id": "reader",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "reconnect.backoff.max.ms": 200,
            }
        )
        self._consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])

    def wait_for(self, total: int) -> None:
        """Read until so many counts have come."""

        def come() -> bool:
            messages: list[Any] = self._consumer.consume(1000, 0.2)
            for message in messages:
                if message.error() is None:
                    self.seen[message.key().decode()].append(int(message.value()))
                    self.total += 1
            return self.total >= total

        try:
            until(come, f"{total} counts", seconds=SECONDS, pause=0.0)
        except TimeoutError as error:
            raise AssertionError(f"{self.total} of {total} counts came") from error

    def close(self) -> None:
        self._consumer.close()


def send_lines(settings: Mapping[str, Any], topic: str, count: int, partitions: int) -> Counter[str]:
    """Send so many lines of five words; how often each word is in them."""
    from confluent_kafka import Producer

    chance = random.Random(4)
    lines = [" ".join(chance.choices(WORDS, k=5)) for _ in range(count)]
    failed: list[Any] = []
    producer = Producer({**settings, "enable.idempotence": True, "linger.ms": 5})

    def told(error: Any, _: Any) -> None:
        if error:
            failed.append(error)

    for number, line in enumerate(lines):
        producer.produce(topic, line, partition=number % partitions, on_delivery=told)
    assert producer.flush(SECONDS) == 0
    assert not failed
    return Counter(word for line in lines for word in line.split())


def check(counts: Counts, expected: Counter[str]) -> None:
    """Each step of each word's count is there, once and in order."""
    assert counts.total == expected.total()
    assert counts.seen == {word: list(range(1, many + 1)) for word, many in expected.items()}
