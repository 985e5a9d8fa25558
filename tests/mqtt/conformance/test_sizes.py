"""The client's maximum packet size, and problem information that it does not want (3.1.2.11.4, 3.1.2.11.7)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mqtt.conformance import wire
from mqtt.conformance.raw import Raw, fresh
from mqtt.conformance.under_test import Opened

normative = pytest.mark.normative

LIMIT = 40


@normative("5.0", "MQTT-3.1.2-24", "MQTT-3.1.2-25")
@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("way", ["at once", "retained", "stored"])
def test_a_message_that_is_too_large(broker: Opened, qos: int, way: str) -> None:
    """It is left out, and does not hold up those behind it, though the receive maximum is 1.
    mosquitto 2.0.11 leaves the fixed header out of its count."""
    topic, other = fresh(), broker.client()
    options = [("session_expiry", 120), ("maximum_packet_size", LIMIT), ("receive_maximum", 1)]
    raw = broker.client(5, fresh(), properties=options)
    if way == "stored":
        qos = max(qos, 1)  # others need not be stored
    if way != "retained":
        raw.subscribe((topic, qos))
    if way == "stored":
        raw.disconnect()
    overhead = len(wire.publish(5, topic, b"", qos=qos, packet_id=1 if qos else None))
    largest = b"x" * (LIMIT - overhead)
    for payload in (largest + b"y", b"y" * 1000, largest):
        other.publish(topic, payload, qos, retain=way == "retained")
    if way == "retained":
        other.publish(topic, largest + b"y", qos, retain=True)
        other.ping()
        raw.subscribe((topic, qos))
        assert raw.ping() == []
        other.publish(topic, largest, 0)
        overhead = len(wire.publish(5, topic, b""))
        assert raw.message().payload == largest
        other.publish(topic, b"", 1, retain=True)
        return
    if way == "stored":
        raw = broker.client(5, raw.client_id, clean=False, properties=options)
    if way == "at once" or qos:
        message = raw.message()
        assert message.payload == largest
        assert message.size == LIMIT
    assert raw.ping() == []


@normative("5.0", "MQTT-3.1.2-24", "MQTT-3.1.2-25")
def test_properties_count(broker: Opened) -> None:
    topic, other = fresh(), broker.client()
    raw = broker.client(properties=[("maximum_packet_size", 40)])
    raw.subscribe((topic, 1))
    other.publish(topic, b"p", 1, properties=[("user", ("name", "v" * 40))])
    other.publish(topic, b"p", 1, properties=[("user", ("name", "v"))])
    (message,) = raw.so_far(other)
    assert message.all("user") == [("name", "v")]


def answers(raw: Raw) -> dict[int, bytes]:
    """What makes the server answer with each packet that may have a reason string."""
    text = [("payload_format", 1)]
    return {
        wire.PUBACK: wire.publish(5, "t", b"\xff", qos=1, packet_id=1, properties=text),
        wire.PUBREC: wire.publish(5, "t", b"\xff", qos=2, packet_id=1, properties=text),
        wire.PUBREL: wire.answer(wire.PUBREC, 1),
        wire.PUBCOMP: wire.answer(wire.PUBREL, 1),
        wire.SUBACK: wire.subscribe(5, 1, [("a#", 0)]),
        wire.UNSUBACK: wire.unsubscribe(5, 1, ["a#"]),
        wire.DISCONNECT: wire.publish(5, "", b"", properties=[("topic_alias", 0)]),
        wire.AUTH: wire.auth(0x19, [("auth_method", "none of these")]),
    }


each = pytest.mark.parametrize(
    "kind",
    [
        pytest.param(wire.PUBACK, marks=normative("5.0", "MQTT-3.4.2-2", "MQTT-3.4.2-3")),
        pytest.param(wire.PUBREC, marks=normative("5.0", "MQTT-3.5.2-2", "MQTT-3.5.2-3")),
        pytest.param(wire.PUBREL, marks=normative("5.0", "MQTT-3.6.2-2", "MQTT-3.6.2-3", "MQTT-3.6.2-1")),
        pytest.param(wire.PUBCOMP, marks=normative("5.0", "MQTT-3.7.2-2", "MQTT-3.7.2-3")),
        pytest.param(wire.SUBACK, marks=normative("5.0", "MQTT-3.9.2-1", "MQTT-3.9.2-2")),
        pytest.param(wire.UNSUBACK, marks=normative("5.0", "MQTT-3.11.2-1", "MQTT-3.11.2-2")),
        pytest.param(wire.DISCONNECT, marks=normative("5.0", "MQTT-3.14.2-3", "MQTT-3.14.2-4")),
        pytest.param(wire.AUTH, marks=normative("5.0", "MQTT-3.15.2-2", "MQTT-3.15.2-3")),
    ],
)


@pytest.fixture
def answered(broker: Opened) -> Callable[..., list[wire.Packet]]:
    def ask(kind: int, properties: wire.Properties) -> list[wire.Packet]:
        raw = broker.client(properties=properties)
        raw.send(answers(raw)[kind])
        try:
            return raw.ping()
        except Exception as error:
            assert type(error).__name__ == "Closed"
        raw = broker.client(properties=properties)
        raw.send(answers(raw)[kind])
        return raw.rest()

    return ask


@normative("5.0", "MQTT-3.1.2-24")
@each
def test_answers_within_the_maximum(
    broker: Opened, answered: Callable[..., list[wire.Packet]], kind: int
) -> None:
    """With no reason string and no user property that does not fit: one byte is missing, or as many as CONNACK leaves.
    A server may end the connection instead of an answer."""
    connack = broker.client().connack
    assert connack is not None
    for packet in answered(kind, []):
        assert packet.kind in (kind, wire.DISCONNECT)
        for limit in {connack.size, max(connack.size, packet.size - 1), max(connack.size, packet.size)}:
            for one in answered(kind, [("maximum_packet_size", limit)]):
                assert one.size <= limit
                assert one.reason == packet.reason


@normative("5.0", "MQTT-3.1.2-29")
@each
def test_no_problem_information_where_none_is_wanted(
    answered: Callable[..., list[wire.Packet]], kind: int
) -> None:
    """But in CONNACK, DISCONNECT and PUBLISH."""
    for packet in answered(kind, [("request_problem", 0)]):
        if packet.kind != wire.DISCONNECT:
            assert packet.all("reason_string") == packet.all("user") == []


@normative("5.0", "MQTT-3.2.2-19", "MQTT-3.2.2-20", "MQTT-3.1.2-24")
@pytest.mark.parametrize("limit", [5, 8, 20, 30, 60])
def test_connack_within_the_maximum(broker: Opened, limit: int) -> None:
    """That which refuses; that which accepts and does not fit cannot be sent, and ends the connection."""
    raw = broker.open()
    raw.send(
        wire.connect(
            5, fresh(), properties=[("maximum_packet_size", limit), ("auth_method", "no such method")]
        )
    )
    got = raw.refused(0x8C, 0x87)
    assert got is None or got.size <= limit
    raw = broker.open()
    raw.send(wire.connect(5, "", properties=[("maximum_packet_size", limit)]), wire.PING)
    packets = raw.ping_or_end()
    if packets is None:
        return
    assert all(packet.size <= limit for packet in packets)


@normative("5.0", "MQTT-3.1.2-25")
def test_many_messages_that_are_too_large(broker: Opened) -> None:
    """From several clients at once, for sessions that outlive their connections: what is left out is let go while other
    messages are being stored."""
    topic = fresh()
    options = [("session_expiry", 120), ("maximum_packet_size", LIMIT), ("receive_maximum", 5)]
    watchers = [broker.client(5, fresh(), properties=options) for _ in range(4)]
    for raw in watchers:
        raw.subscribe((topic, 1))
    senders = [broker.client() for _ in range(6)]
    for _ in range(15):
        for raw in senders:
            raw.send(wire.publish(5, topic, b"y" * LIMIT, qos=1, packet_id=1))
        for raw in senders:
            assert raw.expect(wire.PUBACK).reason == 0
    senders[0].publish(topic, b"fits", 1)
    for raw in watchers:
        assert raw.message().payload == b"fits"
        assert raw.ping() == []
