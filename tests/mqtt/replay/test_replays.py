"""Histories, by packets on a socket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import trio

from leafcuttr_mqtt.mapping.settings import read_options, settings
from leafcuttr_mqtt.packets.types import (
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
)
from leafcuttr_mqtt.replay import replays as module
from leafcuttr_mqtt.replay.request import ReplayRequest
from leafcuttr_mqtt.session.types import Subscription
from leafcuttr_sdk import Appended, NewBatch, TopicPartition
from leafcuttr_sdk.errors import BrokerError
from leafcuttr_sdk.testing import fixed_settings
from support.mqtt import V3, MqttClient, RunningMqtt, running_mqtt

ON = {
    "mqtt.replay.enable": True,
    "mqtt.topic.mapping.devices/#": "devices",
    "mqtt.topic.mapping.devices/+/t": "temperatures",
    "mqtt.topic.mapping.site/+": "site-{1}",
    "num.partitions": 3,
}


@pytest.fixture
async def mqtt(tmp_path: Path) -> AsyncIterator[RunningMqtt]:
    async with running_mqtt(tmp_path, ON) as found:
        yield found


async def publish(
    mqtt: RunningMqtt, topic: str, *payloads: bytes, qos: int = 1, client_id: str = "dev"
) -> None:
    client = await mqtt.connect(client_id, present=None)
    for payload in payloads:
        await client.publish(topic, payload, qos)
    await client.leave()


async def payloads(client: MqttClient, count: int) -> list[bytes]:
    return [(await client.message()).payload for _ in range(count)]


@pytest.mark.setting("mqtt.replay.enable")
async def test_stored_messages_come_first_and_then_the_live_ones(mqtt: RunningMqtt) -> None:
    await publish(mqtt, "devices/1/t", b"1", b"2")
    await publish(mqtt, "devices/2/h", b"not wanted")
    await publish(mqtt, "devices/1/t", b"3", qos=2)
    client = await mqtt.connect("client")
    answer = await client.subscribe("$replay/ts/0/devices/+/t", qos=1, identifier=7)
    assert answer.reasons == (1,)
    for payload in (b"1", b"2", b"3"):
        message = await client.message()
        assert (message.topic, message.payload, message.qos, message.retain) == (
            "devices/1/t",
            payload,
            1,
            False,
        )
        assert message.properties.subscription_identifiers == (7,)
    await publish(mqtt, "devices/1/t", b"live")
    assert await payloads(client, 1) == [b"live"]
    await client.nothing()


async def test_a_message_that_is_in_several_kafka_topics_comes_once(mqtt: RunningMqtt) -> None:
    await publish(mqtt, "devices/1/t", b"1")
    assert len(await mqtt.records("devices")) == len(await mqtt.records("temperatures")) == 1
    client = await mqtt.connect("client")
    await client.subscribe("$replay/offset/0/#")
    assert await payloads(client, 1) == [b"1"]
    await publish(mqtt, "elsewhere", b"live")
    assert await payloads(client, 1) == [b"live"]


async def test_from_a_time_and_from_an_offset(mqtt: RunningMqtt) -> None:
    await publish(mqtt, "site/x", *[b"%d" % n for n in range(5)])
    (partition,) = [
        each
        for each in range(3)
        if (await mqtt.broker.offsets({TopicPartition("site-x", each): -1}))[TopicPartition("site-x", each)]
    ]
    fetched = await mqtt.broker.fetch({TopicPartition("site-x", partition): 0})
    since = fetched.records[2].timestamp
    later = [record.value for record in fetched.records if record.timestamp >= since]
    by_time = await mqtt.connect("by-time")
    await by_time.subscribe(f"$replay/ts/{since}/site/#")
    assert await payloads(by_time, len(later)) == later
    by_offset = await mqtt.connect("by-offset")
    await by_offset.subscribe("$replay/offset/3/site/x")
    assert await payloads(by_offset, 2) == [b"3", b"4"]
    beyond = await mqtt.connect("beyond")
    await beyond.subscribe("$replay/offset/999/site/x")
    in_future = await mqtt.connect("in-future")
    await in_future.subscribe("$replay/ts/99999999999999/site/x")
    await publish(mqtt, "site/x", b"live")
    for client in (by_time, by_offset, beyond, in_future):
        assert await payloads(client, 1) == [b"live"]
        await client.nothing()


@pytest.mark.long
async def test_more_than_a_client_takes_at_once(mqtt: RunningMqtt) -> None:
    count = 3000
    publisher = await mqtt.connect("dev")
    for number in range(count):
        await publisher.publish("devices/1/t", b"%d" % number)
    await publisher.nothing()
    for qos, expiry in ((0, 0), (1, 0), (1, 3600)):
        properties = Properties(session_expiry_interval=expiry)
        client = await mqtt.connect(f"client-{qos}-{expiry}", properties=properties)
        await client.subscribe("$replay/ts/0/devices/#", qos=qos)
        assert [int(each) for each in await payloads(client, count)] == list(range(count))
        await client.nothing()


@pytest.mark.long
async def test_what_is_published_meanwhile_is_neither_lost_nor_twice(mqtt: RunningMqtt) -> None:
    """Mapped and not; several publishers go on while clients begin. One of two Kafka topics is synced: what is in the
    other one waits for that before it is live."""
    await mqtt.broker.topics.create("temperatures", configs={"lc.log.sync.always": "true"})
    seen: dict[str, list[tuple[str, int]]] = {}
    stop = trio.Event()
    sent: dict[str, int] = {}

    async def go_on(topic: str) -> None:
        client = await mqtt.connect(f"p-{topic}")
        number = 0
        while not stop.is_set():
            await client.publish(topic, b"%d" % number, 1)
            number += 1
        sent[topic] = number
        await client.publish(topic, b"-1", 1)

    async def watch(name: str) -> None:
        client = await mqtt.connect(name)
        await client.subscribe("$replay/ts/0/#", qos=1)
        found = seen[name] = []
        ended = 0
        while ended < 3:
            message = await client.message()
            number = int(message.payload)
            ended += number < 0
            if number >= 0:
                found.append((message.topic, number))

    async with trio.open_nursery() as nursery:
        for topic in ("devices/1/t", "site/x", "unmapped"):
            nursery.start_soon(go_on, topic)
        for number in range(5):
            await trio.sleep(0.1)
            nursery.start_soon(watch, f"w{number}")
        await trio.sleep(0.3)
        stop.set()
    for found in seen.values():
        for topic in ("devices/1/t", "site/x"):
            assert [number for name, number in found if name == topic] == list(range(sent[topic]))
        unmapped = [number for name, number in found if name == "unmapped"]
        assert unmapped == list(range(unmapped[0], sent["unmapped"]))


async def test_a_history_that_is_given_up(mqtt: RunningMqtt, monkeypatch: pytest.MonkeyPatch) -> None:
    await publish(mqtt, "devices/1/t", *[b"%d" % number for number in range(300)])
    client = await mqtt.connect("client", properties=Properties(receive_maximum=1))
    await client.subscribe("$replay/ts/0/devices/#", qos=1)
    first = await client.message()
    assert first.payload == b"0"
    await client.send(Unsubscribe(2, ("$replay/ts/0/devices/#",)))
    while not isinstance(packet := await client.next(), UnsubAck):
        pass
    assert packet.reasons == (0,)
    await client.send(Unsubscribe(3, ("devices/#",)))
    while not isinstance(packet := await client.next(), UnsubAck):
        pass
    assert packet.reasons == (ReasonCode.NO_SUBSCRIPTION_EXISTED,)


async def test_a_session_keeps_the_live_subscription(mqtt: RunningMqtt) -> None:
    keep = Properties(session_expiry_interval=3600)
    await publish(mqtt, "devices/1/t", b"1")
    client = await mqtt.connect("client", clean=False, properties=keep)
    await client.subscribe("$replay/ts/0/devices/#", qos=1)
    assert await payloads(client, 1) == [b"1"]
    await publish(mqtt, "devices/1/t", b"2")
    assert await payloads(client, 1) == [b"2"]
    await client.leave()
    await publish(mqtt, "devices/1/t", b"3")
    client = await mqtt.connect("client", clean=False, properties=keep, present=True)
    assert await payloads(client, 1) == [b"3"]
    await client.send(Unsubscribe(2, ("devices/#",)))
    assert (await client.expect(UnsubAck)).reasons == (0,)


async def test_a_message_that_is_in_the_log_and_not_yet_live_does_not_come_twice(
    mqtt: RunningMqtt, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine that is busy a turn took longer than was waited for."""
    monkeypatch.setattr(module, "CHANGE_S", 0.0)
    turns, replays = mqtt.running.turns, mqtt.running.replays
    assert replays is not None
    append, go_on = turns._append, trio.Event()

    async def held(batches: Sequence[NewBatch]) -> list[Appended | BrokerError]:
        answers = await append(batches)
        if any(each.partition.topic == "devices" for each in batches):
            await go_on.wait()
        return answers

    monkeypatch.setattr(turns, "_append", held)
    publisher, client = await mqtt.connect("dev"), await mqtt.connect("client")
    await publisher.send(Publish("devices/1/t", b"1", 1, packet_id=1))
    with trio.fail_after(20):
        while not await mqtt.records("devices"):
            await trio.sleep(0.01)
    await client.subscribe("$replay/ts/0/devices/#", qos=1)
    assert await payloads(client, 1) == [b"1"]
    (replay,) = replays._going_on.values()
    with trio.fail_after(20):
        while replay._end_at is None:
            await trio.sleep(0.01)
    await mqtt.connect("other")  # turns of others do not end it
    assert replays.is_sent(replay)
    go_on.set()
    await publisher.expect(PubAck)
    await publisher.publish("devices/1/t", b"2", 1)
    assert await payloads(client, 1) == [b"2"]
    await client.nothing()
    with trio.fail_after(20):
        while replays.is_sent(replay):
            await trio.sleep(0.01)


