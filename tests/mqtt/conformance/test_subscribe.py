"""SUBSCRIBE, SUBACK, UNSUBSCRIBE and UNSUBACK (3.8 to 3.11)."""

from __future__ import annotations

import pytest

from mqtt.conformance import wire
from mqtt.conformance.raw import fresh
from mqtt.conformance.under_test import Opened
from mqtt.conformance.wire import Packet

normative = pytest.mark.normative
both = pytest.mark.parametrize("version", [4, 5])

NO_LOCAL, AS_PUBLISHED, IF_NEW, NEVER = 0x04, 0x08, 0x10, 0x20


def payloads(messages: list[Packet]) -> list[bytes]:
    return [message.payload for message in messages]


@normative(
    "3.1.1",
    *("MQTT-3.8.4-1", "MQTT-3.8.4-2", "MQTT-3.8.4-5", "MQTT-3.9.3-1", "MQTT-3.9.3-2", "MQTT-2.3.1-7"),
)
@normative(
    "5.0",
    *("MQTT-3.8.4-1", "MQTT-3.8.4-2", "MQTT-3.8.4-6", "MQTT-3.8.4-7", "MQTT-3.9.3-1", "MQTT-3.9.3-2"),
    "MQTT-2.2.1-6",
)
@pytest.mark.parametrize("version", [3, 4, 5])
def test_suback_has_a_code_for_each_filter_in_their_order(broker: Opened, version: int) -> None:
    raw = broker.client(version)
    for packet_id in (1, 256, 65535):
        raw.send(wire.subscribe(version, packet_id, [("s/2", 2), ("s/0", 0), ("s/1", 1), ("s/#", 0)]))
        got = raw.expect(wire.SUBACK)
        assert (got.packet_id, got.reasons) == (packet_id, (2, 0, 1, 0))


@normative("3.1.1", "MQTT-3.8.4-4", "MQTT-3.3.1-6")
@normative("5.0", "MQTT-3.8.4-5", "MQTT-3.3.1-9")
@both
def test_several_filters_are_as_several_packets(broker: Opened, version: int) -> None:
    stem = fresh()
    raw = broker.client(version)
    raw.publish(f"{stem}/a", b"kept", 1, retain=True)
    raw.subscribe((f"{stem}/a", 1), (f"{stem}/b", 1), (f"{stem}/c/#", 0))
    assert payloads(raw.so_far(raw)) == [b"kept"]
    for name, qos in (("a", 1), ("b", 1), ("c/d", 0)):
        raw.publish(f"{stem}/{name}", name.encode(), 1)
        message = raw.message()
        assert (message.payload, message.qos) == (name.encode(), qos)
    raw.publish(f"{stem}/a", b"", 1, retain=True)


@normative("3.1.1", "MQTT-3.8.4-6")
@normative("5.0", "MQTT-3.8.4-8")
@both
@pytest.mark.parametrize("granted", [0, 1, 2])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_the_lower_qos_of_both(broker: Opened, version: int, granted: int, qos: int) -> None:
    raw = broker.client(version)
    topic = fresh()
    assert raw.subscribe((topic, granted)).reasons == (granted,)
    raw.publish(topic, b"p", qos)
    assert raw.message().qos == min(granted, qos)


@normative("3.1.1", "MQTT-3.8.4-3", "MQTT-3.3.1-8")
@normative("5.0", "MQTT-3.8.4-3", "MQTT-3.8.4-4", "MQTT-3.3.1-9")
@both
def test_the_same_filter_again(broker: Opened, version: int) -> None:
    """One subscription is left, with the new QoS; retained messages come again."""
    raw = broker.client(version)
    topic = fresh()
    raw.publish(topic, b"kept", 1, retain=True)
    for granted in (2, 0, 1):
        assert raw.subscribe((topic, granted)).reasons == (granted,)
        (message,) = raw.so_far(raw)
        assert (message.payload, message.retain, message.qos) == (b"kept", True, min(granted, 1))
    raw.publish(topic, b"p", 2)
    (message,) = raw.so_far(raw)
    assert (message.payload, message.qos, message.retain) == (b"p", 1, False)
    raw.publish(topic, b"", 1, retain=True)


