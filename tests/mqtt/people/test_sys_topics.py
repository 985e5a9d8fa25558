"""`$SYS/broker/...`: which topics there are, what is in them, and when they come."""

from __future__ import annotations

import math
import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest
import trio

from leafcuttr_mqtt.packets.types import ConnAck, Connect, Properties
from leafcuttr_mqtt.people.sys_topics import INTERVAL_S, PREFIX
from leafcuttr_mqtt.server.running import Running
from support.mqtt import V3, V5, MqttClient, RunningMqtt
from support.waiting import eventually, free_port


async def values(client: MqttClient, count: int) -> dict[str, str]:
    found = {}
    for _ in range(count):
        message = await client.message()
        found[message.topic.removeprefix(PREFIX)] = message.payload.decode()
    return found


async def test_a_subscriber_gets_them_at_once(mqtt: RunningMqtt, running: Running) -> None:
    names = list(running.sys_topics.names())
    assert len(names) == len(set(names)) == 23 + 8 * 3
    one = await mqtt.connect("one", V3)
    await one.publish("devices/1", b"x", 1)
    await one.publish("devices/1", b"x", 0, retain=True)
    await one.nothing()
    await one.subscribe("$SYS/broker/#")
    found = await values(one, len(names))
    assert {PREFIX + name for name in found} == set(names)
    assert found["clients/connected"] == found["clients/total"] == found["clients/maximum"] == "1"
    assert found["publish/messages/received"] == "2"
    assert found["subscriptions/count"] == "1"
    assert found["retained messages/count"] == "1"
    assert found["version"].startswith("LeafCuttr ")
    assert found["uptime"].endswith(" seconds")
    assert found["load/publish/received/1min"] == "0.00"
    await one.nothing()


async def test_they_are_retained_for_a_new_subscriber_and_live_later(
    mqtt: RunningMqtt, running: Running
) -> None:
    one = await mqtt.connect("one")
    await one.subscribe(f"{PREFIX}clients/connected")
    message = await one.message()
    assert (message.retain, message.qos, message.payload) == (True, 0, b"1")
    other = await mqtt.connect("other")
    await running.sys_topics.look(INTERVAL_S)
    message = await one.message()
    assert (message.retain, message.qos, message.payload) == (False, 0, b"2")
    await one.nothing()
    await other.nothing()


@pytest.mark.parametrize("topic_filter", ["#", "+/broker/uptime", "$share/g/$SYS/broker/uptime"])
async def test_wildcards_at_the_beginning_do_not_match_them(
    mqtt: RunningMqtt, running: Running, topic_filter: str
) -> None:
    """[MQTT-4.7.2-1]; members of a shared subscription get nothing at once, as with retained messages."""
    one = await mqtt.connect("one")
    await one.subscribe(topic_filter)
    await one.nothing()
    await running.sys_topics.look(INTERVAL_S)
    if topic_filter.startswith("$share"):
        assert (await one.message()).topic == f"{PREFIX}uptime"
    await one.nothing()


async def test_clients_do_not_write_them(mqtt: RunningMqtt) -> None:
    one = await mqtt.connect("one", V3)
    await one.subscribe(f"{PREFIX}uptime")
    await one.message()
    await one.publish(f"{PREFIX}uptime", b"forged", 1)
    await one.nothing()


async def test_nothing_waits_for_a_session_that_is_away(mqtt: RunningMqtt, running: Running) -> None:
    lasts = Properties(session_expiry_interval=300)
    one = await mqtt.connect("one", clean=False, properties=lasts)
    await one.subscribe(f"{PREFIX}clients/#", qos=2)
    await values(one, 7)
    await one.leave()
    await running.sys_topics.look(INTERVAL_S)
    again = await mqtt.connect("one", clean=False, present=True, properties=lasts)
    await again.nothing()


async def test_texts_are_made_for_subscribers_only(
    mqtt: RunningMqtt, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    message = running.sys_topics._messages

    def counted(wanted: object) -> object:
        for one in message(wanted):  # type: ignore[arg-type]
            made.append(one.topic)
            yield one

    monkeypatch.setattr(running.sys_topics, "_messages", counted)
    await running.sys_topics.look(INTERVAL_S)
    assert made == []
    one = await mqtt.connect("one")
    await one.subscribe(f"{PREFIX}uptime")
    await one.message()
    await running.sys_topics.look(INTERVAL_S)
    assert made == [f"{PREFIX}uptime"] * 2


async def test_averages(mqtt: RunningMqtt, running: Running) -> None:
    """120 messages a minute for a minute: the first average has come as near as 1 - 1/e."""
    one = await mqtt.connect("one")
    for _ in range(6):
        running.counts.received[0] += 20
        await running.sys_topics.look(10)
    await one.subscribe(f"{PREFIX}load/publish/received/+")
    found = await values(one, 3)
    for minutes in (1, 5, 15):
        expected = 120 * (1 - math.exp(-1 / minutes))
        assert float(found[f"load/publish/received/{minutes}min"]) == pytest.approx(expected, abs=0.01)
    await one.leave()
    for _ in range(100):
        await running.sys_topics.look(60)
    other = await mqtt.connect("other")
    await other.subscribe(f"{PREFIX}load/publish/received/1min")
    assert (await other.message()).payload == b"0.00"


@pytest.mark.skipif(shutil.which("mosquitto") is None, reason="not installed: mosquitto")
async def test_mosquitto_has_them_too(mqtt: RunningMqtt, running: Running, tmp_path: Path) -> None:
    port = free_port()
    config = tmp_path / "mosquitto.conf"
    config.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\nsys_interval 1\n")
    theirs: set[str] = set()
    async with trio.open_nursery() as nursery:
        await nursery.start(
            partial(trio.run_process, ["mosquitto", "-c", str(config)], stderr=subprocess.DEVNULL)
        )
        stream = await eventually(lambda: dialled(port), "mosquitto")
        client = MqttClient(stream, V5)
        await client.send(Connect(V5, "reader", True, 0))
        await client.expect(ConnAck)
        await client.subscribe("$SYS/#", qos=0)
        # It has these in other versions, or once there is something to say.
        later = tuple(PREFIX + name for name in ("timestamp", "messages/inflight", "load/publish/dropped"))
        ours = {name for name in running.sys_topics.names() if not name.startswith(later)}
        while not ours <= theirs:
            theirs.add((await client.message()).topic)
        nursery.cancel_scope.cancel()


async def dialled(port: int) -> trio.SocketStream | None:
    try:
        return await trio.open_tcp_stream("127.0.0.1", port)
    except OSError:
        return None
