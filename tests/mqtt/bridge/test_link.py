"""Connections of bridges, with a broker there of a few lines: what it says, and when, is up to each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import pytest
import trio

from leafcuttr_mqtt.bridge import link
from leafcuttr_mqtt.packets.reader import PacketReader
from leafcuttr_mqtt.packets.types import (
    ConnAck,
    Connect,
    Disconnect,
    Packet,
    PingReq,
    PingResp,
    Properties,
    Publish,
    SubAck,
    Subscribe,
)
from leafcuttr_mqtt.packets.writer import encode
from support.mqtt import PATIENCE_S, running_mqtt
from support.mqtt_bridges import bridge, is_up
from support.waiting import free_port

P = TypeVar("P")
STATE = "$SYS/broker/connection/me/state"


class Accepted:
    """One connection of the bridge, as the broker there sees it."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._reader = PacketReader(1 << 20)
        self._packets: list[Packet] = []

    async def next(self) -> Packet | None:
        """None: it has ended."""
        with trio.fail_after(PATIENCE_S):
            while not self._packets:
                try:
                    data = await self._stream.receive_some()
                except trio.BrokenResourceError:
                    return None
                if not data:
                    return None
                self._packets += self._reader.feed(bytes(data))
                assert self._reader.error is None
        return self._packets.pop(0)

    async def expect(self, kind: type[P]) -> P:
        packet = await self.next()
        assert isinstance(packet, kind), packet
        return packet

    async def send(self, *packets: Packet) -> None:
        assert self._reader.version is not None
        await self._stream.send_all(b"".join([encode(each, self._reader.version) for each in packets]))

    async def close(self) -> None:
        await self._stream.aclose()


class Broker:
    """Takes connections in their order."""

    def __init__(self, listener: trio.SocketListener) -> None:
        self._listener = listener
        self._accepted: list[Accepted] = []
        """So that none is closed because it is forgotten."""
        self.port: int = listener.socket.getsockname()[1]

    async def accept(self) -> Accepted:
        with trio.fail_after(PATIENCE_S):
            self._accepted.append(Accepted(await self._listener.accept()))
        return self._accepted[-1]

    async def accept_bridge(self) -> tuple[Accepted, Connect]:
        """The bridge, up."""
        accepted = await self.accept()
        connect = await accepted.expect(Connect)
        assert not connect.clean_start
        await accepted.send(ConnAck(False, 0))
        return accepted, connect


@asynccontextmanager
async def broker_there() -> AsyncIterator[Broker]:
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with listener:
        yield Broker(listener)


async def test_what_a_bridge_says_first(tmp_path: Path) -> None:
    async with broker_there() as there:
        settings = bridge(there.port, "in/# in 1, out/# out", client_id="me", username="u", password="p")
        async with running_mqtt(tmp_path, settings) as here:
            up = await there.accept()
            connect = await up.expect(Connect)
            assert (connect.client_id, connect.clean_start, connect.bridge) == ("me", False, True)
            assert (connect.user_name, connect.password, connect.keep_alive) == ("u", b"p", 60)
            assert connect.will is not None
            assert (connect.will.topic, connect.will.payload) == (STATE, b"0")
            await up.send(ConnAck(False, 0))
            subscribe = await up.expect(Subscribe)
            # The second one is for bridges that the other broker has to this one.
            wanted = [("in/#", 1), ("$SYS/broker/connection/+/state", 0)]
            assert [(each.filter, each.qos) for each in subscribe.requests] == wanted
            assert await up.next() == Publish(STATE, b"1", 0, True)
            await is_up(here)
        # The end of this broker: the bridge says that it is down, and goodbye.
        assert await up.next() == Publish(STATE, b"0", 0, True)
        assert await up.next() == Disconnect()
        assert await up.next() is None


