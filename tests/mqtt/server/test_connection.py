"""Connections, by packets on a socket."""

from __future__ import annotations

import logging
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest
import trio

from leafcuttr_mqtt.bridge.local import LocalStream
from leafcuttr_mqtt.packets.fields import MOST_REPEATED
from leafcuttr_mqtt.packets.reader import PacketReader
from leafcuttr_mqtt.packets.types import (
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
    SubscriptionRequest,
    UnsubAck,
    Unsubscribe,
    Version,
    Will,
)
from leafcuttr_mqtt.packets.writer import encode
from leafcuttr_mqtt.server.connection import Connection
from leafcuttr_mqtt.server.reading import MOST_PACKETS, READ_BYTES, SMALL_READ_BYTES
from leafcuttr_sdk.authentication import ANONYMOUS, Authenticated
from support.mqtt import V3, V5, RunningMqtt, running_mqtt
from support.waiting import eventually

OUTLIVES = Properties(session_expiry_interval=60)
VERSIONS = pytest.mark.parametrize("version", [V3, V5], ids=["3.1.1", "5.0"])


@pytest.mark.one_in(2)
@VERSIONS
@pytest.mark.parametrize("qos", [0, 1, 2])
async def test_a_message_goes_from_one_client_to_another(
    mqtt: RunningMqtt, version: Version, qos: int
) -> None:
    subscriber = await mqtt.connect("subscriber", version)
    assert (await subscriber.subscribe("a/+", qos=qos)).reasons == (qos,)
    publisher = await mqtt.connect("publisher", version)
    for number in range(3):
        await publisher.publish("a/b", b"%d" % number, qos)
    for number in range(3):
        message = await subscriber.message()
        assert (message.topic, message.payload, message.qos, message.retain) == (
            "a/b",
            b"%d" % number,
            qos,
            False,
        )
    await subscriber.nothing()


@pytest.mark.one_in(2)
@VERSIONS
@pytest.mark.parametrize("qos", [0, 1, 2])
async def test_a_message_is_in_its_kafka_topic_before_it_is_acknowledged(
    mqtt: RunningMqtt, version: Version, qos: int
) -> None:
    publisher = await mqtt.connect("sensor", version)
    await publisher.publish("devices/7/t", b"21.5", qos)
    await publisher.nothing()
    ((key, value, headers),) = await mqtt.records("from-devices")
    assert (key, value) == (b"devices/7/t", b"21.5")
    assert headers["mqtt.qos"] == b"%d" % qos
    assert headers["mqtt.client_id"] == b"sensor"


async def test_a_message_that_several_mappings_match_is_in_each_kafka_topic_and_at_subscribers(
    mqtt: RunningMqtt,
) -> None:
    client = await mqtt.connect("sensor")
    await client.subscribe("test/#")
    await client.send(Publish("test/topic/x", b"1", 1, packet_id=5))
    packets = [await client.next(), await client.next()]
    assert PubAck(5) in packets
    assert len(await mqtt.records("from-mqtt")) == 1


async def test_many_messages_of_one_read_are_acknowledged_in_their_order(mqtt: RunningMqtt) -> None:
    client = await mqtt.connect("sensor", V3)
    await client.send(*[Publish(f"devices/{n % 7}", b"%d" % n, 1, packet_id=n) for n in range(1, 1001)])
    assert [(await client.expect(PubAck)).packet_id for _ in range(1000)] == list(range(1, 1001))
    assert sorted(int(value or b"") for _, value, _ in await mqtt.records("from-devices")) == list(
        range(1, 1001)
    )


async def test_a_repeated_message_with_qos_2_is_published_once(mqtt: RunningMqtt) -> None:
    client = await mqtt.connect("sensor", V3)
    await client.send(Publish("devices/1", b"a", 2, packet_id=9))
    await client.expect(PubRec)
    await client.send(Publish("devices/1", b"a", 2, packet_id=9, duplicate=True))
    await client.expect(PubRec)
    await client.send(PubRel(9))
    await client.expect(PubComp)
    assert len(await mqtt.records("from-devices")) == 1
    await client.publish("devices/1", b"b", 2, packet_id=9)
    assert len(await mqtt.records("from-devices")) == 2


