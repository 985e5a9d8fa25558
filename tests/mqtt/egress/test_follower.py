"""The way down, with a whole broker: records by Kafka's side, messages on a socket."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from leafcuttr_mqtt.egress.follower import GROUP
from leafcuttr_mqtt.packets.types import Properties
from leafcuttr_sdk import Record, TopicPartition
from leafcuttr_sdk.errors import CoordinatorLoadInProgress
from leafcuttr_sdk.groups import CommittedOffset
from support.mqtt import V3, V5, RunningMqtt, running_mqtt

DOWN = {"mqtt.topic.egress.orders": "orders/{key}"}


async def produce(
    mqtt: RunningMqtt, topic: str, *values: bytes | None, key: bytes = b"k", **more: Any
) -> None:
    for value in values:
        await mqtt.broker.produce(topic, value, key, **more)


async def committed(mqtt: RunningMqtt, topic: str, partition: int = 0) -> int | None:
    try:
        found = mqtt.broker.groups.committed(GROUP).get(TopicPartition(topic, partition))
    except CoordinatorLoadInProgress:
        return None
    return None if found is None else found.offset


async def until_committed(mqtt: RunningMqtt, topic: str, offset: int, partition: int = 0) -> None:
    with trio.fail_after(20):
        while await committed(mqtt, topic, partition) != offset:
            await trio.sleep(0.01)


async def test_new_records_are_published(tmp_path: Path) -> None:
    async with running_mqtt(tmp_path, DOWN) as mqtt:
        for version in (V3, V5):
            subscriber = await mqtt.connect(f"s{version}", version)
            await subscriber.subscribe("orders/#")
            await produce(mqtt, "orders", b"1", None, b"3", headers=(("u", b"v"),))
            for payload in (b"1", b"", b"3"):
                message = await subscriber.message()
                assert (message.topic, message.payload, message.qos, message.retain) == (
                    "orders/k",
                    payload,
                    1,
                    False,
                )
                if version == V5:
                    assert message.properties.user_properties == (("u", "v"),)
            await subscriber.leave()


@pytest.mark.setting("mqtt.topic.egress.<kafka topic>", "mqtt.egress.qos", "mqtt.egress.retain")
async def test_quality_and_flag_can_be_set(tmp_path: Path) -> None:
    async with running_mqtt(tmp_path, {**DOWN, "mqtt.egress.qos": 2, "mqtt.egress.retain": True}) as mqtt:
        await produce(mqtt, "orders", b"1")
        await until_committed(mqtt, "orders", 1)
        subscriber = await mqtt.connect("s")
        await subscriber.subscribe("orders/+")
        message = await subscriber.message()
        assert (message.payload, message.qos, message.retain) == (b"1", 2, True)
        await produce(mqtt, "orders", None)
        assert (await subscriber.message()).payload == b""
        other = await mqtt.connect("other")
        await other.subscribe("orders/+")
        await other.nothing()


async def test_it_begins_at_the_end_and_goes_on_after_a_restart(tmp_path: Path) -> None:
    async with running_mqtt(tmp_path) as mqtt:
        await mqtt.broker.topics.create("orders", partitions=2)
        await produce(mqtt, "orders", b"before", partition=0)
    async with running_mqtt(tmp_path, {**DOWN, "mqtt.egress.retain": True}) as mqtt:
        await until_committed(mqtt, "orders", 1)
        await until_committed(mqtt, "orders", 0, 1)
        other = await mqtt.connect("other")
        await other.subscribe("#")
        await other.nothing()
        keeper = await mqtt.connect(
            "keeper", clean=False, properties=Properties(session_expiry_interval=3600)
        )
        await keeper.subscribe("orders/#")
        await produce(mqtt, "orders", b"1", partition=0)
        assert (await keeper.message()).payload == b"1"
        await until_committed(mqtt, "orders", 2)
        await keeper.leave()
    async with running_mqtt(tmp_path) as mqtt:
        await produce(mqtt, "orders", b"while it was off", partition=0)
        await produce(mqtt, "orders", b"in another partition", partition=1)
        await mqtt.broker.topics.add_partitions("orders", 3)
        await produce(mqtt, "orders", b"in a new partition", partition=2)
    async with running_mqtt(tmp_path, DOWN) as mqtt:
        for partition, offset in ((0, 3), (1, 1), (2, 1)):
            await until_committed(mqtt, "orders", offset, partition)
        keeper = await mqtt.connect(
            "keeper", clean=False, present=True, properties=Properties(session_expiry_interval=3600)
        )
        assert {(await keeper.message()).payload for _ in range(3)} == {
            b"while it was off",
            b"in another partition",
            b"in a new partition",
        }
        await keeper.nothing()


async def test_a_topic_and_partitions_that_come_later_are_read_from_their_beginning(tmp_path: Path) -> None:
    async with running_mqtt(tmp_path, DOWN) as mqtt:
        subscriber = await mqtt.connect("s")
        await subscriber.subscribe("orders/#")
        await produce(mqtt, "orders", b"1")
        assert (await subscriber.message()).payload == b"1"
        await until_committed(mqtt, "orders", 1)
        await mqtt.broker.topics.add_partitions("orders", 2)
        await produce(mqtt, "orders", b"2", partition=1)
        assert (await subscriber.message()).payload == b"2"
        await mqtt.broker.topics.delete("orders")
        await produce(mqtt, "orders", b"3")
        assert (await subscriber.message()).payload == b"3"
        await subscriber.nothing()


async def test_what_was_deleted_before_it_was_read_is_skipped(tmp_path: Path) -> None:
    async with running_mqtt(tmp_path) as mqtt:
        await mqtt.broker.topics.create("orders")
        await produce(mqtt, "orders", b"0", b"1", b"2")
        await mqtt.broker.groups.commit(GROUP, {TopicPartition("orders", 0): CommittedOffset(0)})
        await mqtt.broker.topics.delete_records("orders", 0, 2)
    async with running_mqtt(tmp_path, {**DOWN, "mqtt.egress.retain": True}) as mqtt:
        await until_committed(mqtt, "orders", 3)
        subscriber = await mqtt.connect("s")
        await subscriber.subscribe("orders/+")
        assert (await subscriber.message()).payload == b"2"


async def test_nothing_goes_round_in_a_circle(tmp_path: Path) -> None:
    """Two Kafka topics, each with a way down that leads to the other; and one that leads back to itself."""
    settings = {
        "mqtt.topic.egress.one": "t1/{key}",
        "mqtt.topic.egress.two": "t2/{key}",
        "mqtt.topic.egress.own": "own/{key}",
        "mqtt.topic.mapping.t1/+": "two",
        "mqtt.topic.mapping.t2/+": "one",
        "mqtt.topic.mapping.own/+": "own",
        "mqtt.topic.key.t1/+": "{1}",
        "mqtt.topic.key.t2/+": "{1}",
        "mqtt.topic.key.own/+": "{1}",
    }
    async with running_mqtt(tmp_path, settings) as mqtt:
        subscriber = await mqtt.connect("s")
        await subscriber.subscribe("#")
        await produce(mqtt, "one", b"round")
        seen = [
            (message.topic, message.payload) for message in [await subscriber.message() for _ in range(2)]
        ]
        assert seen == [("t1/k", b"round"), ("t2/k", b"round")]
        await until_committed(mqtt, "two", 1)
        await subscriber.nothing()
        assert [value for _, value, _ in await mqtt.records("one")] == [b"round"]
        ((_, _, headers),) = await mqtt.records("two")
        assert headers["mqtt.via"] == b"one"
        # A device's message is stored, and is not published to its own topic twice.
        device = await mqtt.connect("device")
        await device.publish("own/d", b"once", 1)
        assert (await subscriber.message()).topic == "own/d"
        await until_committed(mqtt, "own", 1)
        await produce(mqtt, "own", b"from kafka", key=b"d")
        assert (await subscriber.message()).payload == b"from kafka"
        await until_committed(mqtt, "own", 2)
        await subscriber.nothing()
        assert [value for _, value, _ in await mqtt.records("own")] == [b"once", b"from kafka"]


async def test_records_that_give_no_topic_are_passed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_mqtt(tmp_path, DOWN) as mqtt:
        subscriber = await mqtt.connect("s")
        await subscriber.subscribe("orders/#")
        await mqtt.broker.produce("orders", b"no key")
        await produce(mqtt, "orders", b"wild", key=b"#")
        await produce(mqtt, "orders", b"fine")
        assert (await subscriber.message()).payload == b"fine"
        await subscriber.nothing()
    lines = [
        record.getMessage() for record in caplog.records if "is not published to MQTT" in record.getMessage()
    ]
    begins = "the record at offset {} of orders-0 is not published to MQTT: "
    assert lines == [
        begins.format(0) + "it lacks what the template names, or it is no text",
        begins.format(1) + "what the template makes of it is no MQTT topic",
    ]


async def test_only_what_is_committed_is_published(tmp_path: Path) -> None:
    async with running_mqtt(tmp_path, DOWN) as mqtt:
        subscriber = await mqtt.connect("s")
        await subscriber.subscribe("orders/#")
        await mqtt.broker.topics.create("orders")
        async with mqtt.broker.transaction("t") as producer:
            with pytest.raises(ZeroDivisionError):
                async with producer.begin() as transaction:
                    await transaction.produce_batch("orders", [Record(b"aborted", b"k")])
                    raise ZeroDivisionError
            async with producer.begin() as transaction:
                await transaction.produce_batch("orders", [Record(b"kept", b"k")])
                await subscriber.nothing()
        assert (await subscriber.message()).payload == b"kept"


@pytest.mark.long
async def test_many_records_come_in_their_order(tmp_path: Path) -> None:
    async with running_mqtt(tmp_path, DOWN) as mqtt:
        subscriber = await mqtt.connect("s")
        await subscriber.subscribe("orders/#")
        await mqtt.broker.topics.create("orders")
        for start in range(0, 5000, 1000):
            await mqtt.broker.produce_batch(
                "orders", [Record(b"%d" % n, b"k") for n in range(start, start + 1000)]
            )
        seen = [int((await subscriber.message()).payload) for _ in range(5000)]
        assert seen == list(range(5000))
        # Also of what was published in whole steps it is noted how far it has come.
        await until_committed(mqtt, "orders", 5000)


async def test_a_kafka_topic_that_waits_is_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What comes down is mapped to another Kafka topic, which is not there yet and may not be created."""
    settings = {**DOWN, "mqtt.topic.mapping.orders/+": "later", "auto.create.topics.enable": False}
    async with running_mqtt(tmp_path, settings) as mqtt:
        await mqtt.broker.topics.create("orders")
        subscriber = await mqtt.connect("s")
        await subscriber.subscribe("orders/#")
        await until_committed(mqtt, "orders", 0)
        await produce(mqtt, "orders", b"1")
        said = "records cannot be published to MQTT for now: Kafka topic later: there is no Kafka topic later"
        with trio.fail_after(20):
            while not any(record.getMessage().startswith(said) for record in caplog.records):
                await trio.sleep(0.01)
        await subscriber.nothing()
        assert await committed(mqtt, "orders") == 0
        await mqtt.broker.topics.create("later")
        assert (await subscriber.message()).payload == b"1"
        await until_committed(mqtt, "orders", 1)
        assert [value for _, value, _ in await mqtt.records("later")] == [b"1"]


async def test_what_a_session_has_not_got_yet_is_not_done(tmp_path: Path) -> None:
    """The topic that keeps the queue of the session takes nothing."""
    async with running_mqtt(tmp_path, DOWN) as mqtt:
        await mqtt.broker.topics.create("orders")
        await until_committed(mqtt, "orders", 0)
        keeper = await mqtt.connect("keeper", properties=Properties(session_expiry_interval=3600))
        await keeper.subscribe("orders/#")
        other = await mqtt.connect("other")
        await other.subscribe("orders/#", qos=0)
        mqtt.broker._core.topics.by_name["__mqtt_queue"].partitions[0].log.take_offline("a test says so")
        await produce(mqtt, "orders", b"1")
        with trio.move_on_after(1):
            await other.message()
        assert await committed(mqtt, "orders") == 0
