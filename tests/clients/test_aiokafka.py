"""aiokafka, the asyncio client; each test runs its own event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.client("aiokafka")
Fresh = Callable[[str], str]
CODECS = [None, "gzip", "snappy", "lz4", "zstd"]


@pytest.mark.parametrize(
    "codec", [one if one in (None, "lz4") else pytest.param(one, marks=pytest.mark.long) for one in CODECS]
)
@pytest.mark.duty("produce", "read")
def test_round_trip(bootstrap: str, fresh: Fresh, codec: str | None) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
    from aiokafka import codec as supported

    if codec and not getattr(supported, f"has_{codec}")():
        pytest.skip(f"aiokafka has no {codec} here")
    topic, group = fresh("topic"), fresh("group")
    values = [b"%d:" % at + b"x" * 200 for at in range(200)]

    async def run() -> list[Any]:
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap, compression_type=codec, enable_idempotence=True
        )
        await producer.start()
        sent = [await producer.send(topic, value, partition=0) for value in values]
        await asyncio.gather(*sent)
        await producer.stop()
        reader = AIOKafkaConsumer(
            topic, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest"
        )
        await reader.start()
        got = [(await reader.getone()).value for _ in values]
        await reader.commit()
        await reader.stop()
        return got

    assert asyncio.run(asyncio.wait_for(run(), 60)) == values


@pytest.mark.long
@pytest.mark.duty("rebalance", "seek by time")
def test_group_of_two_and_seek_by_time(bootstrap: str, fresh: Fresh) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
    from aiokafka.admin import AIOKafkaAdminClient, NewTopic

    topic, group = fresh("topic"), fresh("group")

    async def run() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        await admin.create_topics([NewTopic(topic, 4, 1)])
        settings = {"bootstrap_servers": bootstrap, "group_id": group, "auto_offset_reset": "earliest"}
        first, second = AIOKafkaConsumer(topic, **settings), AIOKafkaConsumer(topic, **settings)
        await first.start()
        await second.start()
        while not len(first.assignment()) == len(second.assignment()) == 2:
            await asyncio.gather(first.getmany(timeout_ms=50), second.getmany(timeout_ms=50))
        await second.stop()
        while len(first.assignment()) != 4:
            await first.getmany(timeout_ms=50)
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
        await producer.start()
        for at in range(5):
            await producer.send_and_wait(topic, b"x", partition=1, timestamp_ms=1_760_000_000_000 + at * 1000)
        await producer.stop()
        where = TopicPartition(topic, 1)
        found = await first.offsets_for_times({where: 1_760_000_002_500})
        assert found[where].offset == 3
        assert await first.end_offsets([where]) == {where: 5}
        await first.stop()
        assert group in str(await admin.list_consumer_groups())
        await admin.describe_consumer_groups([group])
        await admin.delete_topics([topic])
        await admin.close()

    asyncio.run(asyncio.wait_for(run(), 120))


@pytest.mark.long
@pytest.mark.duty("produce", "read")
def test_records_come_back_whole(bootstrap: str, fresh: Fresh) -> None:
    """Keys, headers, timestamps, null values; seek to begin and end; the largest message."""
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
    from aiokafka.errors import MessageSizeTooLargeError

    topic, now = fresh("automatic"), 1_795_000_000_000
    sent = [(None, b"value", ()), (b"key", None, (("h", b"1"), ("h", b""))), (b"", b"", (("n", b"\xff\0"),))]

    async def run() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, max_request_size=5_000_000)
        await producer.start()
        for at, (key, value, headers) in enumerate(sent):
            where = {"partition": 0, "timestamp_ms": now + at}
            await producer.send_and_wait(topic, value, key, headers=list(headers), **where)
        with pytest.raises(MessageSizeTooLargeError):
            await producer.send_and_wait(topic, bytes(1_048_600), partition=0)
        await producer.send_and_wait(topic, bytes(1_048_500), partition=0)
        await producer.stop()
        reader = AIOKafkaConsumer(bootstrap_servers=bootstrap)
        await reader.start()
        part = TopicPartition(topic, 0)
        reader.assign([part])
        await reader.seek_to_beginning(part)
        got = [await reader.getone() for _ in range(4)]
        assert [(one.key, one.value, one.headers) for one in got[:3]] == sent
        assert [one.timestamp for one in got[:3]] == [now, now + 1, now + 2]
        assert len(got[3].value) == 1_048_500
        await reader.seek_to_end(part)
        assert await reader.position(part) == 4
        reader.seek(part, 1)
        assert (await reader.getone()).offset == 1
        await reader.stop()

    asyncio.run(asyncio.wait_for(run(), 60))


@pytest.mark.long
@pytest.mark.duty("create", "commit", "alter", "delete")
def test_admin(bootstrap: str, fresh: Fresh) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
    from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
    from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

    topic, group = fresh("topic"), fresh("group")

    async def run() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        await admin.create_topics([NewTopic(topic, 1, 1)])
        assert topic in await admin.list_topics()
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": "123456"})
        await admin.alter_configs([resource])
        assert "123456" in str(
            await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
        )
        await admin.create_partitions({topic: NewPartitions(3)})
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
        await producer.start()
        for _ in range(4):
            await producer.send_and_wait(topic, b"x", partition=0)
        await producer.stop()
        part = TopicPartition(topic, 0)
        reader = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=group)
        await reader.start()
        reader.assign([part])
        await reader.commit({part: 4})
        assert await reader.committed(part) == 4
        await reader.stop()
        assert (await admin.list_consumer_group_offsets(group))[part].offset == 4
        assert await admin.delete_records({part: RecordsToDelete(before_offset=3)}) == {part: 3}
        assert (await admin.describe_cluster())["brokers"]
        await admin.delete_topics([topic])
        await admin.close()

    asyncio.run(asyncio.wait_for(run(), 60))
