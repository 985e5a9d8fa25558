"""Transactions of librdkafka into a topic that is compacted all the time: readers of committed records find the last
committed value of each key, whatever was aborted before it, after it, or in what is compacted already."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest

from leafcuttr.log.layout.checkpoints import read_offsets
from leafcuttr.wire.records import Record, encode_batch
from leafcuttr_sdk import TopicPartition
from support import librdkafka
from support.broker_process import BrokerProcess, running_broker
from support.waiting import until
from support.wire_client import WireClient

SETTINGS = {
    "log.cleaner.backoff.ms": "20",
    "log.roll.ms": "50",
    "log.flush.offset.checkpoint.interval.ms": "50",
}
ROUNDS = 8


@pytest.mark.long
def test_the_last_committed_value_of_each_key_stays(tmp_path: Path) -> None:
    from confluent_kafka import Producer

    dice, committed = random.Random(3), dict[bytes, bytes]()
    with running_broker(tmp_path, SETTINGS) as broker:
        librdkafka.create(
            broker.address, "states", cleanup_policy="compact", min_cleanable_dirty_ratio="0.001"
        )
        producer = Producer(
            {"bootstrap.servers": broker.address, "transactional.id": "mover", "linger.ms": 0}
        )
        producer.init_transactions(librdkafka.PATIENCE_S)
        for number in range(ROUNDS):
            commits = number % 2 == 0
            producer.begin_transaction()
            written = {b"key %d" % dice.randrange(4): b"%d" % number for _ in range(3)}
            for key, value in written.items():
                producer.produce("states", value, key=key, partition=0)
            if commits:
                producer.commit_transaction(librdkafka.PATIENCE_S)
                committed |= written
            else:
                assert producer.flush(librdkafka.PATIENCE_S) == 0
                producer.abort_transaction(librdkafka.PATIENCE_S)
            committed[b"tick"] = compact_all(broker)
        found = {message.key(): message.value() for message in read_committed(broker.address)}
    assert found == committed


def compact_all(broker: BrokerProcess) -> bytes:
    """Until all that is there by now is compacted; the value of the last record that this took. A segment ends with an
    append that comes after its time."""
    with WireClient(broker.address) as client:
        end = client.list_offset("states", -1).offset

        def compacted() -> bool:
            batch = encode_batch([Record(0, int(time.time() * 1000), b"tick", b"%d" % end)])
            assert not client.produce("states", batch).error_code
            path = broker.data / "cleaner-offset-checkpoint"
            return path.exists() and read_offsets(path).get(TopicPartition("states", 0), 0) >= end

        until(compacted, "compaction of all before", pause=0.06)
    return b"%d" % end


def read_committed(address: str) -> list[Any]:
    with WireClient(address) as client:
        end = client.list_offset("states", -1).offset
    from confluent_kafka import Consumer, KafkaError, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "none",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    try:
        consumer.assign([TopicPartition("states", 0, 0)])
        got = []
        while True:
            message = consumer.poll(librdkafka.PATIENCE_S)
            assert message is not None
            if message.error() is None:
                got.append(message)
            elif message.error().code() == KafkaError._PARTITION_EOF and message.offset() >= end:
                return got
    finally:
        consumer.close()