async def test_a_history_goes_on_when_its_client_is_back(mqtt: RunningMqtt) -> None:
    keep = Properties(session_expiry_interval=3600, receive_maximum=5)
    await publish(mqtt, "devices/1/t", *[b"%d" % number for number in range(500)])
    client = await mqtt.connect("client", clean=False, properties=keep)
    await client.subscribe("$replay/ts/0/#", qos=1)
    assert [int(each) for each in await payloads(client, 20)] == list(range(20))
    await client.vanish()
    await publish(mqtt, "devices/1/t", b"500", b"501")
    await publish(mqtt, "unmapped", b"-1")
    client = await mqtt.connect("client", clean=False, properties=keep, present=True)
    numbers: list[int] = []
    while not {-1, 501} <= set(numbers):
        numbers += map(int, await payloads(client, 1))
    # What was under way when the client went comes again.
    assert [each for each in dict.fromkeys(numbers) if each >= 0] == list(range(numbers[0], 502))
    assert numbers[0] <= 20
    await publish(mqtt, "devices/1/t", b"502")
    while int((await client.message()).payload) != 502:
        pass
    await client.nothing()


async def test_no_local_and_expired(mqtt: RunningMqtt) -> None:
    other = await mqtt.connect("other")
    await other.publish("devices/1/t", b"expired", 1, properties=Properties(message_expiry_interval=0))
    await other.publish("devices/1/t", b"other", 1, properties=Properties(message_expiry_interval=100))
    client = await mqtt.connect("client")
    await client.publish("devices/1/t", b"own", 1)
    await client.subscribe(SubscriptionRequest("$replay/ts/0/devices/#", 1, no_local=True))
    assert await payloads(client, 1) == [b"other"]
    await client.publish("devices/1/t", b"own", 1)
    await client.publish("unmapped", b"own", 1)
    await client.nothing()


