"""confluent-kafka: librdkafka of today."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from support.waiting import until

pytestmark = pytest.mark.client("confluent-kafka")
Fresh = Callable[[str], str]
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
SECONDS = 120.0


def consumer(bootstrap: str, group: str, **more: Any) -> Any:
    from confluent_kafka import Consumer

    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "session.timeout.ms": 6000,
        "enable.auto.commit": False,
    }
    return Consumer(settings | more)


def read(reader: Any, count: int) -> list[Any]:
    """The next `count` messages. Fails the test if they do not come."""
    got: list[Any] = []
    while len(got) < count:
        some = reader.consume(count - len(got), SECONDS)
        assert some, f"{len(got)} of {count} messages came"
        for one in some:
            assert one.error() is None, one.error()
        got += some
    return got


def send(bootstrap: str, topic: str, values: list[bytes], **more: Any) -> None:
    from confluent_kafka import Producer

    failures: list[Any] = []
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5} | more)
    for at, value in enumerate(values):
        producer.produce(
            topic,
            value,
            key=str(at),
            partition=0,
            headers={"n": str(at)},
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
    assert producer.flush(SECONDS) == 0
    assert not failures


def make(bootstrap: str, topic: str, partitions: int = 1, **config: str) -> Any:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    done(admin.create_topics([NewTopic(topic, partitions, 1, config=config)]))
    return admin


def done(futures: dict[Any, Any]) -> list[Any]:
    return [future.result(SECONDS) for future in futures.values()]


@pytest.mark.parametrize(
    "codec", [one if one in ("none", "zstd") else pytest.param(one, marks=pytest.mark.long) for one in CODECS]
)
@pytest.mark.parametrize("idempotent", [False, True])
@pytest.mark.duty("produce", "read")
def test_round_trip(bootstrap: str, fresh: Fresh, codec: str, idempotent: bool) -> None:
    topic = fresh("topic")
    make(bootstrap, topic)
    values = [f"{at}:".encode() + b"x" * 300 for at in range(500)]
    send(bootstrap, topic, values, **{"compression.type": codec, "enable.idempotence": idempotent})
    reader = consumer(bootstrap, fresh("group"))
    reader.subscribe([topic])
    got = read(reader, 500)
    assert [one.value() for one in got] == values
    assert [one.offset() for one in got] == list(range(500))
    assert [one.headers() for one in got[:2]] == [[("n", b"0")], [("n", b"1")]]
    reader.close()


@pytest.mark.long
@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.duty("produce", "read")
def test_records_come_back_whole(bootstrap: str, fresh: Fresh, codec: str) -> None:
    """Keys, values and headers that are missing, empty or anything; timestamps."""
    from confluent_kafka import TIMESTAMP_CREATE_TIME, Producer

    topic = fresh("topic")
    make(bootstrap, topic, **{"retention.ms": "-1"})
    sent: list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]] | None, int]] = [
        (None, b"value", None, 1_600_000_000_000),
        (b"", b"", [], 1_600_000_000_001),
        (b"key", None, [("h", None), ("h", b""), ("h", b"\0\xff")], 1_600_000_000_500),
        (bytes(range(256)), b"\0" * 1000, [("\u00fc", b"1")], 1),
        ("sch\u00f6n".encode(), "\u6f22\u5b57".encode(), None, 1_700_000_000_000),
    ]
    failures: list[Any] = []
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 50})
    for key, value, headers, timestamp in sent:
        producer.produce(
            topic,
            value,
            key,
            partition=0,
            headers=headers,
            timestamp=timestamp,
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
    assert producer.flush(SECONDS) == 0
    assert not failures
    reader = consumer(bootstrap, fresh("group"))
    reader.subscribe([topic])
    for one, (key, value, headers, timestamp) in zip(read(reader, len(sent)), sent, strict=True):
        assert (one.key(), one.value(), one.headers()) == (key, value, headers or None)
        assert one.timestamp() == (TIMESTAMP_CREATE_TIME, timestamp)
    reader.close()


@pytest.mark.long
def test_seek_to_begin_and_end(bootstrap: str, fresh: Fresh) -> None:
    from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, TopicPartition

    topic = fresh("topic")
    make(bootstrap, topic)
    send(bootstrap, topic, [b"%d" % at for at in range(10)])
    reader = consumer(bootstrap, fresh("group"))
    reader.assign([TopicPartition(topic, 0, 0)])
    assert len(read(reader, 10)) == 10
    for offset, expected in ((OFFSET_BEGINNING, 0), (7, 7)):
        reader.seek(TopicPartition(topic, 0, offset))
        assert read(reader, 1)[0].offset() == expected
    reader.assign([TopicPartition(topic, 0, OFFSET_END)])

    def first_new() -> Any:  # where the end is, the client finds out in the background
        send(bootstrap, topic, [b"new"])
        return reader.poll(0.1)

    found = until(first_new, "a record behind the end")
    assert found.error() is None
    assert found.offset() >= 10 and found.value() == b"new"
    reader.close()


@pytest.mark.duty("commit")
def test_commit_and_resume(bootstrap: str, fresh: Fresh) -> None:
    topic, group = fresh("topic"), fresh("group")
    make(bootstrap, topic)
    send(bootstrap, topic, [b"%d" % at for at in range(20)])
    for expected in (range(10), range(10, 20)):
        reader = consumer(bootstrap, group)
        reader.subscribe([topic])
        assert [int(one.value()) for one in read(reader, 10)] == list(expected)
        reader.commit(asynchronous=False)
        reader.close()


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
@pytest.mark.duty("rebalance")
def test_group_rebalances(bootstrap: str, fresh: Fresh, strategy: str) -> None:
    """A second member takes half of the partitions, and gives them back when it leaves."""
    topic, group = fresh("topic"), fresh("group")
    make(bootstrap, topic, 6)
    more = {"partition.assignment.strategy": strategy}
    first, second = consumer(bootstrap, group, **more), consumer(bootstrap, group, **more)
    try:
        first.subscribe([topic])
        turn((first,), lambda: len(first.assignment()) == 6)
        second.subscribe([topic])
        turn((first, second), lambda: len(first.assignment()) == len(second.assignment()) == 3)
        parts = {one.partition for reader in (first, second) for one in reader.assignment()}
        assert parts == set(range(6))
        second.close()
        turn((first,), lambda: len(first.assignment()) == 6)
    finally:
        first.close()


def turn(readers: tuple[Any, ...], met: Callable[[], bool]) -> None:
    """Polls all readers until it is so."""
    for _ in range(2400):
        for reader in readers:
            reader.poll(0.05)
        if met():
            return
    raise AssertionError("the group did not settle")


@pytest.mark.long
def test_static_member_returns_without_rebalance(bootstrap: str, fresh: Fresh) -> None:
    topic, group = fresh("topic"), fresh("group")
    make(bootstrap, topic, 4)
    more = {"group.instance.id": "one", "session.timeout.ms": 30_000}
    other = consumer(bootstrap, group, **{"group.instance.id": "two"})
    first = consumer(bootstrap, group, **more)
    changes: list[str] = []
    first.subscribe([topic])
    other.subscribe([topic], on_revoke=lambda *_: changes.append("revoked"))
    turn((first, other), lambda: len(first.assignment()) == len(other.assignment()) == 2)
    kept = {one.partition for one in first.assignment()}
    changes.clear()
    first.close()
    again = consumer(bootstrap, group, **more)
    again.subscribe([topic])
    turn((again, other), lambda: len(again.assignment()) == 2)
    assert {one.partition for one in again.assignment()} == kept
    assert not changes
    again.close()
    other.close()


@pytest.mark.long
@pytest.mark.duty("seek by time")
def test_seek_by_time(bootstrap: str, fresh: Fresh) -> None:
    from confluent_kafka import Producer, TopicPartition

    topic = fresh("topic")
    make(bootstrap, topic, 1, **{"retention.ms": "-1"})
    producer = Producer({"bootstrap.servers": bootstrap})
    for at in range(10):
        producer.produce(topic, b"%d" % at, timestamp=1_760_000_000_000 + at * 1000)
        producer.flush(SECONDS)
    reader = consumer(bootstrap, fresh("group"))
    asked = [TopicPartition(topic, 0, 1_760_000_004_500)]
    found = reader.offsets_for_times(asked, SECONDS)
    assert found[0].offset == 5
    reader.assign(found)
    assert read(reader, 1)[0].value() == b"5"
    assert reader.offsets_for_times([TopicPartition(topic, 0, 1_860_000_000_000)], SECONDS)[0].offset == -1
    assert reader.get_watermark_offsets(TopicPartition(topic, 0), SECONDS) == (0, 10)
    reader.close()


@pytest.mark.duty("create", "alter", "delete")
def test_admin(bootstrap: str, fresh: Fresh) -> None:
    """Create, describe, alter, grow, delete records, list offsets, delete."""
    from confluent_kafka import KafkaException, TopicCollection, TopicPartition
    from confluent_kafka.admin import (
        AlterConfigOpType,
        ConfigEntry,
        ConfigResource,
        NewPartitions,
        OffsetSpec,
    )

    topic = fresh("topic")
    admin = make(bootstrap, topic, 2, **{"retention.ms": "100000"})
    with pytest.raises(KafkaException, match="already exists"):
        make(bootstrap, topic)
    (told,) = done(admin.describe_topics(TopicCollection([topic])))
    assert len(told.partitions) == 2
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    (config,) = done(admin.describe_configs([resource]))
    assert config["retention.ms"].value == "100000"
    entry = ConfigEntry("retention.ms", "200000", incremental_operation=AlterConfigOpType.SET)
    done(
        admin.incremental_alter_configs(
            [ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])]
        )
    )
    (config,) = done(admin.describe_configs([resource]))
    assert config["retention.ms"].value == "200000"
    done(admin.create_partitions([NewPartitions(topic, 4)]))
    until(
        lambda: len(done(admin.describe_topics(TopicCollection([topic])))[0].partitions) == 4,
        "four partitions",
    )
    send(bootstrap, topic, [b"a", b"b", b"c"])
    at = TopicPartition(topic, 0)
    done(admin.delete_records([TopicPartition(topic, 0, 2)]))
    (first,) = done(admin.list_offsets({at: OffsetSpec.earliest()}))
    (last,) = done(admin.list_offsets({at: OffsetSpec.latest()}))
    assert (first.offset, last.offset) == (2, 3)
    assert admin.describe_cluster().result(SECONDS).nodes
    done(admin.delete_topics([topic]))
    with pytest.raises(KafkaException):
        done(admin.describe_topics(TopicCollection([topic])))


@pytest.mark.long
@pytest.mark.duty("commit", "delete")
def test_groups_by_admin(bootstrap: str, fresh: Fresh) -> None:
    from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition

    topic, group = fresh("topic"), fresh("group")
    admin = make(bootstrap, topic)
    send(bootstrap, topic, [b"%d" % at for at in range(5)])
    reader = consumer(bootstrap, group)
    reader.subscribe([topic])
    read(reader, 5)
    reader.commit(asynchronous=False)
    (told,) = done(admin.describe_consumer_groups([group]))
    assert told.state.name == "STABLE"
    assert [one.topic for one in told.members[0].assignment.topic_partitions] == [topic]
    with pytest.raises(KafkaException):
        done(admin.delete_consumer_groups([group]))
    reader.close()
    listed = admin.list_consumer_groups().result(SECONDS)
    assert group in [one.group_id for one in listed.valid]
    asked = [ConsumerGroupTopicPartitions(group)]
    (offsets,) = done(admin.list_consumer_group_offsets(asked))
    assert [one.offset for one in offsets.topic_partitions] == [5]
    moved = [ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 2)])]
    done(admin.alter_consumer_group_offsets(moved))
    (offsets,) = done(admin.list_consumer_group_offsets(asked))
    assert [one.offset for one in offsets.topic_partitions] == [2]
    done(admin.delete_consumer_groups([group]))
    listed = admin.list_consumer_groups().result(SECONDS)
    assert group not in [one.group_id for one in listed.valid]


@pytest.mark.long
def test_automatic_creation_and_fetches_below_a_message(bootstrap: str, fresh: Fresh) -> None:
    topic = fresh("automatic")
    large = bytes(900_000)
    send(bootstrap, topic, [large, b"small", large])
    reader = consumer(
        bootstrap,
        fresh("group"),
        **{"fetch.max.bytes": 500_000, "max.partition.fetch.bytes": 500_000, "message.max.bytes": 500_000},
    )
    reader.subscribe([topic])
    assert [len(one.value()) for one in read(reader, 3)] == [900_000, 5, 900_000]
    reader.close()


@pytest.mark.long
def test_the_largest_message(bootstrap: str, fresh: Fresh) -> None:
    """A batch of exactly max.message.bytes is taken and read with a consumer's defaults, one byte more is refused."""
    from confluent_kafka import KafkaError, Producer

    topic = fresh("topic")
    make(bootstrap, topic)
    limit, overhead = 1_048_588, 61 + 11  # the default; a batch's header and a record without key and headers
    outcomes: list[Any] = []
    producer = Producer({"bootstrap.servers": bootstrap, "message.max.bytes": 5_000_000})
    for size in (limit - overhead, limit - overhead + 1, 2_000_000):
        producer.produce(
            topic, bytes(size), on_delivery=lambda error, _: outcomes.append(error.code() if error else None)
        )
        producer.flush(SECONDS)
    assert outcomes == [None, KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.MSG_SIZE_TOO_LARGE]
    reader = consumer(bootstrap, fresh("group"))
    reader.subscribe([topic])
    assert len(read(reader, 1)[0].value()) == limit - overhead
    reader.close()
