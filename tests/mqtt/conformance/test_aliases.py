"""Topic aliases, both ways (3.3.2.3.4)."""

from __future__ import annotations

import pytest

from mqtt.conformance import wire
from mqtt.conformance.raw import Raw, fresh
from mqtt.conformance.under_test import Opened

normative = pytest.mark.normative


def maximum_of(raw: Raw) -> int:
    assert raw.connack is not None
    maximum: int = raw.connack.one("topic_alias_maximum") or 0
    if not maximum:
        pytest.skip("the broker takes no aliases")
    return maximum


@normative("5.0", "MQTT-3.3.2-12")
def test_each_alias_up_to_the_servers_maximum(broker: Opened) -> None:
    raw, stem = broker.client(), fresh()
    maximum = maximum_of(raw)
    raw.subscribe((f"{stem}/#", 1))
    for alias in {1, 2, maximum}:
        for topic in (f"{stem}/{alias}", ""):
            raw.publish(topic, b"%d" % alias, 1, properties=[("topic_alias", alias)])
            message = raw.message()
            assert (message.topic, message.payload) == (f"{stem}/{alias}", b"%d" % alias)
            assert message.all("topic_alias") == []


@normative("5.0", "MQTT-3.3.2-12")
def test_an_alias_that_gets_another_topic(broker: Opened) -> None:
    raw, stem = broker.client(), fresh()
    maximum_of(raw)
    raw.subscribe((f"{stem}/#", 1))
    sent = [(f"{stem}/a", b"1"), ("", b"2"), (f"{stem}/b", b"3"), ("", b"4")]
    for topic, payload in sent:
        raw.publish(topic, payload, 1, properties=[("topic_alias", 1)])
    raw.publish(f"{stem}/c", b"5", 1)
    raw.publish("", b"6", 1, properties=[("topic_alias", 1)])
    got = [(message.topic, message.payload) for message in raw.messages(6)]
    names = ["a", "a", "b", "b", "c", "b"]
    assert got == [(f"{stem}/{name}", b"%d" % number) for number, name in enumerate(names, 1)]


@normative("5.0", "MQTT-3.3.2-8", "MQTT-4.13.1-1")
def test_alias_0(broker: Opened) -> None:
    raw = broker.client()
    raw.send(wire.publish(5, "t", b"", properties=[("topic_alias", 0)]))
    raw.ended(0x94, 0x82, 0x81)


@normative("5.0", "MQTT-4.13.1-1")
def test_an_alias_above_the_servers_maximum(broker: Opened) -> None:
    raw = broker.client()
    assert raw.connack is not None
    maximum = raw.connack.one("topic_alias_maximum") or 0
    if maximum == 65535:
        pytest.skip("there is none above")
    raw.send(wire.publish(5, "t", b"", properties=[("topic_alias", maximum + 1)]))
    raw.ended(0x94)


@normative("5.0", "MQTT-3.3.2-7", "MQTT-4.13.1-1")
def test_aliases_end_with_the_connection(broker: Opened) -> None:
    """Though the session goes on."""
    name, keep = fresh(), [("session_expiry", 120)]
    raw = broker.client(5, name, properties=keep)
    maximum_of(raw)
    raw.publish("t", b"", 1, properties=[("topic_alias", 1)])
    raw.disconnect()
    again = broker.client(5, name, clean=False, properties=keep)
    again.send(wire.publish(5, "", b"", qos=1, packet_id=1, properties=[("topic_alias", 1)]))
    again.ended(0x82, 0x94)


@normative("5.0", "MQTT-4.13.1-1")
def test_an_alias_that_stands_for_nothing(broker: Opened) -> None:
    raw = broker.client()
    maximum_of(raw)
    raw.send(wire.publish(5, "", b"", properties=[("topic_alias", 1)]))
    raw.ended(0x82, 0x94)


@normative("5.0", "MQTT-3.1.2-27", "MQTT-3.3.2-11")
@pytest.mark.parametrize("properties", [[], [("topic_alias_maximum", 0)]])
def test_no_alias_to_a_client_without_a_maximum(broker: Opened, properties: list[tuple[str, int]]) -> None:
    raw = broker.client(properties=properties)
    topic = fresh()
    raw.subscribe((topic, 1))
    for _ in range(3):
        raw.publish(topic, b"p", 1)
        message = raw.message()
        assert (message.topic, message.all("topic_alias")) == (topic, [])


@normative("5.0", "MQTT-3.1.2-26", "MQTT-3.3.2-11", "MQTT-3.3.2-8", "MQTT-3.3.2-3")
@pytest.mark.parametrize("maximum", [1, 3])
def test_aliases_to_a_client(broker: Opened, maximum: int) -> None:
    """If the server uses any: none above the client's maximum, and each stands for the topic that it came with."""
    raw, stem, other = broker.client(properties=[("topic_alias_maximum", maximum)]), fresh(), broker.client()
    raw.subscribe((f"{stem}/#", 1))
    known: dict[int, str] = {}
    for turn in range(3):
        for number in range(5):
            topic = f"{stem}/{number}"
            other.publish(topic, b"%d" % turn, turn % 2)
            message = raw.message()
            alias = message.one("topic_alias")
            if alias is not None:
                assert 0 < alias <= maximum
                if message.topic:
                    known[alias] = message.topic
            assert (message.topic or known[alias or 0]) == topic
            assert message.payload == b"%d" % turn


@normative("5.0", "MQTT-3.3.2-7", "MQTT-4.4.0-1")
def test_what_is_sent_again_has_its_topic_on_the_new_connection(broker: Opened) -> None:
    name, topic, other = fresh(), fresh(), broker.client()
    options = [("session_expiry", 120), ("topic_alias_maximum", 5)]
    raw = broker.client(5, name, properties=options)
    raw.subscribe((topic, 1))
    for _ in range(3):
        other.publish(topic, b"p", 1)
    for _ in range(3):
        raw.message(acknowledge=False)
    raw.close()
    again = broker.client(5, name, clean=False, properties=options)
    first, *more = (again.message() for _ in range(3))
    assert first.topic == topic
    alias = first.one("topic_alias")
    for message in more:
        assert message.topic == topic or (not message.topic and message.one("topic_alias") == alias)
