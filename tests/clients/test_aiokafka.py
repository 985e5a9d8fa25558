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
