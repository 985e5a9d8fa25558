"""Bridges of a whole broker, with Debian's mosquitto, or another LeafCuttr, as the other side."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from leafcuttr_mqtt.bridge.bridges import RunningBridge
from leafcuttr_mqtt.packets.types import ConnAck, Connect, Properties, PubAck, ReasonCode, Version
from support.mqtt import V3, V5, RunningMqtt, running_mqtt
from support.mqtt_bridges import (
    PROTOCOLS,
    Mosquitto,
    bridge,
    client_of,
    each_with_each,
    is_up,
    mosquitto,
    needs_mosquitto,
)
from support.waiting import free_port


@pytest.mark.one_in(3)
@pytest.mark.setting("mqtt.bridge.<name and option>")
@needs_mosquitto
@PROTOCOLS
@pytest.mark.parametrize("qos", [0, 1, 2])
async def test_messages_go_both_ways(tmp_path: Path, protocol: str, qos: int) -> None:
    async with mosquitto(tmp_path / "there") as there:
        topics = f'sensors/# out {qos} "" site/, commands/# in {qos} "" site/7/'
        async with running_mqtt(
            tmp_path / "here", bridge(there.port, topics, protocol_version=protocol)
        ) as here:
            await is_up(here)
            at_there, at_here = await client_of(there.port, "at-there"), await here.connect("at-here")
            await at_there.subscribe("#")
            await at_here.subscribe("#")
            publisher = await here.connect("publisher")
            await publisher.publish("sensors/a", b"1", qos, retain=True)
            got = await at_there.message()
            assert (got.topic, got.payload, got.qos) == ("site/sensors/a", b"1", qos)
            assert (await at_here.message()).topic == "sensors/a"
            publisher_there = await client_of(there.port, "publisher")
            await publisher_there.publish("site/7/commands/b", b"2", qos)
            got = await at_here.message()
            assert (got.topic, got.payload, got.qos) == ("commands/b", b"2", qos)
            assert (await at_there.message()).topic == "site/7/commands/b"
            # Nothing has come back, and the flag has gone along.
            await at_here.nothing()
            await at_there.nothing()
            late = await client_of(there.port, "late")
            await late.subscribe("site/#")
            got = await late.message()
            assert (got.topic, got.payload, got.retain) == ("site/sensors/a", b"1", True)


@pytest.mark.one_in(3)
@needs_mosquitto
@PROTOCOLS
async def test_nothing_comes_back(tmp_path: Path, protocol: str) -> None:
    """Both directions with the same names."""
    async with mosquitto(tmp_path / "there") as there:
        settings = bridge(there.port, "loop/# both 2", protocol_version=protocol)
        async with running_mqtt(tmp_path / "here", settings) as here:
            await is_up(here)
            at_there, at_here = await client_of(there.port, "at-there"), await here.connect("at-here")
            await at_there.subscribe("loop/#")
            await at_here.subscribe("loop/#")
            publisher = await here.connect("publisher")
            publisher_there = await client_of(there.port, "publisher")
            for number in range(20):
                await publisher.publish("loop/here", b"%d" % number, 2)
                await publisher_there.publish("loop/there", b"%d" % number, 2)
            for client in (at_there, at_here):
                got = [await client.message() for _ in range(40)]
                await client.nothing()
                for topic in ("loop/here", "loop/there"):
                    assert [each.payload for each in got if each.topic == topic] == [
                        b"%d" % number for number in range(20)
                    ]


@pytest.mark.one_in(3)
@needs_mosquitto
@PROTOCOLS
@pytest.mark.parametrize("qos", [1, 2])
async def test_messages_wait_while_the_other_side_is_away(tmp_path: Path, protocol: str, qos: int) -> None:
    """Here in the log, over a restart of this broker; there in the session that the bridge has there."""
    there = Mosquitto(tmp_path / "there")
    settings = bridge(there.port, f"out/# out {qos}, in/# in {qos}", protocol_version=protocol)
    await there.start()
    try:
        at_there = await client_of(there.port, "at-there", clean=False)
        await at_there.subscribe("out/#", qos=2)
        await at_there.vanish()
        async with running_mqtt(tmp_path / "here", settings) as here:
            await is_up(here)
            at_here = await here.connect("at-here", V3, clean=False)
            await at_here.subscribe("in/#", qos=2)
            await at_here.leave()
            publisher = await here.connect("publisher")
            await publisher.publish("out/a", b"0", qos)
            there.stop()
            await is_up(here, b"0")
            for number in range(1, 50):
                await publisher.publish("out/a", b"%d" % number, qos)
        async with running_mqtt(tmp_path / "here", settings) as here:
            publisher = await here.connect("publisher")
            for number in range(50, 60):
                await publisher.publish("out/a", b"%d" % number, qos)
        await there.start()
        publisher = await client_of(there.port, "publisher")
        for number in range(10):
            await publisher.publish("in/a", b"%d" % number, qos)
        async with running_mqtt(tmp_path / "here", settings) as here:
            at_here = await here.connect("at-here", V3, clean=False, present=True)
            assert [(await at_here.message()).payload for _ in range(10)] == [b"%d" % n for n in range(10)]
            await at_here.nothing()
            at_there = await client_of(there.port, "at-there", clean=False)
            assert [(await at_there.message()).payload for _ in range(60)] == [b"%d" % n for n in range(60)]
            await at_there.nothing()
    finally:
        there.stop()


@pytest.mark.one_in(2)
@PROTOCOLS
async def test_between_two_of_this_kind(tmp_path: Path, protocol: str) -> None:
    """With retained messages, with properties in 5.0, and nothing comes back."""
    async with running_mqtt(tmp_path / "there") as there:
        early = await there.connect("early")
        await early.publish("both/kept", b"there", 1, retain=True)
        settings = bridge(there.port, 'both/# both 2 "" site/, both/# in 1', protocol_version=protocol)
        async with running_mqtt(tmp_path / "here", settings) as here:
            await is_up(here)
            at_here, at_there = await here.connect("at-here"), await there.connect("at-there")
            await at_here.subscribe("both/#")
            got = await at_here.message()
            # It may have come before this client has subscribed, or after it.
            assert (got.topic, got.payload) == ("both/kept", b"there")
            await at_there.subscribe("site/#")
            publisher = await here.connect("publisher")
            sent = Properties(content_type="t", response_topic="r", user_properties=(("k", "v"),))
            await publisher.publish("both/a", b"1", 2, properties=sent)
            got = await at_there.message()
            assert (got.topic, got.payload, got.qos) == ("site/both/a", b"1", 2)
            assert got.properties == (sent if protocol == "5.0" else Properties())
            assert (await at_here.message()).payload == b"1"
            publisher_there = await there.connect("publisher")
            await publisher_there.publish("site/both/b", b"2", 1, properties=sent)
            got = await at_here.message()
            assert (got.topic, got.payload, got.qos) == ("both/b", b"2", 1)
            assert got.properties == (sent if protocol == "5.0" else Properties())
            assert (await at_there.message()).payload == b"2"
            await at_here.nothing()
            await at_there.nothing()
            late = await here.connect("late")
            await late.subscribe("both/kept")
            assert (await late.message()).retain


@pytest.mark.parametrize("more", [{}, {"client_id": "given"}])
async def test_a_bridge_to_this_broker_itself(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, more: dict[str, str]
) -> None:
    """Its messages would go round for ever."""
    port = free_port()
    settings = {**bridge(port, "# both 1", **more), "mqtt.port": str(port)}
    async with running_mqtt(tmp_path, settings) as here:
        with trio.fail_after(20):
            while "the other broker is this one" not in caplog.text:
                await trio.sleep(0.01)
        client = await here.connect("client")
        await client.subscribe("#")
        await client.publish("a", b"1")
        assert (await client.message()).payload == b"1"
        await client.nothing()


@pytest.mark.one_in(3)
@needs_mosquitto
@PROTOCOLS
async def test_a_broker_there_that_is_killed(tmp_path: Path, protocol: str) -> None:
    """What it had is its affair; what is published here meanwhile arrives, and the last comes last."""
    there = Mosquitto(tmp_path / "there")
    settings = bridge(there.port, "out/# out 1", protocol_version=protocol)
    await there.start()
    try:
        async with running_mqtt(tmp_path / "here", settings) as here:
            await is_up(here)
            publisher = await here.connect("publisher")
            for _ in range(3):
                there.stop(kill=True)
                await is_up(here, b"0")
                for number in range(100):
                    await publisher.publish(f"out/{number}", b"%d" % number, 1, retain=True)
                await there.start()
                await is_up(here)
                at_there = await client_of(there.port, "at-there")
                await at_there.subscribe("out/#")
                found = {(await at_there.message()).payload for _ in range(100)}
                assert found == {b"%d" % number for number in range(100)}
                await at_there.leave()
    finally:
        there.stop()


@needs_mosquitto
async def test_notifications_there(tmp_path: Path) -> None:
    """Also where this broker vanishes: they are the will of the bridge."""
    async with mosquitto(tmp_path / "there") as there:
        settings = bridge(there.port, "out/# out", client_id="me", notification_topic="bridges/me")
        watcher = await client_of(there.port, "watcher")
        await watcher.subscribe("bridges/#")
        async with running_mqtt(tmp_path / "here", settings):
            got = await watcher.message()
            assert (got.topic, got.payload) == ("bridges/me", b"1")
            taker = await client_of(there.port, "me")  # takes its place: the will is published
            assert (await watcher.message()).payload == b"0"
            await taker.vanish()
            while (await watcher.message()).payload != b"1":
                pass
        assert (await watcher.message()).payload == b"0"


async def test_notifications_at_another_of_this_kind(tmp_path: Path) -> None:
    """A client may publish its own state below $SYS, and nothing else there."""
    state = "$SYS/broker/connection/me/state"
    async with running_mqtt(tmp_path / "there") as there:
        watcher = await there.connect("watcher")
        await watcher.subscribe("$SYS/broker/connection/#")
        settings = bridge(there.port, "out/# out", client_id="me")
        async with running_mqtt(tmp_path / "here", settings):
            got = await watcher.message()
            assert (got.topic, got.payload) == (state, b"1")
        got = await watcher.message()
        assert (got.topic, got.payload) == (state, b"0")
        client = await there.connect("client")
        answer = await client.publish(state, b"1", 1)
        assert isinstance(answer, PubAck)
        assert answer.reason == 0x87


@pytest.mark.one_in(3)
@needs_mosquitto
@PROTOCOLS
async def test_subscriptions_here_follow_the_rules(tmp_path: Path, protocol: str) -> None:
    """Retained messages go over when the subscription is new, and not with each connection; what no rule says any more
    does not go over."""
    async with mosquitto(tmp_path / "there") as there:
        async with running_mqtt(tmp_path / "here") as here:
            publisher = await here.connect("publisher")
            await publisher.publish("out/kept", b"1", 2, retain=True)
        settings = bridge(there.port, "out/# out 2", protocol_version=protocol)
        at_there = await client_of(there.port, "at-there")
        await at_there.subscribe("out/#")
        for turn in range(2):
            async with running_mqtt(tmp_path / "here", settings) as here:
                await is_up(here)
                publisher = await here.connect("publisher")
                if not turn:
                    assert (await at_there.message()).topic == "out/kept"
                await publisher.publish("out/turn", b"%d" % turn, 2)
                assert (await at_there.message()).payload == b"%d" % turn
        settings = bridge(there.port, "other/# out 2", protocol_version=protocol)
        await at_there.subscribe("other/#")
        async with running_mqtt(tmp_path / "here", settings) as here:
            await is_up(here)
            publisher = await here.connect("publisher")
            await publisher.publish("out/turn", b"x", 2)
            await publisher.publish("other/a", b"y", 2)
            assert (await at_there.message()).topic == "other/a"
            await at_there.nothing()


@needs_mosquitto
async def test_messages_from_there_are_stored_before_they_are_acknowledged(tmp_path: Path) -> None:
    async with mosquitto(tmp_path / "there") as there:
        settings = {
            **bridge(there.port, 'devices/# in 2 "" site/'),
            "mqtt.topic.mapping.devices/#": "from-devices",
        }
        async with running_mqtt(tmp_path / "here", settings) as here:
            await is_up(here)
            subscriber = await here.connect("subscriber")
            await subscriber.subscribe("devices/#")
            publisher = await client_of(there.port, "publisher")
            for qos in (0, 1, 2):
                await publisher.publish("site/devices/1", b"%d" % qos, qos)
                assert (await subscriber.message()).payload == b"%d" % qos
            found = await here.records("from-devices")
            assert [(key, value, headers["mqtt.client_id"]) for key, value, headers in found] == [
                (b"devices/1", b"%d" % qos, b"bridge.cloud") for qos in (0, 1, 2)
            ]


@pytest.mark.parametrize("version", [V3, V5])
async def test_no_client_takes_the_identifier_of_a_bridge(
    tmp_path: Path, version: Version, caplog: pytest.LogCaptureFixture
) -> None:
    """It would have the session, and what waits there."""
    async with running_mqtt(tmp_path / "there") as there:
        settings = bridge(there.port, "out/# out 1")
        async with running_mqtt(tmp_path / "here", settings) as here:
            await is_up(here)
            of_cluster = f"leafcuttr-{here.broker.cluster.cluster_id}-cloud"
            for client_id in ("bridge.cloud", of_cluster):
                client = await here.dial(version)
                await client.send(Connect(version, client_id, False, 0))
                answer = await client.expect(ConnAck)
                assert answer.reason == (ReasonCode.CLIENT_IDENTIFIER_NOT_VALID if version == V5 else 2)
                await client.closed()
            said = "its client identifier 'bridge.cloud' is that of a bridge of this broker"
            assert caplog.text.count(said) == 1, "one line a minute for each host"
            (running,) = here.running.bridges
            assert (running.connections, running.connected_to is not None) == (1, True)
            # Others of this form are nobody's.
            await here.connect("bridge.other", version)
            # The other broker knows no such bridge: it is an identifier as any other there.
            await there.connect("bridge.cloud", version)
            publisher, at_there = await here.connect("p"), await there.connect("s")
            await at_there.subscribe("out/#")
            await publisher.publish("out/a", b"1", 1)
            assert (await at_there.message()).payload == b"1"


async def test_bridges_of_both_sides_may_have_the_same_identifier(tmp_path: Path) -> None:
    """Each is a client of the other broker only."""
    port = free_port()
    async with running_mqtt(tmp_path / "there") as first:
        settings = {**bridge(first.port, "a/# out 1", client_id="plant"), "mqtt.port": port}
        async with running_mqtt(tmp_path / "here", settings) as here:
            await is_up(here)
            async with running_mqtt(
                tmp_path / "third", {**bridge(port, "b/# out 1", client_id="plant")}
            ) as third:
                await is_up(third)
                # A client with this identifier is connected to `here`, whose own bridge connects again all the same.
                await first.connect("plant", present=None)
                (running,) = here.running.bridges
                with trio.fail_after(20):
                    while running.connections < 2 or running.connected_to is None:
                        await trio.sleep(0.01)


def named(name: str, port: int, topics: str, **more: str) -> dict[str, str]:
    return {key.replace(".cloud.", f".{name}."): value for key, value in bridge(port, topics, **more).items()}


async def in_a_circle(mqtt: RunningMqtt) -> RunningBridge:
    """Wait until its bridge has found out that the other broker has one too."""
    (found,) = mqtt.running.bridges
    with trio.fail_after(20):
        while not found.circle:
            await trio.sleep(0.01)
    return found


@pytest.mark.one_in(3)
@each_with_each(("3.1", 0), ("3.1.1", 1), ("5.0", 2))
async def test_two_bridges_in_a_circle(
    tmp_path: Path, protocol: str, qos: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Both brokers have one, for the same topics in both directions: a message goes over, and not round."""
    ports, topics = (free_port(), free_port()), f"loop/# both {qos}"
    one_settings = named("out", ports[1], topics, protocol_version=protocol)
    other_settings = named("back", ports[0], topics, protocol_version=protocol)
    async with (
        running_mqtt(tmp_path / "a", {**one_settings, "mqtt.port": ports[0]}) as one,
        running_mqtt(tmp_path / "b", {**other_settings, "mqtt.port": ports[1]}) as other,
    ):
        bridges = [await in_a_circle(each) for each in (one, other)]
        assert caplog.text.count("the other broker has a bridge to this one too (leafcuttr-") == 2
        at = [await each.connect("watcher") for each in (one, other)]
        for watcher in at:
            await watcher.subscribe("loop/#")
        for index, mqtt in enumerate((one, other)):
            publisher = await mqtt.connect("publisher")
            for number in range(5):
                await publisher.publish(f"loop/{index}", b"%d" % number, qos)
            # Here they are once; there both bridges have brought them.
            got = [(await at[index].message()).payload for _ in range(5)]
            assert got == [b"%d" % number for number in range(5)]
            got = [(await at[1 - index].message()).payload for _ in range(10)]
            assert sorted(got) == sorted(b"%d" % number for number in range(5) for _ in range(2))
        # What would go round is not under way any more once what was published later has come.
        for index, mqtt in enumerate((one, other)):
            publisher = await mqtt.connect("late")
            await publisher.publish("loop/last", b"", qos)
            assert (await at[index].message()).topic == "loop/last"
            assert [(await at[1 - index].message()).topic for _ in range(2)] == ["loop/last"] * 2
        for watcher in at:
            await watcher.nothing()
        assert [(each.counts.sent, each.counts.received) for each in bridges] == [(6, 6), (6, 6)]
    # Without the other one it is a bridge as any.
    async with (
        running_mqtt(tmp_path / "c", {"mqtt.port": ports[1]}) as third,
        running_mqtt(tmp_path / "a", {**one_settings, "mqtt.port": ports[0]}) as one,
    ):
        await is_up(one)
        (found,) = one.running.bridges
        assert not found.circle
        watcher, publisher = await third.connect("w"), await one.connect("p")
        await watcher.subscribe("loop/#")
        await publisher.publish("loop/a", b"x", qos)
        assert (await watcher.message()).payload == b"x"