async def test_a_broker_that_knows_no_bridges_is_asked_again(tmp_path: Path) -> None:
    async with broker_there() as there, running_mqtt(tmp_path, bridge(there.port, "in/# in")) as here:
        refusing = await there.accept()
        assert (await refusing.expect(Connect)).bridge
        await refusing.send(ConnAck(False, 1))
        up, connect = await there.accept_bridge()
        assert not connect.bridge
        await up.expect(Subscribe)
        await is_up(here)


async def test_a_refusal_is_told_and_the_next_attempt_follows(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with broker_there() as there, running_mqtt(tmp_path, bridge(there.port, "in/# in")):
        for _ in range(3):
            refusing = await there.accept()
            await refusing.expect(Connect)
            await refusing.send(ConnAck(False, 5))
            assert await refusing.next() is None
        await there.accept()
    told = [record.getMessage() for record in caplog.records if "bridge cloud" in record.getMessage()]
    assert told == [  # once a minute
        f"bridge cloud cannot connect to 127.0.0.1:{there.port}: the other broker refuses the connection (0x05)"
    ]


async def test_the_next_address_where_one_is_away(tmp_path: Path) -> None:
    async with broker_there() as there:
        settings = bridge(there.port, "in/# in")
        settings["mqtt.bridge.cloud.address"] = f"127.0.0.1:{free_port()}, 127.0.0.1:{there.port}"
        async with running_mqtt(tmp_path, settings) as here:
            await there.accept_bridge()
            await is_up(here)


async def test_a_lost_connection_is_told_here_and_made_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with broker_there() as there, running_mqtt(tmp_path, bridge(there.port, "in/# in")) as here:
        watcher = await here.connect("watcher")
        await watcher.subscribe("$SYS/broker/connection/+/state")
        for _ in range(3):
            accepted, _ = await there.accept_bridge()
            await accepted.expect(Subscribe)
            await accepted.expect(Publish)
            while (await watcher.message()).payload != b"1":
                pass
            await accepted.close()
            while (await watcher.message()).payload != b"0":
                pass
    lost = [record.getMessage() for record in caplog.records if "has lost" in record.getMessage()]
    assert len(lost) == 3
    assert lost[0].endswith(": the other broker has closed the connection")


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"\x30\x03\0\x01+", "PUBLISH: topic name contains a wildcard"),
        (b"HTTP/1.1 400\r\n\r\n", "PUBACK: flags 0x8"),
        (b"\x20\x02\0\0", "CONNACK from the other broker"),
    ],
)
async def test_a_broker_that_does_not_speak_mqtt(
    tmp_path: Path, said: bytes, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with broker_there() as there, running_mqtt(tmp_path, bridge(there.port, "in/# in")):
        accepted, _ = await there.accept_bridge()
        await accepted.expect(Subscribe)
        await accepted._stream.send_all(said)
        while await accepted.next() is not None:
            pass
        await there.accept_bridge()
    assert any(record.getMessage().endswith(f": {why}") for record in caplog.records), caplog.text


async def test_silence_is_broken_by_pings_and_ends_the_connection(tmp_path: Path) -> None:
    async with broker_there() as there:
        settings = bridge(there.port, "in/# in", protocol_version="5.0")
        async with running_mqtt(tmp_path, settings):
            accepted = await there.accept()
            await accepted.expect(Connect)
            await accepted.send(ConnAck(False, 0, Properties(server_keep_alive=1)))
            await accepted.expect(Subscribe)
            await accepted.send(SubAck(65_535, (0,)))
            assert isinstance(await accepted.next(), Publish)  # the notification
            for _ in range(3):
                await accepted.expect(PingReq)
                await accepted.send(PingResp())
            while await accepted.next() is not None:  # no answer to the next ones
                pass
            await there.accept_bridge()


async def test_a_broker_that_says_nothing_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(link, "CONNECT_S", 0.2)
    async with broker_there() as there, running_mqtt(tmp_path, bridge(there.port, "in/# in")):
        silent = await there.accept()
        await silent.expect(Connect)
        assert await silent.next() is None
        await there.accept_bridge()
    assert "no CONNACK within 0.2 s" in caplog.text


async def test_a_broker_that_takes_nothing_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(link, "SEND_S", 0.5)
    async with broker_there() as there, running_mqtt(tmp_path, bridge(there.port, "out/# out")) as here:
        await there.accept_bridge()
        await is_up(here)
        publisher = await here.connect("publisher")
        with trio.fail_after(PATIENCE_S):
            while "takes nothing" not in caplog.text:
                await publisher.publish("out/a", bytes(500_000))
                await publisher.nothing()
        await there.accept_bridge()


async def test_credentials_are_not_wanted_of_a_bridge_here(tmp_path: Path) -> None:
    async with broker_there() as there:
        settings = {**bridge(there.port, "out/# out 1"), "mqtt.auth.username": "u", "mqtt.auth.password": "p"}
        async with running_mqtt(tmp_path, settings) as here:
            accepted, _ = await there.accept_bridge()
            publisher = await here.connect("publisher", user_name="u", password=b"p")
            await accepted.expect(Subscribe)
            assert isinstance(await accepted.next(), Publish)  # the notification
            await publisher.publish("out/a", b"x", 1)
            assert await accepted.next() == Publish("out/a", b"x", 1, packet_id=1)


async def test_a_session_there_of_an_earlier_bridge_is_ended(tmp_path: Path) -> None:
    """The data of this broker are new, and the client id is not."""
    async with broker_there() as there:
        settings = bridge(there.port, "in/# in", client_id="me")
        async with running_mqtt(tmp_path, settings) as here:
            for clean, present in ((False, True), (True, False)):
                accepted = await there.accept()
                connect = await accepted.expect(Connect)
                assert (connect.client_id, connect.clean_start) == ("me", clean)
                assert (connect.will is None) == clean
                await accepted.send(ConnAck(present, 0))
                assert await accepted.next() == Disconnect()
                assert await accepted.next() is None
            accepted, _ = await there.accept_bridge()
            await accepted.expect(Subscribe)
            await is_up(here)


@pytest.mark.parametrize(
    "more", [{"notifications_local_only": "true"}, {"notifications": "false"}, {"notification_topic": "a/b"}]
)
async def test_who_tells_nothing_asks_nothing(tmp_path: Path, more: dict[str, str]) -> None:
    """A broker that ends connections for topics with $ sees none."""
    async with broker_there() as there:
        settings = bridge(there.port, "in/# in 1, out/# out", **more)
        async with running_mqtt(tmp_path, settings):
            up, _ = await there.accept_bridge()
            subscribe = await up.expect(Subscribe)
            assert [each.filter for each in subscribe.requests] == ["in/#"]


async def test_states_of_other_bridges_are_not_messages(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What cannot be subscribed to is done without, and what comes goes no further."""
    async with (
        broker_there() as there,
        running_mqtt(tmp_path, bridge(there.port, "in/# in 1, out/# out")) as here,
    ):
        up, _ = await there.accept_bridge()
        subscribe = await up.expect(Subscribe)
        await up.send(SubAck(subscribe.packet_id, (1, 0x80)))
        await is_up(here)
        for each in ("stranger", "a/b", "watcher-2"):
            await up.send(Publish(f"$SYS/broker/connection/{each}/state", b"1"))
        watcher = await here.connect("watcher-2")
        await watcher.subscribe("#")
        await up.send(Publish("in/a", b"x"))
        assert (await watcher.message()).topic == "in/a"
        (running,) = here.running.bridges
        # `watcher-2` was no client when its state came; now that it is one, it is noticed with the next one.
        assert running.circle == frozenset()
        await up.send(Publish("$SYS/broker/connection/other/state", b"1"), Publish("in/a", b"y"))
        assert (await watcher.message()).payload == b"y"
        assert running.circle == {"watcher-2"}
        await up.send(Publish("$SYS/broker/connection/watcher-2/state", b"0"), Publish("in/a", b"z"))
        assert (await watcher.message()).payload == b"z"
        assert running.circle == frozenset()
        assert running.counts.drops == {}
    assert "refuses the subscription" not in caplog.text
