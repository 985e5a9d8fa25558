"""Broken packets after CONNECT: strings, flags, lengths, packet identifiers (1.5, 2, 4.8 and 4.13)."""

from __future__ import annotations

import pytest

from mqtt.conformance import wire
from mqtt.conformance.raw import Raw, fresh
from mqtt.conformance.under_test import Opened, Started
from mqtt.conformance.wire import Will

normative = pytest.mark.normative
both = pytest.mark.parametrize("version", [4, 5])

MALFORMED = (0x81, 0x82)
ILL_FORMED = [
    pytest.param(b"a\xff", id="no UTF-8"),
    pytest.param(b"\xc0\xaf", id="overlong"),
    pytest.param(b"a/\xed\xa0\x80", id="surrogate"),
    pytest.param(b"a/\xe2\x82", id="cut"),
    pytest.param(b"\xf4\x90\x80\x80", id="above U+10FFFF"),
    pytest.param(b"a\0b", id="U+0000"),
]


def block(version: int) -> bytes:
    return b"\0" if version == 5 else b""


def is_refused(raw: Raw, kind: int, reason: int = 0x8F) -> None:
    """A filter is: the connection ends, or the answer says so."""
    try:
        packet = raw.receive()
    except Exception as error:
        assert type(error).__name__ == "Closed"
        return
    if packet.kind == wire.DISCONNECT:
        assert packet.reason in (*MALFORMED, reason)
        assert raw.rest() == []
    else:
        assert packet.kind == kind
        assert set(packet.reasons) <= {0x80, reason}, packet


@normative("3.1.1", "MQTT-1.5.3-1", "MQTT-1.5.3-2", "MQTT-3.3.2-1", "MQTT-4.7.3-2", "MQTT-4.8.0-1")
@normative("5.0", "MQTT-1.5.4-1", "MQTT-1.5.4-2", "MQTT-3.3.2-1", "MQTT-4.7.3-2", "MQTT-4.13.1-1")
@both
@pytest.mark.parametrize("topic", ILL_FORMED)
def test_a_topic_name_that_is_not_well_formed(broker: Opened, version: int, topic: bytes) -> None:
    raw = broker.client(version)
    raw.send(wire.publish(version, topic, b"p"))
    raw.ended(*MALFORMED, 0x90)


@normative("3.1.1", "MQTT-1.5.3-1", "MQTT-1.5.3-2", "MQTT-3.8.3-1", "MQTT-4.7.3-2")
@normative("5.0", "MQTT-1.5.4-1", "MQTT-1.5.4-2", "MQTT-3.8.3-1", "MQTT-4.7.3-2")
@both
@pytest.mark.parametrize("name", ILL_FORMED)
def test_a_filter_to_subscribe_that_is_not_well_formed(broker: Opened, version: int, name: bytes) -> None:
    raw = broker.client(version)
    raw.send(wire.subscribe(version, 1, [(name, 0)]))
    raw.ended(*MALFORMED, 0x8F)


@normative("3.1.1", "MQTT-1.5.3-1", "MQTT-1.5.3-2", "MQTT-3.10.3-1")
@normative("5.0", "MQTT-1.5.4-1", "MQTT-1.5.4-2", "MQTT-3.10.3-1")
@both
@pytest.mark.parametrize("name", ILL_FORMED)
def test_a_filter_to_unsubscribe_that_is_not_well_formed(broker: Opened, version: int, name: bytes) -> None:
    raw = broker.client(version)
    raw.send(wire.unsubscribe(version, 1, [name]))
    raw.ended(*MALFORMED, 0x8F)


@normative("5.0", "MQTT-1.5.7-1", "MQTT-3.3.2-13", "MQTT-3.3.2-14", "MQTT-3.3.2-19", "MQTT-4.13.1-1")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("user", ("k", bad.values[0])) for bad in ILL_FORMED),
        *(("user", (bad.values[0], "v")) for bad in ILL_FORMED),
        *(("response_topic", bad.values[0]) for bad in ILL_FORMED),
        *(("content_type", bad.values[0]) for bad in ILL_FORMED),
        ("response_topic", "a/+/b"),
        ("response_topic", "a/#"),
    ],
)
def test_a_property_of_publish_that_is_not_well_formed(broker: Opened, name: str, value: object) -> None:
    raw = broker.client()
    raw.send(wire.publish(5, "t", b"p", properties=[(name, value)]))
    raw.ended(*MALFORMED, 0x90)


