"""Shared subscriptions (4.8.2)."""

from __future__ import annotations

import pytest

from mqtt.conformance import wire
from mqtt.conformance.raw import Raw, fresh
from mqtt.conformance.under_test import Opened
from mqtt.conformance.wire import Packet

normative = pytest.mark.normative


def members(broker: Opened, topic: str, count: int, qos: int = 2, share: str = "") -> list[Raw]:
    """New clients of a share, which is one of the topic where it has no name."""
    share, found = share or f"of {topic}", []
    for _ in range(count):
        raw = broker.client(5, fresh(), properties=[("session_expiry", 120)])
        assert raw.subscribe((f"$share/{share}/{topic}", qos)).reasons == (qos,)
        found.append(raw)
    return found


def gathered(raws: list[Raw], sender: Raw) -> list[list[Packet]]:
    return [raw.so_far(sender) for raw in raws]


@normative("5.0", "MQTT-4.8.2-1", "MQTT-4.8.2-2", "MQTT-4.5.0-1")
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_each_message_goes_to_one_of_a_share(broker: Opened, qos: int) -> None:
    """To one of each share, and to each subscription that is not shared; each client of a share gets some."""
    topic, sender = fresh(), broker.client()
    first, second = members(broker, topic, 3), members(broker, "+", 2, share=fresh("g"))
    alone = broker.client()
    alone.subscribe(topic)
    wanted = [b"%d" % number for number in range(30)]
    for payload in wanted:
        sender.publish(topic, payload, qos)
    for group in (first, second):
        found = gathered(group, sender)
        assert sorted(int(m.payload) for part in found for m in part if m.topic == topic) == list(range(30))
        assert all(part for part in found)
        for part in found:
            numbers = [int(message.payload) for message in part if message.topic == topic]
            assert numbers == sorted(numbers)
    assert [message.payload for message in alone.messages(len(wanted))] == wanted


@normative("5.0", "MQTT-4.8.2-1", "MQTT-4.8.2-2", "MQTT-4.13.1-1")
@pytest.mark.parametrize(
    "name",
    ["$share/", "$share//t", "$share/name", "$share/name/", "$share/na+me/t", "$share/na#me/t", "$share/+/t"],
)
def test_filters_that_are_no_shared_subscription(broker: Opened, name: str) -> None:
    """mosquitto 2.0.11 accepts most of them."""
    raw = broker.client()
    raw.send(wire.subscribe(5, 1, [(name, 0)]), wire.PING)
    packet = raw.receive()
    if packet.kind == wire.DISCONNECT:
        assert packet.reason in (0x81, 0x82, 0x8F)
        assert raw.rest() == []
    else:
        assert packet.kind == wire.SUBACK
        assert packet.reasons[0] in (0x80, 0x8F)


@normative("5.0", "MQTT-3.8.3-4")
def test_no_local_with_a_shared_subscription(broker: Opened) -> None:
    """mosquitto 2.0.11 does not look at it."""
    raw = broker.client()
    raw.send(wire.subscribe(5, 1, [("$share/g/t", 0x04)]))
    raw.ended(0x82)


@normative("5.0", "MQTT-4.8.2-3", "MQTT-3.8.4-8")
def test_the_qos_of_each_client(broker: Opened) -> None:
    topic, sender = fresh(), broker.client()
    group = [members(broker, topic, 1, qos)[0] for qos in (0, 1, 2)]
    for number in range(12):
        sender.publish(topic, b"%d" % number, 2)
    found = gathered(group, sender)
    assert sum(map(len, found)) == 12
    for qos, part in enumerate(found):
        assert part
        assert {message.qos for message in part} == {qos}


