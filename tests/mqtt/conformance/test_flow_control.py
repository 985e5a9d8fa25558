"""Receive maximum, both ways (3.1.2.11.3, 3.2.2.3.3, 4.9)."""

from __future__ import annotations

import pytest

from mqtt.conformance import wire
from mqtt.conformance.raw import Raw, fresh
from mqtt.conformance.under_test import Opened
from mqtt.conformance.wire import Packet

normative = pytest.mark.normative


def payloads(packets: list[Packet]) -> list[bytes]:
    assert all(packet.kind == wire.PUBLISH for packet in packets), packets
    return [packet.payload for packet in packets]


def slow(broker: Opened, topic: str, maximum: int) -> Raw:
    raw = broker.client(properties=[("receive_maximum", maximum)])
    raw.subscribe((topic, 2))
    return raw


@normative("5.0", "MQTT-3.3.4-9", "MQTT-4.9.0-1", "MQTT-4.9.0-2")
@pytest.mark.parametrize("maximum", [1, 3])
@pytest.mark.parametrize("qos", [1, 2])
def test_no_more_than_the_clients_receive_maximum(broker: Opened, maximum: int, qos: int) -> None:
    """One more for each that is acknowledged: QoS 2 by PUBCOMP, not by PUBREC. mosquitto 2.0.11 sends all that
    waits after the first acknowledgement where the maximum is above 1."""
    topic, other = fresh(), broker.client()
    raw = slow(broker, topic, maximum)
    count = maximum + 3
    for number in range(count):
        other.publish(topic, b"%d" % number, qos)
    under_way = raw.ping()
    assert payloads(under_way) == [b"%d" % number for number in range(maximum)]
    for number in range(maximum, count):
        packet = under_way.pop(0)
        if qos == 1:
            raw.send(wire.answer(wire.PUBACK, packet.packet_id))
        else:
            raw.send(wire.answer(wire.PUBREC, packet.packet_id))
            assert raw.expect(wire.PUBREL).packet_id == packet.packet_id
            assert raw.ping() == []
            raw.send(wire.answer(wire.PUBCOMP, packet.packet_id))
        message = raw.message(acknowledge=False)
        assert message.payload == b"%d" % number
        assert raw.ping() == []
        under_way.append(message)


@normative("5.0", "MQTT-3.3.4-9", "MQTT-4.9.0-2", "MQTT-4.4.0-2")
@pytest.mark.parametrize("qos", [1, 2])
def test_an_answer_that_refuses_makes_room(broker: Opened, qos: int) -> None:
    topic, other = fresh(), broker.client()
    raw = slow(broker, topic, 1)
    for number in range(3):
        other.publish(topic, b"%d" % number, qos)
    for number in range(3):
        message = raw.message(acknowledge=False)
        assert message.payload == b"%d" % number
        assert raw.ping() == []
        kind = wire.PUBACK if qos == 1 else wire.PUBREC
        raw.send(wire.answer(kind, message.packet_id, 0x80))
    assert raw.ping() == []


@normative("5.0", "MQTT-3.3.4-10", "MQTT-4.9.0-3")
def test_all_other_packets_are_not_held_back(broker: Opened) -> None:
    """SUBACK, UNSUBACK, PUBACK, PUBREC, PUBCOMP, PINGRESP."""
    topic, other = fresh(), broker.client()
    raw = slow(broker, topic, 1)
    for number in range(3):
        other.publish(topic, b"%d" % number, 1)
    first = raw.message(acknowledge=False)
    raw.subscribe((fresh(), 0))
    raw.unsubscribe("nothing")
    raw.publish("up", b"", 1)
    raw.publish("up", b"", 2)
    assert raw.ping() == []
    raw.send(wire.answer(wire.PUBACK, first.packet_id))
    assert raw.message().payload == b"1"


@normative("5.0", "MQTT-3.3.4-9", "MQTT-4.9.0-1")
def test_the_quota_begins_anew_with_each_connection(broker: Opened) -> None:
    """What was under way is sent again within the maximum of the new connection. mosquitto 2.0.11 keeps to the
    older one."""
    topic, other, name = fresh(), broker.client(), fresh()
    keep = ("session_expiry", 120)
    raw = broker.client(5, name, properties=[keep, ("receive_maximum", 4)])
    raw.subscribe((topic, 1))
    for number in range(6):
        other.publish(topic, b"%d" % number, 1)
    assert payloads(raw.ping()) == [b"0", b"1", b"2", b"3"]
    raw.close()
    again = broker.client(5, name, clean=False, properties=[keep, ("receive_maximum", 2)])
    assert payloads(again.ping()) == [b"0", b"1"]
    assert payloads(again.so_far(other)) == []
    again.close()
    last = broker.client(5, name, clean=False, properties=[keep])
    assert payloads(last.messages(6)) == [b"%d" % number for number in range(6)]


@normative("5.0", "MQTT-4.9.0-3", "MQTT-4.13.1-1")
def test_a_client_that_exceeds_the_servers_receive_maximum(broker: Opened) -> None:
    """The maximum is taken; one more ends the connection with 0x93 (3.3.4). mosquitto 2.0.11 says nothing."""
    raw = broker.client()
    assert raw.connack is not None
    maximum = raw.connack.one("receive_maximum") or 65535
    if maximum > 1000:
        pytest.skip("more than a test wants to send")
    raw.send(*(wire.publish(5, "up", b"", qos=2, packet_id=n) for n in range(1, maximum + 1)))
    assert [raw.expect(wire.PUBREC).packet_id for _ in range(maximum)] == list(range(1, maximum + 1))
    # What has its PUBCOMP counts no more, and one that is sent again no second time.
    raw.send(wire.publish(5, "up", b"", qos=2, packet_id=2, dup=True))
    assert raw.expect(wire.PUBREC).packet_id == 2
    raw.release(1)
    raw.send(wire.publish(5, "up", b"", qos=2, packet_id=1))
    assert raw.expect(wire.PUBREC).packet_id == 1
    assert raw.ping() == []
    raw.send(wire.publish(5, "up", b"", qos=2, packet_id=maximum + 1))
    raw.ended(0x93)


@normative("3.1.1", "MQTT-4.6.0-6")
@pytest.mark.parametrize("version", [3, 4])
def test_more_messages_than_go_at_once(broker: Opened, version: int) -> None:
    """Older clients have no receive maximum: the server's own bound holds them back, in order, and loses none."""
    topic, other = fresh(), broker.client()
    raw = broker.client(version)
    raw.subscribe((topic, 1))
    for number in range(300):
        other.send(wire.publish(5, topic, b"%d" % number, qos=1, packet_id=number + 1))
        if number % 20 == 19:
            for _ in range(20):
                other.expect(wire.PUBACK)
    assert payloads(raw.messages(300)) == [b"%d" % number for number in range(300)]
