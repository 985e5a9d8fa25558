"""Kafka's TransactionalMessageCopier, killed with its transactions open, and the broker killed below it: each record
is copied once and in order, and the group's offsets say so."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from leafcuttr.wire.messages.list_transactions import ListTransactionsRequest
from support import jars
from support.broker_process import Restarting
from support.librdkafka import create
from support.waiting import until
from support.wire_client import WireClient

pytestmark = [
    pytest.mark.long,
    pytest.mark.client("Kafka's TransactionalMessageCopier"),
    pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing())),
]
NEW, OLD = "4.3.1", "3.9.1"
TOOL = "org.apache.kafka.tools.TransactionalMessageCopier"
SECONDS = 180.0
PARTITIONS = 3
RECORDS = 20_000  # of each partition, at first and whenever half of what is there has been copied too early
GROUP = "copiers"
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}
KILLED_WITHIN = 3
"""So many kills have to hit an open transaction."""


class Copier:
    """One copier that is started again, with the same transactional id, whenever it has ended."""

    def __init__(self, folder: Path, address: str, version: str, name: str, *arguments: str) -> None:
        self.name = name
        self._out = folder / f"{name}.out"
        topics = ("--input-topic", "input", "--output-topic", "output", "--broker-list", address)
        how = ("--consumer-group", GROUP, "--transactional-id", name, "--transaction-size", "300")
        # A copier asks for its position before it ends what its predecessor left open: only time does that.
        also = ("--enable-random-aborts", "--use-group-metadata", "--transaction-timeout", "5000", *arguments)
        self._command = jars.java(version, TOOL, *topics, *how, *also, heap="128m")
        self._process: subprocess.Popen[bytes] | None = None

    def keep(self) -> None:
        """See to it that it runs."""
        if self._process is None or self._process.poll() is not None:
            with self._out.open("ab") as out:
                self._process = subprocess.Popen(self._command, stdout=out, stderr=out)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@contextmanager
def copiers(folder: Path, address: str, version: str, *, groupwise: bool) -> Iterator[list[Copier]]:
    """One for each partition; or two members of a group."""
    if groupwise:
        each = ("--group-mode", "--input-partition", "0")
        found = [Copier(folder, address, version, f"copier-{number}", *each) for number in range(2)]
    else:
        found = [
            Copier(folder, address, version, f"copier-{number}", "--input-partition", str(number))
            for number in range(PARTITIONS)
        ]
    try:
        yield found
    finally:
        for copier in found:
            copier.kill()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Restarting]:
    one = Restarting(tmp_path / "broker", SETTINGS)
    yield one
    one.end()


def fill(address: str, numbers: range) -> None:
    """Append these records to each partition of the input."""
    from confluent_kafka import Producer

    failed: list[Any] = []
    producer = Producer({"bootstrap.servers": address, "enable.idempotence": True})
    for number in numbers:
        for partition in range(PARTITIONS):
            producer.produce(
                "input",
                str(number),
                partition=partition,
                on_delivery=lambda error, _: error and failed.append(error),
            )
        producer.poll(0)
    assert producer.flush(SECONDS) == 0
    assert not failed


class Progress:
    """What the group has committed."""

    def __init__(self, address: str) -> None:
        from confluent_kafka import Consumer

        self._consumer = Consumer(
            {"bootstrap.servers": address, "group.id": GROUP, "reconnect.backoff.max.ms": 200}
        )

    def offsets(self) -> list[int]:
        from confluent_kafka import KafkaException, TopicPartition

        asked = [TopicPartition("input", number) for number in range(PARTITIONS)]
        while True:
            try:
                return [max(0, each.offset) for each in self._consumer.committed(asked, 20)]
            except KafkaException as error:  # an offset in an open transaction is waited for, up to a point
                assert not error.args[0].fatal()

    def total(self) -> int:
        return sum(self.offsets())

    def close(self) -> None:
        self._consumer.close()


def open_transactions(address: str) -> set[str]:
    """The transactional ids with a transaction that is neither committed nor aborted."""
    with WireClient(address) as client:
        answer = client.ask(ListTransactionsRequest(state_filters=["Ongoing"]), 1)
    assert answer.error_code == 0
    return {each.transactional_id for each in answer.transaction_states}


def committed(address: str, partition: int) -> list[int]:
    """The whole output of a partition as a read_committed consumer gets it."""
    from confluent_kafka import Consumer, KafkaError, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "none",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition("output", partition, 0)])
    got: list[int] = []
    try:
        while True:
            message = consumer.poll(SECONDS)
            assert message is not None
            if message.error() is None:
                got.append(int(message.value()))
            else:
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                return got
    finally:
        consumer.close()


@pytest.mark.parametrize(
    ("version", "groupwise"),
    [
        pytest.param(NEW, False, id="one-a-partition"),
        pytest.param(NEW, True, id="group"),
        pytest.param(OLD, True, id="group-of-before-transaction-version-2"),
    ],
)
def test_copies_through_kills(broker: Restarting, tmp_path: Path, version: str, groupwise: bool) -> None:
    for topic in ("input", "output"):
        create(broker.address, topic, PARTITIONS)
    filled = range(RECORDS)
    fill(broker.address, filled)
    progress = Progress(broker.address)
    with copiers(tmp_path, broker.address, version, groupwise=groupwise) as running:

        def keep() -> None:
            for copier in running:
                copier.keep()

        def beyond(total: int) -> bool:
            keep()
            return progress.total() >= total

        def inside() -> Copier | None:
            nonlocal filled
            keep()
            names = open_transactions(broker.address)
            victim = next((each for each in running if each.name in names), None)
            if victim is None and progress.total() > PARTITIONS * filled.stop // 2:
                # A quick machine copies all before enough kills have hit: the rest of the test needs some as well.
                fill(broker.address, range(filled.stop, filled.stop + RECORDS))
                filled = range(filled.stop + RECORDS)
            return victim

        hit = kills = 0
        while hit < KILLED_WITHIN:
            # Some progress each time, however many kills it takes.
            wanted = min(PARTITIONS * RECORDS // 2, (kills + 1) * PARTITIONS * RECORDS // 40)
            until(lambda: beyond(wanted), "progress after a kill", seconds=SECONDS)  # noqa: B023
            victim = until(inside, "an open transaction", seconds=SECONDS, pause=0.0)
            victim.kill()
            hit += victim.name in open_transactions(broker.address)
            kills += 1
        everything = PARTITIONS * filled.stop
        broker.restart(signal.SIGKILL)
        until(lambda: beyond(everything * 3 // 4), "progress after the broker's kill", seconds=SECONDS)
        broker.restart(signal.SIGKILL)
        until(lambda: beyond(everything), "the end of the copy", seconds=SECONDS)
    assert progress.offsets() == [filled.stop] * PARTITIONS
    progress.close()
    for partition in range(PARTITIONS):
        assert committed(broker.address, partition) == list(filled)
