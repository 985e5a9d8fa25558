"""What the writer knows of the Kafka topics of a real broker."""

from __future__ import annotations

import pytest

from leafcuttr_mqtt.mapping import writer as module
from leafcuttr_mqtt.mapping.rules import make_rules
from leafcuttr_mqtt.mapping.writer import KafkaWriter
from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.packets.types import ReasonCode
from leafcuttr_sdk import Broker
from leafcuttr_sdk.batches import partition_of


def names(writer: KafkaWriter, topic: str, via: tuple[str, ...] = ()) -> list[str]:
    return [target.kafka.name for target in writer.targets(topic, via)]


async def test_targets_are_remembered_until_their_kafka_topics_change(broker: Broker) -> None:
    writer = KafkaWriter(broker.topics, make_rules({"a/#": "t", "b": "u"}, {}))
    assert names(writer, "c") == []
    (target,) = writer.targets("a/x")
    assert (target.kafka.count, target.captured) == (0, False)
    await broker.topics.create("t", partitions=3, configs={"max.message.bytes": "5000"})
    (target,) = writer.targets("a/x")
    assert (target.kafka.count, target.kafka.limit) == (3, 5000)
    assert writer.targets("a/x")[0] is target
    await broker.topics.create("other")
    assert writer.targets("a/x")[0] is target
    await broker.topics.add_partitions("t", 5)
    assert writer.targets("a/x")[0].kafka.count == 5
    await broker.topics.alter("t", {"max.message.bytes": "6000"})
    assert writer.targets("a/x")[0].kafka.limit == 6000
    await broker.topics.delete("t")
    assert writer.targets("a/x")[0].kafka.count == 0
    writer.end()
    await broker.topics.create("t")


async def test_keys_decide_on_partitions_as_javas_do(broker: Broker) -> None:
    await broker.topics.create("t", partitions=7)
    writer = KafkaWriter(broker.topics, make_rules({"a/+/#": "t"}, {"a/+/#": "{2}:{1}:{client_id}:{topic}"}))
    (target,) = writer.targets("a/x/y/z")
    key = target.key("dev")
    assert key == b"y/z:x:dev:a/x/y/z"
    prepared = target.prepare(Message("a/x/y/z", b"", client_id="dev"))
    assert prepared is not None
    assert prepared.partition == partition_of(key, 7)
    assert target.prepared[("dev", 0, False)] is prepared


async def test_a_message_does_not_go_back_into_the_kafka_topics_it_has_come_from(broker: Broker) -> None:
    writer = KafkaWriter(broker.topics, make_rules({"a": "t", "#": "u"}, {}))
    assert names(writer, "a") == ["u", "t"]
    assert names(writer, "a", ("t",)) == ["u"]
    assert names(writer, "a", ("t", "u")) == []
    assert names(writer, "a") == ["u", "t"]


async def test_names_that_clients_make_up_are_not_remembered(broker: Broker) -> None:
    writer = KafkaWriter(broker.topics, make_rules({"a/+": "t-{1}"}, {}))
    await broker.topics.create("t-there")
    for number in range(100):
        assert writer.targets(f"a/{number}")[0].captured
    assert writer.targets("a/there")
    assert list(writer._kafka) == ["t-there"]
    assert list(writer._cache.recent) == ["a/there"]
    (wrong,) = writer.targets("a/b c")
    assert wrong.refusal is not None
    assert wrong.refusal.code is ReasonCode.TOPIC_NAME_INVALID


async def test_what_is_prepared_is_bounded(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PREPARED", 10)
    await broker.topics.create("t")
    writer = KafkaWriter(broker.topics, make_rules({"#": "t"}, {}))
    for number in range(100):
        turn = writer.begin()
        turn.add(Message("a", b"", client_id=f"c{number}"), writer.targets("a"))
        assert sum(len(target.prepared) for target in writer.targets("a")) <= 10
    assert writer._prepared <= 10
