"""Sessions: clean and not, how long they last, what is in them, and DISCONNECT (3.1.2.4, 3.1.2.11.2, 3.14, 4.1)."""

from __future__ import annotations

import time

import pytest

from mqtt.conformance import wire
from mqtt.conformance.raw import Raw, fresh
from mqtt.conformance.under_test import Opened
from mqtt.conformance.wire import Will

normative = pytest.mark.normative
both = pytest.mark.parametrize("version", [4, 5])


def stays(version: int) -> list[tuple[str, int]]:
    return [("session_expiry", 120)] if version == 5 else []


def present(broker: Opened, version: int, name: str) -> bool:
    """Whether there is a session; it is gone afterwards."""
    raw = broker.client(version, name, clean=False)
    assert raw.connack is not None
    found = raw.connack.session_present
    raw.disconnect()
    broker.client(version, name).disconnect()
    return found


@normative("3.1.1", "MQTT-3.1.2-4", "MQTT-3.1.4-3", "MQTT-3.2.2-2", "MQTT-3.2.2-3", "MQTT-4.1.0-1")
@normative(
    "5.0", "MQTT-3.1.2-5", "MQTT-3.1.2-6", "MQTT-3.1.2-23", "MQTT-3.1.4-4", "MQTT-3.2.2-3", "MQTT-3.1.3-2"
)
@both
@pytest.mark.parametrize("ending", ["disconnect", "close", "reset"])
def test_a_session_goes_on(broker: Opened, version: int, ending: str) -> None:
    name, topic, other = fresh(), fresh(), broker.client(version)
    raw = broker.client(version, name, clean=False, properties=stays(version))
    assert raw.connack is not None
    assert not raw.connack.session_present
    raw.subscribe((topic, 1))
    getattr(raw, ending)()
    again = broker.client(version, name, clean=False, properties=stays(version))
    assert again.connack is not None
    assert again.connack.session_present
    other.publish(topic, b"p", 1)
    assert again.message().payload == b"p"
    again.disconnect()
    assert present(broker, version, name)


@normative("3.1.1", "MQTT-3.1.2-5", "MQTT-4.5.0-1")
@normative("5.0", "MQTT-3.1.2-23", "MQTT-4.5.0-1", "MQTT-4.6.0-5")
@both
def test_messages_wait_for_a_client_that_is_away(broker: Opened, version: int) -> None:
    name, topic, other = fresh(), fresh(), broker.client(version)
    raw = broker.client(version, name, clean=False, properties=stays(version))
    raw.subscribe((topic, 2))
    raw.disconnect()
    for number in range(10):
        other.publish(topic, b"%d" % number, 1 + number % 2)
    again = broker.client(version, name, clean=False, properties=stays(version))
    found = again.so_far(other)
    assert [message.payload for message in found if message.qos == 1] == [b"%d" % n for n in range(0, 10, 2)]
    assert [message.payload for message in found if message.qos == 2] == [b"%d" % n for n in range(1, 10, 2)]
    assert not any(message.dup for message in found)
    assert not any(message.retain for message in found)


@normative("3.1.1", "MQTT-3.1.2-6", "MQTT-3.1.4-3", "MQTT-3.2.2-1", "MQTT-3.2.2-3")
@normative("5.0", "MQTT-3.1.2-4", "MQTT-3.1.4-4", "MQTT-3.2.2-2")
@both
def test_a_clean_start_discards_the_session(broker: Opened, version: int) -> None:
    """With its subscriptions, its messages, and what was under way both ways; retained messages are no part of it."""
    name, topic, other = fresh(), fresh(), broker.client(version)
    raw = broker.client(version, name, clean=False, properties=stays(version))
    raw.subscribe((topic, 2))
    raw.send(wire.publish(version, "nobody", b"", qos=2, packet_id=1))
    raw.expect(wire.PUBREC)
    other.publish(topic, b"under way", 1)
    raw.message(acknowledge=False)
    raw.close()
    other.publish(topic, b"waiting", 1, retain=True)
    clean = broker.client(version, name, clean=True, properties=stays(version))
    assert clean.connack is not None
    assert not clean.connack.session_present
    other.publish(topic, b"later", 1)
    assert clean.so_far(other) == []
    clean.subscribe((topic, 1))
    assert [message.payload for message in clean.so_far(other)] == [b"waiting"]
    other.publish(topic, b"", 1, retain=True)


@normative("3.1.1", "MQTT-3.1.2-6", "MQTT-3.1.2-7")
@normative("5.0", "MQTT-3.1.2-23")
@both
def test_a_session_that_ends_with_its_connection(broker: Opened, version: int) -> None:
    """5.0: without an expiry interval, whether the start was clean or not."""
    name, topic = fresh(), fresh()
    raw = broker.client(version, name, clean=version == 4)
    raw.subscribe((topic, 1))
    raw.publish(topic, b"kept", 1, retain=True)
    assert raw.message().payload == b"kept"
    raw.disconnect()
    again = broker.client(version, name, clean=False)
    assert again.connack is not None
    assert not again.connack.session_present
    assert again.so_far(again) == []
    again.subscribe((topic, 1))
    assert [message.payload for message in again.so_far(again)] == [b"kept"]
    again.unsubscribe(topic)
    again.publish(topic, b"", 1, retain=True)
    again.disconnect()
    broker.client(version, name).disconnect()


