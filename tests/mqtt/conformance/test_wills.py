"""Wills (3.1.2.5, 3.1.3.2, 3.14.4)."""

from __future__ import annotations

import time

import pytest

from mqtt.conformance import wire
from mqtt.conformance.raw import Raw, fresh
from mqtt.conformance.under_test import Opened
from mqtt.conformance.wire import Will

normative = pytest.mark.normative
both = pytest.mark.parametrize("version", [4, 5])


def watching(broker: Opened, topic: str, version: int = 5) -> Raw:
    raw = broker.client(version)
    raw.subscribe((topic, 2 | 0x08 if version == 5 else 2))
    return raw


@normative("3.1.1", "MQTT-3.1.2-8", "MQTT-3.1.2-14", "MQTT-3.1.2-16")
@normative("5.0", "MQTT-3.1.2-7", "MQTT-3.1.2-8", "MQTT-3.1.2-12", "MQTT-3.1.2-14")
@pytest.mark.parametrize("version", [3, 4, 5])
@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("ending", ["close", "reset", "break"])
def test_a_will_is_published(broker: Opened, version: int, qos: int, ending: str) -> None:
    """With its QoS, and not retained."""
    topic = fresh("will")
    watcher = watching(broker, topic)
    raw = broker.client(version, will=Will(topic, b"w\0\xff", qos=qos))
    if ending == "break":
        raw.send(b"\xf0\xff\xff\xff\xff\xff")
        raw.rest()
    else:
        getattr(raw, ending)()
    message = watcher.message()
    assert (message.payload, message.qos, message.retain) == (b"w\0\xff", qos, False)
    late = watching(broker, topic)
    assert late.so_far(late) == []


@normative("3.1.1", "MQTT-3.1.2-17")
@normative("5.0", "MQTT-3.1.2-15")
@both
def test_a_retained_will(broker: Opened, version: int) -> None:
    topic = fresh("will")
    watcher = watching(broker, topic)
    raw = broker.client(version, will=Will(topic, b"w", qos=1, retain=True))
    raw.close()
    assert watcher.message().retain
    late = watching(broker, topic, version)
    message = late.message()
    assert (message.payload, message.retain, message.qos) == (b"w", True, 1)
    late.publish(topic, b"", 1, retain=True)


@normative("3.1.1", "MQTT-3.1.2-10", "MQTT-3.14.4-3", "MQTT-3.1.2-12")
@normative("5.0", "MQTT-3.1.2-10", "MQTT-3.14.4-3", "MQTT-3.1.2-8")
@both
def test_disconnect_discards_the_will(broker: Opened, version: int) -> None:
    """For good: a later connection without a will publishes none."""
    topic, name = fresh("will"), fresh()
    watcher = watching(broker, topic)
    keep = [("session_expiry", 120)] if version == 5 else []
    broker.client(version, name, clean=False, properties=keep, will=Will(topic, b"w")).disconnect()
    broker.client(version, name, clean=False, properties=keep).close()
    again = broker.client(version, name, properties=keep)
    assert watcher.so_far(again) == []


@normative("3.1.1", "MQTT-3.1.2-10", "MQTT-3.1.2-12")
@normative("5.0", "MQTT-3.1.2-10")
@both
def test_a_will_is_published_once(broker: Opened, version: int) -> None:
    topic, name = fresh("will"), fresh()
    watcher = watching(broker, topic)
    keep = [("session_expiry", 120)] if version == 5 else []
    broker.client(version, name, clean=False, properties=keep, will=Will(topic, b"w")).close()
    assert watcher.message().payload == b"w"
    broker.client(version, name, clean=False, properties=keep).close()
    again = broker.client(version, name, properties=keep)
    assert watcher.so_far(again) == []


@normative("3.1.1", "MQTT-3.1.2-12", "MQTT-3.1.2-11")
@normative("5.0", "MQTT-3.1.2-11")
@both
def test_without_a_will_nothing_is_published(broker: Opened, version: int) -> None:
    watcher = broker.client()
    watcher.subscribe(("#", 2 | 0x20))
    raw = broker.client(version)
    raw.close()
    other = broker.client(version)
    assert [message.topic for message in watcher.so_far(other)] == []


@normative("3.1.1", "MQTT-3.1.2-8", "MQTT-3.1.4-2")
@normative("5.0", "MQTT-3.1.2-8", "MQTT-3.1.4-3")
@both
def test_a_take_over_publishes_the_will_of_the_older_connection(broker: Opened, version: int) -> None:
    topic, name = fresh("will"), fresh()
    watcher = watching(broker, topic)
    first = broker.client(version, name, will=Will(topic, b"first"))
    second = broker.client(version, name, will=Will(topic, b"second"))
    first.ended(0x8E)
    assert watcher.message().payload == b"first"
    second.disconnect()
    assert watcher.so_far(watcher) == []


@normative("5.0", "MQTT-3.1.2-8", "MQTT-3.14.4-3")
@pytest.mark.parametrize("reason", [0x04, 0x80, 0x97])
def test_disconnect_with_another_reason_publishes_the_will(broker: Opened, reason: int) -> None:
    """mosquitto 2.0.11 does so for 0x04 only."""
    topic = fresh("will")
    watcher = watching(broker, topic)
    broker.client(will=Will(topic, b"w")).disconnect(reason)
    assert watcher.message().payload == b"w"