async def stored(mqtt: RunningMqtt, count: int, qos: int = 1) -> None:
    """Messages of one topic, by their numbers."""
    publisher = await mqtt.connect("dev", present=None)
    for first in range(0, count, 100):
        ids = range(1, 101)
        await publisher.send(
            *[Publish("devices/1/t", b"%d" % (first + each - 1), qos, packet_id=each) for each in ids]
        )
        for _ in ids:
            await publisher.expect(PubAck if qos == 1 else PubRec)  # type: ignore[arg-type]
        if qos == 2:
            await publisher.send(*[PubRel(each) for each in ids])
            for _ in ids:
                await publisher.expect(PubComp)
    await publisher.leave()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("qos", [1, 2])
async def test_it_goes_on_after_a_restart_of_the_broker(tmp_path: Path, qos: int) -> None:
    """It was over: the client got live messages only."""
    count = 1000
    properties = Properties(session_expiry_interval=3600)
    found: list[int] = []
    async with running_mqtt(tmp_path, ON) as mqtt:
        await stored(mqtt, count, qos)
        client = await mqtt.connect("client", properties=properties)
        await client.subscribe("$replay/ts/0/devices/#", qos=qos)
        found += [int(each) for each in await payloads(client, 300)]
        mqtt.stop()
    async with running_mqtt(tmp_path, ON) as mqtt:
        await publish(mqtt, "devices/1/t", b"%d" % count, qos=qos)
        client = await mqtt.connect("client", properties=properties, clean=False, present=True)
        while found[-1:] != [count]:
            message = await client.message()
            # What it may have had is sent with the flag; nothing comes twice without.
            if not message.duplicate or int(message.payload) not in found:
                found.append(int(message.payload))
        await client.nothing()
        assert found == list(range(count + 1))
        await publish(mqtt, "devices/1/t", b"live")
        assert await payloads(client, 1) == [b"live"]
        await client.leave()
        mqtt.stop()
    async with running_mqtt(tmp_path, ON) as mqtt:
        client = await mqtt.connect("client", properties=properties, clean=False, present=True)
        await client.nothing()
        assert not mqtt.running.hub.histories(mqtt.running.hub.clients["client"])


