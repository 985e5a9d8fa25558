"""Turns: one append for all connections, lanes of slow Kafka topics, what cannot be stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import trio

from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.packets.types import (
    NO_PROPERTIES,
    ConnAck,
    Connect,
    Disconnect,
    PingReq,
    PingResp,
    Properties,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    ReasonCode,
    SubAck,
    Subscribe,
    SubscriptionRequest,
    UnsubAck,
    Unsubscribe,
    Will,
)
from leafcuttr_mqtt.routing import turns as turns_module
from leafcuttr_mqtt.routing.turns import Turns
from leafcuttr_mqtt.server import held as held_module
from leafcuttr_mqtt.session.types import DropReason
from leafcuttr_sdk.errors import StorageError
from support.mqtt import V3, V5, MqttClient, RunningMqtt, running_mqtt

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
        failing = set(self.failing)  # a test may change them meanwhile
        stored = iter(await self._append([each for each in batches if each.partition.topic not in failing]))
        failed = StorageError("/data/__x-0 is offline: no space")
        return [failed if topic in failing else next(stored) for topic in topics]


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


async def test_what_is_refused_for_good_behind_it_stays_refused(tmp_path: Path) -> None:
    async with running_mqtt(tmp_path, {**SETTINGS, "message.max.bytes": 1000}) as mqtt:
        appends = Appends(mqtt.running.turns)
        appends.failing.add("a")
        client = await mqtt.connect("c")
        await client.send(Publish("a/1", b"1", 1, packet_id=1), Publish("b/1", bytes(2000), 1, packet_id=2))
        with trio.fail_after(10):
            while sum("a" in each for each in appends.calls) < 2:
                await trio.sleep(0.01)
        appends.failing.clear()
        answers = [await client.expect(PubAck) for _ in range(2)]
        assert [each.reason for each in answers] == [ReasonCode.SUCCESS, ReasonCode.QUOTA_EXCEEDED]


@pytest.mark.parametrize("version", [V3, V5])
async def test_who_waits_for_too_long_is_disconnected_without_an_acknowledgement(
    mqtt: RunningMqtt, monkeypatch: pytest.MonkeyPatch, version: Any
) -> None:
    monkeypatch.setattr(held_module, "HELD_S", 0.0)
    appends = Appends(mqtt.running.turns)
    appends.failing.add("from-mqtt")
    held = await mqtt.connect("held", version)
    await held.send(Publish("test/topic/1", b"1", 1, packet_id=1))
    if version == V5:
        end = await held.expect(Disconnect)
        assert end.reason == ReasonCode.SERVER_BUSY  # whatever the text of the error has in it
        assert end.properties.reason_string == "Kafka topic from-mqtt takes no messages for now"
    await held.closed()
    appends.failing.clear()
    held = await mqtt.connect("held", version)
    await held.publish("test/topic/1", b"1", 1)
    assert len(await mqtt.records("from-mqtt")) == 1


async def test_who_waits_for_a_full_disk_is_told_so_and_not_where_its_data_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(held_module, "HELD_S", 0.0)
    async with running_mqtt(tmp_path, {**SETTINGS, "lc.log.min.free.bytes": 1 << 62}) as mqtt:
        client = await mqtt.connect("c")
        await client.send(Publish("a/1", b"1", 1, packet_id=1))
        end = await client.expect(Disconnect)
        assert end.reason == ReasonCode.QUOTA_EXCEEDED
        assert end.properties.reason_string == "the broker has no space on its disk for now"
    said = [each.getMessage() for each in caplog.records]
    assert any("clients wait" in each and str(tmp_path) in each and "min.free" in each for each in said)


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
        kept = Properties(session_expiry_interval=60) if version == V5 else NO_PROPERTIES
        await late.send(Connect(version, "late", False, 0, properties=kept))
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


PERSISTENT = Properties(session_expiry_interval=3600)


async def eventually(call: Callable[[], bool]) -> None:
    with trio.fail_after(20):
        while not call():
            await trio.sleep(0.01)


async def delete(mqtt: RunningMqtt, *names: str) -> None:
    """As an administrator does; returns once the topics are there again, and written to."""
    ids = {name: mqtt.broker.topics.get(name) for name in names}
    for name in names:
        await mqtt.broker.topics.delete(name)
    hub, turns = mqtt.running.hub, mqtt.running.turns

    def is_back() -> bool:
        found = {name: mqtt.broker.topics.get(name) for name in names}
        return all(
            info is not None
            and before is not None
            and info.topic_id != before.topic_id
            and info.owner == "mqtt"
            for info, before in zip(found.values(), ids.values(), strict=True)
        ) and not (hub.pending or turns.storing)

    await eventually(is_back)


async def test_internal_topics_that_were_deleted_are_written_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Each client with something to store was refused with 0x89 until the next start; the log gave no reason."""
    async with running_mqtt(tmp_path, SETTINGS) as mqtt:
        away = await mqtt.connect("away", properties=PERSISTENT)
        await away.subscribe("q/#", qos=1)
        await away.leave()
        slow = await mqtt.connect("slow", properties=PERSISTENT)
        await slow.subscribe("q/#", qos=2)
        publisher = await mqtt.connect("p")
        await publisher.publish("r/1", b"kept", 1, retain=True)
        await publisher.publish("q/1", b"1", 1)
        assert (await slow.expect(Publish)).payload == b"1"  # not acknowledged: in memory
        await publisher.publish("q/2", b"2", 2)
        second = await slow.expect(Publish)
        await slow.send(PubRec(second.packet_id))
        await slow.expect(PubRel)
        await publisher.send(Publish("q/3", b"3", 2, packet_id=9))
        third = await publisher.expect(PubRec)
        assert (await slow.expect(Publish)).payload == b"3"

        await delete(mqtt, "__mqtt_sessions", "__mqtt_retained", "__mqtt_queue")
        said = [
            each.getMessage() for each in caplog.records if "deleted, so created again" in each.getMessage()
        ]
        # Of a session that is away the first and the last message are in memory too.
        (line,) = said
        assert line.startswith("__mqtt_queue, __mqtt_retained, __mqtt_sessions: deleted, so created again")
        assert "(sessions: 2, retained messages: 1, queued messages: 2)" in line
        assert line.endswith("queued messages: 1")
        assert mqtt.running.hub.drops[DropReason.LOST] == 1
        await publisher.send(PubRel(third.packet_id))
        await publisher.expect(PubComp)
        await publisher.publish("q/4", b"4", 1)
        assert (await slow.expect(Publish)).payload == b"4"
        late = await mqtt.connect("late", properties=PERSISTENT)
        await late.leave()
        mqtt.stop()
    async with running_mqtt(tmp_path, SETTINGS) as mqtt:
        assert mqtt.sessions() == {"away", "slow", "late"}
        reader = await mqtt.connect("reader")
        await reader.subscribe("r/#")
        assert (await reader.message()).payload == b"kept"
        away = await mqtt.connect("away", properties=PERSISTENT, clean=False, present=True)
        assert [(await away.message()).payload for _ in range(3)] == [b"1", b"3", b"4"]
        await away.nothing()
        slow = await mqtt.connect("slow", properties=PERSISTENT, clean=False, present=True)
        released = await slow.expect(PubRel)
        assert released.packet_id == second.packet_id
        found = [await slow.message() for _ in range(3)]
        assert [(each.payload, each.duplicate) for each in found] == [
            (b"1", True),
            (b"3", True),
            (b"4", True),
        ]
        await slow.nothing()


