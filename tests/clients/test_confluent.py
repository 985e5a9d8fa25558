"""confluent-kafka: librdkafka of today."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Fresh = Callable[[str], str]
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
SECONDS = 30.0


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
    for _ in range(600):
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
    for reader in (first, other):
        reader.subscribe([topic])
    turn((first, other), lambda: len(first.assignment()) == len(other.assignment()) == 2)
    kept = {one.partition for one in first.assignment()}
    first.close()
    again = consumer(bootstrap, group, **more)
    again.subscribe([topic])
    turn((again, other), lambda: len(again.assignment()) == 2)
    assert {one.partition for one in again.assignment()} == kept
    again.close()
    other.close()


@pytest.mark.long
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
    done(admin.create_partitions([NewPartitions(topic, 4)]))
    (told,) = done(admin.describe_topics(TopicCollection([topic])))
    send(bootstrap, topic, [b"a", b"b", b"c"])
    at = TopicPartition(topic, 0)
    done(admin.delete_records([TopicPartition(topic, 0, 2)]))
    (first,) = done(admin.list_offsets({at: OffsetSpec.earliest()}))
    (last,) = done(admin.list_offsets({at: OffsetSpec.latest()}))
    assert (first.offset, last.offset) == (2, 3)
    assert admin.describe_cluster().result(SECONDS).nodes
    done(admin.delete_topics([topic]))


@pytest.mark.long
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


@pytest.mark.long
def test_automatic_creation_and_large_messages(bootstrap: str, fresh: Fresh) -> None:
    from confluent_kafka import KafkaError, Producer

    topic = fresh("automatic")
    large = bytes(900_000)
    send(bootstrap, topic, [large, b"small", large])
    reader = consumer(
        bootstrap, fresh("group"), **{"fetch.max.bytes": 1_000_000, "message.max.bytes": 1_000_000}
    )
    reader.subscribe([topic])
    assert [len(one.value()) for one in read(reader, 3)] == [900_000, 5, 900_000]
    reader.close()
    errors: list[Any] = []
    producer = Producer({"bootstrap.servers": bootstrap, "message.max.bytes": 5_000_000})
    producer.produce(topic, bytes(2_000_000), on_delivery=lambda error, _: errors.append(error.code()))
    producer.flush(SECONDS)
    assert errors == [KafkaError.MSG_SIZE_TOO_LARGE]
