"""Turns: one append for all connections, lanes of slow Kafka topics, what cannot be stored."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import trio

from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.packets.types import (
    ConnAck,
    Connect,
    Disconnect,
    PingReq,
    PingResp,
    PubAck,
    Publish,
    ReasonCode,
)
from leafcuttr_mqtt.routing import turns as turns_module
from leafcuttr_mqtt.routing.turns import Turns
from leafcuttr_mqtt.server import connection as connection_module
from leafcuttr_sdk.errors import StorageError
from support.mqtt import V3, V5, RunningMqtt, running_mqtt

SETTINGS = {"mqtt.topic.mapping.a/#": "a", "mqtt.topic.mapping.b/#": "b"}


class Appends:
    """In the place of a broker's `append`: notes the topics of each call; `held` ones wait, `failing` ones fail."""

    def __init__(self, turns: Turns) -> None:
        self.calls: list[list[str]] = []
        self.held: set[str] = set()
        self.failing: set[str] = set()
        self.go_on = trio.Event()
        self._append = turns._append
        turns._append = self  # type: ignore[misc, assignment]

    async def __call__(self, batches: Sequence[Any]) -> list[Any]:
        topics = [batch.partition.topic for batch in batches]
        self.calls.append(topics)
        if self.held & set(topics):
            await self.go_on.wait()
        stored = iter(
            await self._append([each for each in batches if each.partition.topic not in self.failing])
        )
        full = StorageError("No space left on device")
        return [full if topic in self.failing else next(stored) for topic in topics]


async def test_messages_of_many_connections_are_one_append(mqtt: RunningMqtt) -> None:
    appends = Appends(mqtt.running.turns)
    clients = [await mqtt.connect(f"c{number}") for number in range(5)]
    appends.calls.clear()
    for client in clients:
        for number in range(1, 51):
            await client.send(Publish(f"devices/{number}", b"x", 1, packet_id=number))
    for client in clients:
        for _ in range(50):
            await client.expect(PubAck)
    assert len(await mqtt.records("from-devices")) == 250
    assert len([each for each in appends.calls if "from-devices" in each]) < 100


async def test_a_slow_kafka_topic_gets_a_lane_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns_module, "SLOW_S", -1.0)
    async with running_mqtt(tmp_path, SETTINGS) as mqtt:
        appends = Appends(mqtt.running.turns)
        slow, quick = await mqtt.connect("slow"), await mqtt.connect("quick")
        await slow.publish("a/1", b"1", 1)  # from here on a is known as slow
        monkeypatch.setattr(turns_module, "SLOW_S", 1000.0)
        appends.held.add("a")
        await slow.send(Publish("a/1", b"2", 1, packet_id=2))
        with trio.fail_after(10):
            while ["a"] not in appends.calls[-1:]:
                await trio.sleep(0.01)
        for number in range(3):
            await quick.publish("b/1", b"%d" % number, 1)
        appends.go_on.set()
        await slow.expect(PubAck)
        await slow.publish("a/1", b"3", 1)
        assert mqtt.running.turns._slow == {"b"} or not mqtt.running.turns._slow


async def test_a_message_that_cannot_be_stored_for_now_is_stored_later(mqtt: RunningMqtt) -> None:
    appends = Appends(mqtt.running.turns)
    appends.failing.add("from-mqtt")
    held, other = await mqtt.connect("held"), await mqtt.connect("other")
    await other.subscribe("test/#")
    await held.send(Publish("test/topic/1", b"1", 1, packet_id=1), PingReq())
    await other.publish("devices/1", b"", 1)
    await other.nothing()
    appends.failing.clear()
    await held.expect(PubAck)
    await held.expect(PingResp)
    assert (await other.message()).payload == b"1"
    assert len(await mqtt.records("from-mqtt")) == 1