async def test_an_internal_topic_that_another_one_stands_for_is_the_plugins_own_again(
    mqtt: RunningMqtt,
) -> None:
    """A consumer that is subscribed to its name creates it as it creates others."""
    client = await mqtt.connect("c", properties=PERSISTENT)
    await client.subscribe("q", qos=1)
    for name in ("__mqtt_queue", "__mqtt_sessions"):
        await mqtt.broker.topics.delete(name)
        await mqtt.broker.topics.create(name, partitions=3)
    await client.send(Publish("q", b"1", 1, packet_id=3))
    kinds = {type(await client.next()), type(await client.next())}
    assert kinds == {PubAck, Publish}
    for name in ("__mqtt_queue", "__mqtt_sessions"):
        info = mqtt.broker.topics.get(name)
        assert info is not None and info.owner == "mqtt" and len(info.partitions) == 1


async def test_what_was_written_to_a_topic_that_is_deleted_meanwhile_is_not_acknowledged(
    mqtt: RunningMqtt,
) -> None:
    sleeper = await mqtt.connect("sleeper", properties=PERSISTENT)
    await sleeper.subscribe("q", qos=1)
    await sleeper.leave()
    turns = mqtt.running.turns
    append = turns._append
    deletes = True

    async def deleting(batches: Sequence[Any]) -> list[Any]:
        nonlocal deletes
        answers = list(await append(batches))
        if deletes and any(each.partition.topic == "__mqtt_queue" for each in batches):
            deletes = False
            await mqtt.broker.topics.delete("__mqtt_queue")
        return answers

    publisher = await mqtt.connect("p")
    turns._append = deleting  # type: ignore[misc]
    # In one turn: of a session that is away, memory has the first and the last one.
    await publisher.send(*[Publish("q", b"%d" % number, 1, packet_id=number) for number in range(1, 9)])
    for _ in range(8):
        await publisher.expect(PubAck)
    assert not deletes
    sleeper = await mqtt.connect("sleeper", properties=PERSISTENT, clean=False, present=True)
    assert [int((await sleeper.message()).payload) for _ in range(8)] == list(range(1, 9))


