"""Answers that take long, and what is answered to a client that asks for too much."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.packets import bodies
from leafcuttr_mqtt.packets.bodies import FILTERS_AT_ONCE
from leafcuttr_mqtt.packets.fields import MOST_REPEATED
from leafcuttr_mqtt.packets.types import (
    ConnAck,
    Connect,
    Disconnect,
    PingReq,
    PingResp,
    Properties,
    PubAck,
    Publish,
    PubRec,
    ReasonCode,
    SubAck,
    Subscribe,
    SubscriptionRequest,
    UnsubAck,
    Unsubscribe,
    Will,
)
from leafcuttr_mqtt.routing import feeds, retained, turns
from leafcuttr_mqtt.server import answers, outgoing
from leafcuttr_mqtt.server.read import MOST_STEPS
from leafcuttr_mqtt.storage.state import SessionRecord
from support.mqtt import V3, V5, RunningMqtt, running_mqtt

DEEP = "a" + "/" * 200


def subscribe(packet_id: int, *filters: str) -> Subscribe:
    return Subscribe(packet_id, tuple([SubscriptionRequest(each, 0) for each in filters]))


class Rounds(trio.abc.Instrument):
    """How often functions are called between two times that the loop looks for what else there is to do."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self._calls: dict[str, int] = {}
        self.most: dict[str, int] = {}
        trio.lowlevel.add_instrument(self)

    def before_io_wait(self, timeout: float) -> None:
        self._calls.clear()

    def count(self, owner: Any, name: str) -> None:
        function: Callable[..., Any] = getattr(owner, name)

        def counted(*args: Any, **named: Any) -> Any:
            calls = self._calls[name] = self._calls.get(name, 0) + 1
            self.most[name] = max(calls, self.most.get(name, 0))
            return function(*args, **named)

        self._monkeypatch.setattr(owner, name, counted)


async def retain(mqtt: RunningMqtt, count: int) -> None:
    client = await mqtt.connect("publisher")
    for number in range(count):
        await client.send(Publish(f"r/{number}", b"x", 1, True, number % 60_000 + 1))
    for _ in range(count):
        await client.expect(PubAck)
    await client.leave()


@pytest.mark.long
async def test_others_are_answered_while_a_client_gets_many_retained_messages(mqtt: RunningMqtt) -> None:
    """A few thousand packets of SUBSCRIBE in one read, with many retained messages each, held the loop for minutes."""
    await retain(mqtt, 1000)
    greedy, other = await mqtt.connect("greedy"), await mqtt.connect("other")
    await greedy.send(*[subscribe(number, "r/#") for number in range(1, 41)])
    assert (await greedy.expect(SubAck)).packet_id == 1
    await other.send(PingReq())
    await other.expect(PingResp)
    client = mqtt.running.hub.clients["greedy"]
    counts = mqtt.running.counts
    assert counts.sent[0] + client.session.outbound.messages < 40_000
    acknowledged = [1]
    messages = 0
    while len(acknowledged) < 40 or messages < 40_000:
        packet = await greedy.next()
        if isinstance(packet, SubAck):
            acknowledged.append(packet.packet_id)
        else:
            assert isinstance(packet, Publish)
            messages += 1
    assert acknowledged == list(range(1, 41))


async def test_what_comes_behind_a_long_answer_is_answered_behind_it(mqtt: RunningMqtt) -> None:
    await retain(mqtt, 1000)
    client = await mqtt.connect("greedy")
    await client.send(subscribe(1, "r/#"), Publish("r/new", b"1"), PingReq(), Unsubscribe(2, ("r/#",)))
    await client.expect(SubAck)
    topics = [(await client.expect(Publish)).topic for _ in range(1001)]
    assert topics[-1] == "r/new"
    await client.expect(PingResp)
    assert (await client.expect(UnsubAck)).reasons == (0,)


@pytest.mark.long
async def test_a_retained_message_that_is_replaced_meanwhile_does_not_come_behind_its_successor(
    mqtt: RunningMqtt,
) -> None:
    await retain(mqtt, 2000)
    hub = mqtt.running.hub
    client = await mqtt.connect("greedy")
    await client.send(subscribe(1, "r/#"))
    await client.expect(SubAck)
    for message in list(hub.retained):
        successor = type(message)(message.topic, b"new", 0, True, "", message.arrived_ms)
        hub.publish(successor, None)
    mqtt.running.turns.conclude()
    last: dict[str, bytes] = {}
    await client.send(PingReq())
    while isinstance(packet := await client.next(), Publish):
        last[packet.topic] = packet.payload
    assert isinstance(packet, PingResp)
    assert set(last.values()) == {b"new"}
    assert len(last) == 2000


async def test_a_long_answer_ends_with_its_connection_and_session(mqtt: RunningMqtt) -> None:
    await retain(mqtt, 1000)
    greedy = await mqtt.connect("greedy")
    await greedy.send(*[subscribe(number, "r/#") for number in range(1, 41)])
    await greedy.expect(SubAck)
    again = await mqtt.connect("greedy")
    await again.nothing()
    assert not mqtt.running.hub.clients["greedy"].session.subscriptions