async def test_a_subscription_ends_with_unsubscribe(mqtt: RunningMqtt) -> None:
    client = await mqtt.connect("c")
    await client.subscribe("a")
    await client.send(Unsubscribe(2, ("a", "b")))
    assert (await client.expect(UnsubAck)).reasons == (0, ReasonCode.NO_SUBSCRIPTION_EXISTED)
    await client.publish("a", b"x")
    await client.nothing()


async def test_of_a_message_without_subscribers_the_publisher_is_told(mqtt: RunningMqtt) -> None:
    client = await mqtt.connect("c")
    for qos, kind in ((1, PubAck), (2, PubRec)):
        await client.send(Publish("nobody", b"", qos, packet_id=3))
        assert (await client.expect(kind)).reason == ReasonCode.NO_MATCHING_SUBSCRIBERS


@VERSIONS
async def test_topics_of_the_broker_take_no_messages(mqtt: RunningMqtt, version: Version) -> None:
    client = await mqtt.connect("c", version)
    await client.subscribe("$mine/#")
    await client.send(Publish("$mine/x", b"", 1, packet_id=3))
    assert (await client.expect(PubAck)).reason == (ReasonCode.NOT_AUTHORIZED if version == V5 else 0)
    await client.nothing()


@VERSIONS
async def test_a_second_connection_takes_the_client_identifier_over(
    mqtt: RunningMqtt, version: Version
) -> None:
    first = await mqtt.connect("same", version)
    second = await mqtt.connect("same", version)
    if version == V5:
        assert (await first.expect(Disconnect)).reason == ReasonCode.SESSION_TAKEN_OVER
    await first.closed()
    await second.nothing()


@VERSIONS
async def test_packets_behind_connect_are_answered_behind_connack(
    mqtt: RunningMqtt, version: Version
) -> None:
    client = await mqtt.dial(version)
    await client.send(
        Connect(version, "early", True, 0), Publish("devices/1", b"", 1, packet_id=1), PingReq()
    )
    await client.expect(ConnAck)
    await client.expect(PubAck)
    await client.expect(PingResp)


async def test_a_client_without_an_identifier_gets_one(mqtt: RunningMqtt) -> None:
    client = await mqtt.dial(V5)
    await client.send(Connect(V5, "", True, 0))
    given = (await client.expect(ConnAck)).properties.assigned_client_identifier
    assert given
    other = await mqtt.dial(V5)
    await other.send(Connect(V5, "", True, 0))
    assert (await other.expect(ConnAck)).properties.assigned_client_identifier not in (None, given)
    refused = await mqtt.dial(V3)
    await refused.send(Connect(V3, "", False, 0))
    assert (await refused.expect(ConnAck)).reason == 2
    await refused.closed()


async def test_messages_of_a_session_wait_for_its_client(mqtt: RunningMqtt) -> None:
    client = await mqtt.connect("sleeper", V3, clean=False)
    await client.subscribe("a/#", qos=1)
    await client.leave()
    publisher = await mqtt.connect("publisher")
    for number in range(5):
        await publisher.publish("a/b", b"%d" % number, 1)
    await publisher.publish("a/b", b"lost", 0)
    client = await mqtt.connect("sleeper", V3, clean=False, present=True)
    assert [(await client.message()).payload for _ in range(5)] == [b"0", b"1", b"2", b"3", b"4"]
    await client.nothing()


async def test_what_was_not_acknowledged_is_sent_again(mqtt: RunningMqtt) -> None:
    client = await mqtt.connect("s", V3, clean=False)
    await client.subscribe("a", qos=2)
    publisher = await mqtt.connect("p")
    await publisher.publish("a", b"1", 1)
    await publisher.publish("a", b"2", 2)
    first, second = await client.expect(Publish), await client.expect(Publish)
    await client.send(PubRec(second.packet_id))
    await client.expect(PubRel)
    await client.vanish()
    client = await mqtt.connect("s", V3, clean=False, present=True)
    assert (await client.expect(PubRel)).packet_id == second.packet_id
    again = await client.message()
    assert (again.packet_id, again.payload, again.duplicate) == (first.packet_id, b"1", True)


@VERSIONS
async def test_a_will_is_published_where_the_client_vanishes_and_not_where_it_leaves(
    mqtt: RunningMqtt, version: Version
) -> None:
    watcher = await mqtt.connect("watcher", version)
    await watcher.subscribe("wills/#")
    for name, leaves in (("polite", True), ("rude", False)):
        client = await mqtt.connect(name, version, will=Will(f"wills/{name}", b"gone", 1, False))
        await (client.leave() if leaves else client.vanish())
    message = await watcher.message()
    assert (message.topic, message.payload) == ("wills/rude", b"gone")
    await watcher.nothing()


