"""PUBLISH, retained messages, and which topics match which filters (3.3, 4.7)."""

from __future__ import annotations

import pytest

from mqtt.conformance import wire
from mqtt.conformance.raw import Raw, fresh
from mqtt.conformance.under_test import Opened, Started
from mqtt.conformance.wire import Packet

normative = pytest.mark.normative
both = pytest.mark.parametrize("version", [4, 5])
each_qos = pytest.mark.parametrize("qos", [0, 1, 2])


def told(messages: list[Packet]) -> list[tuple[str, bytes]]:
    return [(message.topic, message.payload) for message in messages]


def retained(broker: Opened, version: int, name: str) -> list[Packet]:
    """What a new client gets that subscribes."""
    raw = broker.client(version)
    raw.subscribe(name)
    return raw.so_far(raw)


def clear(raw: Raw, *topics: str) -> None:
    for topic in topics:
        raw.publish(topic, b"", 1, retain=True)


@normative("3.1.1", "MQTT-3.3.4-1", "MQTT-3.3.2-3", "MQTT-4.5.0-1", "MQTT-2.3.1-5", "MQTT-2.3.1-6")
@normative("5.0", "MQTT-3.3.4-1", "MQTT-3.3.2-3", "MQTT-4.5.0-1", "MQTT-2.2.1-2", "MQTT-2.2.1-5")
@pytest.mark.parametrize("version", [3, 4, 5])
@pytest.mark.parametrize("other", [3, 4, 5])
@each_qos
def test_a_message_goes_to_each_subscriber(broker: Opened, version: int, other: int, qos: int) -> None:
    topic = fresh("each/")
    first, second, sender = broker.client(version), broker.client(other), broker.client(version)
    first.subscribe(topic)
    second.subscribe("each/+")
    sender.publish(topic, b"payload", qos)
    for raw in (first, second):
        message = raw.message()
        assert (message.topic, message.payload, message.qos) == (topic, b"payload", qos)
        assert not message.dup
        assert not message.retain


@normative("3.1.1", "MQTT-3.3.4-1", "MQTT-2.3.1-6")
@normative("5.0", "MQTT-3.3.4-1", "MQTT-2.2.1-5", "MQTT-3.4.2-1", "MQTT-3.5.2-1", "MQTT-3.7.2-1")
@both
def test_answers_carry_the_identifier(broker: Opened, version: int) -> None:
    """Without a subscriber as well: 5.0 may say so, with 0x10."""
    raw = broker.client(version)
    for packet_id in (1, 255, 256, 65535):
        raw.send(wire.publish(version, "nobody", b"", qos=1, packet_id=packet_id))
        got = raw.expect(wire.PUBACK)
        assert (got.packet_id, got.reason in (0, 0x10)) == (packet_id, True)
        raw.send(wire.publish(version, "nobody", b"", qos=2, packet_id=packet_id))
        got = raw.expect(wire.PUBREC)
        assert (got.packet_id, got.reason in (0, 0x10)) == (packet_id, True)
        assert raw.release(packet_id).reason == 0


@normative("3.1.1", "MQTT-3.3.1-3", "MQTT-4.3.2-1", "MQTT-4.3.3-1", "MQTT-4.3.1-1", "MQTT-3.3.1-2")
@normative("5.0", "MQTT-3.3.1-3", "MQTT-4.3.2-2", "MQTT-4.3.3-2", "MQTT-4.3.1-1", "MQTT-3.3.1-2")
@both
@pytest.mark.parametrize("qos", [1, 2])
def test_dup_is_not_passed_on(broker: Opened, version: int, qos: int) -> None:
    raw = broker.client(version)
    topic = fresh()
    raw.subscribe(topic)
    raw.publish(topic, b"p", qos, dup=True)
    assert not raw.message().dup


@normative("3.1.1", "MQTT-3.3.1-5", "MQTT-3.3.1-6", "MQTT-3.3.1-8", "MQTT-3.8.4-6")
@normative("5.0", "MQTT-3.3.1-5", "MQTT-3.3.1-9", "MQTT-3.8.4-8")
@both
@each_qos
def test_a_retained_message_with_its_qos(broker: Opened, version: int, qos: int) -> None:
    raw = broker.client(version)
    topic = fresh("kept/")
    raw.publish(topic, b"first", qos, retain=True)
    raw.publish(topic, b"second", qos, retain=True)
    (message,) = retained(broker, version, topic)
    assert (message.payload, message.retain, message.qos, message.dup) == (b"second", True, qos, False)
    lower = broker.client(version)
    lower.subscribe((topic, 0))
    assert lower.message().qos == 0
    clear(raw, topic)


