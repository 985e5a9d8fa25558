"""Properties that a message carries from its publisher to its subscribers, and message expiry (3.3.2.3)."""

from __future__ import annotations

import time

import pytest

from mqtt.conformance.raw import fresh
from mqtt.conformance.under_test import Opened

normative = pytest.mark.normative

CARRIED = [
    ("payload_format", 1),
    ("content_type", "application/caf\u00e9"),
    ("response_topic", "answers/to/this"),
    ("correlation_data", b"\x00\x01\xfe\xff"),
    ("user", ("z", "1")),
    ("user", ("a", "")),
    ("user", ("z", "1")),
    ("user", ("", "empty name")),
]


@normative(
    "5.0",
    *("MQTT-3.3.2-4", "MQTT-3.3.2-15", "MQTT-3.3.2-16", "MQTT-3.3.2-17", "MQTT-3.3.2-18", "MQTT-3.3.2-20"),
)
@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("way", ["at once", "retained", "stored"])
def test_what_a_message_carries(broker: Opened, qos: int, way: str) -> None:
    """Unaltered and in order, whether it is delivered at once, retained, or stored for a client that is away."""
    topic, other = fresh(), broker.client()
    raw = broker.client(5, fresh(), properties=[("session_expiry", 120)])
    if way != "retained":
        raw.subscribe((topic, 2))
    if way == "stored":
        raw.disconnect()
        qos = max(qos, 1)
    other.publish(topic, "t\u00e4xt".encode(), qos, retain=way == "retained", properties=CARRIED)
    if way == "retained":
        other.ping()
        raw.subscribe((topic, 2))
    if way == "stored":
        raw = broker.client(5, raw.client_id, clean=False)
    message = raw.message()
    assert message.all("user") == [value for name, value in CARRIED if name == "user"]
    assert sorted(message.properties, key=str) == sorted(CARRIED, key=str)
    assert message.payload == "t\u00e4xt".encode()
    if way == "retained":
        other.publish(topic, b"", 1, retain=True)


@normative("5.0", "MQTT-2.2.2-1", "MQTT-3.3.2-4")
def test_what_was_not_there_is_not_added(broker: Opened) -> None:
    raw, topic = broker.client(), fresh()
    raw.subscribe(topic)
    for sender in (broker.client(), broker.client(4), broker.client(3)):
        for qos in (0, 1, 2):
            sender.publish(topic, b"p", qos)
            message = raw.message()
            assert message.properties == []
    raw.publish(topic, b"p", 1, properties=[("payload_format", 0), ("correlation_data", b"")])
    got = raw.message().properties
    assert [pair for pair in got if pair != ("payload_format", 0)] == [("correlation_data", b"")]


@normative("3.1.1", "MQTT-7.0.0-2")
@normative("5.0", "MQTT-3.3.2-17")
def test_older_clients_get_the_message_without_its_properties(broker: Opened) -> None:
    topic, other = fresh(), broker.client()
    raw = broker.client(4)
    raw.subscribe((topic, 1))
    other.publish(topic, b"text", 1, properties=CARRIED)
    message = raw.message()
    assert (message.topic, message.payload) == (topic, b"text")


@normative("5.0", "MQTT-3.3.2-6")
def test_the_expiry_interval_is_passed_on(broker: Opened) -> None:
    raw, topic = broker.client(), fresh()
    raw.subscribe((topic, 1))
    for interval in (100, 0xFFFFFFFF):
        began = time.monotonic()
        raw.publish(topic, b"p", 1, properties=[("message_expiry", interval)])
        left = raw.message().one("message_expiry")
        assert interval - (time.monotonic() - began) - 1 <= left <= interval


@normative("5.0", "MQTT-3.3.2-5", "MQTT-3.3.2-6")
def test_a_message_that_waits(broker: Opened) -> None:
    """Of a session, retained, and behind the receive maximum: less is left of its interval, and none of it comes when
    that has passed."""
    topic, kept, other = fresh(), fresh(), broker.client()
    away = broker.client(5, fresh(), properties=[("session_expiry", 120)])
    away.subscribe((topic, 1))
    away.disconnect()
    slow = broker.client(properties=[("receive_maximum", 1)])
    slow.subscribe((topic, 1))
    other.publish(topic, b"first", 1)
    began = time.monotonic()
    for payload, interval in ((b"expires", 1), (b"stays", 100)):
        other.publish(topic, payload, 1, properties=[("message_expiry", interval)])
        stem = f"{kept}/{payload.decode()}"
        other.publish(stem, payload, 1, retain=True, properties=[("message_expiry", interval)])
    sent = time.monotonic()
    first = slow.message(acknowledge=False)
    assert first.payload == b"first"
    time.sleep(1.5)  # the interval, and half a second more that is missing from the other one
    slow.acknowledge(first)
    message = slow.message()
    back = broker.client(5, away.client_id, clean=False)
    late = broker.client()
    late.subscribe(f"{kept}/#")
    found = [message, *back.so_far(other), *late.so_far(other)]
    assert [one.payload for one in found] == [b"stays", b"first", b"stays", b"stays"]
    at_most = 100 - int(1.5)
    at_least = 100 - int(time.monotonic() - began) - 2
    assert sent >= began
    for one in found:
        if one.payload == b"stays":
            assert at_least <= one.one("message_expiry") <= at_most
    other.publish(f"{kept}/stays", b"", 1, retain=True)


@normative("5.0", "MQTT-3.3.2-6")
def test_an_interval_of_0_is_none_to_wait_for(broker: Opened) -> None:
    """The message is delivered at once or not at all: nothing is broken by it."""
    raw, topic = broker.client(), fresh()
    raw.subscribe((topic, 1))
    raw.publish(topic, b"p", 1, properties=[("message_expiry", 0)])
    assert [message.payload for message in raw.so_far(raw)] in ([b"p"], [])
