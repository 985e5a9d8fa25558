"""The exchanges of QoS 0, 1 and 2 from both sides, what is sent again, and order (4.3, 4.4, 4.6)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from mqtt.conformance import wire
from mqtt.conformance.raw import Raw, fresh
from mqtt.conformance.under_test import Opened
from mqtt.conformance.wire import Packet

normative = pytest.mark.normative
both = pytest.mark.parametrize("version", [4, 5])


def kept(version: int, **more: Any) -> dict[str, Any]:
    """Options of a CONNECT whose session outlives the connection."""
    own = [("session_expiry", 120)] if version == 5 else []
    return {"clean": False, "properties": [*own, *more.items()] if version == 5 else []}


def payloads(messages: list[Packet]) -> list[bytes]:
    return [message.payload for message in messages]


@pytest.fixture
def subscriber(broker: Opened) -> Callable[..., Raw]:
    """A client with a session that stays, subscribed with QoS 2."""

    def make(version: int, topic: str, **more: Any) -> Raw:
        raw = broker.client(version, fresh(), **kept(version, **more))
        raw.subscribe(topic)
        return raw

    return make


@normative("3.1.1", "MQTT-4.3.2-2")
@normative("5.0", "MQTT-4.3.2-4", "MQTT-4.3.2-5")
@both
@pytest.mark.parametrize("dup", [False, True])
def test_after_puback_the_identifier_is_of_a_new_message(broker: Opened, version: int, dup: bool) -> None:
    raw, topic = broker.client(version), fresh()
    raw.subscribe(topic)
    raw.publish(topic, b"first", 1, packet_id=5)
    raw.publish(topic, b"second", 1, packet_id=5, dup=dup)
    assert payloads(raw.so_far(raw)) == [b"first", b"second"]


@normative("3.1.1", "MQTT-4.3.3-2", "MQTT-2.3.1-6")
@normative("5.0", "MQTT-4.3.3-8", "MQTT-4.3.3-10", "MQTT-4.3.3-11", "MQTT-4.3.3-12", "MQTT-2.2.1-5")
@both
def test_a_message_of_qos_2_comes_once(broker: Opened, version: int) -> None:
    """However often it is sent before PUBREL; after PUBCOMP the identifier is of a new message, whatever DUP says.
    mosquitto 2.0.11 ends the connection where one is sent again without DUP."""
    raw, watcher, topic = broker.client(version), broker.client(version), fresh()
    watcher.subscribe(topic)
    for number, dup in enumerate((False, True, True, False)):
        raw.send(wire.publish(version, topic, b"once", qos=2, packet_id=9, dup=dup))
        assert raw.expect(wire.PUBREC).packet_id == 9, number
    raw.send(wire.answer(wire.PUBREL, 9))
    assert raw.expect(wire.PUBCOMP).packet_id == 9
    raw.publish(topic, b"again", 2, packet_id=9, dup=True)
    assert payloads(watcher.so_far(raw)) == [b"once", b"again"]


@normative("3.1.1", "MQTT-4.3.3-2", "MQTT-4.4.0-1", "MQTT-4.1.0-1")
@normative("5.0", "MQTT-4.3.3-10", "MQTT-4.3.3-11", "MQTT-4.4.0-1")
@both
def test_a_message_of_qos_2_comes_once_across_connections(broker: Opened, version: int) -> None:
    name, topic = fresh(), fresh()
    watcher, other = broker.client(version), broker.client(version)
    watcher.subscribe(topic)
    raw = broker.client(version, name, **kept(version))
    raw.send(wire.publish(version, topic, b"once", qos=2, packet_id=9))
    raw.expect(wire.PUBREC)
    raw.close()
    raw = broker.client(version, name, **kept(version))
    raw.send(wire.publish(version, topic, b"once", qos=2, packet_id=9, dup=True))
    assert raw.expect(wire.PUBREC).packet_id == 9
    raw.send(wire.answer(wire.PUBREL, 9))
    raw.close()
    raw = broker.client(version, name, **kept(version))
    raw.release(9)
    assert payloads(watcher.so_far(other)) == [b"once"]


@normative("3.1.1", "MQTT-4.3.3-2")
@normative("5.0", "MQTT-4.3.3-11", "MQTT-3.7.2-1")
@both
def test_pubrel_with_an_identifier_that_is_not_known(broker: Opened, version: int) -> None:
    """It is answered: the sender may not have got the first PUBCOMP."""
    raw = broker.client(version)
    assert raw.release(77).reason in (0, 0x92)
    assert raw.ping() == []


@normative("5.0", "MQTT-4.3.3-9", "MQTT-3.5.2-1", "MQTT-3.4.2-1")
def test_after_a_pubrec_that_refuses_the_identifier_is_of_a_new_message(broker: Opened) -> None:
    """A broker that looks at the payload format refuses a text that is none; mosquitto 2.0.11 does not look."""
    raw, topic = broker.client(), fresh()
    raw.subscribe(topic)
    text = [("payload_format", 1)]
    raw.send(wire.publish(5, topic, b"\xff", qos=1, packet_id=3, properties=text))
    got = raw.answer(wire.PUBACK, 3)
    assert got.reason == 0x99 or (got.reason == 0 and not broker.strict)
    raw.send(wire.publish(5, topic, b"\xff", qos=2, packet_id=3, properties=text))
    got = raw.answer(wire.PUBREC, 3)
    if broker.strict:
        assert got.reason == 0x99
        raw.publish(topic, b"good", 2, packet_id=3, properties=text)
        assert payloads(raw.so_far(raw)) == [b"good"]


@normative("5.0", "MQTT-4.3.3-13")
def test_the_exchange_goes_on_although_the_message_has_expired(broker: Opened) -> None:
    raw, topic = broker.client(), fresh()
    raw.send(wire.publish(5, topic, b"p", qos=2, packet_id=3, properties=[("message_expiry", 1)]))
    raw.expect(wire.PUBREC)
    time.sleep(1.1)  # the interval itself: nothing tells that it is over
    assert raw.release(3).reason == 0


@normative("3.1.1", "MQTT-4.3.2-1", "MQTT-4.4.0-1", "MQTT-3.3.1-1", "MQTT-2.3.1-4", "MQTT-4.6.0-1")
@normative(
    "5.0",
    *("MQTT-4.3.2-1", "MQTT-4.3.2-2", "MQTT-4.3.2-3", "MQTT-4.4.0-1", "MQTT-3.3.1-1", "MQTT-2.2.1-4"),
    "MQTT-4.6.0-5",
)
@both
def test_qos_1_is_sent_again_until_puback(
    broker: Opened, subscriber: Callable[..., Raw], version: int
) -> None:
    """With its identifier, with DUP, in the first order, and only after a reconnect."""
    topic, other = fresh(), broker.client(version)
    raw = subscriber(version, topic)
    for number in range(5):
        other.publish(topic, b"%d" % number, 1)
    first = [raw.message(acknowledge=False) for _ in range(5)]
    assert len({message.packet_id for message in first}) == 5
    assert not any(message.dup for message in first)
    raw.send(wire.answer(wire.PUBACK, first[1].packet_id))
    assert raw.ping() == []
    raw.close()
    again = broker.client(version, raw.client_id, **kept(version))
    sent = [again.message() for _ in range(4)]
    assert payloads(sent) == [b"0", b"2", b"3", b"4"]
    assert [message.packet_id for message in sent] == [first[n].packet_id for n in (0, 2, 3, 4)]
    assert all(message.dup and message.qos == 1 for message in sent)
    assert again.so_far(other) == []
    again.close()
    assert broker.client(version, raw.client_id, **kept(version)).so_far(other) == []


@normative("3.1.1", "MQTT-4.3.3-1", "MQTT-4.4.0-1", "MQTT-3.3.1-1", "MQTT-2.3.1-4", "MQTT-4.6.0-1")
@normative(
    "5.0",
    *("MQTT-4.3.3-1", "MQTT-4.3.3-2", "MQTT-4.3.3-3", "MQTT-4.3.3-4", "MQTT-4.3.3-5", "MQTT-4.3.3-6"),
    *("MQTT-4.4.0-1", "MQTT-3.3.1-1", "MQTT-2.2.1-4", "MQTT-2.2.1-5", "MQTT-3.6.2-1"),
)
@both
def test_qos_2_goes_on_where_it_was(broker: Opened, subscriber: Callable[..., Raw], version: int) -> None:
    """What has had no PUBREC is sent again; what has had one gets PUBREL again; what has had PUBCOMP nothing."""
    topic, other = fresh(), broker.client(version)
    raw = subscriber(version, topic)
    for number in range(4):
        other.publish(topic, b"%d" % number, 2)
    first = [raw.message(acknowledge=False) for _ in range(4)]
    ids = [message.packet_id for message in first]
    assert len(set(ids)) == 4
    assert not any(message.dup for message in first)
    for at in (0, 1):
        raw.send(wire.answer(wire.PUBREC, ids[at]))
        assert (got := raw.expect(wire.PUBREL)).packet_id == ids[at]
        assert got.reason == 0
    raw.send(wire.answer(wire.PUBCOMP, ids[0]))
    assert raw.ping() == []
    raw.close()
    again = broker.client(version, raw.client_id, **kept(version))
    came = [again.receive() for _ in range(3)]
    released = [packet.packet_id for packet in came if packet.kind == wire.PUBREL]
    sent = [packet for packet in came if packet.kind == wire.PUBLISH]
    assert released == [ids[1]]
    assert [(packet.payload, packet.packet_id, packet.dup) for packet in sent] == [
        (b"2", ids[2], True),
        (b"3", ids[3], True),
    ]
    again.send(wire.answer(wire.PUBCOMP, ids[1]))
    for packet in sent:
        again.acknowledge(packet)
    assert again.so_far(other) == []
    again.close()
    assert broker.client(version, raw.client_id, **kept(version)).so_far(other) == []


@normative("5.0", "MQTT-4.4.0-2", "MQTT-4.3.3-4")
@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("reason", [0x80, 0x83, 0x87, 0x97, 0x99])
def test_an_answer_of_0x80_and_above_acknowledges(
    broker: Opened, subscriber: Callable[..., Raw], qos: int, reason: int
) -> None:
    """No PUBREL follows, and nothing is sent again."""
    topic, other = fresh(), broker.client()
    raw = subscriber(5, topic)
    other.publish(topic, b"p", qos)
    packet = raw.message(acknowledge=False)
    raw.send(wire.answer(wire.PUBACK if qos == 1 else wire.PUBREC, packet.packet_id, reason))
    assert raw.ping() == []
    raw.close()
    again = broker.client(5, raw.client_id, **kept(5))
    assert again.so_far(other) == []


@normative("5.0", "MQTT-4.3.3-4")
def test_an_answer_of_0x10_is_none_that_refuses(broker: Opened, subscriber: Callable[..., Raw]) -> None:
    topic, other = fresh(), broker.client()
    raw = subscriber(5, topic)
    other.publish(topic, b"p", 2)
    packet = raw.message(acknowledge=False)
    raw.send(wire.answer(wire.PUBREC, packet.packet_id, 0x10))
    assert raw.expect(wire.PUBREL).packet_id == packet.packet_id


@normative("5.0", "MQTT-4.3.3-7")
def test_what_was_sent_does_not_expire(broker: Opened, subscriber: Callable[..., Raw]) -> None:
    """It is sent again after its interval has passed: the client may have it already. mosquitto 2.0.11 drops it."""
    topic, other = fresh(), broker.client()
    raw = subscriber(5, topic)
    other.publish(topic, b"p", 2, properties=[("message_expiry", 1)])
    packet = raw.message(acknowledge=False)
    raw.close()
    time.sleep(1.1)  # the interval itself
    again = broker.client(5, raw.client_id, **kept(5))
    sent = again.message()
    assert (sent.payload, sent.packet_id, sent.dup) == (b"p", packet.packet_id, True)


@normative("3.1.1", "MQTT-4.6.0-2", "MQTT-4.6.0-3", "MQTT-4.6.0-4", "MQTT-4.6.0-5", "MQTT-4.6.0-6")
@normative("5.0", "MQTT-4.6.0-5", "MQTT-4.6.0-6")
@both
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_order(broker: Opened, version: int, qos: int) -> None:
    """Of answers, and of messages of each client with one topic, to several subscribers."""
    topic = fresh("order")
    watchers = [broker.client(version) for _ in range(3)]
    for raw in watchers:
        raw.subscribe((topic, 2))
    senders = [broker.client(version) for _ in range(2)]
    count = 15
    for raw in senders:
        raw.send(
            *(
                wire.publish(
                    version,
                    topic,
                    b"%s %d" % (raw.client_id.encode(), n),
                    qos=qos,
                    packet_id=n if qos else None,
                )
                for n in range(1, count + 1)
            )
        )
    for raw in senders:
        if qos:
            answers = [raw.expect(wire.PUBACK if qos == 1 else wire.PUBREC) for _ in range(count)]
            assert [packet.packet_id for packet in answers] == list(range(1, count + 1))
        if qos == 2:
            raw.send(*(wire.answer(wire.PUBREL, n) for n in range(1, count + 1)))
            answers = [raw.expect(wire.PUBCOMP) for _ in range(count)]
            assert [packet.packet_id for packet in answers] == list(range(1, count + 1))
        assert raw.ping() == []
    for raw in watchers:
        found = payloads(raw.messages(2 * count))
        assert raw.so_far(senders[0]) == []
        for sender in senders:
            own = [payload for payload in found if payload.startswith(sender.client_id.encode() + b" ")]
            assert own == [b"%s %d" % (sender.client_id.encode(), n) for n in range(1, count + 1)]


@normative("3.1.1", "MQTT-4.6.0-4")
@normative("5.0", "MQTT-4.3.3-4")
@both
def test_pubrel_comes_in_the_order_of_pubrec(broker: Opened, version: int) -> None:
    raw, other, topic = broker.client(version), broker.client(version), fresh()
    raw.subscribe(topic)
    for number in range(4):
        other.publish(topic, b"%d" % number, 2)
    ids = [raw.message(acknowledge=False).packet_id for _ in range(4)]
    order = [ids[2], ids[0], ids[3], ids[1]]
    raw.send(*(wire.answer(wire.PUBREC, packet_id) for packet_id in order))
    assert [raw.expect(wire.PUBREL).packet_id for _ in range(4)] == order


@normative("3.1.1", "MQTT-2.3.1-4", "MQTT-4.3.2-1")
@normative("5.0", "MQTT-2.2.1-4", "MQTT-4.3.2-1", "MQTT-4.3.3-1")
@both
def test_identifiers_of_deliveries_are_not_in_use(broker: Opened, version: int) -> None:
    """Those of QoS 1 and QoS 2 are of one space; one that was acknowledged may come again."""
    raw, other, topic = broker.client(version), broker.client(version), fresh()
    raw.subscribe(topic)
    in_use: set[int] = set()
    for number in range(40):
        other.publish(topic, b"%d" % number, 1 + number % 2)
        message = raw.message(acknowledge=False)
        assert message.packet_id not in in_use
        if number % 3:
            raw.acknowledge(message)
        else:
            in_use.add(message.packet_id)


@normative("5.0", "MQTT-2.2.1-5")
@both
@pytest.mark.parametrize("kind", [wire.PUBACK, wire.PUBREC, wire.PUBCOMP])
def test_answers_to_nothing(broker: Opened, version: int, kind: int) -> None:
    """5.0 has a PUBREL with 0x92 for such a PUBREC; the connection may end, too. Nobody else is touched."""
    raw, other = broker.client(version), broker.client(version)
    raw.send(wire.answer(kind, 1234))
    packets = raw.ping_or_end()
    for packet in packets or []:
        assert (packet.kind, packet.packet_id) == (wire.PUBREL, 1234)
    assert other.ping() == []


@normative("3.1.1", "MQTT-4.3.2-2", "MQTT-4.3.3-2")
@normative("5.0", "MQTT-4.3.2-4", "MQTT-4.3.3-8")
@both
def test_identifiers_of_both_sides_do_not_meet(broker: Opened, version: int) -> None:
    """The client and the server may use the same one at the same time."""
    raw, other, topic = broker.client(version), broker.client(version), fresh()
    raw.subscribe(topic)
    other.publish(topic, b"down", 2)
    message = raw.message(acknowledge=False)
    raw.send(wire.publish(version, "elsewhere", b"up", qos=2, packet_id=message.packet_id))
    assert raw.expect(wire.PUBREC).packet_id == message.packet_id
    raw.acknowledge(message)
    raw.release(message.packet_id)


@normative("3.1.1", "MQTT-4.6.0-1", "MQTT-4.4.0-1", "MQTT-3.3.1-1")
@normative("5.0", "MQTT-4.4.0-1", "MQTT-4.6.0-5", "MQTT-3.3.1-1")
@both
def test_what_is_sent_again_comes_in_the_first_order_and_before_what_waited(
    broker: Opened, subscriber: Callable[..., Raw], version: int
) -> None:
    """QoS 1 and QoS 2 mixed; DUP is on what was sent before, and on that alone."""
    topic, other = fresh(), broker.client(version)
    raw = subscriber(version, topic)
    for number in range(6):
        other.publish(topic, b"%d" % number, 1 + number % 2)
    first = [raw.message(acknowledge=False) for _ in range(6)]
    raw.close()
    for number in range(6, 10):
        other.publish(topic, b"%d" % number, 1 + number % 2)
    again = broker.client(version, raw.client_id, **kept(version))
    sent = [again.message(acknowledge=False) for _ in range(10)]
    assert payloads(sent) == [b"%d" % number for number in range(10)]
    assert [message.qos for message in sent] == [1 + number % 2 for number in range(10)]
    assert [message.dup for message in sent] == [True] * 6 + [False] * 4
    assert [message.packet_id for message in sent[:6]] == [message.packet_id for message in first]
    assert len({message.packet_id for message in sent}) == 10


@normative("3.1.1", "MQTT-4.4.0-1", "MQTT-4.6.0-1")
@normative("5.0", "MQTT-4.4.0-1")
@both
def test_what_is_sent_again_on_each_connection(
    broker: Opened, subscriber: Callable[..., Raw], version: int
) -> None:
    topic, other = fresh(), broker.client(version)
    raw = subscriber(version, topic)
    other.publish(topic, b"1", 1)
    other.publish(topic, b"2", 2)
    ids = [raw.message(acknowledge=False).packet_id for _ in range(2)]
    for _ in range(3):
        raw.close()
        raw = broker.client(version, raw.client_id, **kept(version))
        sent = [raw.message(acknowledge=False) for _ in range(2)]
        assert [(one.payload, one.packet_id, one.dup) for one in sent] == [
            (b"1", ids[0], True),
            (b"2", ids[1], True),
        ]
        assert raw.ping() == []


@normative("5.0", "MQTT-4.3.2-3", "MQTT-4.3.3-3")
@pytest.mark.parametrize("qos", [1, 2])
def test_a_packet_of_the_other_exchange_acknowledges_nothing(
    broker: Opened, subscriber: Callable[..., Raw], qos: int
) -> None:
    """PUBREC for QoS 1, PUBACK for QoS 2, PUBCOMP before PUBREC: ignored, or an error; the message comes again."""
    topic, other = fresh(), broker.client()
    for kind in ([wire.PUBREC] if qos == 1 else [wire.PUBACK]) + [wire.PUBCOMP]:
        raw = subscriber(5, topic)
        other.publish(topic, b"p", qos)
        packet_id = raw.message(acknowledge=False).packet_id
        raw.send(wire.answer(kind, packet_id))
        raw.ping_or_end()
        raw.close()
        again = broker.client(5, raw.client_id, **kept(5))
        message = again.message()
        assert (message.payload, message.packet_id, message.dup) == (b"p", packet_id, True)
        again.unsubscribe(topic)