@normative("5.0", "MQTT-4.1.0-2", "MQTT-4.1.0-1", "MQTT-3.1.2-23", "MQTT-3.1.2-8")
def test_a_session_ends_when_its_interval_has_passed(broker: Opened) -> None:
    """Not while the connection is open. The will, whose delay is longer, says when the session has ended."""
    watcher, topic, wills = broker.client(), fresh(), fresh("wills")
    watcher.subscribe(wills)
    will = Will(wills, b"ended", properties=[("will_delay", 3600)])
    raw = broker.client(5, clean=False, will=will, properties=[("session_expiry", 1)])
    raw.subscribe((topic, 1))
    time.sleep(1.1)  # the interval itself, while the client is there
    watcher.publish(topic, b"p", 1)
    assert raw.message().payload == b"p"
    raw.close()
    assert watcher.message().payload == b"ended"
    assert not present(broker, 5, raw.client_id)


@normative("5.0", "MQTT-3.1.2-23", "MQTT-4.1.0-2")
def test_disconnect_changes_the_interval(broker: Opened) -> None:
    longer = broker.client(5, fresh(), properties=[("session_expiry", 1)])
    shorter = broker.client(5, fresh(), properties=[("session_expiry", 3600)])
    never = broker.client(5, fresh(), properties=[("session_expiry", 0xFFFFFFFF)])
    longer.disconnect(0, [("session_expiry", 3600)])
    shorter.disconnect(0, [("session_expiry", 0)])
    never.disconnect()
    time.sleep(1.1)  # the interval that holds no more
    assert present(broker, 5, longer.client_id)
    assert not present(broker, 5, shorter.client_id)
    assert present(broker, 5, never.client_id)


@normative("5.0", "MQTT-3.1.2-23", "MQTT-4.13.1-1")
def test_disconnect_cannot_give_an_interval_to_a_session_without(broker: Opened) -> None:
    raw = broker.client(5, fresh())
    raw.send(wire.disconnect(5, 0, [("session_expiry", 60)]))
    raw.ended(0x82)
    assert not present(broker, 5, raw.client_id)


@normative("5.0", "MQTT-3.1.2-5", "MQTT-3.1.2-23", "MQTT-4.1.0-2")
def test_the_interval_is_that_of_the_last_connect(broker: Opened) -> None:
    name = fresh()
    broker.client(5, name, properties=[("session_expiry", 3600)]).disconnect()
    raw = broker.client(5, name, clean=False)
    assert raw.connack is not None
    assert raw.connack.session_present
    raw.disconnect()
    assert not present(broker, 5, name)


@normative("3.1.1", "MQTT-4.1.0-2", "MQTT-3.1.4-2", "MQTT-3.1.2-4")
@normative("5.0", "MQTT-3.1.4-3", "MQTT-3.1.2-5", "MQTT-4.1.0-1")
@both
def test_a_session_is_taken_over_with_all_that_is_in_it(broker: Opened, version: int) -> None:
    name, topic, other = fresh(), fresh(), broker.client(version)
    raw = broker.client(version, name, clean=False, properties=stays(version))
    raw.subscribe((topic, 1))
    other.publish(topic, b"p", 1)
    first = raw.message(acknowledge=False)
    second = broker.client(version, name, clean=False, properties=stays(version))
    raw.ended(0x8E)
    assert second.connack is not None
    assert second.connack.session_present
    message = second.message()
    assert (message.payload, message.packet_id, message.dup) == (b"p", first.packet_id, True)


@normative("3.1.1", "MQTT-3.1.2-4", "MQTT-3.2.2-2")
@normative("5.0", "MQTT-3.1.2-5", "MQTT-3.2.2-3")
@pytest.mark.parametrize(("before", "after"), [(4, 5), (5, 4), (3, 4), (3, 5)])
def test_a_session_does_not_care_for_the_version(broker: Opened, before: int, after: int) -> None:
    name, topic, other = fresh(), fresh(), broker.client()
    raw = broker.client(before, name, clean=False, properties=stays(before))
    raw.subscribe((topic, 1))
    raw.disconnect()
    other.publish(topic, b"p", 1, properties=[("user", ("a", "b"))])
    again = broker.client(after, name, clean=False, properties=stays(after))
    assert again.connack is not None
    assert again.connack.session_present or after == 3
    message = again.message()
    assert message.payload == b"p"
    assert message.all("user") == ([("a", "b")] if after == 5 else [])


@normative("3.1.1", "MQTT-3.12.4-1")
@normative("5.0", "MQTT-3.12.4-1")
@pytest.mark.parametrize("version", [3, 4, 5])
def test_ping(broker: Opened, version: int) -> None:
    raw = broker.client(version)
    raw.send(wire.PING * 3)
    assert [raw.receive().kind for _ in range(3)] == [wire.PINGRESP] * 3


def ended_by(raw: Raw, packet: bytes) -> None:
    raw.send(packet, wire.PING)
    assert raw.rest() == []


@normative("3.1.1", "MQTT-3.14.4-3")
@normative("5.0", "MQTT-3.14.4-3", "MQTT-3.14.0-1", "MQTT-3.14.2-2")
@both
def test_disconnect_ends_the_connection(broker: Opened, version: int) -> None:
    """Nothing behind it is acted on or answered, and the server sends no DISCONNECT of its own."""
    watcher, topic = broker.client(version), fresh()
    watcher.subscribe(topic)
    raw = broker.client(version)
    raw.send(wire.disconnect(version), wire.publish(version, topic, b"late", qos=1, packet_id=1))
    assert raw.rest() == []
    assert watcher.so_far(watcher) == []


@normative("5.0", "MQTT-3.14.2-1")
@pytest.mark.parametrize(
    "reason", [0x00, 0x04, 0x80, 0x81, 0x82, 0x83, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x99]
)
def test_reasons_of_a_client(broker: Opened, reason: int) -> None:
    ended_by(broker.client(), wire.disconnect(5, reason))
    ended_by(broker.client(), wire.disconnect(5, reason, [("reason_string", "so"), ("user", ("a", "b"))]))