@normative("3.1.1", "MQTT-3.3.1-6", "MQTT-3.1.2-7")
@normative("5.0", "MQTT-3.3.1-9")
@both
def test_the_last_one_of_each_matching_topic(broker: Opened, version: int) -> None:
    """Also after the session of the client that published them has ended."""
    stem = fresh("some")
    topics = [f"{stem}/{name}" for name in ("a", "b", "a/b")]
    raw = broker.client(version)
    for topic in topics:
        raw.publish(topic, b"old", 1, retain=True)
        raw.publish(topic, topic.encode(), 1, retain=True)
    raw.disconnect()
    assert sorted(told(retained(broker, version, f"{stem}/#"))) == sorted((t, t.encode()) for t in topics)
    assert sorted(told(retained(broker, version, f"{stem}/+"))) == sorted((t, t.encode()) for t in topics[:2])
    assert told(retained(broker, version, f"{stem}/+/b")) == [(topics[2], topics[2].encode())]
    assert retained(broker, version, stem + "x/#") == []
    clear(broker.client(version), *topics)


@normative("3.1.1", "MQTT-3.3.1-7")
@normative("5.0", "MQTT-3.3.1-5")
@both
def test_a_retained_message_of_qos_0_takes_the_place_of_the_one_before(broker: Opened, version: int) -> None:
    raw = broker.client(version)
    topic = fresh()
    raw.publish(topic, b"1", 1, retain=True)
    raw.publish(topic, b"0", 0, retain=True)
    raw.ping()
    assert [message.payload for message in retained(broker, version, topic)] in ([b"0"], [])
    clear(raw, topic)


@normative("3.1.1", "MQTT-3.3.1-9")
@normative("5.0", "MQTT-3.3.1-12", "MQTT-3.3.1-13")
@both
def test_retain_to_an_established_subscription(broker: Opened, version: int) -> None:
    topic = fresh()
    plain, raw = broker.client(version), broker.client(version)
    plain.subscribe(topic)
    raw.publish(topic, b"p", 1, retain=True)
    assert not plain.message().retain
    if version == 5:
        as_published = broker.client()
        as_published.subscribe((topic, 2 | 0x08))
        assert as_published.message().retain
        raw.publish(topic, b"q", 1, retain=True)
        assert as_published.message().retain
        raw.publish(topic, b"r", 1)
        assert not as_published.message().retain
        assert [plain.message().retain for _ in range(2)] == [False, False]
    clear(raw, topic)


@normative("3.1.1", "MQTT-3.3.1-10", "MQTT-3.3.1-11")
@normative("5.0", "MQTT-3.3.1-6", "MQTT-3.3.1-7")
@both
@each_qos
def test_an_empty_retained_message(broker: Opened, version: int, qos: int) -> None:
    topic = fresh()
    watcher, raw = broker.client(version), broker.client(version)
    watcher.subscribe(topic)
    raw.publish(topic, b"p", 1, retain=True)
    raw.publish(topic, b"", qos, retain=True)
    raw.ping()
    assert [watcher.message().payload for _ in range(2)] == [b"p", b""]
    assert retained(broker, version, topic) == []


@normative("3.1.1", "MQTT-3.3.1-12")
@normative("5.0", "MQTT-3.3.1-8")
@both
def test_a_message_without_retain_leaves_the_retained_one(broker: Opened, version: int) -> None:
    topic, other = fresh(), fresh()
    raw = broker.client(version)
    raw.publish(topic, b"kept", 1, retain=True)
    raw.publish(topic, b"not kept", 1)
    raw.publish(topic, b"", 1)
    raw.publish(other, b"not kept", 1)
    assert told(retained(broker, version, topic)) == [(topic, b"kept")]
    assert retained(broker, version, other) == []
    clear(raw, topic)


@normative("5.0", "MQTT-3.2.2-13")
def test_where_retaining_is_off(leafcuttr: Started) -> None:
    with leafcuttr({"mqtt.retain.enable": "false"}) as broker:
        raw = broker.client()
        assert raw.connack is not None
        assert raw.connack.one("retain_available") == 0
        with_will = broker.open()
        with_will.send(wire.connect(5, fresh(), will=wire.Will("t", b"w", retain=True)))
        assert with_will.refused(0x9A) is not None
        raw.send(wire.publish(5, "t", b"p", retain=True))
        raw.ended(0x9A)


