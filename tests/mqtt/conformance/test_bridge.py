"""A server that connects to others is a client there (MQTT-7.0.0-1 of 3.1.1). The bridges of LeafCuttr, seen from the
other side: what they send is read by its bytes."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from importlib.util import find_spec
from typing import NamedTuple

import pytest

from mqtt.conformance import wire
from mqtt.conformance.raw import PATIENCE, fresh
from mqtt.conformance.under_test import Started

normative = pytest.mark.normative
pytestmark = pytest.mark.skipif(find_spec("leafcuttr_mqtt.bridge") is None, reason="there are no bridges")

VERSIONS = {"3.1.1": 4, "5.0": 5}


class Sent(NamedTuple):
    kind: int
    flags: int
    body: bytes


class OtherSide:
    """A connection of a bridge."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._socket.settimeout(PATIENCE)

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            got = self._socket.recv(count - len(data))
            assert got, "the bridge has closed"
            data += got
        return data

    def receive(self) -> Sent:
        """The next packet but PINGREQ."""
        while True:
            (first,) = self._exactly(1)
            length = shift = 0
            while True:
                (byte,) = self._exactly(1)
                length |= (byte & 0x7F) << shift
                shift += 7
                if not byte & 0x80:
                    break
            if first >> 4 != wire.PINGREQ:
                return Sent(first >> 4, first & 15, self._exactly(length))
            self.send(wire.frame(wire.PINGRESP, 0, b""))

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def accept(self, version: int, *, present: bool) -> bytes:
        """CONNECT, which is returned, and its CONNACK."""
        connect = self.receive()
        assert (connect.kind, connect.flags) == (wire.CONNECT, 0)
        self.send(
            wire.frame(
                wire.CONNACK, 0, bytes([present, 0]) + (wire.property_block([]) if version == 5 else b"")
            )
        )
        return connect.body

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(PATIENCE)
        yield server


def accepted(server: socket.socket) -> OtherSide:
    connection, _ = server.accept()
    return OtherSide(connection)


def until(other: OtherSide, kind: int) -> Sent:
    """The next packet of this type; SUBSCRIBE is answered."""
    while True:
        packet = other.receive()
        if packet.kind == wire.SUBSCRIBE and kind != wire.SUBSCRIBE:
            continue
        assert packet.kind == kind, packet
        return packet


@normative("3.1.1", "MQTT-7.0.0-1")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("qos", [1, 2])
def test_a_bridge_is_a_client(leafcuttr: Started, listening: socket.socket, version: str, qos: int) -> None:
    """CONNECT comes first; what is not acknowledged comes again on the next connection, with its identifier and DUP;
    after PUBREC there is PUBREL and no PUBLISH any more."""
    number, port = VERSIONS[version], listening.getsockname()[1]
    settings = {
        "mqtt.bridge.up.address": f"127.0.0.1:{port}",
        "mqtt.bridge.up.topics": f"up/# out {qos}",
        "mqtt.bridge.up.protocol.version": version,
        "mqtt.bridge.up.try.private": "false",  # else bit 7 of the protocol level says that it is a bridge
        "mqtt.bridge.up.notifications": "false",
    }
    with leafcuttr(settings) as broker:
        other = accepted(listening)
        body = other.accept(number, present=False)
        assert body[:7] == wire.text("MQTT") + bytes([number])
        assert not body[7] & 1, "the reserved flag"
        sender = broker.client()
        topic = f"up/{fresh()}"
        sender.publish(topic, b"p", 2)
        first = until(other, wire.PUBLISH)
        assert first.flags == qos << 1
        at = 2 + len(topic)
        assert first.body[:at] == wire.text(topic)
        packet_id = first.body[at : at + 2]
        assert packet_id != b"\0\0"
        assert first.body.endswith(b"p")
        other.close()
        other = accepted(listening)
        again = other.accept(number, present=True)
        assert again[7:8] == body[7:8]
        resent = until(other, wire.PUBLISH)
        assert resent.flags == 8 | qos << 1
        assert resent.body[:at] + resent.body[at : at + 2] == wire.text(topic) + packet_id
        if qos == 1:
            other.send(wire.frame(wire.PUBACK, 0, packet_id))
        else:
            other.send(wire.frame(wire.PUBREC, 0, packet_id))
            released = until(other, wire.PUBREL)
            assert (released.flags, released.body[:2]) == (2, packet_id)
            other.send(wire.frame(wire.PUBCOMP, 0, packet_id))
        sender.publish(topic, b"next", 1)
        following = until(other, wire.PUBLISH)
        assert following.body.endswith(b"next")
        assert not following.flags & 8
        other.close()


@normative("3.1.1", "MQTT-7.0.0-1")
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_bridge_acknowledges_what_it_gets(leafcuttr: Started, listening: socket.socket, qos: int) -> None:
    settings = {
        "mqtt.bridge.down.address": f"127.0.0.1:{listening.getsockname()[1]}",
        "mqtt.bridge.down.topics": f"down/# in {qos}",
        "mqtt.bridge.down.notifications": "false",
    }
    with leafcuttr(settings) as broker:
        watcher = broker.client()
        watcher.subscribe("down/#")
        other = accepted(listening)
        other.accept(4, present=False)
        asked = other.receive()
        assert (asked.kind, asked.flags) == (wire.SUBSCRIBE, 2)
        assert asked.body[:2] != b"\0\0"
        assert asked.body[2:] == wire.text("down/#") + bytes([qos])
        other.send(wire.frame(wire.SUBACK, 0, asked.body[:2] + bytes([qos])))
        other.send(wire.publish(4, "down/t", b"p", qos=qos, packet_id=77 if qos else None))
        assert watcher.message().payload == b"p"
        if qos == 1:
            assert other.receive() == Sent(wire.PUBACK, 0, b"\0\x4d")
        elif qos == 2:
            assert other.receive() == Sent(wire.PUBREC, 0, b"\0\x4d")
            other.send(wire.publish(4, "down/t", b"p", qos=2, packet_id=77, dup=True))
            assert other.receive() == Sent(wire.PUBREC, 0, b"\0\x4d")
            other.send(wire.answer(wire.PUBREL, 77))
            assert other.receive() == Sent(wire.PUBCOMP, 0, b"\0\x4d")
        assert watcher.so_far(watcher) == []
        other.close()


@normative("3.1.1", "MQTT-7.0.0-1", "MQTT-7.0.0-2")
def test_a_bridge_needs_no_extension(leafcuttr: Started, listening: socket.socket) -> None:
    """It says that it is one as mosquitto's bridges do, by a bit of the protocol level that no specification has. Where
    that is refused it connects without."""
    settings = {
        "mqtt.bridge.up.address": f"127.0.0.1:{listening.getsockname()[1]}",
        "mqtt.bridge.up.topics": "up/# out 1",
        "mqtt.bridge.up.notifications": "false",
    }
    with leafcuttr(settings):
        other = accepted(listening)
        connect = other.receive()
        if connect.body[6] != 4:
            assert connect.body[6] == 0x84
            other.send(wire.frame(wire.CONNACK, 0, b"\0\1"))
            other.close()
            other = accepted(listening)
            connect = other.receive()
        assert connect.body[:7] == wire.text("MQTT") + b"\4"
        other.close()