async def test_one_that_was_not_begun_before_a_restart_begins_after_it(tmp_path: Path) -> None:
    properties = Properties(session_expiry_interval=3600)
    async with running_mqtt(tmp_path, ON) as mqtt:
        await stored(mqtt, 100)
        client = await mqtt.connect("client", properties=properties)
        replays = mqtt.running.replays
        assert replays is not None
        # Its client is away: nothing is read for it.
        hub = mqtt.running.hub
        await client.leave()
        subscription = Subscription("devices/#", 1)
        assert replays.begin(hub.clients["client"], subscription, ReplayRequest("devices/#", None, 94))
        hub.note(hub.clients["client"])
        mqtt.running.turns.conclude()
        await mqtt.running.turns.quiet()
        mqtt.stop()
    async with running_mqtt(tmp_path, ON) as mqtt:
        client = await mqtt.connect("client", properties=properties, clean=False, present=True)
        assert [int(each) for each in await payloads(client, 6)] == list(range(94, 100))
        await client.nothing()


async def test_positions_that_the_log_has_no_more(tmp_path: Path) -> None:
    """Retention, or another topic of that name."""
    properties = Properties(session_expiry_interval=3600)
    async with running_mqtt(tmp_path, ON) as mqtt:
        await stored(mqtt, 1000)
        client = await mqtt.connect("client", properties=properties)
        await client.subscribe("$replay/ts/0/devices/1/#", qos=1)
        first = [int(each) for each in await payloads(client, 20)]
        assert first == list(range(20))
        mqtt.stop()
    async with running_mqtt(tmp_path, ON) as mqtt:
        await mqtt.broker.topics.delete("devices")
        await mqtt.broker.topics.create("devices", partitions=3)
        await publish(mqtt, "devices/1/t", b"new")
        client = await mqtt.connect("client", properties=properties, clean=False, present=True)
        while (await client.message()).payload != b"new":
            pass
        await client.nothing()


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ("$replay/ts/0/a/#/b", ReasonCode.TOPIC_FILTER_INVALID),
        ("$replay/days/0/a", ReasonCode.TOPIC_FILTER_INVALID),
        ("$replay/ts/0/$share/g/a", ReasonCode.TOPIC_FILTER_INVALID),
    ],
)
async def test_what_is_refused(mqtt: RunningMqtt, asked: str, reason: int) -> None:
    client = await mqtt.connect("client")
    answer = await client.subscribe(asked, "fine", qos=1)
    assert answer.reasons == (reason, 1)
    assert answer.properties.reason_string


async def test_clients_of_3_1_1_get_none(mqtt: RunningMqtt) -> None:
    client = await mqtt.connect("client", V3)
    assert (await client.subscribe("$replay/ts/0/devices/#")).reasons == (0x80,)


async def test_too_many(mqtt: RunningMqtt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 0)
    client = await mqtt.connect("client")
    assert (await client.subscribe("$replay/ts/0/devices/#")).reasons == (ReasonCode.QUOTA_EXCEEDED,)


async def test_it_is_off_unless_it_is_set(tmp_path: Path) -> None:
    async with running_mqtt(tmp_path) as mqtt:
        client = await mqtt.connect("client")
        answer = await client.subscribe("$replay/ts/0/devices/#")
        assert answer.reasons == (ReasonCode.NOT_AUTHORIZED,)
        assert answer.properties.reason_string == "histories are off: mqtt.replay.enable is false"


def test_it_does_not_go_with_another_cluster() -> None:
    given = {"mqtt.replay.enable": True, "mqtt.kafka.bootstrap.servers": "a:1"}
    with pytest.raises(ValueError, match=r"^mqtt.replay.enable: it reads Kafka topics of this broker"):
        read_options(fixed_settings(settings(), given))
