"""Committed offsets are compacted: what a start reads does not grow with the commits ever made."""

from __future__ import annotations

from pathlib import Path

from support import librdkafka
from support.live_broker import LiveBroker, live_broker

SETTINGS = {"offsets.topic.num.partitions": "1", "offsets.topic.segment.bytes": "1048576"}
METADATA = "m" * 3900


def commit(live: LiveBroker, first: int, count: int) -> None:
    """Commits of one group for one partition, each of about 4 KB."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": live.address, "group.id": "readers", "enable.auto.commit": False}
    )
    try:
        for offset in range(first, first + count):
            where = TopicPartition("t", 0, offset, METADATA)
            consumer.commit(offsets=[where], asynchronous=False)
    finally:
        consumer.close()


def committed(live: LiveBroker) -> int:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": live.address, "group.id": "readers"})
    try:
        return int(consumer.committed([TopicPartition("t", 0)], timeout=60)[0].offset)
    finally:
        consumer.close()


def records_read_at_start(live: LiveBroker) -> int:
    live.pass_time(0)
    while live.run(live.broker.logs.cleaner.clean_due):
        pass
    return sum(header.count for header in live.stored("__consumer_offsets"))


def test_a_start_reads_no_more_after_more_commits(tmp_path: Path) -> None:
    with live_broker(tmp_path / "data", SETTINGS) as live:
        librdkafka.create(live.address, "t")
        commit(live, 0, 600)
        first = records_read_at_start(live)
        commit(live, 600, 1200)
        second = records_read_at_start(live)
    # Only the active segment holds commits that are not the last: at most a megabyte of them.
    assert max(first, second) < 300
    with live_broker(tmp_path / "data", SETTINGS) as live:
        assert committed(live) == 1799