@normative("3.1.1", "MQTT-1.5.3-3", "MQTT-4.7.3-4")
@normative("5.0", "MQTT-1.5.4-3", "MQTT-4.7.3-4")
@both
def test_a_zero_width_no_break_space_is_a_character(broker: Opened, version: int) -> None:
    raw = broker.client(version)
    stem = fresh()
    raw.subscribe(f"\ufeff{stem}")
    raw.publish(stem, b"without")
    raw.publish(f"\ufeff{stem}", b"with")
    message = raw.message()
    assert (message.topic, message.payload) == (f"\ufeff{stem}", b"with")


@normative(
    "3.1.1",
    *("MQTT-2.2.2-1", "MQTT-2.2.2-2", "MQTT-3.6.1-1", "MQTT-3.8.1-1", "MQTT-3.10.1-1", "MQTT-3.14.1-1"),
)
@normative(
    "5.0",
    *("MQTT-2.1.3-1", "MQTT-3.6.1-1", "MQTT-3.8.1-1", "MQTT-3.10.1-1", "MQTT-3.14.1-1", "MQTT-4.13.1-1"),
)
@both
@pytest.mark.parametrize(
    ("kind", "flags"),
    [
        *((wire.PUBACK, flags) for flags in (1, 2, 8)),
        *((wire.PUBREC, flags) for flags in (1, 2, 8)),
        *((wire.PUBREL, flags) for flags in (0, 1, 3, 6, 10)),
        *((wire.PUBCOMP, flags) for flags in (1, 2, 8)),
        *((wire.SUBSCRIBE, flags) for flags in (0, 1, 3, 6, 10)),
        *((wire.UNSUBSCRIBE, flags) for flags in (0, 1, 3, 6, 10)),
        *((wire.PINGREQ, flags) for flags in (1, 2, 4, 8)),
        *((wire.DISCONNECT, flags) for flags in (1, 2, 4, 8)),
    ],
)
def test_reserved_flags(broker: Opened, version: int, kind: int, flags: int) -> None:
    """mosquitto 2.0.11 looks at those of PUBREL, SUBSCRIBE, UNSUBSCRIBE and DISCONNECT only."""
    raw = broker.client(version)
    packet = {
        wire.SUBSCRIBE: wire.subscribe(version, 1, [("t", 0)]),
        wire.UNSUBSCRIBE: wire.unsubscribe(version, 1, ["t"]),
        wire.PINGREQ: wire.PING,
        wire.DISCONNECT: wire.disconnect(version),
    }.get(kind, wire.answer(kind, 1))
    raw.send(bytes([kind << 4 | flags]) + packet[1:])
    raw.ended(*MALFORMED)


@normative("3.1.1", "MQTT-3.14.1-1", "MQTT-3.14.4-3")
@normative("5.0", "MQTT-3.14.1-1", "MQTT-3.14.4-3")
@both
def test_a_disconnect_with_reserved_flags_discards_no_will(broker: Opened, version: int) -> None:
    watcher = broker.client(version)
    topic = fresh("will")
    watcher.subscribe(topic)
    raw = broker.client(version, will=Will(topic, b"w"))
    raw.send(b"\xe1\x00")
    raw.ended(*MALFORMED)
    assert watcher.message().payload == b"w"


@normative("5.0", "MQTT-3.15.1-1", "MQTT-4.12.0-6")
@pytest.mark.parametrize("flags", [1, 2, 4, 8])
def test_reserved_flags_of_auth(broker: Opened, flags: int) -> None:
    raw = broker.client()
    raw.send(wire.auth(0x18, flags=flags))
    raw.ended(*MALFORMED)