@VERSIONS
async def test_a_retained_message_is_sent_to_later_subscribers(mqtt: RunningMqtt, version: Version) -> None:
    client = await mqtt.connect("c", version)
    await client.publish("state/1", b"on", 1, retain=True)
    await client.publish("state/2", b"off", 0, retain=True)
    await client.subscribe("state/+", qos=1)
    found = {(m.topic, m.payload, m.retain) for m in [await client.message(), await client.message()]}
    assert found == {("state/1", b"on", True), ("state/2", b"off", True)}
    await client.publish("state/1", b"", 0, retain=True)
    assert (await client.message()).retain is False
    other = await mqtt.connect("other", version)
    await other.subscribe("#")
    assert (await other.message()).topic == "state/2"
    await other.nothing()


async def test_a_client_that_is_silent_for_too_long_is_disconnected(mqtt: RunningMqtt) -> None:
    client = await mqtt.connect("quiet", keep_alive=1)
    began = trio.current_time()
    assert (await client.expect(Disconnect)).reason == ReasonCode.KEEP_ALIVE_TIMEOUT
    assert trio.current_time() - began > 1.4
    await client.closed()


@pytest.mark.parametrize(
    ("version", "sent", "reason"),
    [
        (V5, b"\x36\x00", ReasonCode.MALFORMED_PACKET),
        (V5, b"\xc1\x00", ReasonCode.MALFORMED_PACKET),
        (V5, b"\x20\x03\0\0\0", ReasonCode.PROTOCOL_ERROR),
        (V3, b"\x36\x00", None),
    ],
)
async def test_a_packet_that_is_wrong_ends_its_connection_only(
    mqtt: RunningMqtt, version: Version, sent: bytes, reason: int | None
) -> None:
    other = await mqtt.connect("other")
    client = await mqtt.connect("bad", version)
    await client.stream.send_all(sent)
    if reason is not None:
        assert (await client.expect(Disconnect)).reason == reason
    await client.closed()
    await other.nothing()


async def test_subscription_options(mqtt: RunningMqtt) -> None:
    client = await mqtt.connect("c")
    await client.subscribe(SubscriptionRequest("a/#", 1, no_local=True), packet_id=1, identifier=11)
    await client.subscribe(
        SubscriptionRequest("a/+", 2, retain_as_published=True), packet_id=2, identifier=12
    )
    other = await mqtt.connect("o")
    await other.publish("a/b", b"1", 2, retain=True)
    message = await client.message()
    assert (message.qos, message.retain) == (2, True)
    assert sorted(message.properties.subscription_identifiers) == [11, 12]
    await client.send(Publish("a/b", b"2"))
    message = await client.message()
    assert message.properties.subscription_identifiers == (12,)
    await client.nothing()


async def test_properties_go_to_subscribers_as_they_are(mqtt: RunningMqtt) -> None:
    client = await mqtt.connect("c")
    await client.subscribe("a")
    sent = Properties(
        payload_format_indicator=1,
        message_expiry_interval=100,
        content_type="text/plain",
        response_topic="r",
        correlation_data=b"\0\1",
        user_properties=(("k", "v"), ("k", "w")),
    )
    await client.publish("a", b"x", 0, properties=sent)
    assert (await client.message()).properties == sent


async def test_shared_subscriptions_take_turns(mqtt: RunningMqtt) -> None:
    members = [await mqtt.connect(f"m{n}") for n in range(3)]
    for member in members:
        await member.subscribe("$share/g/jobs/#", qos=1)
    publisher = await mqtt.connect("p")
    for number in range(9):
        await publisher.publish(f"jobs/{number}", b"", 1)
    for member in members:
        for _ in range(3):
            await member.message()
        await member.nothing()


async def test_retain_handling(mqtt: RunningMqtt) -> None:
    """3.8.3.1: 0 sends retained messages at each SUBSCRIBE, 1 at the first one, 2 never."""
    client = await mqtt.connect("c")
    await client.publish("r", b"x", 1, retain=True)
    for handling, expected in ((0, (True, True)), (1, (True, False)), (2, (False, False))):
        other = await mqtt.connect(f"c{handling}")
        for is_sent in expected:
            await other.subscribe(SubscriptionRequest("r", 0, retain_handling=handling))
            if is_sent:
                assert (await other.message()).payload == b"x"
            await other.nothing()