@normative("5.0", "MQTT-4.8.2-4", "MQTT-4.4.0-1")
@pytest.mark.parametrize("qos", [1, 2])
def test_a_delivery_that_has_begun_waits_for_its_client(broker: Opened, qos: int) -> None:
    """For QoS 2 no other client may get it."""
    topic, sender = fresh(), broker.client()
    (first,) = members(broker, topic, 1)
    sender.publish(topic, b"begun", qos)
    message = first.message(acknowledge=False)
    first.close()
    (second,) = members(broker, topic, 1)
    if qos == 2:
        assert second.so_far(sender) == []
    again = broker.client(5, first.client_id, clean=False)
    sent = again.message()
    assert (sent.payload, sent.packet_id, sent.dup) == (b"begun", message.packet_id, True)


@normative("5.0", "MQTT-4.8.2-5")
def test_if_its_session_ends_no_other_client_gets_it(broker: Opened) -> None:
    topic, sender = fresh(), broker.client()
    first, second = members(broker, topic, 2)
    for _ in range(2):
        sender.publish(topic, b"begun", 2)
    begun, other = first.message(acknowledge=False), second.message()
    assert begun.payload == other.payload == b"begun"
    first.close()
    broker.client(5, first.client_id, clean=True)
    assert second.so_far(sender) == []


@normative("5.0", "MQTT-4.8.2-6", "MQTT-4.4.0-2")
@pytest.mark.parametrize("qos", [1, 2])
def test_what_a_client_refuses_no_other_one_gets(broker: Opened, qos: int) -> None:
    topic, sender = fresh(), broker.client()
    first, second = members(broker, topic, 2)
    for _ in range(2):
        sender.publish(topic, b"p", qos)
    refused = first.message(acknowledge=False)
    second.message()
    first.send(wire.answer(wire.PUBACK if qos == 1 else wire.PUBREC, refused.packet_id, 0x80))
    assert first.ping() == []
    assert second.so_far(sender) == []
    assert first.so_far(sender) == []


@normative("5.0", "MQTT-4.8.2-1", "MQTT-3.10.4-1", "MQTT-3.10.4-2")
def test_unsubscribe_from_a_share(broker: Opened) -> None:
    """By its whole filter; the others go on."""
    topic, sender = fresh(), broker.client()
    first, second = members(broker, topic, 2)
    assert first.unsubscribe(topic).reasons == (0x11,)
    assert first.unsubscribe(f"$share/of {topic}/{topic}").reasons == (0,)
    for _ in range(4):
        sender.publish(topic, b"p", 1)
    assert [len(part) for part in gathered([first, second], sender)] == [0, 4]


@normative("5.0", "MQTT-4.8.2-1")
def test_no_retained_messages_for_a_share(broker: Opened) -> None:
    """4.8.2: they are for subscriptions that are not shared. mosquitto 2.0.11 sends them."""
    topic, sender = fresh(), broker.client()
    sender.publish(topic, b"kept", 1, retain=True)
    (raw,) = members(broker, topic, 1)
    assert raw.so_far(sender) == []
    sender.publish(topic, b"", 1, retain=True)


@normative("5.0", "MQTT-4.8.2-1", "MQTT-3.8.4-3")
def test_a_share_and_a_subscription_of_the_same_filter(broker: Opened) -> None:
    """They are two: one does not replace the other."""
    topic, sender = fresh(), broker.client()
    (raw,) = members(broker, topic, 1)
    raw.subscribe((topic, 1))
    sender.publish(topic, b"p", 1)
    assert [message.payload for message in raw.so_far(sender)] in ([b"p"], [b"p", b"p"])
    raw.unsubscribe(topic)
    sender.publish(topic, b"q", 1)
    assert [message.payload for message in raw.so_far(sender)] == [b"q"]


@normative("5.0", "MQTT-4.8.2-4")
def test_a_share_whose_clients_are_all_away(broker: Opened) -> None:
    """What comes meanwhile waits in a session of one of them."""
    topic, sender = fresh(), broker.client()
    group = members(broker, topic, 2)
    for raw in group:
        raw.disconnect()
    for number in range(6):
        sender.publish(topic, b"%d" % number, 1)
    back = [broker.client(5, raw.client_id, clean=False) for raw in group]
    found = gathered(back, sender)
    assert sorted(message.payload for part in found for message in part) == [b"%d" % n for n in range(6)]