@normative("3.1.1", "MQTT-3.8.4-3")
@normative("5.0", "MQTT-3.8.4-4")
@both
def test_a_replacement_interrupts_nothing(broker: Opened, version: int) -> None:
    """Between messages of another client, and with some that are not acknowledged yet."""
    raw, other = broker.client(version), broker.client(version)
    topic = fresh()
    raw.subscribe((topic, 1))
    for number in range(20):
        other.publish(topic, b"%d" % number, 1)
        if number % 4 == 3:
            raw.subscribe((topic, 1))
    assert payloads(raw.so_far(other)) == [b"%d" % number for number in range(20)]


@normative("5.0", "MQTT-3.3.1-9", "MQTT-3.3.1-10", "MQTT-3.3.1-11", "MQTT-3.8.4-4")
def test_retain_handling(broker: Opened) -> None:
    topic = fresh()
    sender = broker.client()
    sender.publish(topic, b"kept", 1, retain=True)

    raw = broker.client()
    raw.subscribe((topic, 1 | NEVER))
    assert raw.so_far(raw) == []
    raw.subscribe((topic, 1 | IF_NEW))
    assert raw.so_far(raw) == []
    raw.subscribe((topic, 1))
    assert payloads(raw.so_far(raw)) == [b"kept"]
    raw.unsubscribe(topic)
    raw.subscribe((topic, 1 | IF_NEW))
    assert payloads(raw.so_far(raw)) == [b"kept"]
    raw.subscribe((topic, 1 | IF_NEW))
    assert raw.so_far(raw) == []
    sender.publish(topic, b"", 1, retain=True)


@normative("5.0", "MQTT-3.8.3-3")
def test_no_local(broker: Opened) -> None:
    raw, other = broker.client(), broker.client()
    topic = fresh()
    raw.subscribe((topic, 1 | NO_LOCAL))
    other.subscribe((topic, 1))
    raw.publish(topic, b"own", 1)
    other.publish(topic, b"other's", 1)
    assert payloads(raw.so_far(other)) == [b"other's"]
    assert payloads(other.so_far(other)) == [b"own", b"other's"]


@normative("5.0", "MQTT-3.8.3-3")
def test_no_local_holds_for_a_later_connection_of_the_client(broker: Opened) -> None:
    name, topic = fresh(), fresh()
    raw = broker.client(5, name, properties=[("session_expiry", 60)])
    raw.subscribe((topic, 1 | NO_LOCAL))
    raw.disconnect()
    again = broker.client(5, name, clean=False)
    again.publish(topic, b"own", 1)
    assert again.so_far(again) == []


@normative("3.1.1", "MQTT-3.3.5-1")
@normative("5.0", "MQTT-3.3.4-2")
@both
def test_overlapping_subscriptions_get_the_highest_qos(broker: Opened, version: int) -> None:
    """As one message, or as one for each subscription. mosquitto 2.0.11 takes the first that it finds for clients of
    3.1.1."""
    raw, stem = broker.client(version), fresh()
    raw.subscribe((f"{stem}/#", 2), (f"{stem}/+", 1), (f"{stem}/t", 0))
    raw.publish(f"{stem}/t", b"p", 2)
    found = sorted(message.qos for message in raw.so_far(raw))
    assert found in ([2], [0, 1, 2], [0, 0, 2]), found


@normative("5.0", "MQTT-3.3.4-3", "MQTT-3.3.4-4", "MQTT-3.3.4-5")
def test_identifiers_of_overlapping_subscriptions(broker: Opened) -> None:
    raw, stem = broker.client(), fresh()
    raw.subscribe((f"{stem}/#", 1), properties=[("subscription_id", 1)])
    raw.subscribe((f"{stem}/+", 1), properties=[("subscription_id", 268_435_455)])
    raw.subscribe((f"{stem}/t", 1))
    raw.publish(f"{stem}/t", b"p", 1)
    found = raw.so_far(raw)
    identifiers = sorted(number for message in found for number in message.all("subscription_id"))
    assert identifiers == [1, 268_435_455]
    assert len(found) in (1, 3)
    raw.publish(f"{stem}/t/u", b"p", 1)
    (message,) = raw.so_far(raw)
    assert message.all("subscription_id") == [1]


