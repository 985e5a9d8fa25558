"""MQTT over WebSocket (6)."""

from __future__ import annotations

import pytest

from mqtt.conformance import wire
from mqtt.conformance.raw import Closed, fresh
from mqtt.conformance.under_test import Opened
from mqtt.conformance.websocket import BINARY, CONTINUATION, TEXT, WebSocket, frame

normative = pytest.mark.normative
both = pytest.mark.parametrize("version", [4, 5])


def opened(broker: Opened, version: int = 5, offered: str | None = "mqtt") -> WebSocket:
    address = broker.broker.websocket
    if address is None:
        pytest.skip("where the broker speaks WebSocket is not given")
    return broker.stack.enter_context(WebSocket(*address, version, offered=offered, strict=broker.strict))


@normative("3.1.1", "MQTT-6.0.0-1", "MQTT-6.0.0-4")
@normative("5.0", "MQTT-6.0.0-1", "MQTT-6.0.0-4")
@both
@pytest.mark.parametrize("offered", ["mqtt", "other, mqtt"])
def test_a_client(broker: Opened, version: int, offered: str) -> None:
    """mosquitto 2.0.11 does not know `mqtt` behind another name."""
    raw = opened(broker, version, offered)
    assert (raw.status, raw.protocol) == (101, "mqtt")
    raw.connect()
    topic = fresh()
    raw.subscribe((topic, 2))
    for payload in (b"p", b"p" * 70_000):
        other = broker.client(version)
        other.publish(topic, payload, 2)
        assert raw.message().payload == payload
    raw.publish(topic, b"up", 1)
    assert raw.message().payload == b"up"
    assert raw.kinds <= {BINARY, CONTINUATION}
    raw.disconnect()


@normative("3.1.1", "MQTT-6.0.0-2")
@normative("5.0", "MQTT-6.0.0-2")
@both
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_frames_and_packets_are_not_aligned(broker: Opened, version: int, size: int) -> None:
    raw, topic = opened(broker, version), fresh()
    whole = (
        wire.connect(version, fresh())
        + wire.subscribe(version, 1, [(topic, 1)])
        + wire.publish(version, topic, b"p" * 50)
        + wire.PING
    )
    raw.send(*(whole[at : at + size] for at in range(0, len(whole), size)))
    kinds = [raw.receive().kind for _ in range(4)]
    assert sorted(kinds) == sorted([wire.CONNACK, wire.SUBACK, wire.PUBLISH, wire.PINGRESP])


@normative("3.1.1", "MQTT-6.0.0-2")
@normative("5.0", "MQTT-6.0.0-2")
@both
def test_a_message_of_several_frames(broker: Opened, version: int) -> None:
    raw = opened(broker, version)
    whole = wire.connect(version, fresh()) + wire.PING
    raw.send_bytes(
        frame(BINARY, whole[:5], final=False)
        + frame(CONTINUATION, whole[5:11], final=False)
        + frame(CONTINUATION, whole[11:])
    )
    raw.expect(wire.CONNACK)
    raw.expect(wire.PINGRESP)


@normative("3.1.1", "MQTT-6.0.0-1")
@normative("5.0", "MQTT-6.0.0-1")
@both
def test_a_text_frame_ends_the_connection(broker: Opened, version: int) -> None:
    """mosquitto 2.0.11 takes it for a binary one."""
    raw = opened(broker, version)
    raw.connect()
    raw.send_bytes(frame(TEXT, wire.PING))
    packets = raw.rest()
    assert [packet.kind for packet in packets] in ([], [wire.DISCONNECT])


@normative("3.1.1", "MQTT-6.0.0-4")
@normative("5.0", "MQTT-6.0.0-4")
@pytest.mark.parametrize("offered", ["chat", None])
def test_no_subprotocol_of_mqtt(broker: Opened, offered: str | None) -> None:
    """None that was not offered is selected: the handshake is refused, or goes on without one."""
    try:
        raw = opened(broker, 5, offered)
    except Closed:
        return
    assert raw.status >= 400 or raw.protocol is None


@normative("3.1.1", "MQTT-4.8.0-1")
@normative("5.0", "MQTT-4.13.1-1")
@both
def test_a_broken_packet_ends_a_websocket_too(broker: Opened, version: int) -> None:
    watcher, topic = broker.client(version), fresh()
    watcher.subscribe(topic)
    raw = opened(broker, version)
    raw.connect(will=wire.Will(topic, b"w"))
    raw.send(b"\x00\x00")
    raw.ended(0x81, 0x82)
    assert watcher.message().payload == b"w"
