"""Batches as clients send them to topics that check records: compressed, of idempotent producers, in transactions;
while the registry is away; with the registry off."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from leafcuttr_sdk.testing import running_broker
from support.checked_topics import AVRO, Shop, framed, guid_header
from support.registry import SETTINGS

if TYPE_CHECKING:
    from leafcuttr_sdk import Broker


class Sent:
    """What became of records: None, or the name of an error."""

    def __init__(self, shop: Shop, **settings: Any) -> None:
        self.producer = Producer({"bootstrap.servers": shop.broker.bootstrap_servers, **settings})
        self.errors: list[str | None] = []

    def send(self, topic: str, *values: bytes, headers: Any = None) -> list[str | None]:
        self.errors = []
        for value in values:
            self.producer.produce(topic, value, headers=headers, on_delivery=self._delivered)
        assert self.producer.flush(60) == 0
        return self.errors

    def _delivered(self, error: Any, _: Any) -> None:
        self.errors.append(None if error is None else error.name())


@pytest.mark.parametrize("check", ["id", "full"])
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_compressed_batches_of_an_idempotent_producer(shop: Shop, codec: str, check: str) -> None:
    topic = shop.topic(f"packed-{codec}-{check}", value=check)
    schema = shop.register(f"{topic}-value", AVRO)
    good, bad = framed(schema, b"\2"), b"x" * 200
    sent = Sent(shop, **{"enable.idempotence": True, "compression.type": codec, "linger.ms": 200})
    assert sent.send(topic, *[good] * 200) == [None] * 200
    assert sent.send(topic, good, bad, good).count(None) < 3
    assert sent.send(topic, *[good] * 100) == [None] * 100
    assert (
        sent.send(topic, b"\2", b"\2", headers=[("__value_schema_id", b"?"), guid_header(schema)])
        == [None] * 2
    )
    assert set(shop.values(topic)) == {good, b"\2"}


def test_transactions(shop: Shop) -> None:
    topic = shop.topic("in-transactions", value="full")
    schema = shop.register(f"{topic}-value", AVRO)
    good, late = framed(schema, b"\2"), framed(schema, b"\4")
    sent = Sent(shop, **{"transactional.id": "checked"})
    sent.producer.init_transactions(60)
    sent.producer.begin_transaction()
    assert sent.send(topic, good) == [None]
    sent.producer.commit_transaction(60)
    sent.producer.begin_transaction()
    assert sent.send(topic, good) == [None]
    assert sent.send(topic, framed(schema, b"\2\2")) == ["INVALID_RECORD"]
    with pytest.raises(KafkaException):
        sent.producer.commit_transaction(60)
    sent.producer.abort_transaction(60)
    sent = Sent(shop, **{"transactional.id": "checked"})
    sent.producer.init_transactions(60)
    sent.producer.begin_transaction()
    assert sent.send(topic, late) == [None]
    sent.producer.commit_transaction(60)
    reader = Consumer({"bootstrap.servers": shop.broker.bootstrap_servers, "group.id": "g"})
    reader.assign([TopicPartition(topic, 0, 0)])
    read = [each.value() for each in reader.consume(2, 60)]
    reader.close()
    assert read == [good, late]


def test_a_registry_that_comes_and_goes_costs_no_record(shop: Shop) -> None:
    """Validators run in threads; each record is stored once the registry is back, and none is set aside."""
    topics = [
        shop.topic("away-id", value="id"),
        shop.topic("away-full", value="full"),
        shop.topic("away-aside", value="full", lc_schema_validation_on_error="dlq"),
        shop.topic("away-named", value="id", lc_schema_subject_strategy_value="record"),
    ]
    for topic in topics[:3]:
        schema = shop.register(f"{topic}-value", AVRO)
    shop.register("shop.Order", AVRO)
    ended = threading.Event()

    async def come_and_go(broker: Broker) -> int:
        provider: Any = broker.schemas
        registry, times = provider.registry, 0
        while not ended.is_set():
            provider.registry = None
            await trio.lowlevel.checkpoint()
            provider.registry = registry
            await trio.lowlevel.checkpoint()
            times += 1
        return times

    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(shop.broker.call(come_and_go)))
    thread.start()
    try:
        sent = Sent(shop, **{"linger.ms": 0, "batch.num.messages": 50, "retry.backoff.max.ms": 20})
        for topic in topics:
            assert set(sent.send(topic, *[framed(schema, b"\2")] * 1000)) == {None}
    finally:
        ended.set()
        thread.join()
    assert found[0] > 10
    for topic in topics:
        assert len(shop.values(topic)) == 1000
    assert not shop.broker.call(_has_letters)


async def _has_letters(broker: Broker) -> bool:
    return broker.topics.get("away-aside.dlq") is not None


def test_with_the_registry_off_the_topic_takes_no_records(tmp_path: Path) -> None:
    def sent(settings: dict[str, str], plugins: list[str]) -> list[str | None]:
        with running_broker(tmp_path, settings, plugins) as broker:
            shop = Shop(broker)
            shop.topic("checked", value="id")
            return Sent(shop, **{"delivery.timeout.ms": 3000}).send("checked", b"none")

    assert sent(SETTINGS, ["registry"]) == ["INVALID_RECORD"]
    assert sent({"lc.schema.registry.enable": "false"}, []) == ["UNKNOWN"]