async def test_many_sessions_and_retained_messages_are_written_again(tmp_path: Path) -> None:
    """In several turns."""
    async with running_mqtt(tmp_path, SETTINGS) as mqtt:
        publisher = await mqtt.connect("p")
        for number in range(40):
            await publisher.publish(f"r/{number}", bytes(100_000), 0, retain=True)
        for number in range(30):
            client = await mqtt.connect(f"c{number}", properties=PERSISTENT)
            await client.leave()
        await delete(mqtt, "__mqtt_retained", "__mqtt_sessions")
        mqtt.stop()
    async with running_mqtt(tmp_path, SETTINGS) as mqtt:
        assert len(mqtt.running.hub.retained) == 40
        assert len(mqtt.sessions()) == 30


async def test_internal_topics_that_cannot_be_created_again(
    mqtt: RunningMqtt, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(turns_module, "_AGAIN_S", 0.05)
    client = await mqtt.connect("c", properties=PERSISTENT)
    topics = mqtt.running.broker.topics
    create = topics.create

    async def fails(*given: Any, **more: Any) -> Any:
        raise StorageError("No space left on device")

    monkeypatch.setattr(topics, "create", fails)
    await mqtt.broker.topics.delete("__mqtt_sessions")
    await client.send(Subscribe(1, (SubscriptionRequest("a", 1),)))
    await eventually(lambda: "cannot be created again" in caplog.text)
    assert mqtt.running.trouble
    monkeypatch.setattr(topics, "create", create)
    await client.expect(SubAck)
    assert caplog.text.count("cannot be created again") == 1
    assert "cannot be created again, so nothing is acknowledged that needs it: No space left" in caplog.text


async def test_clients_with_qos_0_go_on_while_internal_topics_cannot_be_written(
    mqtt: RunningMqtt, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They need nothing stored, and were ended with those that do."""
    monkeypatch.setattr(turns_module, "GIVE_UP_S", -1.0)
    monkeypatch.setattr(turns_module, "_AGAIN_S", 0.05)
    sleeper = await mqtt.connect("sleeper", V3, clean=False)
    await sleeper.subscribe("q", qos=1)
    await sleeper.leave()
    simple, other = await mqtt.connect("simple"), await mqtt.connect("other", V3)
    await other.subscribe("light/#", qos=0)
    appends = Appends(mqtt.running.turns)
    appends.failing |= {"__mqtt_queue", "__mqtt_sessions"}
    needing = await mqtt.connect("needing")
    await needing.send(Publish("q", b"1", 1, packet_id=1))
    for number in range(20):
        await simple.publish("light/1", b"%d" % number)
        assert (await other.message()).payload == b"%d" % number
        await simple.nothing()
    late = await mqtt.connect("late")
    await late.subscribe("light/#", qos=0)
    await simple.publish("light/1", b"late")
    assert (await late.message()).payload == (await other.message()).payload == b"late"
    await late.publish("mapped/nowhere", b"", 0)
    await late.nothing()
    last = await needing.next()
    assert last is None or isinstance(last, Disconnect)
    appends.failing.clear()
    sleeper = await mqtt.connect("sleeper", V3, clean=False, present=True)
    assert (await sleeper.message()).payload == b"1"


async def test_what_tells_that_something_is_stored_waits_for_that(
    mqtt: RunningMqtt, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each answer by which a client forgets, or relies on, what is kept."""
    monkeypatch.setattr(turns_module, "GIVE_UP_S", 60.0)
    monkeypatch.setattr(turns_module, "_AGAIN_S", 0.05)
    kept = await mqtt.connect("kept", properties=PERSISTENT)
    await kept.subscribe("q", qos=2)
    publisher = await mqtt.connect("p")
    await publisher.publish("q", b"1", 2)
    first = await kept.expect(Publish)
    await kept.send(Publish("x", b"", 2, packet_id=5))
    await kept.expect(PubRec)
    clients = [await mqtt.connect(f"c{n}", properties=PERSISTENT) for n in range(3)]
    retaining = await mqtt.connect("retaining")
    gone = await mqtt.connect("gone", properties=PERSISTENT)
    await gone.leave()
    appends = Appends(mqtt.running.turns)
    appends.failing |= {"__mqtt_queue", "__mqtt_sessions", "__mqtt_retained"}
    dialled = [await mqtt.dial() for _ in range(3)]
    await kept.send(PubRec(first.packet_id))
    await clients[0].send(Subscribe(1, (SubscriptionRequest("a", 1),)))
    await clients[1].send(Unsubscribe(1, ("a",)))
    await clients[2].send(Publish("q", b"2", 2, packet_id=1))
    await retaining.send(Publish("r", b"r", 1, retain=True, packet_id=1))
    await dialled[0].send(Connect(V5, "new", False, 0, properties=PERSISTENT))
    await dialled[1].send(Connect(V5, "gone", True, 0))  # the session of before has to be over
    await dialled[2].send(Connect(V5, "with-will", True, 0, will=Will("w", b"", 0, False)))
    await eventually(lambda: bool(mqtt.running.turns.trouble))
    released = await mqtt.connect("witness")
    await released.nothing()
    waiting = [kept, *clients, retaining, *dialled]
    for client in waiting:
        with trio.move_on_after(0.05) as scope:
            await client.next()
        assert scope.cancelled_caught
    appends.failing.clear()
    await kept.expect(PubRel)
    await clients[0].expect(SubAck)
    await clients[1].expect(UnsubAck)
    await clients[2].expect(PubRec)
    await retaining.expect(PubAck)
    for client in dialled:
        assert (await client.expect(ConnAck)).reason == 0


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "clean"])
async def test_a_will_that_cannot_be_stored_is_published_by_the_next_start(
    tmp_path: Path, kept: bool
) -> None:
    """Its session's record said that there is none any more, as soon as it was tried."""
    properties = PERSISTENT if kept else NO_PROPERTIES
    async with running_mqtt(tmp_path, SETTINGS) as mqtt:
        client = await mqtt.connect("c", will=Will("a/w", b"gone", 1, False), properties=properties)
        appends = Appends(mqtt.running.turns)
        appends.failing.add("a")
        await client.vanish()
        await eventually(lambda: ["a"] in appends.calls)
        await mqtt.running.turns.quiet()
        mqtt.stop()
    async with running_mqtt(tmp_path, SETTINGS) as mqtt:
        with trio.fail_after(20):
            while not await mqtt.records("a"):
                await trio.sleep(0.01)
        await eventually(lambda: not mqtt.running.hub.pending and not mqtt.running.turns.storing)
        again = await mqtt.connect("c", clean=False, properties=PERSISTENT, present=kept)
        await again.leave()
        mqtt.stop()
    async with running_mqtt(tmp_path, SETTINGS) as mqtt:
        await mqtt.running.turns.quiet()
        assert [value for _, value, _ in await mqtt.records("a")] == [b"gone"]


