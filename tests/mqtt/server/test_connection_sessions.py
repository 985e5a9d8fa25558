"""What a connection does with its session: the one that takes over, messages on their way at that time, deliveries that
are gathered while a client is slow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from leafcuttr_mqtt.mapping.outcomes import Failure
from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.packets.types import (
    Disconnect,
    Properties,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    ReasonCode,
    Subscribe,
    SubscriptionRequest,
    Version,
    Will,
)
from leafcuttr_mqtt.routing.clients import Client
from leafcuttr_mqtt.routing.hub import Hub
from leafcuttr_mqtt.routing.turns import Turns
from leafcuttr_mqtt.session.types import Delivery, DropReason
from leafcuttr_mqtt.storage.store import Store
from support.mqtt import V3, V5, MqttClient, RunningMqtt, running_mqtt

VERSIONS = pytest.mark.parametrize("version", [V3, V5], ids=["3.1.1", "5.0"])
LASTS = Properties(session_expiry_interval=1000)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> trio.Event:
    """What is mapped is stored once this is set."""
    opened = trio.Event()
    settle = Turns._settle

    async def held(self: Turns, turn: object) -> set[str]:
        await opened.wait()
        return await settle(self, turn)  # type: ignore[arg-type]

    monkeypatch.setattr(Turns, "_settle", held)
    return opened


@VERSIONS
@pytest.mark.parametrize("repeated", [True, False], ids=["sent again while stored", "sent again after that"])
async def test_messages_that_are_being_stored_when_another_connection_takes_over(
    mqtt: RunningMqtt, gate: trio.Event, version: Version, repeated: bool
) -> None:
    """[MQTT-4.3.3-10]: each of them once, and each is acknowledged to the new connection."""
    subscriber = await mqtt.connect("subscriber")
    await subscriber.subscribe("devices/#", qos=2)
    lasts = LASTS if version == V5 else Properties()
    first = await mqtt.connect("c", version, clean=False, properties=lasts)
    ids = (7, 8, 9)
    await first.send(*[Publish("devices/1", b"%d" % each, 2, packet_id=each) for each in ids])
    await trio.testing.wait_all_tasks_blocked(0.05)
    second = await mqtt.connect("c", version, clean=False, properties=lasts, present=True)
    again = [Publish("devices/1", b"%d" % each, 2, packet_id=each, duplicate=True) for each in ids]
    if repeated:
        await second.send(*again)
        await second.nothing()
        gate.set()
    else:
        gate.set()
        for each in ids:
            assert (await subscriber.message()).payload == b"%d" % each
        await second.send(*again)
    assert [await second.next() for _ in ids] == [PubRec(each) for each in ids]
    await second.send(*[PubRel(each) for each in ids])
    assert [await second.next() for _ in ids] == [PubComp(each) for each in ids]
    if repeated:
        for each in ids:
            assert (await subscriber.message()).payload == b"%d" % each
    await subscriber.nothing()
    assert len(await mqtt.records("from-devices")) == 3


async def test_what_a_client_has_acknowledged_counts_also_if_another_connection_takes_over(
    tmp_path: Path, gate: trio.Event
) -> None:
    """[MQTT-4.3.3-4]: PUBREC came in one read with a message that is being stored. After a restart PUBREL is sent,
    and not the message again."""
    settings = {"mqtt.topic.mapping.devices/#": "from-devices"}
    async with running_mqtt(tmp_path / "data", settings) as mqtt:
        first = await mqtt.connect("c", V3, clean=False)
        await first.subscribe("a", qos=2)
        publisher = await mqtt.connect("publisher")
        await publisher.publish("a", b"1", 2)
        delivered = await first.expect(Publish)
        await first.send(Publish("devices/1", b"", 1, packet_id=1), PubRec(delivered.packet_id))
        await trio.testing.wait_all_tasks_blocked(0.05)
        second = await mqtt.connect("c", V3, clean=False, present=True)
        gate.set()
        assert await second.next() == PubRel(delivered.packet_id)
        await second.nothing()
    async with running_mqtt(tmp_path / "data", settings) as mqtt:
        third = await mqtt.connect("c", V3, clean=False, present=True)
        assert await third.next() == PubRel(delivered.packet_id)
        await third.send(PubComp(delivered.packet_id))
        await third.nothing()


async def test_subscriptions_of_a_connection_that_was_taken_over_are_not_made(
    mqtt: RunningMqtt, gate: trio.Event
) -> None:
    first = await mqtt.connect("c", V3)
    await first.send(
        Publish("devices/1", b"", 1, packet_id=1), Subscribe(2, (SubscriptionRequest("late", 0),))
    )
    await trio.testing.wait_all_tasks_blocked(0.05)
    await mqtt.connect("c", V3)
    gate.set()
    publisher = await mqtt.connect("publisher")
    answer = await publisher.publish("late", b"", 1)
    assert answer == PubAck(1, ReasonCode.NO_MATCHING_SUBSCRIBERS)


@pytest.mark.long
async def test_a_client_that_was_slow_gets_all_that_waited(mqtt: RunningMqtt) -> None:
    """What waits goes out in pieces, and nothing else has to happen for the next piece."""
    slow = await mqtt.connect("slow")
    await slow.subscribe("a", qos=0)
    publisher = await mqtt.connect("publisher")
    count = 12_000
    for begin in range(0, count, 1000):
        await publisher.send(*[Publish("a", b"%06d" % each * 150) for each in range(begin, begin + 1000)])
        await publisher.nothing()
    for number in range(count):
        assert int((await slow.message()).payload[:6]) == number
    await slow.nothing()


async def test_a_will_is_published_when_a_take_over_ends_the_session(mqtt: RunningMqtt) -> None:
    """3.1.4: whatever its delay, where the session ends with its connection."""
    subscriber = await mqtt.connect("subscriber")
    await subscriber.subscribe("w", qos=0)
    will = Will("w", b"gone", 0, False, Properties(will_delay_interval=1000))
    await mqtt.connect("c", will=will)
    await mqtt.connect("c", clean=False)
    assert (await subscriber.message()).payload == b"gone"
    # One that outlives it goes on, and its will is not published ([MQTT-3.1.3-9]).
    await mqtt.connect("d", will=will, clean=False, properties=LASTS)
    await mqtt.connect("d", clean=False, properties=LASTS, present=True)
    await subscriber.nothing()


@VERSIONS
async def test_a_message_that_could_not_be_stored_for_a_connection_that_was_taken_over(
    mqtt: RunningMqtt, monkeypatch: pytest.MonkeyPatch, version: Version
) -> None:
    """The new connection has sent it again and waits for PUBREC: it is ended, so that the client sends it anew."""
    opened, settle = trio.Event(), Turns._settle

    async def fails_once(self: Turns, turn: Any) -> set[str]:
        if opened.is_set():
            return await settle(self, turn)
        await opened.wait()
        turn.failures = {number: Failure(missing=("from-devices",), reason="offline") for number in range(3)}
        return set()

    monkeypatch.setattr(Turns, "_settle", fails_once)
    subscriber = await mqtt.connect("subscriber")
    await subscriber.subscribe("devices/#", qos=2)
    lasts = LASTS if version == V5 else Properties()
    ids = (7, 8, 9)
    first = await mqtt.connect("c", version, clean=False, properties=lasts)
    await first.send(*[Publish("devices/1", b"%d" % each, 2, packet_id=each) for each in ids])
    await trio.testing.wait_all_tasks_blocked(0.05)
    again = [Publish("devices/1", b"%d" % each, 2, packet_id=each, duplicate=True) for each in ids]
    second = await mqtt.connect("c", version, clean=False, properties=lasts, present=True)
    await second.send(*again)
    await second.nothing()
    opened.set()
    if version == V5:
        assert (await second.expect(Disconnect)).reason == ReasonCode.SERVER_BUSY
    await second.closed()
    third = await mqtt.connect("c", version, clean=False, properties=lasts, present=True)
    await third.send(*again)
    assert [await third.next() for _ in ids] == [PubRec(each) for each in ids]
    for each in ids:
        assert (await subscriber.message()).payload == b"%d" % each
    await subscriber.nothing()
    assert len(await mqtt.records("from-devices")) == 3


@pytest.fixture
def hubs(monkeypatch: pytest.MonkeyPatch) -> list[Hub]:
    """Those of the brokers that are started."""
    found: list[Hub] = []
    made = Hub.__init__

    def remembered(self: Hub, *args: Any) -> None:
        made(self, *args)
        found.append(self)

    monkeypatch.setattr(Hub, "__init__", remembered)
    return found


def needed(hub: Hub) -> int:
    """How many deliveries need a message in the log."""
    return hub.store._checkpoints._needed


@pytest.mark.long
async def test_messages_for_a_slow_client_wait_in_the_log(hubs: list[Hub], mqtt: RunningMqtt) -> None:
    """Also where its session ends with its connection. They come in their order, and the log needs none of them
    then."""
    slow = await mqtt.connect("slow")
    await slow.subscribe("a", qos=1)
    publisher = await mqtt.connect("publisher")
    count, sent = 3000, 0
    while sent < count:
        some = range(sent, min(sent + 100, count))
        await publisher.send(*[Publish("a", b"%06d" % each * 200, 1, packet_id=each + 1) for each in some])
        for each in some:
            assert await publisher.next() == PubAck(each + 1)
        sent += len(some)
    (hub,) = hubs
    outbound = hub.clients["slow"].session.outbound
    assert outbound.messages == count - 100
    assert outbound._waiting.memory < hub.limits.queue.memory_bytes + 200_000
    assert 1000 < needed(hub) < 2500
    for number in range(count):
        message = await slow.message()
        assert (int(message.payload[:6]), message.duplicate) == (number, False)
    await slow.nothing()
    assert needed(hub) == 0
    assert outbound.messages == 0


async def test_a_session_ends_while_a_message_for_it_is_being_stored(
    hubs: list[Hub], monkeypatch: pytest.MonkeyPatch, mqtt: RunningMqtt
) -> None:
    """The log does not need the message any more."""
    noted = Hub.note_queued

    def ends_meanwhile(self: Hub) -> list[tuple[Client, Delivery]]:
        waiting = noted(self)
        if waiting:
            self.end_session(self.clients["c"])
        return waiting

    monkeypatch.setattr(Hub, "note_queued", ends_meanwhile)
    client = await mqtt.connect("c", properties=LASTS)
    await client.subscribe("a", qos=1)
    await client.leave()
    publisher = await mqtt.connect("publisher")
    await publisher.publish("a", b"", 1)
    (hub,) = hubs
    assert "c" not in hub.clients
    assert len(await mqtt.records("__mqtt_queue")) > 0
    assert needed(hub) == 0


@pytest.mark.parametrize(("properties", "stored"), [(Properties(), False), (LASTS, True)])
async def test_a_message_is_in_the_queue_only_if_a_session_outlives_its_connection(
    mqtt: RunningMqtt, properties: Properties, stored: bool
) -> None:
    client = await mqtt.connect("c", properties=properties)
    await client.subscribe("a", qos=1)
    publisher = await mqtt.connect("publisher")
    await publisher.publish("a", b"one", 1)
    assert (await client.message()).payload == b"one"
    await client.nothing()
    values = [value for _, value, _ in await mqtt.records("__mqtt_queue")]
    assert any(value is not None and b"one" in value for value in values) is stored


async def test_a_session_that_is_to_end_with_its_next_connection(hubs: list[Hub], mqtt: RunningMqtt) -> None:
    """What it has in the log is delivered on that connection, and is not needed afterwards."""
    client = await mqtt.connect("c", properties=LASTS)
    await client.subscribe("a", qos=1)
    await client.leave()
    publisher = await mqtt.connect("publisher")
    for number in range(5):
        await publisher.publish("a", b"%d" % number, 1)
    again = await mqtt.connect("c", clean=False, present=True)
    await publisher.publish("a", b"5", 1)
    for number in range(6):
        assert (await again.message()).payload == b"%d" % number
    await again.nothing()
    (hub,) = hubs
    assert needed(hub) == 0
    await again.leave()
    await mqtt.connect("c", clean=False)


async def test_messages_that_the_log_has_lost(
    hubs: list[Hub], monkeypatch: pytest.MonkeyPatch, mqtt: RunningMqtt
) -> None:
    """They are counted, and nothing waits for them."""
    client = await mqtt.connect("c", properties=LASTS)
    await client.subscribe("a", qos=1)
    await client.leave()
    publisher = await mqtt.connect("publisher")
    for number in range(3):
        await publisher.publish("a", b"%d" % number, 1)
    load = Store.load

    async def half(self: Store, offsets: list[int]) -> dict[int, Message]:
        found = await load(self, offsets)
        return {offset: message for offset, message in found.items() if message.payload == b"2"}

    monkeypatch.setattr(Store, "load", half)
    again = await mqtt.connect("c", clean=False, properties=LASTS, present=True)
    # The first one that waits is in memory.
    assert [(await again.message()).payload for _ in range(2)] == [b"0", b"2"]
    await again.nothing()
    (hub,) = hubs
    assert hub.drops[DropReason.LOST] == 1
    assert needed(hub) == 0


async def members(mqtt: RunningMqtt, *qos: int, **more: Any) -> list[MqttClient]:
    """Members of a shared subscription, and no other: `m0`, `m1`."""
    found: list[MqttClient] = []
    for number, each in enumerate(qos):
        client = await mqtt.connect(f"m{number}", **more)
        await client.subscribe("$share/g/q", qos=each)
        found.append(client)
    return found


async def gone(mqtt: RunningMqtt, client_id: str) -> None:
    with trio.fail_after(20):
        while client_id in mqtt.sessions():
            await trio.sleep(0.01)


async def test_what_a_member_has_not_acknowledged_goes_to_another_when_its_session_ends(
    mqtt: RunningMqtt,
) -> None:
    """4.8.2: it was lost, though its publisher had PUBACK."""
    one, other = await members(mqtt, 1, 1)
    publisher = await mqtt.connect("p")
    for number in range(4):
        await publisher.publish("q", b"%d" % number, 1)
    had = [(await one.expect(Publish)).payload for _ in range(2)]
    kept = [(await other.message()).payload for _ in range(2)]
    assert {*had, *kept} == {b"0", b"1", b"2", b"3"}
    await one.vanish()
    again = [await other.message() for _ in range(2)]
    assert [(each.payload, each.duplicate) for each in again] == [(each, False) for each in had]
    await other.nothing()


async def test_what_was_begun_with_qos_2_goes_to_no_other_member_and_what_waits_does(
    mqtt: RunningMqtt,
) -> None:
    """[MQTT-4.8.2-5]"""
    one = await mqtt.connect("m0", properties=Properties(receive_maximum=1))
    await one.subscribe("$share/g/q", qos=2)
    publisher = await mqtt.connect("p")
    for number in range(3):
        await publisher.publish("q", b"%d" % number, 2)
    assert (await one.expect(Publish)).payload == b"0"
    other = await mqtt.connect("m1")
    await other.subscribe("$share/g/q", qos=2)
    await one.vanish()
    assert [(await other.message()).payload for _ in range(2)] == [b"1", b"2"]
    await other.nothing()


async def test_a_message_that_a_member_refuses_goes_to_no_other(mqtt: RunningMqtt) -> None:
    """[MQTT-4.8.2-6]"""
    one, other = await members(mqtt, 1, 1)
    publisher = await mqtt.connect("p")
    for number in range(2):
        await publisher.publish("q", b"%d" % number, 1)
    refused = await one.expect(Publish)
    await one.send(PubAck(refused.packet_id, ReasonCode.UNSPECIFIED_ERROR))
    await one.leave()
    await other.message()
    await other.nothing()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("how", ["deleted", "clean", "expired"])
async def test_a_session_that_is_kept_keeps_its_share_until_it_ends(mqtt: RunningMqtt, how: str) -> None:
    """Then other members get it, also what is in the log only."""
    (one,) = await members(mqtt, 1, properties=Properties(session_expiry_interval=3600))
    publisher = await mqtt.connect("p")
    await publisher.publish("q", b"0", 1)
    await one.expect(Publish)
    await one.vanish()
    for number in range(1, 500):
        await publisher.publish("q", b"%d" % number, 1)
    other = await mqtt.connect("m1")
    await other.subscribe("$share/g/q", qos=1)
    await other.nothing()
    if how == "deleted":
        mqtt.running.hub.delete_session("m0")
        mqtt.running.turns.conclude()
    elif how == "clean":
        await mqtt.connect("m0")
    else:
        hub = mqtt.running.hub
        hub._expiries.add("m0", hub.clients["m0"], 0)  # its time is over
        await gone(mqtt, "m0")
    found = [int((await other.message()).payload) for _ in range(500)]
    assert sorted(found) == list(range(500))
    await other.nothing()
    checkpoints = mqtt.running.store._checkpoints
    with trio.fail_after(20):
        while checkpoints._needed:
            await trio.sleep(0.01)


async def test_where_no_member_is_left_it_is_dropped_and_counted(mqtt: RunningMqtt) -> None:
    (one,) = await members(mqtt, 1, properties=Properties(session_expiry_interval=3600))
    publisher = await mqtt.connect("p")
    await one.leave()
    for number in range(10):
        await publisher.publish("q", b"%d" % number, 1)
    mqtt.running.hub.delete_session("m0")
    drops = mqtt.running.hub.drops
    with trio.fail_after(20):
        while drops[DropReason.SESSION_ENDED] != 10:
            await trio.sleep(0.01)
    assert not drops[DropReason.LOST]


async def test_what_a_session_got_by_another_subscription_is_its_own(mqtt: RunningMqtt) -> None:
    one, other = await members(mqtt, 1, 1)
    await one.subscribe("mine", "q/#", qos=1)
    publisher = await mqtt.connect("p")
    await publisher.publish("mine", b"1", 1)
    await publisher.publish("q/deep", b"2", 1)
    for _ in range(2):
        await one.expect(Publish)
    await one.vanish()
    await gone(mqtt, "m0")
    await other.nothing()