@normative("5.0", "MQTT-3.1.3-10", "MQTT-3.3.2-4", "MQTT-3.3.2-15", "MQTT-3.3.2-16", "MQTT-3.3.2-20")
def test_properties_of_a_will(broker: Opened) -> None:
    topic = fresh("will")
    watcher = watching(broker, topic)
    own = [
        ("payload_format", 1),
        ("content_type", "text/plain"),
        ("response_topic", "answers/here"),
        ("correlation_data", b"\0\1\xff"),
        ("user", ("b", "1")),
        ("user", ("a", "2")),
        ("user", ("b", "1")),
    ]
    broker.client(will=Will(topic, b"w", properties=[*own, ("message_expiry", 100)])).close()
    message = watcher.message()
    assert [pair for pair in sorted(message.properties, key=str) if pair[0] != "message_expiry"] == sorted(
        own, key=str
    )
    assert message.all("user") == [("b", "1"), ("a", "2"), ("b", "1")]
    assert 90 <= message.one("message_expiry") <= 100


@normative("5.0", "MQTT-3.1.2-8", "MQTT-3.1.2-7")
def test_a_will_waits_for_its_delay(broker: Opened) -> None:
    topic = fresh("will")
    watcher = watching(broker, topic)
    began = time.monotonic()
    raw = broker.client(
        properties=[("session_expiry", 120)], will=Will(topic, b"w", properties=[("will_delay", 1)])
    )
    raw.close()
    assert watcher.message().payload == b"w"
    assert time.monotonic() - began >= 0.99


@normative("5.0", "MQTT-3.1.2-8")
def test_a_will_is_published_when_the_session_ends_before_its_delay(broker: Opened) -> None:
    """At once where the session ends with its connection, or by a clean start. mosquitto 2.0.11 waits all the same."""
    topic = fresh("will")
    watcher = watching(broker, topic)
    delayed = Will(topic, b"at once", properties=[("will_delay", 3600)])
    broker.client(will=delayed).close()
    assert watcher.message().payload == b"at once"
    delayed = Will(topic, b"clean", properties=[("will_delay", 3600)])
    raw = broker.client(will=delayed, properties=[("session_expiry", 3600)])
    raw.close()
    broker.client(5, raw.client_id, clean=True)
    assert watcher.message().payload == b"clean"


@normative("5.0", "MQTT-3.1.3-9", "MQTT-3.1.2-8", "MQTT-3.1.2-10")
def test_a_new_connection_within_the_delay_stops_the_will(broker: Opened) -> None:
    """Its delay passes while the second connection, with a will of its own, is open: the will of another client, with
    the same delay and a connection that ends later, says when."""
    topic, name, keep = fresh("will"), fresh(), [("session_expiry", 120)]
    watcher = watching(broker, topic)
    first, other = (
        broker.client(5, one, properties=keep, will=Will(topic, text, properties=[("will_delay", 2)]))
        for one, text in ((name, b"first"), (fresh(), b"other"))
    )
    before = time.monotonic()
    first.close()
    second = broker.client(5, name, clean=False, properties=keep, will=Will(topic, b"second"))
    if time.monotonic() - before > 1.9:
        pytest.skip("the machine was too slow to be within the delay")
    other.close()
    assert watcher.message().payload == b"other"
    second.close()
    assert watcher.message().payload == b"second"


@normative("5.0", "MQTT-3.1.2-8")
def test_a_take_over_stops_a_will_with_a_delay(broker: Opened) -> None:
    """The session goes on (3.1.4): only a will without a delay is published."""
    topic, name, keep = fresh("will"), fresh(), [("session_expiry", 120)]
    watcher = watching(broker, topic)
    first = broker.client(
        5, name, properties=keep, will=Will(topic, b"first", properties=[("will_delay", 3600)])
    )
    second = broker.client(5, name, clean=False, properties=keep)
    first.ended(0x8E)
    second.disconnect()
    assert watcher.so_far(watcher) == []


@normative("3.1.1", "MQTT-4.5.0-1", "MQTT-3.1.2-5")
@normative("5.0", "MQTT-4.5.0-1")
@both
def test_a_will_waits_for_a_subscriber_that_is_away(broker: Opened, version: int) -> None:
    topic, name = fresh("will"), fresh()
    keep = [("session_expiry", 120)] if version == 5 else []
    away = broker.client(version, name, clean=False, properties=keep)
    away.subscribe((topic, 1))
    away.disconnect()
    watcher = watching(broker, topic)
    broker.client(version, will=Will(topic, b"w", qos=1)).close()
    assert watcher.message().payload == b"w"
    again = broker.client(version, name, clean=False, properties=keep)
    assert again.message().payload == b"w"


@normative("5.0", "MQTT-3.8.3-3")
def test_no_local_holds_for_a_will(broker: Opened) -> None:
    """A subscription of the same client, on its next connection, does not get it."""
    topic, name, keep = fresh("will"), fresh(), [("session_expiry", 120)]
    watcher = watching(broker, topic)
    raw = broker.client(5, name, properties=keep, will=Will(topic, b"w", qos=1))
    raw.subscribe((topic, 1 | 0x04))
    raw.send(wire.PING)
    raw.close()
    assert watcher.message().payload == b"w"
    again = broker.client(5, name, clean=False, properties=keep)
    assert again.so_far(watcher) == []


@normative("3.1.1", "MQTT-3.1.2-17", "MQTT-3.3.1-10", "MQTT-3.3.1-11")
@normative("5.0", "MQTT-3.1.2-15", "MQTT-3.3.1-6", "MQTT-3.3.1-7")
@both
def test_an_empty_retained_will_removes_the_retained_message(broker: Opened, version: int) -> None:
    topic = fresh("will")
    watcher = watching(broker, topic)
    watcher.publish(topic, b"kept", 1, retain=True)
    assert watcher.message().payload == b"kept"
    broker.client(version, will=Will(topic, b"", retain=True)).close()
    assert watcher.message().payload == b""
    late = watching(broker, topic, version)
    assert late.so_far(late) == []