@pytest.mark.one_in(2)
@needs_mosquitto
@PROTOCOLS
async def test_a_circle_with_a_bridge_of_mosquitto(tmp_path: Path, protocol: str) -> None:
    port = free_port()
    back = f"connection back\naddress 127.0.0.1:{port}\ntopic loop/# both 1\nrestart_timeout 1 1\nremote_clientid mosq"
    there = Mosquitto(tmp_path / "there", back)
    settings = {**bridge(there.port, "loop/# both 1", protocol_version=protocol), "mqtt.port": port}
    async with running_mqtt(tmp_path / "here", settings) as here:
        await there.start()
        try:
            assert (await in_a_circle(here)).circle == {"mosq"}
            at_here, at_there = await here.connect("w"), await client_of(there.port, "w")
            await at_here.subscribe("loop/#")
            await at_there.subscribe("loop/#")
            publisher, publisher_there = await here.connect("p"), await client_of(there.port, "p")
            for number in range(5):
                await publisher.publish("loop/here", b"%d" % number, 1)
                await publisher_there.publish("loop/there", b"%d" % number, 1)
            # mosquitto sends back what has come, over the other one; from here it does not go round again. So a message
            # from here comes here by three ways: at once, and by each of the bridges.
            topics = [(await at_here.message()).topic for _ in range(25)]
            assert (topics.count("loop/here"), topics.count("loop/there")) == (15, 10)
            with trio.move_on_after(1) as quiet:
                pytest.fail(f"{await at_here.next()} goes round")
            assert quiet.cancelled_caught
        finally:
            there.stop()