async def test_a_will_is_forgotten_once_it_is_in_the_queues(tmp_path: Path) -> None:
    async with running_mqtt(tmp_path, SETTINGS) as mqtt:
        reader = await mqtt.connect("reader", properties=PERSISTENT)
        await reader.subscribe("w", qos=1)
        await reader.leave()
        client = await mqtt.connect("c", will=Will("w", b"gone", 1, False))
        appends = Appends(mqtt.running.turns)
        appends.failing.add("__mqtt_queue")
        await client.vanish()
        await eventually(lambda: any("__mqtt_queue" in call for call in appends.calls))
        hub = mqtt.running.hub
        await eventually(lambda: "c" not in hub.clients)
        mqtt.stop()
    async with running_mqtt(tmp_path, SETTINGS) as mqtt:
        reader = await mqtt.connect("reader", clean=False, properties=PERSISTENT, present=True)
        assert (await reader.message()).payload == b"gone"
        await reader.nothing()


WILL = Will("w", b"gone", 0, False, Properties(will_delay_interval=1))


async def test_wills_with_a_delay(mqtt: RunningMqtt) -> None:
    """Each way in which the connection, the session and the delay may end before one another."""
    watcher = await mqtt.connect("watcher")
    await watcher.subscribe("w")
    lasts = Properties(session_expiry_interval=100)

    async def connect(client_id: str, properties: Properties, **more: Any) -> MqttClient:
        return await mqtt.connect(client_id, properties=properties, present=None, **more)

    # Back before the delay is over: never published, also not by the connection that has no will ([MQTT-3.1.3-9]).
    back = await connect("back", lasts, will=WILL)
    await back.vanish()
    back = await connect("back", lasts, clean=False)
    # Taken over within the session: not published.
    taken = await connect("taken", lasts, will=WILL)
    again = await connect("taken", lasts, clean=False)
    # Left with DISCONNECT: not published.
    left = await connect("left", lasts, will=WILL)
    await left.leave()
    with trio.move_on_after(2.5) as scope:
        await watcher.next()
    assert scope.cancelled_caught
    for client in (back, taken, again):
        await client.vanish()

    # The session ends before: by its expiry, at once, or because its client begins anew.
    ended = await connect(
        "ended", NO_PROPERTIES, will=Will("w", b"1", 0, False, Properties(will_delay_interval=100))
    )
    await ended.vanish()
    assert (await watcher.message()).payload == b"1"
    long = Will("w", b"2", 0, False, Properties(will_delay_interval=100))
    ended = await connect("ended", Properties(session_expiry_interval=1), will=long)
    await ended.vanish()
    assert (await watcher.message()).payload == b"2"
    ended = await connect("ended", lasts, will=Will("w", b"3", 0, False, Properties(will_delay_interval=100)))
    await ended.vanish()
    await connect("ended", lasts)
    assert (await watcher.message()).payload == b"3"
    taken = await connect("taken", lasts, will=Will("w", b"4", 0, False, Properties(will_delay_interval=100)))
    again = await connect("taken", lasts)  # a clean start: the session of before is over
    assert (await watcher.message()).payload == b"4"
    # The delay is over before.
    over = await connect("over", lasts, will=WILL)
    await over.vanish()
    assert (await watcher.message()).payload == b"gone"
    # DISCONNECT with the will (0x04), and with another expiry.
    with_will = await connect(
        "with-will", lasts, will=Will("w", b"5", 0, False, Properties(will_delay_interval=100))
    )
    await with_will.leave(0x04, Properties(session_expiry_interval=0))
    assert (await watcher.message()).payload == b"5"
    await watcher.nothing()


