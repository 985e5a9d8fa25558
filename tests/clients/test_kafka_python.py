"""kafka-python: a client wholly in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.client("kafka-python")
Fresh = Callable[[str], str]
CODECS = [None, "gzip", "snappy", "lz4", "zstd"]


def read(reader: Any, count: int) -> list[Any]:
    got: list[Any] = []
    for _ in range(100):
        for some in reader.poll(1000).values():
            got += some
        if len(got) >= count:
            return got
    raise AssertionError(f"{len(got)} of {count} records came")


@pytest.mark.parametrize(
    "codec", [one if one in (None, "gzip") else pytest.param(one, marks=pytest.mark.long) for one in CODECS]
)
@pytest.mark.duty("produce", "read")
def test_round_trip(bootstrap: str, fresh: Fresh, codec: str | None) -> None:
    from kafka import KafkaConsumer, KafkaProducer

    _need(codec)
    topic = fresh("topic")
    producer = KafkaProducer(bootstrap_servers=bootstrap, compression_type=codec, acks="all", linger_ms=5)
    sent = [
        producer.send(topic, value=b"%d:" % at + b"x" * 200, key=b"k%d" % at, partition=0)
        for at in range(200)
    ]
    producer.flush(30)
    assert [future.get(30).offset for future in sent] == list(range(200))
    producer.close()
    reader = KafkaConsumer(
        topic, bootstrap_servers=bootstrap, group_id=fresh("group"), auto_offset_reset="earliest"
    )
    got = read(reader, 200)
    assert [one.value for one in got] == [b"%d:" % at + b"x" * 200 for at in range(200)]
    reader.commit()
    reader.close()


def _need(codec: str | None) -> None:
    """The codecs that this client leaves to packages of others."""
    from kafka import codec as supported

    if codec and not getattr(supported, f"has_{codec}")():
        pytest.skip(f"kafka-python has no {codec} here")


@pytest.mark.long
@pytest.mark.duty("produce", "read")
def test_records_come_back_whole(bootstrap: str, fresh: Fresh) -> None:
    """Keys, headers, timestamps, null values; an idempotent producer; seek to begin and end."""
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition

    topic = fresh("topic")
    producer = KafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True, acks="all")
    now = 1_795_000_000_000
    sent = [(None, b"value", []), (b"key", None, [("h", b"1"), ("h", b"")]), (b"", b"", [("n", b"\xff\0")])]
    for at, (key, value, headers) in enumerate(sent):
        where = {"partition": 0, "timestamp_ms": now + at}
        assert producer.send(topic, key=key, value=value, headers=headers, **where).get(30).offset == at
    producer.close()
    reader = KafkaConsumer(bootstrap_servers=bootstrap)
    part = TopicPartition(topic, 0)
    reader.assign([part])
    reader.seek_to_beginning(part)
    got = read(reader, 3)
    assert [(one.key, one.value, list(one.headers)) for one in got] == sent
    assert [one.timestamp for one in got] == [now, now + 1, now + 2]
    reader.seek_to_end(part)
    assert reader.position(part) == 3
    reader.seek(part, 1)
    assert [one.offset for one in read(reader, 2)] == [1, 2]
    reader.close()


@pytest.mark.long
def test_the_largest_message(bootstrap: str, fresh: Fresh) -> None:
    from kafka import KafkaConsumer, KafkaProducer
    from kafka.errors import MessageSizeTooLargeError

    topic = fresh("automatic")
    producer = KafkaProducer(bootstrap_servers=bootstrap, max_request_size=5_000_000)
    producer.send(topic, bytes(1_048_516), partition=0).get(30)  # a batch of max.message.bytes
    with pytest.raises(MessageSizeTooLargeError):
        producer.send(topic, bytes(1_048_517), partition=0).get(30)
    producer.close()
    reader = KafkaConsumer(topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    assert len(read(reader, 1)[0].value) == 1_048_516
    reader.close()


@pytest.mark.long
@pytest.mark.duty("rebalance", "seek by time")
def test_group_of_two_and_seek_by_time(bootstrap: str, fresh: Fresh) -> None:
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.admin import KafkaAdminClient, NewTopic

    topic, group = fresh("topic"), fresh("group")
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([NewTopic(topic, 4, 1)])
    settings = {"bootstrap_servers": bootstrap, "group_id": group, "auto_offset_reset": "earliest"}
    first, second = KafkaConsumer(topic, **settings), KafkaConsumer(topic, **settings)
    for _ in range(1200):
        first.poll(50)
        second.poll(50)
        if len(first.assignment()) == len(second.assignment()) == 2:
            break
    assert len(first.assignment() | second.assignment()) == 4
    second.close()
    for _ in range(1200):
        first.poll(50)
        if len(first.assignment()) == 4:
            break
    assert len(first.assignment()) == 4
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for at in range(5):
        producer.send(topic, b"x", partition=1, timestamp_ms=1_760_000_000_000 + at * 1000).get(30)
    producer.close()
    where = TopicPartition(topic, 1)
    assert first.offsets_for_times({where: 1_760_000_002_500})[where].offset == 3
    assert first.beginning_offsets([where]) == {where: 0}
    assert first.end_offsets([where]) == {where: 5}
    first.seek(where, 3)
    assert read(first, 2)[0].offset in (0, 3)
    first.close()
    admin.delete_topics([topic])
    assert topic not in admin.list_topics()
    admin.close()


@pytest.mark.long
@pytest.mark.duty("create", "commit", "alter", "delete")
def test_admin(bootstrap: str, fresh: Fresh) -> None:
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewTopic

    topic, group = fresh("topic"), fresh("group")
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([NewTopic(topic, 2, 1)])
    assert topic in admin.list_topics()
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for at in range(4):
        producer.send(topic, b"%d" % at, partition=0).get(30)
    producer.close()
    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": "123456"})])
    told = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
    assert "123456" in str(told)
    reader = KafkaConsumer(topic, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest")
    read(reader, 4)
    reader.commit()
    assert "Stable" in str(admin.describe_groups([group]))
    reader.close()
    assert group in str(admin.list_groups())
    offsets = admin.list_group_offsets(group)
    assert "4" in str(offsets)
    admin.delete_records({TopicPartition(topic, 0): 3})
    admin.create_partitions({topic: 3})
    admin.delete_group_offsets(group, [TopicPartition(topic, 0)])
    assert "offset=4" not in str(admin.list_group_offsets(group))
    admin.delete_groups([group])
    assert group not in str(admin.list_groups())
    assert admin.describe_cluster()
    assert admin.describe_log_dirs()
    admin.delete_topics([topic])
    assert topic not in admin.list_topics()
    admin.close()
