"""A stream from topic to topic that is killed between any two steps of its commit, and at random, the broker too: each
record is there once, and those of a key in their order."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support import librdkafka
from support.broker_process import Restarting
from support.waiting import until

PROGRAM = Path(__file__).parent / "copying.py"
RECORDS = 3000
PARTITIONS = 3
SECONDS = 180.0


@pytest.mark.usefixtures("spark")
@pytest.mark.timeout(1800)
def test_each_record_is_there_once(tmp_path: Path) -> None:
    broker = Restarting(tmp_path / "broker")
    running: list[subprocess.Popen[bytes]] = []

    def start(*point: str) -> subprocess.Popen[bytes]:
        words = [
            sys.executable,
            str(PROGRAM),
            broker.address,
            "numbers",
            "copied",
            str(tmp_path / "checkpoint"),
        ]
        with (tmp_path / "out").open("ab") as out:
            environ = os.environ | {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
            found = subprocess.Popen(
                [*words, *point], stdout=out, stderr=out, env=environ, start_new_session=True
            )
        running.append(found)
        return found

    def done() -> int:
        """The last batch that the checkpoint knows of."""
        return max(
            (int(one.name) for one in (tmp_path / "checkpoint" / "commits").glob("[0-9]*")), default=-1
        )

    try:
        librdkafka.create(broker.address, "numbers", PARTITIONS, retention_ms="-1")
        librdkafka.create(broker.address, "copied", 2)
        for partition in range(PARTITIONS):
            values = [b"%d" % number for number in range(partition, RECORDS, PARTITIONS)]
            key = b"key-%d" % partition
            librdkafka.send(broker.address, "numbers", values, timestamp=1, partition=partition, key=key)
        for number, point in enumerate(("begun", "written", "committed")):
            assert start(point, str(number)).wait(SECONDS) == -signal.SIGKILL, said(tmp_path)
        chance = random.Random(7)
        for round_ in range(3):
            before, one = done(), start()
            until(
                lambda one=one, before=before: done() > before or one.poll() is not None,
                "a batch",
                seconds=SECONDS,
            )
            time.sleep(chance.random())
            if round_ == 1:
                broker.restart(signal.SIGKILL)
                # It waits for the broker, or fails: both are right.
                before = done()
                until(
                    lambda one=one, before=before: done() > before or one.poll() is not None,
                    "more",
                    seconds=SECONDS,
                )
            if one.poll() is None:
                os.killpg(one.pid, signal.SIGKILL)
                one.wait()
        assert start().wait(SECONDS) == 0, said(tmp_path)
        found = [message for partition in range(2) for message in all_of(broker.address, "copied", partition)]
        assert sorted(int(message.value()) for message in found) == list(range(RECORDS))
        for key in {message.key() for message in found}:
            mine = [int(message.value()) for message in found if message.key() == key]
            assert mine == sorted(mine)
    finally:
        for one in running:
            if one.poll() is None:
                os.killpg(one.pid, signal.SIGKILL)
                one.wait()
        broker.end()


def all_of(address: str, topic: str, partition: int) -> list[librdkafka.Any]:
    """The records that readers of committed ones see."""
    from confluent_kafka import Consumer, KafkaError, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "none",
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    found: list[librdkafka.Any] = []
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])
        while True:
            message = consumer.poll(60)
            assert message is not None
            if message.error() is None:
                found.append(message)
            elif message.error().code() == KafkaError._PARTITION_EOF:
                return found
    finally:
        consumer.close()


def said(folder: Path) -> str:
    return (folder / "out").read_text()[-3000:]