MATCHES = [
    ("sport/tennis/player1/#", "sport/tennis/player1", True),
    ("sport/tennis/player1/#", "sport/tennis/player1/ranking", True),
    ("sport/tennis/player1/#", "sport/tennis/player1/score/wimbledon", True),
    ("sport/tennis/player1/#", "sport/tennis/player12", False),
    ("sport/#", "sport", True),
    ("sport/#", "sport/", True),
    ("#", "any/thing", True),
    ("#", "/", True),
    ("sport/tennis/+", "sport/tennis/player1", True),
    ("sport/tennis/+", "sport/tennis/player1/ranking", False),
    ("sport/+", "sport", False),
    ("sport/+", "sport/", True),
    ("+", "finance", True),
    ("+", "/finance", False),
    ("+/+", "/finance", True),
    ("/+", "/finance", True),
    ("+/tennis/#", "sport/tennis/x/y", True),
    ("+/tennis/#", "sport/golf", False),
    ("sport/+/player1", "sport/tennis/player1", True),
    ("sport/+/player1", "sport//player1", True),
    ("sport/+/player1", "sport/a/b/player1", False),
    ("a//b", "a//b", True),
    ("a//b", "a/b", False),
    ("a/b/", "a/b", False),
    ("ACCOUNTS", "Accounts", False),
    ("Accounts payable", "Accounts payable", True),
    (" a", "a", False),
    ("caf\u00e9", "cafe\u0301", False),
    ("\u212b", "\u00c5", False),
    ("a/\U0001f600", "a/\U0001f600", True),
    ("../a", "a", False),
    ("a/*", "a/b", False),
    ("a/%2B", "a/+".replace("+", "%2B"), True),
    ("#", "$lc/a", False),
    ("+/a", "$lc/a", False),
    ("+/#", "$lc/a", False),
    ("a/#", "a/$b", True),
    ("a/+", "a/$b", True),
]


@pytest.mark.one_in(2)
@normative(
    "3.1.1",
    *("MQTT-3.3.2-3", "MQTT-3.8.3-2", "MQTT-4.7.1-2", "MQTT-4.7.1-3", "MQTT-4.7.2-1", "MQTT-4.7.3-4"),
    "MQTT-4.7.3-1",
)
@normative(
    "5.0",
    *("MQTT-3.3.2-3", "MQTT-4.7.1-1", "MQTT-4.7.1-2", "MQTT-4.7.2-1", "MQTT-4.7.3-1", "MQTT-4.7.3-4"),
)
@both
@pytest.mark.parametrize(("name", "topic", "wanted"), MATCHES)
def test_which_filters_match(broker: Opened, version: int, name: str, topic: str, wanted: bool) -> None:
    """The examples of 4.7, and some that a broker that normalizes would take for others."""
    raw = broker.client(version)
    assert raw.subscribe((name, 0)).reasons == (0,)
    raw.publish(topic, b"p")
    found = [message for message in raw.so_far(raw) if message.payload == b"p"]
    assert told(found) == ([(topic, b"p")] if wanted else [])


@normative("3.1.1", "MQTT-4.7.2-1")
@normative("5.0", "MQTT-4.7.2-1")
@both
@pytest.mark.parametrize("name", ["#", "+/#", "+/+/#"])
def test_what_the_broker_says_below_a_dollar(broker: Opened, version: int, name: str) -> None:
    """Only filters that name `$SYS` get it, retained or not: clients of LeafCuttr cannot publish below a `$`."""
    found = retained(broker, version, "$SYS/#")
    if not found:
        pytest.skip("the broker says nothing below $SYS")
    assert all(message.topic.startswith("$SYS/") for message in found)
    assert not [message for message in retained(broker, version, name) if message.topic.startswith("$")]


@normative("3.1.1", "MQTT-3.3.5-2")
@normative("5.0", "MQTT-3.4.2-1")
@both
def test_a_message_that_may_not_be_published(broker: Opened, version: int) -> None:
    """Below `$SYS` no broker takes one: it is acknowledged and dropped, or the connection ends."""
    watcher, raw = broker.client(version), broker.client(version)
    topic = f"$SYS/{fresh()}"
    watcher.subscribe(topic)
    raw.send(wire.publish(version, topic, b"p", qos=1, packet_id=9))
    packets = raw.ping_or_end()
    if packets:
        (answer,) = packets
        assert (answer.kind, answer.packet_id) == (wire.PUBACK, 9)
    other = broker.client(version)
    assert watcher.so_far(other) == []


@normative("3.1.1", "MQTT-7.0.0-2")
@both
def test_a_payload_may_be_empty_or_large(broker: Opened, version: int) -> None:
    raw = broker.client(version)
    topic = fresh()
    raw.subscribe(topic)
    for payload in (b"", b"\0", bytes(range(256)) * 512, b"p" * 127, b"p" * 16_400):
        raw.publish(topic, payload, 1)
        assert raw.message().payload == payload