@pytest.mark.long
@needs_mosquitto
@each_with_each(("3.1.1", 1), ("5.0", 2), levels=(1, 2))
async def test_a_broker_there_that_is_restarted_a_dozen_times_under_load(
    tmp_path: Path, protocol: str, qos: int
) -> None:
    """Nothing is missing. That nothing comes twice is mosquitto's to keep: what it had released before its end it
    delivers again."""
    there = Mosquitto(tmp_path / "there")
    settings = bridge(there.port, f"out/# out {qos}", protocol_version=protocol)
    await there.start()
    try:
        at_there = await client_of(there.port, "at-there", clean=False)
        await at_there.subscribe("out/#", qos=qos)
        await at_there.vanish()
        sent: list[bytes] = []
        async with running_mqtt(tmp_path / "here", settings) as here, trio.open_nursery() as nursery:
            await is_up(here)
            publisher = await here.connect("publisher")

            async def publish() -> None:
                while True:
                    sent.append(b"%d" % len(sent))
                    await publisher.publish("out/a", sent[-1], qos)
                    await trio.sleep(0.003)

            nursery.start_soon(publish)
            (running,) = here.running.bridges
            for turn in range(1, 13):
                before = len(sent)
                while len(sent) < before + 20:
                    await trio.sleep(0.005)
                there.stop()
                await there.start()
                with trio.fail_after(20):
                    while running.connections <= turn or running.connected_to is None:
                        await trio.sleep(0.01)
            nursery.cancel_scope.cancel()
            with trio.fail_after(20), trio.CancelScope(shield=True):
                while running.waiting or running.in_flight:
                    await trio.sleep(0.01)
        got: set[bytes] = set()
        at_there = await client_of(there.port, "at-there", clean=False)
        while len(got) < len(sent) - 1:  # the last one may have been cancelled on its way
            got.add((await at_there.message()).payload)
        assert set(sent[:-1]) <= got
    finally:
        there.stop()
