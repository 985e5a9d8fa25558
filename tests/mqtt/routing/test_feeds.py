"""Retained messages for new subscriptions: as many as there are, in pace with the client, within the bounds of its
session."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.packets.types import (
    NO_PROPERTIES,
    PingReq,
    PingResp,
    Properties,
    PubAck,
    Publish,
    SubAck,
    Subscribe,
    SubscriptionRequest,
    Unsubscribe,
)
from leafcuttr_mqtt.routing import feeds as module
from leafcuttr_mqtt.session.types import DropReason
from support.mqtt import MqttClient, RunningMqtt, running_mqtt

PERSISTENT = Properties(session_expiry_interval=3600)
COUNT = 1000
SMALL = {"mqtt.session.max.messages": 50}


def retain(mqtt: RunningMqtt, count: int = COUNT, *, payload: bytes = b"", qos: int = 2) -> None:
    hub = mqtt.running.hub
    for number in range(count):
        message = Message(f"r/{number}", b"%d" % number + payload, qos, True, "p", mqtt.running.now_ms())
        hub.publish(message, None)
    mqtt.running.turns.conclude()


async def numbers(client: MqttClient, count: int) -> list[int]:
    return [int((await client.message()).payload.split()[0]) for _ in range(count)]


@pytest.mark.one_in(6)
@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("properties", [NO_PROPERTIES, PERSISTENT], ids=["clean", "persistent"])
async def test_all_of_them_come_however_many_a_session_may_hold(
    tmp_path: Path, qos: int, properties: Properties
) -> None:
    """All but the last 50 were dropped."""
    async with running_mqtt(tmp_path, SMALL) as mqtt:
        retain(mqtt)
        client = await mqtt.connect("c", properties=properties)
        await client.subscribe("r/#", qos=qos)
        assert sorted(await numbers(client, COUNT)) == list(range(COUNT))
        await client.nothing()
        assert not any(mqtt.running.hub.drops.values())
        assert not mqtt.running.hub.clients["c"].feeds


async def test_no_more_is_taken_than_the_client_takes(tmp_path: Path) -> None:
    async with running_mqtt(tmp_path, {"mqtt.max.inflight": 10}) as mqtt:
        retain(mqtt)
        client = await mqtt.connect("c", properties=PERSISTENT)
        await client.subscribe("r/#", qos=1)
        first = [await client.expect(Publish) for _ in range(10)]
        await client.nothing()
        session = mqtt.running.hub.clients["c"].session
        assert session.outbound.messages <= module.AT_ONCE
        for each in first:
            await client.send(PubAck(each.packet_id))
        rest = await numbers(client, COUNT - 10)
        assert sorted([int(each.payload) for each in first] + rest) == list(range(COUNT))
        assert session.outbound.messages == 0


async def test_large_ones(tmp_path: Path) -> None:
    """Each of them reaches the bound of the session alone."""
    async with running_mqtt(tmp_path, {"mqtt.session.max.bytes": 60_000}) as mqtt:
        retain(mqtt, 20, payload=b" " + bytes(50_000))
        for properties in (NO_PROPERTIES, PERSISTENT):
            for qos in (0, 1):
                client = await mqtt.connect("c", properties=properties)
                await client.subscribe("r/#", qos=qos)
                assert sorted(await numbers(client, 20)) == list(range(20))
                await client.leave()
        assert not any(mqtt.running.hub.drops.values())


async def test_others_are_served_meanwhile_and_live_messages_come_once(mqtt: RunningMqtt) -> None:
    retain(mqtt)
    client = await mqtt.connect("c")
    other = await mqtt.connect("other")
    await client.send(Subscribe(1, (SubscriptionRequest("r/#", 1),)), PingReq())
    await client.expect(SubAck)
    await other.publish(f"r/{COUNT - 1}", b"9000", 1, retain=True)
    await other.publish("r/new", b"9001", 1, retain=True)
    await other.nothing()
    found: list[int] = []
    answered = 0
    while len(found) < COUNT + 2:
        packet = await client.next()
        if isinstance(packet, PingResp):
            answered += 1
            continue
        assert isinstance(packet, Publish)
        await client.send(PubAck(packet.packet_id))
        found.append(int(packet.payload))
        if {*range(COUNT - 1), 9000, 9001} <= set(found):
            break
    # The one that was replaced may have gone out before.
    assert sorted(set(found) - {COUNT - 1}) == [*range(COUNT - 1), 9000, 9001]
    assert len(set(found)) == len(found)
    if not answered:
        await client.expect(PingResp)
    await client.nothing()


@pytest.mark.long
@pytest.mark.parametrize("qos", [1, 2])
async def test_it_goes_on_when_the_client_is_back(tmp_path: Path, qos: int) -> None:
    async with running_mqtt(tmp_path, {"mqtt.max.inflight": 10, **SMALL}) as mqtt:
        retain(mqtt)
        client = await mqtt.connect("c", properties=PERSISTENT)
        await client.subscribe("r/#", qos=qos)
        found = await numbers(client, 100)
        await client.vanish()
        client = await mqtt.connect("c", properties=PERSISTENT, clean=False, present=True)
        while len(set(found)) < COUNT:
            found += await numbers(client, 1)
        if qos == 2:
            assert len(found) == COUNT
        await client.nothing()


@pytest.mark.long
async def test_after_a_restart_they_are_sent_from_the_beginning(tmp_path: Path) -> None:
    async with running_mqtt(tmp_path, {"mqtt.max.inflight": 10}) as mqtt:
        retain(mqtt)
        client = await mqtt.connect("c", properties=PERSISTENT)
        await client.subscribe("r/#", qos=1)
        found = await numbers(client, 300)
        mqtt.stop()
    async with running_mqtt(tmp_path) as mqtt:
        client = await mqtt.connect("c", properties=PERSISTENT, clean=False, present=True)
        while len(set(found)) < COUNT:
            found += await numbers(client, 1)
        with trio.move_on_after(5):
            while mqtt.running.hub.clients["c"].feeds:
                found += await numbers(client, 1)
        # It is still connected: the record says at once that nothing is left.
        mqtt.running.turns.conclude()
        await mqtt.running.turns.quiet()
        mqtt.stop()
    async with running_mqtt(tmp_path) as mqtt:
        assert not mqtt.running.hub.clients["c"].feeds
        client = await mqtt.connect("c", properties=PERSISTENT, clean=False, present=True)
        await client.nothing()


async def test_subscriptions_that_change(tmp_path: Path) -> None:
    """One that is given up gets no more; one that is made again gets all again, or goes on if it wants none."""
    async with running_mqtt(tmp_path, {"mqtt.max.inflight": 10}) as mqtt:
        retain(mqtt)
        client = await mqtt.connect("c")
        hub = mqtt.running.hub
        await client.subscribe("r/#", qos=1)
        feed = hub.clients["c"].feeds["r/#"]
        first = [await client.expect(Publish) for _ in range(10)]
        await client.subscribe(SubscriptionRequest("r/#", 1, retain_handling=2))
        assert hub.clients["c"].feeds["r/#"] is feed
        await client.subscribe(SubscriptionRequest("r/#", 1, retain_handling=0))
        again = hub.clients["c"].feeds["r/#"]
        assert again is not feed
        await client.send(Unsubscribe(2, ("r/#",)))
        await client.next()
        assert not hub.clients["c"].feeds
        # What was taken before is still delivered, and no more ([MQTT-3.10.4-3]).
        left = hub.clients["c"].session.outbound.messages
        assert 0 < left <= module.AT_ONCE
        for each in first:
            await client.send(PubAck(each.packet_id))
        await numbers(client, left)
        await client.subscribe(SubscriptionRequest("r/#", 1, retain_handling=2))
        await client.nothing()


async def test_several_subscriptions_of_a_packet(tmp_path: Path) -> None:
    async with running_mqtt(tmp_path, SMALL) as mqtt:
        retain(mqtt, 300)
        client = await mqtt.connect("c", properties=PERSISTENT)
        await client.subscribe("r/#", "+/1", "r/+", "none", "$share/g/#", qos=1)
        assert sorted(await numbers(client, 601)) == sorted([*range(300), 1, *range(300)])
        await client.nothing()


async def test_what_is_left_of_their_expiry_is_said(mqtt: RunningMqtt) -> None:
    """[MQTT-3.3.2-6]: with QoS 0 it was the whole interval."""
    now = mqtt.running.now_ms()
    message = Message("r/1", b"x", 1, True, "p", now - 40_000, expires_ms=now + 60_000)
    mqtt.running.hub.publish(message, None)
    for qos in (0, 1):
        client = await mqtt.connect("c")
        await client.subscribe("r/#", qos=qos)
        interval = (await client.message()).properties.message_expiry_interval
        assert interval is not None and 30 < interval <= 60


async def test_those_that_are_too_large_for_the_session_are_dropped_and_no_other(tmp_path: Path) -> None:
    async with running_mqtt(tmp_path, {"mqtt.session.max.bytes": 5000}) as mqtt:
        retain(mqtt, 5, payload=b" " + bytes(100))
        mqtt.running.hub.publish(Message("r/big", bytes(10_000), 1, True, "p", mqtt.running.now_ms()), None)
        client = await mqtt.connect("c", properties=PERSISTENT)
        await client.subscribe("r/#", qos=1)
        assert sorted(await numbers(client, 5)) == list(range(5))
        await client.nothing()
        assert mqtt.running.hub.drops[DropReason.QUEUE_FULL] == 1


async def test_with_qos_0_they_do_not_keep_acknowledgements_waiting(tmp_path: Path) -> None:
    """More messages with QoS 1 wait than there is room beside: only what the client sends next makes some."""
    async with running_mqtt(tmp_path, {"mqtt.max.inflight": 10}) as mqtt:
        retain(mqtt, 300)
        client = await mqtt.connect("c")
        await client.subscribe("live", qos=1)
        hub = mqtt.running.hub
        for number in range(300):
            hub.publish(Message("live", b"%d" % number, 1, False, "p", mqtt.running.now_ms()), None)
        mqtt.running.turns.conclude()
        sent = [await client.expect(Publish) for _ in range(10)]
        await client.send(Subscribe(2, (SubscriptionRequest("r/#", 0),)))
        await client.expect(SubAck)
        for each in sent:
            await client.send(PubAck(each.packet_id))
        rest = [await client.message() for _ in range(590)]
        assert [int(each.payload) for each in sent + rest if each.topic == "live"] == list(range(300))
        assert sorted(int(each.payload) for each in rest if each.topic != "live") == list(range(300))
        await client.nothing()


async def test_a_filter_that_matches_none_of_many_is_looked_for_in_steps(mqtt: RunningMqtt) -> None:
    """Others have their turns meanwhile. What comes since is live."""
    hub = mqtt.running.hub
    for number in range(3 * module.LOOKS):
        hub.retained.put(Message(f"site/{number}/t", b"x", 1, True))
    client = await mqtt.connect("c", properties=PERSISTENT)
    await client.subscribe("site/+/none", qos=1)
    with trio.fail_after(10):
        while hub.clients["c"].feeds:
            await trio.lowlevel.checkpoint()
    await client.vanish()
    session = hub.clients["c"]
    hub.begin_retained(session, session.session.subscriptions["site/+/none"])
    for _ in range(3):
        assert hub.feeds.go_on(session)
    hub.publish(Message("site/7/none", b"live", 1, True), None)
    assert not hub.feeds.go_on(session)
    assert not session.feeds
    mqtt.running.turns.conclude()
    client = await mqtt.connect("c", properties=PERSISTENT, clean=False, present=True)
    assert (await client.message()).payload == b"live"
    await client.nothing()
