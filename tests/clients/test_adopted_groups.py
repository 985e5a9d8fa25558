"""What docs/how-to/migrate-from-kafka.md says of groups: their offsets come along with Kafka's own topic of them.

The page's command is run as it stands there, but for the directories."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from support import jars, librdkafka
from support.broker_process import clean_environ, running_broker
from support.pages import DOCS
from support.real_kafka import real_kafka

PARTITIONS = 3  # of __consumer_offsets in that Kafka: see support.real_kafka

COMMIT = """
import sys
from confluent_kafka import Consumer, TopicPartition
consumer = Consumer({"bootstrap.servers": sys.argv[1], "group.id": "billing", "enable.auto.commit": False})
consumer.commit(offsets=[TopicPartition("orders", 0, 42), TopicPartition("orders", 1, 7)], asynchronous=False)
consumer.close()
"""


@pytest.mark.long
@pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing()))
def test_committed_offsets_of_kafka_are_there(tmp_path: Path) -> None:
    with real_kafka(tmp_path / "kafka") as address:
        librdkafka.create(str(address), "orders", 2)
        for partition in (0, 1):
            librdkafka.send(
                str(address), "orders", [b"x"] * 50, timestamp=1_700_000_000_000, partition=partition
            )
        # In a process of its own: librdkafka's threads would complain of the broker that is killed.
        subprocess.run([sys.executable, "-c", COMMIT, str(address)], check=True, timeout=120)
    ours = tmp_path / "ours"
    ours.mkdir()
    page = (DOCS / "how-to" / "migrate-from-kafka.md").read_text(encoding="utf-8")
    line = re.search(r"^leafcuttr (repair .*__consumer_offsets.*)$", page, re.M)
    assert line is not None
    of_groups = (
        line[1].replace("kafka-data", str(tmp_path / "kafka" / "data")).replace("leafcuttr-data", str(ours))
    )
    of_records = of_groups.replace("__consumer_offsets", "orders").replace(
        "cleanup.policy=compact", "retention.ms=-1"
    )
    for words in (of_records, of_groups):
        done = subprocess.run(
            [sys.executable, "-m", "leafcuttr", *words.split()],
            capture_output=True,
            text=True,
            env=clean_environ(),
        )
        assert done.returncode == 0, done.stdout + done.stderr
    settings = {"log.dirs": str(ours), "offsets.topic.num.partitions": str(PARTITIONS)}
    with running_broker(tmp_path / "broker", settings) as broker:
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "billing"})
        asked = [TopicPartition("orders", 0), TopicPartition("orders", 1)]
        assert [one.offset for one in consumer.committed(asked, timeout=60)] == [42, 7]
        consumer.close()
        assert librdkafka.watermarks(broker.address, "orders") == (0, 50)
