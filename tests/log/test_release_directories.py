"""A data directory that the wheel of a release wrote is opened by this version, and clients find everything in it.

What is in them: `fixtures/make_release.py`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from leafcuttr.offline.verify import verify_directory
from support.broker_process import BrokerProcess, running_broker

FIXTURES = Path(__file__).parent / "fixtures"
RELEASES = sorted(path.name for path in FIXTURES.glob("leafcuttr-[0-9]*"))
FOR_EVER = {  # the tests run years after the directories were written
    "log.retention.ms": "-1",
    "offsets.retention.minutes": "2147483647",
    "transactional.id.expiration.ms": "2147483647",
    "log.cleaner.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
}


@pytest.fixture(params=RELEASES)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker of this version on a copy of the directory; what it leaves behind has to be sound."""
    shutil.copytree(FIXTURES / request.param, tmp_path / "broker" / "data")
    if not request.param.endswith("-killed"):
        assert verify_directory(tmp_path / "broker" / "data", deep=True).problems == []
    with running_broker(tmp_path / "broker", FOR_EVER) as broker:
        yield broker
    assert verify_directory(tmp_path / "broker" / "data", deep=True).problems == []


def read_all(bootstrap: str, topic: str, isolation: str = "read_uncommitted") -> list[Any]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reads-all",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
        }
    )
    first, _ = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)
    consumer.assign([TopicPartition(topic, 0, first)])
    found = []
    while True:
        message = consumer.poll(30)
        assert message is not None, "neither a record nor the end"
        if message.error():
            assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
            consumer.close()
            return found
        found.append(message)


def test_a_release_is_there_closed_and_killed() -> None:
    assert RELEASES[:2] == ["leafcuttr-0.6.0", "leafcuttr-0.6.0-killed"]


def test_clients_find_everything_that_a_release_has_written(opened: BrokerProcess) -> None:
    bootstrap = opened.address
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        found = read_all(bootstrap, f"codec-{codec}")
        assert [message.offset() for message in found] == list(range(100))
        assert [message.value() for message in found] == [f"value {at} ".encode() * 5 for at in range(100)]
        assert [message.key() for message in found] == [f"key-{at % 7}".encode() for at in range(100)]
        assert all(one.headers() == [("made-by", b"librdkafka"), ("none", None)] for one in found)
    segments = read_all(bootstrap, "segments")
    assert [(one.offset(), one.key()) for one in segments] == [(at, b"%d" % at) for at in range(13, 40)]
    assert [one.timestamp()[1] for one in segments] == [1_700_000_000_000 + 1000 * at for at in range(13, 40)]
    assert [message.value() for message in read_all(bootstrap, "compacted")] == [
        f"state {at}".encode() if at % 9 else None for at in range(30)
    ]
    committed = [f"{number}.{step}".encode() for number in (0, 2, 4) for step in range(3)]
    assert [one.value() for one in read_all(bootstrap, "transactions", "read_committed")] == committed
    assert len(read_all(bootstrap, "transactions")) == 19
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "readers"})
    partitions = [TopicPartition("codec-none", 0), TopicPartition("segments", 0)]
    assert [one.offset for one in reader.committed(partitions, timeout=30)] == [42, 17]
    reader.close()
    admin = AdminClient({"bootstrap.servers": bootstrap})
    assert len(admin.list_topics("empty", timeout=30).topics["empty"].partitions) == 3
    resource = ConfigResource(ResourceType.TOPIC, "compacted")
    settings = admin.describe_configs([resource])[resource].result()
    assert (settings["cleanup.policy"].value, settings["compression.type"].value) == ("compact", "zstd")


def test_clients_go_on_where_a_release_has_stopped(opened: BrokerProcess) -> None:
    producer = Producer({"bootstrap.servers": opened.address, "transactional.id": "fixture"})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("segments", b"more", b"40", partition=0)
    producer.send_offsets_to_transaction(
        [TopicPartition("codec-none", 0, 100)], consumer_group("readers", opened.address)
    )
    producer.commit_transaction(60)
    last = read_all(opened.address, "segments", "read_committed")[-1]
    assert (last.offset(), last.value()) == (40, b"more")
    reader = Consumer({"bootstrap.servers": opened.address, "group.id": "readers"})
    assert [one.offset for one in reader.committed([TopicPartition("codec-none", 0)], timeout=30)] == [100]
    reader.close()


def consumer_group(group: str, bootstrap: str) -> Any:
    return Consumer({"bootstrap.servers": bootstrap, "group.id": group}).consumer_group_metadata()