@normative("3.1.1", "MQTT-2.3.1-1")
@normative("5.0", "MQTT-4.13.1-1")
@both
@pytest.mark.parametrize("kind", [wire.PUBLISH, wire.SUBSCRIBE, wire.UNSUBSCRIBE])
@pytest.mark.parametrize("qos", [1, 2])
def test_a_packet_identifier_of_0(broker: Opened, version: int, kind: int, qos: int) -> None:
    raw = broker.client(version)
    if kind == wire.PUBLISH:
        raw.send(wire.publish(version, "t", b"p", qos=qos, packet_id=0))
    elif kind == wire.SUBSCRIBE:
        raw.send(wire.subscribe(version, 0, [("t", qos)]))
    else:
        raw.send(wire.unsubscribe(version, 0, ["t"]))
    raw.ended(*MALFORMED)


@normative("3.1.1", "MQTT-3.3.1-4")
@normative("5.0", "MQTT-3.3.1-4")
@both
def test_qos_3(broker: Opened, version: int) -> None:
    raw = broker.client(version)
    raw.send(wire.publish(version, "t", b"p", qos=3, packet_id=1))
    raw.ended(*MALFORMED)


@normative("3.1.1", "MQTT-3.3.1-2")
@normative("5.0", "MQTT-3.3.1-2")
@both
def test_dup_with_qos_0(broker: Opened, version: int) -> None:
    """It is refused, or at least not passed on."""
    watcher, raw = broker.client(version), broker.client(version)
    topic = fresh()
    watcher.subscribe(topic)
    raw.send(wire.publish(version, topic, b"p", dup=True), wire.PING)
    try:
        refused = raw.receive().kind == wire.DISCONNECT
    except Exception as error:
        assert type(error).__name__ == "Closed"
        refused = True
    if not refused:
        assert not watcher.message().dup


@normative(
    "3.1.1", "MQTT-3.3.2-2", "MQTT-4.7.1-1", "MQTT-4.7.3-1", "MQTT-4.7.3-2", "MQTT-3.3.2-1", "MQTT-4.8.0-1"
)
@normative("5.0", "MQTT-3.3.2-2", "MQTT-4.7.0-1", "MQTT-4.7.3-1", "MQTT-4.7.3-2", "MQTT-3.3.2-1")
@both
@pytest.mark.parametrize("topic", ["a/+", "a/#", "+", "#", "a+b", "a#b", ""])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_name_that_no_topic_can_have(broker: Opened, version: int, topic: str, qos: int) -> None:
    raw = broker.client(version)
    raw.send(wire.publish(version, topic, b"p", qos=qos, packet_id=1 if qos else None))
    if version == 5 and qos:
        # 3.4.2.1: an answer of 0x90 would do where the name is well-formed.
        packets = raw.ping_or_end()
        assert packets is None or packets[0].reason in (0x90, *MALFORMED)
    else:
        raw.ended(*MALFORMED, 0x90)


@normative("3.1.1", "MQTT-4.7.1-2", "MQTT-4.7.1-3", "MQTT-4.7.3-1")
@normative("5.0", "MQTT-4.7.1-1", "MQTT-4.7.1-2", "MQTT-4.7.3-1")
@both
@pytest.mark.parametrize("name", ["a#", "a/#/b", "#/a", "a/b#", "##", "a+", "+a", "a/+b/c", "a/b+", "++", ""])
def test_a_filter_that_is_none(broker: Opened, version: int, name: str) -> None:
    raw = broker.client(version)
    raw.send(wire.subscribe(version, 1, [(name, 0)]))
    is_refused(raw, wire.SUBACK)


@normative("3.1.1", "MQTT-3.8.3-3", "MQTT-3.10.3-2", "MQTT-4.8.0-1")
@normative("5.0", "MQTT-3.8.3-2", "MQTT-3.10.3-2")
@both
@pytest.mark.parametrize("kind", [wire.SUBSCRIBE, wire.UNSUBSCRIBE])
def test_no_filter_at_all(broker: Opened, version: int, kind: int) -> None:
    raw = broker.client(version)
    build = wire.subscribe if kind == wire.SUBSCRIBE else wire.unsubscribe
    raw.send(build(version, 1, []))
    raw.ended(*MALFORMED)


