"""Transactions of plugins and of clients: who reads what, and who fences whom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from crash.foreign import by_kio
from leafcuttr.plugins.facade.opening import make_broker_view
from leafcuttr.runtime.clock import SystemClock
from leafcuttr_sdk import (
    Broker,
    CommittedOffset,
    OpenTransaction,
    Record,
    TopicPartition,
    TransactionalProducer,
)
from leafcuttr_sdk.errors import ProducerFenced, TransactionAborted
from plugins.facade.conftest import PLUGIN
from support.live_broker import LiveBroker, live_broker

SETTINGS = {"transaction.state.log.num.partitions": "2", "offsets.topic.num.partitions": "2"}


@pytest.fixture
def live(tmp_path: Path) -> Iterator[LiveBroker]:
    with live_broker(tmp_path / "data", SETTINGS, clock=SystemClock()) as live:
        yield live


@pytest.fixture
def view(live: LiveBroker) -> Broker:
    return live.call(make_broker_view, live.broker, PLUGIN)


async def write(producer: TransactionalProducer, values: Sequence[bytes], *, commit: bool) -> None:
    async with producer.begin() as transaction:
        await transaction.produce_batch("t", [Record(value) for value in values])
        if not commit:
            await transaction.abort()


class Held:
    """A plugin's producer, and a transaction of it, that stay open between calls of the test's thread."""

    def __init__(self, view: Broker, name: str) -> None:
        self._view = view
        self._name = name
        self._stack = AsyncExitStack()

    async def open(self) -> None:
        self.producer = await self._stack.enter_async_context(self._view.transaction(self._name))

    async def begin(self) -> None:
        self.transaction: OpenTransaction = await self._stack.enter_async_context(self.producer.begin())

    async def write(self, value: bytes) -> None:
        await self.transaction.produce_batch("t", [Record(value)])

    async def commit_offset(self, offset: int) -> None:
        await self.transaction.commit_offsets("g", {TopicPartition("t", 0): CommittedOffset(offset)})

    async def close(self) -> None:
        await self._stack.aclose()


def of_confluent(live: LiveBroker, count: int) -> list[bytes]:
    """What a read_committed consumer of librdkafka gets, up to the end of the partition."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError
    from confluent_kafka import TopicPartition as Place

    consumer = Consumer(
        {
            "bootstrap.servers": live.address,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "check.crcs": True,
        }
    )
    consumer.assign([Place("t", 0, OFFSET_BEGINNING)])
    found = []
    while True:
        message = consumer.poll(30)
        assert message is not None, f"{len(found)} of {count}"
        error = message.error()
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF
            break
        found.append(message.value())
    consumer.close()
    return found


def of_aiokafka(live: LiveBroker, count: int) -> list[bytes]:
    import asyncio

    from aiokafka import AIOKafkaConsumer
    from aiokafka import TopicPartition as Place

    async def read() -> list[bytes]:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=live.address, isolation_level="read_committed", auto_offset_reset="earliest"
        )
        await consumer.start()
        try:
            consumer.assign([Place("t", 0)])
            await consumer.seek_to_beginning()
            found: list[bytes] = []
            while len(found) < count:
                message = await asyncio.wait_for(consumer.getone(), 30)
                found.append(message.value or b"")
            more = await consumer.getmany(timeout_ms=200)
            return found + [message.value or b"" for each in more.values() for message in each]
        finally:
            await consumer.stop()

    return asyncio.run(read())


def client_producer(live: LiveBroker, name: str = "id") -> Any:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": live.address, "transactional.id": name, "log_level": 0})
    producer.init_transactions(60)
    return producer


@pytest.mark.parametrize("reader", [of_confluent, of_aiokafka])
def test_clients_that_read_committed_see_what_was_committed(
    live: LiveBroker, view: Broker, reader: Any
) -> None:
    live.run(view.topics.create, "t")

    async def run() -> None:
        async with view.transaction("id") as producer:
            await write(producer, [b"a", b"b"], commit=True)
            await write(producer, [b"c"] * 100, commit=False)
            await view.produce("t", b"plain")
            await write(producer, [b"d"], commit=True)

    live.run(run)
    assert reader(live, 4) == [b"a", b"b", b"plain", b"d"]
    held = Held(view, "other")
    live.run(held.open)
    live.run(held.begin)
    live.run(held.write, b"open")
    live.run(view.produce, "t", b"behind it")
    assert reader(live, 4) == [b"a", b"b", b"plain", b"d"]
    live.run(held.close)
    assert reader(live, 6) == [b"a", b"b", b"plain", b"d", b"open", b"behind it"]


def test_a_client_fences_the_plugin(live: LiveBroker, view: Broker) -> None:
    live.run(view.topics.create, "t")
    held = Held(view, "id")
    live.run(held.open)
    live.run(held.begin)
    live.run(held.write, b"of the plugin")
    client = client_producer(live)
    client.begin_transaction()
    client.produce("t", b"of the client", partition=0)
    with pytest.raises(ProducerFenced):
        live.run(held.write, b"of a zombie")
    client.commit_transaction(60)
    with pytest.raises(TransactionAborted):
        live.run(held.close)
    assert of_confluent(live, 1) == [b"of the client"]


def test_the_plugin_fences_a_client(live: LiveBroker, view: Broker) -> None:
    from confluent_kafka import KafkaException

    live.run(view.topics.create, "t")
    client = client_producer(live)
    client.begin_transaction()
    client.produce("t", b"of the client", partition=0)
    assert client.flush(60) == 0
    held = Held(view, "id")
    live.run(held.open)
    live.run(held.begin)
    live.run(held.write, b"of the plugin")
    with pytest.raises(KafkaException) as caught:
        client.commit_transaction(60)
    assert caught.value.args[0].fatal()
    live.run(held.close)
    assert of_confluent(live, 1) == [b"of the plugin"]


def test_a_client_sees_offsets_once_they_are_committed(live: LiveBroker, view: Broker) -> None:
    from confluent_kafka import Consumer
    from confluent_kafka import TopicPartition as Place

    live.run(view.topics.create, "t")
    held = Held(view, "id")
    live.run(held.open)
    live.run(held.begin)
    live.run(held.write, b"a")
    live.run(held.commit_offset, 1)
    assert live.call(live.broker.groups.offsets.unstable, "g") == {TopicPartition("t", 0)}
    live.run(held.close)
    consumer = Consumer({"bootstrap.servers": live.address, "group.id": "g"})
    assert [each.offset for each in consumer.committed([Place("t", 0)], timeout=60)] == [1]
    consumer.close()


def test_kio_reads_the_batches_as_those_of_one_producer(live: LiveBroker, view: Broker) -> None:
    live.run(view.topics.create, "t")

    async def run() -> None:
        async with view.transaction("id") as producer:
            await write(producer, [b"a", b"b"], commit=True)
            await write(producer, [b"c"], commit=False)

    live.run(run)
    found = by_kio(live.folder("t"))
    producers = {record.producer_id for record in found}
    assert len(producers) == 1
    epoch = found[0].producer_epoch
    assert [
        (record.value, record.transactional, record.commits, record.producer_epoch - epoch)
        for record in found
    ] == [
        (b"a", True, None, 0),
        (b"b", True, None, 0),
        (found[2].value, True, True, 1),
        (b"c", True, None, 1),
        (found[4].value, True, False, 2),
    ]