async def test_a_slow_client_is_told_too_why_it_is_disconnected(mqtt: RunningMqtt) -> None:
    """What waited for it is sent first."""
    slow = await mqtt.connect("slow")
    await slow.subscribe("big", qos=0)
    publisher = await mqtt.connect("publisher")
    for _ in range(10):
        await publisher.publish("big", bytes(500_000), 0)
    await publisher.nothing()
    await slow.stream.send_all(b"\xff\xff")
    sizes: list[int] = []
    while isinstance(packet := await slow.next(), Publish):
        sizes.append(len(packet.payload))
    assert isinstance(packet, Disconnect)
    assert packet.reason == ReasonCode.MALFORMED_PACKET
    assert set(sizes) == {500_000}
    await slow.closed()


@VERSIONS
async def test_a_client_that_goes_on_sending_comes_to_read_why_it_is_disconnected(
    mqtt: RunningMqtt, version: Version, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is something to read: before MQTT 5 only the refusal of its CONNECT."""
    monkeypatch.setattr("leafcuttr_mqtt.server.connection._LINGER_S", 60.0)
    other = await mqtt.connect("other")
    client = await mqtt.connect("c", version)
    await client.stream.send_all(b"\xff\xff")
    if version is V5:
        await client.expect(Disconnect)
    await client.closed()
    fails = pytest.raises(trio.BrokenResourceError) if version is V3 else nullcontext()
    with fails:
        for _ in range(5):
            await client.send(PingReq())
            await other.nothing()
    assert mqtt.running.hub.connected == 1


async def test_a_client_that_is_disconnected_cannot_go_on_for_ever(
    mqtt: RunningMqtt, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await mqtt.connect("c")
    monkeypatch.setattr("leafcuttr_mqtt.server.connection._LINGER_S", 60.0)
    await client.stream.send_all(b"\xff\xff")
    with pytest.raises(trio.BrokenResourceError):  # so much is not discarded
        for _ in range(1000):
            await client.stream.send_all(bytes(1 << 16))
    client = await mqtt.connect("d")
    monkeypatch.setattr("leafcuttr_mqtt.server.connection._LINGER_S", 0.01)
    await client.stream.send_all(b"\xff\xff")

    async def is_closed() -> bool:
        try:
            await client.send(PingReq())
        except trio.BrokenResourceError:
            return True
        return False

    await eventually(is_closed, "the end of a connection")


async def test_the_time_for_connect_is_for_all_of_it_however_slowly_it_comes(tmp_path: Path) -> None:
    async with running_mqtt(tmp_path, {"mqtt.handshake.timeout.ms": 300}) as mqtt:
        client = await mqtt.dial()

        async def drip() -> None:
            with suppress(trio.BrokenResourceError):
                for byte in encode(Connect(V5, "c" * 60_000, True, 0), V5):
                    await client.stream.send_all(bytes([byte]))
                    await trio.sleep(0.02)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(drip)
            await client.closed()
            nursery.cancel_scope.cancel()


async def test_who_sends_many_small_packets_is_read_in_small_pieces(mqtt: RunningMqtt) -> None:
    """So that others have their turns: what a read brings is answered in one step of the loop."""
    asked: list[int | None] = []

    class Stream(LocalStream):
        async def receive_some(self, max_bytes: int | None = None) -> bytes:
            asked.append(max_bytes)
            return await super().receive_some(max_bytes)

    async def pings(count: int) -> None:
        await stream.to_broker.put(encode(PingReq(), V5) * count)
        got = 0
        while got < 2 * count:
            got += len(await stream.from_broker.take())
        assert got == 2 * count

    stream = Stream("flood")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(Connection(mqtt.running, stream).run)
        await stream.to_broker.put(encode(Connect(V5, "flood", True, 0), V5))
        await stream.from_broker.take()
        await pings(MOST_PACKETS)
        assert set(asked) == {READ_BYTES}
        await pings(MOST_PACKETS + 1)
        asked.clear()
        await pings(10_000)
        assert set(asked[1:]) == {SMALL_READ_BYTES}
        assert SMALL_READ_BYTES // 2 <= MOST_PACKETS
        stream.end()


async def test_a_bridge_hands_on_what_a_client_may_not_send(mqtt: RunningMqtt) -> None:
    """Its packets are those of another broker: it would send this one again and again."""
    many = Properties(user_properties=(("a", "b"),) * (MOST_REPEATED + 1))
    stream = LocalStream("bridge")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(Connection(mqtt.running, stream).run)
        await stream.to_broker.put(encode(Connect(V5, "bridge", True, 0), V5))
        await stream.from_broker.take()
        await stream.to_broker.put(encode(Publish("t", b"", 1, packet_id=7, properties=many), V5))
        answer = PacketReader.of_server(1000, V5).feed(bytes(await stream.from_broker.take()))
        assert answer == [PubAck(7, ReasonCode.NO_MATCHING_SUBSCRIBERS)]
        stream.end()


async def test_a_connection_that_is_idle_for_too_long_ends_alone(tmp_path: Path) -> None:
    """By the listener's own limit, which counts both directions: the broker goes on."""
    async with running_mqtt(tmp_path, {"mqtt.idle.timeout.ms": 500}) as mqtt:
        idle = await mqtt.connect("idle", will=Will("wills/idle", b"gone", 0, False), properties=OUTLIVES)
        ended = await idle.expect(Disconnect)
        assert ended.reason == ReasonCode.KEEP_ALIVE_TIMEOUT
        assert ended.properties.reason_string == "it was idle for mqtt.idle.timeout.ms"
        await idle.closed()
        again = await mqtt.connect("idle", clean=False, present=True, properties=OUTLIVES)
        await again.nothing()
        assert not mqtt.running.stopping
        assert mqtt.running.hub.connected == 1


async def test_at_the_stop_clients_are_told_so(tmp_path: Path) -> None:
    async with running_mqtt(tmp_path) as mqtt:
        client = await mqtt.connect("c")
        mqtt.stop()
        assert (await client.expect(Disconnect)).reason == ReasonCode.SERVER_SHUTTING_DOWN
        await client.closed()


async def test_a_client_that_is_taken_over_before_its_connack_gets_no_other_packet(
    mqtt: RunningMqtt,
) -> None:
    """[MQTT-3.2.0-1]: what is noted of its session is being stored still."""
    turns, hub = mqtt.running.turns, mqtt.running.hub
    connect = Connect(V5, "twice", False, 0, properties=OUTLIVES)
    turns._storing = True  # as long as something is stored nothing is sent
    first, second = await mqtt.dial(), await mqtt.dial()
    await first.send(connect)
    await eventually(lambda: hub.connected == 1, "the first one to be let in")
    before = hub.clients["twice"].connection
    await second.send(connect)
    await eventually(lambda: hub.clients["twice"].connection is not before, "the other to take over")
    turns._storing = False
    turns.conclude()
    assert (await second.expect(ConnAck)).session_present
    await first.closed()


async def test_a_malformed_packet_is_one_line_that_names_the_client_and_what_is_wrong(
    mqtt: RunningMqtt, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):  # of one host, within a minute
        client = await mqtt.connect("odd")
        caplog.set_level(logging.INFO)
        await client.stream.send_all(bytes([0x36, 4, 0, 1, ord("a"), 1]))
        assert (await client.expect(Disconnect)).reason == ReasonCode.MALFORMED_PACKET
        await client.closed()
    said = [each for each in caplog.records if "'odd'" in each.getMessage()]
    assert [each.levelno for each in said] == [logging.WARNING]
    line = said[0].getMessage()
    assert line.startswith("client 'odd' at 127.0.0.1:") and line.endswith("(MALFORMED_PACKET)")
    assert "\n" not in line


async def test_a_decision_that_comes_as_the_time_is_over_lets_nobody_in(
    mqtt: RunningMqtt, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Both in one step of the loop: what has decided is not cancelled any more."""

    async def admit(*_: object) -> Authenticated:
        for each in mqtt.running.connections:
            each.keep_alive_is_over()
        return Authenticated(ANONYMOUS)

    monkeypatch.setattr(mqtt.running.doorkeeper, "admit", admit)
    client = await mqtt.dial()
    await client.send(Connect(V5, "late", False, 0, properties=OUTLIVES))
    assert (await client.expect(ConnAck)).reason == ReasonCode.UNSPECIFIED_ERROR
    await client.closed()
    await eventually(lambda: not mqtt.running.connections, "its end")
    assert (mqtt.running.hub.connected, mqtt.sessions()) == (0, set())
    assert "failed" not in caplog.text
