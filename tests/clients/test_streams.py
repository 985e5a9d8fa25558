"""Kafka Streams counts words with `exactly_once_v2` while it and the broker are killed: every count is exact."""

from __future__ import annotations

import random
import signal
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from support import jars
from support.broker_process import Restarting
from support.librdkafka import create, watermarks
from support.streams_program import VERSION, StreamsProgram, streams_program
from support.waiting import until

pytestmark = [
    pytest.mark.long,
    pytest.mark.client("Kafka Streams", version=VERSION),
    pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing())),
]
SECONDS = 180.0
PARTITIONS = 3
WORDS = [f"word{number}" for number in range(40)]
LINES = 6000
SETTINGS = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "5"}


class Counts:
    """What a read_committed consumer sees of the output: for each word its counts in order."""

    def __init__(self, address: str) -> None:
        from confluent_kafka import Consumer, TopicPartition

        self.seen: dict[str, list[int]] = defaultdict(list)
        self.total = 0
        self._consumer = Consumer(
            {
                "bootstrap.servers": address,
                "group.id": "reader",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "reconnect.backoff.max.ms": 200,
            }
        )
        self._consumer.assign([TopicPartition("counts", number, 0) for number in range(PARTITIONS)])

    def wait_for(self, total: int) -> None:
        """Read until so many counts have come."""

        def come() -> bool:
            for message in self._consumer.consume(1000, 0.2):
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


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Restarting]:
    one = Restarting(tmp_path / "broker", SETTINGS)
    yield one
    one.end()


def word_count(folder: Path, address: str, name: str = "streams") -> AbstractContextManager[StreamsProgram]:
    arguments = (address, "lines", "counts", "word-count", str(folder / f"{name}.state"))
    return streams_program(folder / f"{name}.out", "WordCount.java", *arguments)


def send(address: str, lines: list[str]) -> None:
    from confluent_kafka import Producer

    failed: list[Any] = []
    producer = Producer({"bootstrap.servers": address, "enable.idempotence": True, "linger.ms": 5})
    for number, line in enumerate(lines):
        producer.produce("lines", line, partition=number % PARTITIONS,
                         on_delivery=lambda error, _: error and failed.append(error))  # fmt: skip
    assert producer.flush(SECONDS) == 0
    assert not failed


def fill(address: str) -> Counter[str]:
    """Make the topics and the input; how often each word is in it."""
    chance = random.Random(4)
    lines = [" ".join(chance.choices(WORDS, k=5)) for _ in range(LINES)]
    for topic in ("lines", "counts"):
        create(address, topic, PARTITIONS)
    send(address, lines)
    return Counter(word for line in lines for word in line.split())


def check(counts: Counts, expected: Counter[str]) -> None:
    """Each step of each word's count is there, once and in order."""
    assert counts.total == expected.total()
    assert counts.seen == {word: list(range(1, many + 1)) for word, many in expected.items()}


def test_word_count_through_kills(broker: Restarting, tmp_path: Path) -> None:
    """Streams is killed once and the broker is killed once, each with transactions under way."""
    expected = fill(broker.address)
    total = expected.total()
    counts = Counts(broker.address)
    with word_count(tmp_path, broker.address) as program:
        program.start()
        counts.wait_for(total // 10)
        program.stop(signal.SIGKILL)
        program.start()
        counts.wait_for(total // 2)
        broker.restart(signal.SIGKILL)
        counts.wait_for(total)
        until(lambda: purged(broker.address), "the end of what has been counted", seconds=SECONDS)
        assert program.stop(signal.SIGTERM) == 143, program.tail()
    counts.close()
    check(counts, expected)


def purged(address: str) -> bool:
    """Whether Streams has deleted what it is done with: the records of its topic in between."""
    topic = "word-count-counts-repartition"
    return all(low > 0 for low, _ in (watermarks(address, topic, each) for each in range(PARTITIONS)))


def test_one_takes_over_from_another(broker: Restarting, tmp_path: Path) -> None:
    """Of two processes one is killed and stays away: the other goes on with its partitions, from its changelog."""
    expected = fill(broker.address)
    total = expected.total()
    counts = Counts(broker.address)
    with (
        word_count(tmp_path, broker.address, "stays") as stays,
        word_count(tmp_path, broker.address, "goes") as goes,
    ):
        goes.start()
        counts.wait_for(total // 10)
        stays.start()
        goes.stop(signal.SIGKILL)
        counts.wait_for(total // 2)
        broker.restart(signal.SIGKILL)
        counts.wait_for(total)
        assert stays.stop(signal.SIGTERM) == 143, stays.tail()
    counts.close()
    check(counts, expected)