@normative("3.1.1", "MQTT-3.8.3-4")
@normative("5.0", "MQTT-3.8.3-5")
@both
@pytest.mark.parametrize("options", [0x03, 0x40, 0x80, 0xC0, 0x04, 0x08, 0x10, 0x30])
def test_options_of_a_subscription_that_are_reserved(broker: Opened, version: int, options: int) -> None:
    """No local, retain as published and retain handling are of 5.0; retain handling 3 is of none."""
    if version == 5 and options in (0x04, 0x08, 0x10):
        assert broker.client().subscribe(("t", options)).reasons == (0,)
        return
    raw = broker.client(version)
    raw.send(wire.subscribe(version, 1, [("t", options)]))
    raw.ended(*MALFORMED)


@normative("5.0", "MQTT-1.5.5-1", "MQTT-4.13.1-1")
@pytest.mark.parametrize(
    "packet",
    [
        pytest.param(b"\xc0\x80\x00", id="remaining length"),
        pytest.param(b"\x30\x05\x00\x01t\x80\x00", id="property length"),
        pytest.param(
            wire.frame(wire.SUBSCRIBE, 2, b"\0\1\x03\x0b\x81\x00" + wire.text("t") + b"\0"),
            id="subscription identifier",
        ),
    ],
)
def test_an_integer_with_a_byte_too_many(broker: Opened, packet: bytes) -> None:
    """mosquitto 2.0.11 takes such an integer in the remaining length."""
    raw = broker.client()
    raw.send(packet)
    raw.ended(0x81)


@normative("3.1.1", "MQTT-4.8.0-1")
@normative("5.0", "MQTT-4.13.1-1", "MQTT-4.13.2-1")
@both
@pytest.mark.parametrize(
    "packet",
    [
        pytest.param(b"\x30\xff\xff\xff\xff\x01", id="remaining length of five bytes"),
        pytest.param(b"\x30\x00", id="publish of nothing"),
        pytest.param(b"\x30\x02\x00\x05", id="topic beyond the packet"),
        pytest.param(b"\x32\x04\x00\x01t\x00", id="half a packet identifier"),
        pytest.param(b"\x40\x00", id="puback of nothing"),
        pytest.param(b"\x40\x01\x00", id="puback of a byte"),
        pytest.param(b"\x62\x01\x00", id="pubrel of a byte"),
        pytest.param(b"\x82\x01\x00", id="subscribe of a byte"),
        pytest.param(wire.frame(wire.SUBSCRIBE, 2, b"\0\1\0\0\1t"), id="subscribe without options"),
        pytest.param(wire.frame(wire.PINGREQ, 0, b"x"), id="pingreq with a byte"),
        pytest.param(b"\x00\x00", id="type 0"),
        pytest.param(b"\x20\x02\x00\x00", id="connack"),
        pytest.param(b"\x90\x03\x00\x01\x00", id="suback"),
        pytest.param(b"\xb0\x02\x00\x01", id="unsuback"),
        pytest.param(b"\xd0\x00", id="pingresp"),
    ],
)
def test_packets_that_are_none(broker: Opened, version: int, packet: bytes) -> None:
    """They end their connection, and no other one. mosquitto 2.0.11 lets some packets of a server pass."""
    other, raw = broker.client(version), broker.client(version)
    raw.send(packet)
    raw.ended(*MALFORMED)
    assert other.ping() == []


@normative("3.1.1", "MQTT-4.8.0-1")
@pytest.mark.parametrize(
    "packet",
    [
        pytest.param(wire.auth(0x18), id="auth"),
        pytest.param(b"\x40\x03\x00\x01\x00", id="puback with a reason"),
        pytest.param(b"\x62\x03\x00\x01\x00", id="pubrel with a reason"),
        pytest.param(b"\xe0\x01\x00", id="disconnect with a reason"),
    ],
)
def test_what_is_of_5_only(broker: Opened, packet: bytes) -> None:
    raw = broker.client(4)
    raw.send(packet)
    raw.ended()