@pytest.mark.parametrize("version", [V3, V5])
async def test_who_waits_for_too_long_is_disconnected_without_an_acknowledgement(
    mqtt: RunningMqtt, monkeypatch: pytest.MonkeyPatch, version: Any
) -> None:
    monkeypatch.setattr(connection_module, "HELD_S", 0.0)
    appends = Appends(mqtt.running.turns)
    appends.failing.add("from-mqtt")
    held = await mqtt.connect("held", version)
    await held.send(Publish("test/topic/1", b"1", 1, packet_id=1))
    if version == V5:
        assert (await held.expect(Disconnect)).reason == ReasonCode.QUOTA_EXCEEDED
    await held.closed()
    appends.failing.clear()
    held = await mqtt.connect("held", version)
    await held.publish("test/topic/1", b"1", 1)
    assert len(await mqtt.records("from-mqtt")) == 1


async def test_nothing_is_acknowledged_that_a_session_needs_and_that_is_not_stored(
    mqtt: RunningMqtt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns_module, "GIVE_UP_S", -1.0)
    monkeypatch.setattr(turns_module, "_AGAIN_S", 0.05)
    sleeper = await mqtt.connect("sleeper", V3, clean=False)
    await sleeper.subscribe("q", qos=1)
    await sleeper.leave()
    publisher = await mqtt.connect("p")
    appends = Appends(mqtt.running.turns)
    appends.failing.add("__mqtt_queue")
    await publisher.send(Publish("q", b"1", 1, packet_id=1))
    last = await publisher.next()
    assert last is None or isinstance(last, Disconnect)
    appends.failing.clear()
    sleeper = await mqtt.connect("sleeper", V3, clean=False, present=True)
    assert (await sleeper.message()).payload == b"1"


async def test_who_comes_while_nothing_can_be_stored_is_held_back_and_then_told_too(
    mqtt: RunningMqtt, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They waited for as long as the disk was full, without an answer to PINGREQ or an end."""
    monkeypatch.setattr(turns_module, "GIVE_UP_S", -1.0)
    monkeypatch.setattr(turns_module, "_AGAIN_S", 0.05)
    sleeper = await mqtt.connect("sleeper", V3, clean=False)
    await sleeper.subscribe("q", qos=1)
    await sleeper.leave()
    clients = [await mqtt.connect(f"p{number}") for number in range(3)]
    appends = Appends(mqtt.running.turns)
    appends.failing.add("__mqtt_queue")
    for client in clients:  # the first one begins to store
        await client.send(Publish("q", b"1", 1, packet_id=1))
        assert isinstance(await client.next(), Disconnect | None)
    for version, code in ((V5, ReasonCode.SERVER_BUSY), (V3, 3)):  # CONNACK comes first, always (3.2.0)
        late = await mqtt.dial(version)
        await late.send(Connect(version, "late", True, 0))
        assert (await late.expect(ConnAck)).reason == code
        await late.closed()
    appends.failing.clear()
    sleeper = await mqtt.connect("sleeper", V3, clean=False, present=True)
    assert [(await sleeper.message()).payload for _ in clients] == [b"1"] * 3


async def test_a_message_of_the_brokers_own_is_mapped_and_delivered(mqtt: RunningMqtt) -> None:
    client = await mqtt.connect("c")
    await client.subscribe("devices/#")
    now = mqtt.running.now_ms()
    assert await mqtt.running.turns.publish(Message("devices/1", b"own", 1, arrived_ms=now)) is None
    assert (await client.message()).payload == b"own"
    assert [value for _, value, _ in await mqtt.records("from-devices")] == [b"own"]


async def test_an_answer_that_fails_ends_its_connection_only(
    mqtt: RunningMqtt, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = await mqtt.connect("bad"), await mqtt.connect("good")
    publish = mqtt.running.hub.publish

    def broken(message: Message, publisher: Any) -> int:
        if message.payload == b"bad":
            raise ValueError("a bug")
        return publish(message, publisher)

    monkeypatch.setattr(mqtt.running.hub, "publish", broken)
    await bad.send(Publish("devices/1", b"bad", 1, packet_id=1))
    last = await bad.next()
    assert last is None or isinstance(last, Disconnect)
    await good.publish("devices/1", b"good", 1)