@normative("5.0", "MQTT-3.3.4-3", "MQTT-3.8.4-3")
def test_the_identifier_of_the_last_subscription_with_a_filter(broker: Opened) -> None:
    raw, topic = broker.client(), fresh()
    for identifier, wanted in (([("subscription_id", 5)], [5]), ([("subscription_id", 6)], [6]), ([], [])):
        raw.subscribe((topic, 1), properties=identifier)
        raw.publish(topic, b"p", 1)
        (message,) = raw.so_far(raw)
        assert message.all("subscription_id") == wanted


@normative("5.0", "MQTT-3.3.4-3")
def test_identifiers_of_retained_messages(broker: Opened) -> None:
    raw, topic = broker.client(), fresh()
    raw.publish(topic, b"kept", 1, retain=True)
    raw.subscribe((topic, 1), properties=[("subscription_id", 7)])
    (message,) = raw.so_far(raw)
    assert message.all("subscription_id") == [7]
    raw.publish(topic, b"", 1, retain=True)


@normative(
    "3.1.1",
    "MQTT-3.10.4-1",
    "MQTT-3.10.4-2",
    "MQTT-3.10.4-4",
    "MQTT-3.10.4-5",
    "MQTT-3.10.4-6",
    "MQTT-2.3.1-7",
)
@normative(
    "5.0",
    *("MQTT-3.10.4-1", "MQTT-3.10.4-2", "MQTT-3.10.4-4", "MQTT-3.10.4-5", "MQTT-3.10.4-6", "MQTT-3.11.3-1"),
    *("MQTT-3.11.3-2", "MQTT-2.2.1-6"),
)
@pytest.mark.parametrize("version", [3, 4, 5])
def test_unsubscribe(broker: Opened, version: int) -> None:
    """A filter is deleted by its very characters: none that only matches the same topics."""
    raw, stem = broker.client(version), fresh()
    raw.subscribe((f"{stem}/+", 1), (f"{stem}/u", 1), (f"{stem}/v", 1))
    got = raw.unsubscribe(f"{stem}/t", f"{stem}/u", f"{stem}/#", "never/subscribed")
    if version == 5:
        assert got.reasons == (0x11, 0x00, 0x11, 0x11)
    raw.publish(f"{stem}/t", b"still", 1)
    assert payloads(raw.so_far(raw)) == [b"still"]
    raw.send(wire.unsubscribe(version, 65535, [f"{stem}/+", f"{stem}/v"]))
    got = raw.expect(wire.UNSUBACK)
    assert got.packet_id == 65535
    assert got.reasons == ((0, 0) if version == 5 else ())
    for name in ("t", "u", "v"):
        raw.publish(f"{stem}/{name}", b"no more", 1)
    assert raw.so_far(raw) == []
    got = raw.unsubscribe(f"{stem}/+")
    assert got.reasons == ((0x11,) if version == 5 else ())


@normative("3.1.1", "MQTT-3.10.4-3")
@normative("5.0", "MQTT-3.10.4-3")
@both
@pytest.mark.parametrize("qos", [1, 2])
def test_a_delivery_that_has_begun_is_completed_after_unsubscribe(
    broker: Opened, version: int, qos: int
) -> None:
    """On the next connection as well."""
    name, topic = fresh(), fresh()
    keep = [("session_expiry", 60)] if version == 5 else []
    raw = broker.client(version, name, clean=False, properties=keep)
    raw.subscribe(topic)
    other = broker.client(version)
    other.publish(topic, b"p", qos)
    first = raw.message(acknowledge=False)
    raw.unsubscribe(topic)
    other.publish(topic, b"q", qos)
    raw.close()
    again = broker.client(version, name, clean=False, properties=keep)
    message = again.message(acknowledge=False)
    assert (message.payload, message.packet_id, message.dup) == (b"p", first.packet_id, True)
    again.acknowledge(message)
    assert again.so_far(other) == []
