"""Transactional producers of three clients, with read_committed consumers: commit, abort, offsets, zombies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

Fresh = Callable[[str], str]


def committed(bootstrap: str, topic: str, count: int) -> list[bytes]:
    """What a read_committed consumer gets, up to the last stable offset, at least `count` records."""
    from confluent_kafka import Consumer, KafkaError, TopicPartition

    reader = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    reader.assign([TopicPartition(topic, 0, 0)])
    got: list[bytes] = []
    try:
        while True:
            message = reader.poll(120)
            assert message is not None, f"{len(got)} of {count} records came"
            if message.error() is None:
                got.append(message.value())
            else:
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                if len(got) >= count:
                    return got
    finally:
        reader.close()


def make(bootstrap: str, topic: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(20)


@pytest.mark.client("confluent-kafka")
@pytest.mark.duty("read committed")
def test_confluent_commits_aborts_and_is_fenced(bootstrap: str, fresh: Fresh) -> None:
    from confluent_kafka import KafkaException, Producer

    topic, name = fresh("topic"), fresh("transactional")
    make(bootstrap, topic)
    first = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    first.init_transactions(20)
    for number in range(6):
        first.begin_transaction()
        for _ in range(10):
            first.produce(topic, b"%d" % number, partition=0)
        if number % 2:
            first.flush(20)
            first.abort_transaction(20)
        else:
            first.commit_transaction(20)
    first.begin_transaction()
    first.produce(topic, b"zombie", partition=0)
    first.flush(20)
    second = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    second.init_transactions(20)
    with pytest.raises(KafkaException) as refused:
        first.commit_transaction(20)
    assert refused.value.args[0].fatal()
    second.begin_transaction()
    second.produce(topic, b"6", partition=0)
    second.commit_transaction(20)
    assert committed(bootstrap, topic, 31) == [b"0"] * 10 + [b"2"] * 10 + [b"4"] * 10 + [b"6"]


@pytest.mark.client("confluent-kafka")
@pytest.mark.duty("read committed")
def test_confluent_moves_records_exactly_once(bootstrap: str, fresh: Fresh) -> None:
    """Consume, transform, produce (KIP-447): offsets and records go together, or not at all."""
    from confluent_kafka import Consumer, Producer, TopicPartition

    source, target, group = fresh("source"), fresh("target"), fresh("group")
    make(bootstrap, source)
    make(bootstrap, target)
    feeder = Producer({"bootstrap.servers": bootstrap})
    for number in range(100):
        feeder.produce(source, b"%d" % number, partition=0)
    feeder.flush(20)
    mover = Producer({"bootstrap.servers": bootstrap, "transactional.id": fresh("mover")})
    mover.init_transactions(20)
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    for life in range(4):
        reader = Consumer(settings)
        reader.subscribe([source])
        taken = 0
        mover.begin_transaction()
        while taken < 25:
            message = reader.poll(120)
            assert message is not None and message.error() is None
            mover.produce(target, message.value(), partition=0)
            taken += 1
        mover.send_offsets_to_transaction(
            reader.position(reader.assignment()), reader.consumer_group_metadata(), 20
        )
        if life == 1:
            mover.abort_transaction(20)
        else:
            mover.commit_transaction(20)
        reader.close()
    assert committed(bootstrap, target, 75) == [b"%d" % number for number in range(75)]
    reader = Consumer(settings)
    assert reader.committed([TopicPartition(source, 0)], 20)[0].offset == 75
    reader.close()


@pytest.mark.client("kafka-python")
@pytest.mark.duty("read committed")
def test_kafka_python(bootstrap: str, fresh: Fresh) -> None:
    from kafka import KafkaConsumer, KafkaProducer

    topic = fresh("topic")
    make(bootstrap, topic)
    producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=fresh("transactional"))
    producer.init_transactions()
    for number in range(4):
        producer.begin_transaction()
        producer.send(topic, value=b"%d" % number, partition=0).get(20)
        if number % 2:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    producer.close()
    assert committed(bootstrap, topic, 2) == [b"0", b"2"]
    for level, expected in (("read_committed", [b"0", b"2"]), ("read_uncommitted", [b"0", b"1", b"2", b"3"])):
        reader = KafkaConsumer(
            topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest", isolation_level=level
        )
        assert [next(reader).value for _ in expected] == expected
        reader.close()


@pytest.mark.client("aiokafka")
@pytest.mark.duty("read committed")
def test_aiokafka(bootstrap: str, fresh: Fresh) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

    topic, group = fresh("topic"), fresh("group")
    make(bootstrap, topic)

    async def run() -> Any:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=fresh("transactional"))
        await producer.start()
        for number in range(4):
            await producer.begin_transaction()
            await producer.send_and_wait(topic, b"%d" % number, partition=0)
            await producer.send_offsets_to_transaction({TopicPartition(topic, 0): number + 1}, group)
            if number % 2:
                await producer.abort_transaction()
            else:
                await producer.commit_transaction()
        await producer.stop()
        for level, expected in (
            ("read_committed", [b"0", b"2"]),
            ("read_uncommitted", [b"0", b"1", b"2", b"3"]),
        ):
            reader = AIOKafkaConsumer(
                topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest", isolation_level=level
            )
            await reader.start()
            assert [(await reader.getone()).value for _ in expected] == expected
            await reader.stop()

    asyncio.run(asyncio.wait_for(run(), 120))
    assert committed(bootstrap, topic, 2) == [b"0", b"2"]