@normative("5.0", "MQTT-4.13.1-1", "MQTT-3.14.2-1", "MQTT-3.14.4-1", "MQTT-3.14.4-2", "MQTT-2.2.2-1")
@pytest.mark.parametrize(
    "packet",
    [
        pytest.param(b"\x30\x03\x00\x01t", id="publish without a property length"),
        pytest.param(b"\x30\x05\x00\x01t\x01\x01", id="half a property"),
        pytest.param(wire.publish(5, "t", properties=[("payload_format", 2)]), id="payload format 2"),
        pytest.param(wire.publish(5, "t", properties=[("payload_format", 0)] * 2), id="twice"),
        pytest.param(wire.publish(5, "t", properties=[("message_expiry", 0)] * 2), id="expiry twice"),
        pytest.param(wire.publish(5, "t", properties=[("session_expiry", 1)]), id="not of publish"),
        pytest.param(wire.publish(5, "t", properties=[("subscription_id", 1)]), id="subscription id"),
        pytest.param(
            wire.subscribe(5, 1, [("t", 0)], properties=[("subscription_id", 0)]), id="subscription id 0"
        ),
        pytest.param(
            wire.subscribe(5, 1, [("t", 0)], properties=[("subscription_id", 1)] * 2), id="two of them"
        ),
        pytest.param(wire.answer(wire.PUBACK, 1, 0x04), id="reason of no puback"),
        pytest.param(wire.answer(wire.PUBREL, 1, 0x80), id="reason of no pubrel"),
        pytest.param(wire.answer(wire.PUBACK, 1, 0, [("content_type", "c")]), id="not of puback"),
        pytest.param(wire.disconnect(5, 0x01), id="reason of no disconnect"),
        pytest.param(wire.disconnect(5, 0x8E, [("session_expiry", 1)] * 2), id="disconnect twice"),
        pytest.param(wire.disconnect(5, 0, [("session_expiry", 1)]), id="expiry after none"),
    ],
)
def test_packets_that_are_none_in_5(broker: Opened, packet: bytes) -> None:
    """A DISCONNECT says why, is one of its table, and the last that is sent. mosquitto 2.0.11 says nothing after a
    broken DISCONNECT, and does not look at the reason code of PUBREL."""
    raw = broker.client()
    raw.send(packet, wire.PING)
    raw.ended(*MALFORMED)


@normative("5.0", "MQTT-4.13.1-1", "MQTT-4.13.2-1")
def test_a_packet_above_the_servers_maximum(leafcuttr: Started) -> None:
    with leafcuttr({"mqtt.max.packet.bytes": 2048}) as broker:
        raw = broker.client()
        assert raw.connack is not None
        assert raw.connack.one("maximum_packet_size") == 2048
        fits = wire.publish(5, "t", b"p" * (2048 - 7), qos=0)
        assert len(fits) == 2048
        raw.send(fits)
        assert raw.ping() == []
        # The header is enough: nothing waits for, or makes room for, what it claims.
        raw.send(b"\x30\xff\xff\xff\x7f")
        raw.ended(0x95)
        older = broker.client(4)
        older.send(b"\x30\x81\x10")
        older.ended()


@normative("3.1.1", "MQTT-4.7.3-3")
@normative("5.0", "MQTT-4.7.3-3")
@both
def test_the_longest_topic(broker: Opened, version: int) -> None:
    """65,535 bytes. A longer one cannot be written. mosquitto 2.0.11 has a bound of its own, of 200 levels."""
    raw = broker.client(version)
    topic = fresh("long") + "x" * 65000
    topic += "y" * (65535 - len(topic))
    assert raw.subscribe((topic, 1)).reasons == (1,)
    raw.publish(topic, b"p", 1)
    assert raw.message().topic == topic