async def test_a_delay_goes_on_over_a_restart(tmp_path: Path) -> None:
    lasts = Properties(session_expiry_interval=100)

    def will(payload: bytes, delay_s: int) -> Will:
        return Will("w", payload, 1, False, Properties(will_delay_interval=delay_s))

    async with running_mqtt(tmp_path, SETTINGS) as mqtt:
        reader = await mqtt.connect("reader", properties=lasts)
        await reader.subscribe("w", qos=1)
        for name, one, kept in (
            ("away", will(b"away", 1), lasts),
            ("short", will(b"short", 100), Properties(session_expiry_interval=1)),
        ):
            client = await mqtt.connect(name, will=one, properties=kept)
            await client.vanish()
        await mqtt.connect("back", will=will(b"back", 100), properties=lasts)
        await mqtt.connect("connected", will=will(b"connected", 1), properties=lasts)
        clients = mqtt.running.hub.clients
        await eventually(
            lambda: not any(name in clients and clients[name].connection for name in ("away", "short"))
        )
        await eventually(lambda: not mqtt.running.hub.pending and not mqtt.running.turns.storing)
        mqtt.stop()
    async with running_mqtt(tmp_path, SETTINGS) as mqtt:
        await mqtt.connect("back", clean=False, properties=lasts, present=True)
        reader = await mqtt.connect("reader", clean=False, properties=lasts, present=True)
        got = [(await reader.message()).payload for _ in range(3)]
        assert sorted(got) == [b"away", b"connected", b"short"]
        await eventually(lambda: "short" not in mqtt.sessions())
        await reader.nothing()