async def test_a_session_is_written_once_a_turn_however_many_of_its_subscriptions_have_changed(
    mqtt: RunningMqtt, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record has all subscriptions: one for each SUBSCRIBE takes minutes where there are many of both."""
    client = await mqtt.connect("c", clean=False, properties=Properties(session_expiry_interval=60))
    store = mqtt.running.store
    note, noted = store.note_session, list[SessionRecord]()

    def counting(record: SessionRecord) -> None:
        noted.append(record)
        note(record)

    monkeypatch.setattr(store, "note_session", counting)
    await client.send(*[subscribe(number, f"a/{number}") for number in range(1, 101)])
    for _ in range(100):
        await client.expect(SubAck)
    assert len(noted) < 10
    assert len(noted[-1].subscriptions) == 100


@pytest.mark.setting("mqtt.session.max.subscriptions")
async def test_a_session_has_so_many_subscriptions_at_most(tmp_path: Path) -> None:
    async with running_mqtt(tmp_path / "data", {"mqtt.session.max.subscriptions": 2}) as mqtt:
        client = await mqtt.connect("c")
        quota = ReasonCode.QUOTA_EXCEEDED
        assert (await client.subscribe("a", "b", "c", "a", qos=1)).reasons == (1, 1, quota, 1)
        await client.send(Unsubscribe(2, ("a", "c")))
        await client.expect(UnsubAck)
        assert (await client.subscribe("c", qos=1)).reasons == (1,)
        older = await mqtt.connect("older", V3)
        assert (await older.subscribe("a", "b", "c", qos=1)).reasons == (1, 1, 0x80)


async def test_the_filters_of_a_session_have_so_many_characters_at_most(mqtt: RunningMqtt) -> None:
    client = await mqtt.connect("c")
    filters = [f"{number:02d}" + "x" * 65_000 for number in range(40)]
    reasons: list[int] = []
    for start in range(0, 40, 10):
        reasons += (await client.subscribe(*filters[start : start + 10], qos=1)).reasons
    assert reasons == [1] * 32 + [ReasonCode.QUOTA_EXCEEDED] * 8


async def test_topics_and_filters_with_too_many_levels_are_not_accepted(mqtt: RunningMqtt) -> None:
    """Each level takes memory: fifty retained messages with 65,000 levels took 800 MB."""
    client = await mqtt.connect("c")
    fits = "a" + "/" * 199
    answer = await client.subscribe(fits, DEEP, "$share/g/" + DEEP, qos=1)
    assert answer.reasons == (1, ReasonCode.TOPIC_FILTER_INVALID, ReasonCode.TOPIC_FILTER_INVALID)
    assert await client.publish(DEEP, b"1", 1) == PubAck(
        1,
        ReasonCode.TOPIC_NAME_INVALID,
        Properties(reason_string="topic name: it has 201 levels; allowed are 200"),
    )
    await client.send(Publish(DEEP, b"1", 0, True))
    await client.nothing()
    assert not list(mqtt.running.hub.retained)
    await client.send(Publish(fits, b"1", 0, True))
    assert (await client.message()).topic == fits
    older = await mqtt.connect("older", V3)
    assert (await older.subscribe(DEEP)).reasons == (0x80,)
    assert await older.publish(DEEP, b"1", 1) == PubAck(1)


async def test_a_will_with_too_many_levels_is_not_accepted(mqtt: RunningMqtt) -> None:
    client = await mqtt.dial(V5)
    await client.send(Connect(V5, "c", True, 0, None, None, Will(DEEP, b"gone", 0, False)))
    assert (await client.expect(ConnAck)).reason == ReasonCode.TOPIC_NAME_INVALID
    await client.closed()
    older = await mqtt.dial(V3)  # for which CONNACK has no such code
    await older.send(Connect(V3, "c", True, 0, None, None, Will(DEEP, b"gone", 0, False)))
    await older.closed()


FILTERS = tuple([f"{number}" for number in range(bodies.MOST_FILTERS)])


@pytest.mark.long
async def test_very_many_filters_are_taken_in_steps(
    mqtt: RunningMqtt, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await mqtt.connect("c")
    await client.subscribe("one")
    rounds = Rounds(monkeypatch)
    rounds.count(bodies, "_request")
    rounds.count(answers, "why_no_filter")
    await client.send(subscribe(1, *FILTERS), PingReq())
    reasons = (await client.expect(SubAck)).reasons
    assert len(reasons) == len(FILTERS)
    assert reasons == (0,) * 9_999 + (ReasonCode.QUOTA_EXCEEDED,)
    await client.expect(PingResp)
    await client.send(Unsubscribe(2, FILTERS), PingReq())
    reasons = (await client.expect(UnsubAck)).reasons
    assert reasons == (0,) * 9_999 + (ReasonCode.NO_SUBSCRIPTION_EXISTED,)
    await client.expect(PingResp)
    assert 0 < rounds.most["_request"] <= FILTERS_AT_ONCE
    assert 0 < rounds.most["why_no_filter"] <= MOST_STEPS / 20


async def test_a_client_that_leaves_while_its_filters_are_read(mqtt: RunningMqtt) -> None:
    client = await mqtt.connect("c", clean=False, properties=Properties(session_expiry_interval=60))
    await client.send(subscribe(1, *FILTERS))
    again = await mqtt.connect("c", clean=False, present=True)
    await again.nothing()
    assert len(mqtt.running.hub.clients["c"].session.subscriptions) <= 10_000


@pytest.mark.long
async def test_many_small_packets_are_answered_in_steps(
    mqtt: RunningMqtt, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await mqtt.connect("c")
    rounds = Rounds(monkeypatch)
    rounds.count(outgoing, "encode")
    await client.send(*[PingReq()] * 100_000)
    for _ in range(100_000):
        await client.expect(PingResp)
    assert 0 < rounds.most["encode"] <= MOST_STEPS / 5


@pytest.mark.long
async def test_retained_messages_are_looked_for_in_steps(
    mqtt: RunningMqtt, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where many are looked at and none matches."""
    for number in range(30_000):
        mqtt.running.hub.retained.put(Message(f"r/{number}", b"x"))
    monkeypatch.setattr(turns, "_STEP_S", 0.0)
    client = await mqtt.connect("c")
    rounds = Rounds(monkeypatch)
    walked = 0
    walk = retained._below

    def counted(*args: Any) -> Any:
        nonlocal walked
        for node in walk(*args):
            walked += 1
            rounds._calls["node"] = calls = rounds._calls.get("node", 0) + 1
            rounds.most["node"] = max(calls, rounds.most.get("node", 0))
            yield node

    monkeypatch.setattr(retained, "_below", counted)
    await client.send(subscribe(1, "r/+/none"), PingReq())
    await client.expect(SubAck)
    await client.expect(PingResp)
    assert walked >= 30_000
    assert rounds.most["node"] <= MOST_STEPS + 2 * feeds.LOOKS


async def test_a_packet_with_too_many_user_properties_ends_its_connection(mqtt: RunningMqtt) -> None:
    many = Properties(user_properties=(("a", "b"),) * (MOST_REPEATED + 1))
    client = await mqtt.connect("c")
    await client.send(Publish("t", b"", 1, packet_id=1, properties=many))
    assert (await client.expect(Disconnect)).reason == ReasonCode.QUOTA_EXCEEDED
    await client.closed()
    client = await mqtt.dial(V5)
    await client.send(Connect(V5, "c", True, 0, properties=many))
    assert (await client.expect(ConnAck)).reason == ReasonCode.QUOTA_EXCEEDED
    await client.closed()


async def test_what_comes_twice_and_is_refused_is_refused_twice(mqtt: RunningMqtt) -> None:
    """What comes behind PUBREC with an error is a new message ([MQTT-4.3.3-9]), which is refused as the first was."""
    client = await mqtt.connect("c")
    again = [
        Publish("$mine", b"", 2, packet_id=7),
        Publish("$mine", b"", 2, packet_id=7, duplicate=True),
    ]
    await client.send(*again)
    refused = [await client.expect(PubRec) for _ in again]
    assert [each.reason for each in refused] == [ReasonCode.NOT_AUTHORIZED] * 2
    assert refused[0] == refused[1]
    await client.publish("mine", b"", 2, packet_id=7)
    older = await mqtt.connect("older", V3)
    await older.send(*again)
    assert [await older.expect(PubRec) for _ in again] == [PubRec(7)] * 2


async def test_what_comes_twice_and_is_too_large_for_its_kafka_topic_is_refused_twice(tmp_path: Path) -> None:
    """In one read, in one turn, by the Kafka topic."""
    settings = {"mqtt.topic.mapping.devices/#": "from-devices", "message.max.bytes": 1000}
    lasts = Properties(session_expiry_interval=60)
    async with running_mqtt(tmp_path / "data", settings) as mqtt:
        for properties in (Properties(), lasts):
            client = await mqtt.connect("c", properties=properties)
            large = Publish("devices/1", b"x" * 2000, 2, packet_id=7)
            again = Publish("devices/1", b"x" * 2000, 2, packet_id=7, duplicate=True)
            await client.send(large, again, PingReq())
            refused = [await client.expect(PubRec) for _ in range(2)]
            assert [each.reason for each in refused] == [ReasonCode.QUOTA_EXCEEDED] * 2
            await client.expect(PingResp)
            # The packet identifier is free.
            await client.publish("devices/1", b"x", 2, packet_id=7)
            await client.leave()
        assert len(await mqtt.records("from-devices")) == 2
