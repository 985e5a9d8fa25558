"""CONNECT and CONNACK (3.1, 3.2)."""

from __future__ import annotations

import string
import time
from itertools import pairwise

import pytest

from mqtt.conformance import wire
from mqtt.conformance.raw import fresh
from mqtt.conformance.under_test import Opened, Started
from mqtt.conformance.wire import Will

normative = pytest.mark.normative
both = pytest.mark.parametrize("version", [4, 5])
every = pytest.mark.parametrize("version", [3, 4, 5])

CONNECT_REASONS = {
    *(0x00, 0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8A, 0x8C, 0x90, 0x95, 0x97),
    *(0x99, 0x9A, 0x9B, 0x9C, 0x9D, 0x9F),
}
MALFORMED = (0x81, 0x82, 0x85)


@normative("3.1.1", "MQTT-3.1.0-1", "MQTT-3.1.3-2", "MQTT-3.1.4-4", "MQTT-3.2.0-1", "MQTT-7.1.1-1")
@normative("5.0", "MQTT-3.1.0-1", "MQTT-3.1.4-5", "MQTT-3.2.0-1", "MQTT-3.2.2-1", "MQTT-4.2.0-1")
@every
def test_connect_is_answered_with_connack(broker: Opened, version: int) -> None:
    raw = broker.open(version)
    connack = raw.connect()
    assert connack.reason == 0
    assert not connack.session_present
    assert raw.ping() == []


@normative("3.1.1", "MQTT-3.1.0-1", "MQTT-4.8.0-1")
@normative("5.0", "MQTT-3.1.0-1", "MQTT-3.14.0-1")
@every
@pytest.mark.parametrize(
    "first",
    [
        wire.PING,
        wire.publish(4, "t", b"p"),
        wire.subscribe(4, 1, [("t", 0)]),
        wire.disconnect(4),
        wire.frame(wire.CONNACK, 0, b"\0\0"),
        wire.frame(0, 0, b""),
        wire.auth(0x18, [("auth_method", "m")]),
        b"GET / HTTP/1.1\r\n\r\n",
    ],
    ids=["ping", "publish", "subscribe", "disconnect", "connack", "type 0", "auth", "http"],
)
def test_another_first_packet_ends_the_connection(broker: Opened, version: int, first: bytes) -> None:
    """And not with a DISCONNECT: there was no CONNACK."""
    raw = broker.open(version)
    raw.send(first)
    assert raw.rest() == []


@normative("3.1.1", "MQTT-3.1.0-2", "MQTT-4.8.0-1")
@normative("5.0", "MQTT-3.1.0-2", "MQTT-3.2.0-2", "MQTT-4.13.1-1")
@every
def test_a_second_connect_ends_the_connection(broker: Opened, version: int) -> None:
    raw = broker.client(version)
    raw.send(wire.connect(version, raw.client_id))
    raw.ended(0x82)


@normative("3.1.1", "MQTT-3.1.2-1")
@normative("5.0", "MQTT-3.1.2-1")
@pytest.mark.parametrize("name", ["MQTTX", "mqtt", "MQT", "", "MQIsdp"])
@pytest.mark.parametrize("level", [4, 5])
def test_another_protocol_name(broker: Opened, level: int, name: str) -> None:
    raw = broker.open(level)
    raw.send(wire.connect(level, fresh(), name=name))
    got = raw.bytes_to_the_end()
    assert got in (b"", bytes.fromhex("20020001"), bytes.fromhex("2003008400")), got


@normative("3.1.1", "MQTT-3.1.2-2", "MQTT-3.2.2-4", "MQTT-3.2.2-5")
@normative("5.0", "MQTT-3.1.2-2")
@pytest.mark.parametrize("level", [0, 1, 2, 6, 127, 255])
def test_a_version_that_is_not_served(broker: Opened, level: int) -> None:
    """3.1.1 wants return code 1, 5.0 has 0x84 for it; either says it to a client of an unknown version."""
    raw = broker.open(4)
    raw.send(wire.connect(4, fresh(), level=level))
    got = raw.bytes_to_the_end()
    assert got == bytes.fromhex("20020001") or (got[0], got[2:4]) == (0x20, b"\0\x84")


def name_and_level(version: int) -> bytes:
    return wire.text("MQTT") + bytes([version])


def properties(version: int) -> bytes:
    return b"\0" if version == 5 else b""


def broken(version: int, flags: int, payload: bytes) -> bytes:
    """CONNECT with these flags and this payload."""
    return wire.connect(version, "", flags=flags, payload=payload)


ID = wire.text("id1")


@normative(
    "3.1.1",
    *("MQTT-3.1.2-3", "MQTT-3.1.2-9", "MQTT-3.1.2-11", "MQTT-3.1.2-13", "MQTT-3.1.2-14", "MQTT-3.1.2-15"),
    *("MQTT-3.1.2-18", "MQTT-3.1.2-19", "MQTT-3.1.2-20", "MQTT-3.1.2-21", "MQTT-3.1.3-3", "MQTT-3.1.3-4"),
    *("MQTT-3.1.3-10", "MQTT-3.1.3-11", "MQTT-3.1.4-1", "MQTT-3.2.2-6", "MQTT-1.5.3-1", "MQTT-1.5.3-2"),
)
@normative(
    "5.0",
    *("MQTT-3.1.2-3", "MQTT-3.1.2-9", "MQTT-3.1.2-11", "MQTT-3.1.2-12", "MQTT-3.1.2-13", "MQTT-3.1.2-16"),
    *("MQTT-3.1.2-17", "MQTT-3.1.2-18", "MQTT-3.1.2-19", "MQTT-3.1.3-3", "MQTT-3.1.3-4", "MQTT-3.1.3-8"),
    *("MQTT-3.1.3-11", "MQTT-3.1.3-12", "MQTT-3.1.4-1", "MQTT-3.1.4-2", "MQTT-3.2.2-6", "MQTT-3.2.2-7"),
    *("MQTT-3.2.2-8", "MQTT-1.5.4-1", "MQTT-1.5.4-2", "MQTT-3.14.0-1", "MQTT-4.13.2-1"),
)
@both
@pytest.mark.parametrize(
    ("flags", "payload"),
    [
        pytest.param(0x03, ID, id="reserved flag"),
        pytest.param(0x0A, ID, id="will QoS without will"),
        pytest.param(0x22, ID, id="will retain without will"),
        pytest.param(0x1E, ID + b"W" + wire.text("t") + wire.text("p"), id="will QoS 3"),
        pytest.param(0x06, ID, id="will flag and no will"),
        pytest.param(0x06, ID + b"W" + wire.text("t"), id="will flag and no will payload"),
        pytest.param(0x82, ID, id="user flag and no user"),
        pytest.param(0xC2, ID + wire.text("u"), id="password flag and no password"),
        pytest.param(0x02, ID + wire.text("u"), id="user without its flag"),
        pytest.param(0x82, ID + wire.text("u") + wire.text("p"), id="password without its flag"),
        pytest.param(0x02, b"", id="no client identifier"),
        pytest.param(0x02, b"\0\5id1", id="client identifier too short"),
        pytest.param(0x02, wire.text(b"\xff\xfe"), id="client identifier not UTF-8"),
        pytest.param(0x02, wire.text("a\0b"), id="U+0000 in the client identifier"),
        pytest.param(0x02, wire.text("\ud800"), id="surrogate in the client identifier"),
        pytest.param(0x06, ID + b"W" + wire.text(b"\xc0\x80") + wire.text("p"), id="will topic not UTF-8"),
        pytest.param(0x06, ID + b"W" + wire.text("a\0") + wire.text("p"), id="U+0000 in the will topic"),
        pytest.param(0x06, ID + b"W" + wire.text("a/+") + wire.text("p"), id="wildcard in the will topic"),
        pytest.param(0x06, ID + b"W" + wire.text("") + wire.text("p"), id="empty will topic"),
        pytest.param(0x82, ID + wire.text(b"\xed\xa0\x80"), id="user name not UTF-8"),
        pytest.param(0x82, ID + wire.text("u\0"), id="U+0000 in the user name"),
        pytest.param(0x02, ID + b"\0", id="a byte too many"),
    ],
)
def test_a_connect_that_is_not_well_formed(broker: Opened, version: int, flags: int, payload: bytes) -> None:
    """mosquitto 2.0.11 lets bytes behind the last field pass, and in 5.0 some of the flags."""
    raw = broker.open(version)
    raw.send(broken(version, flags, payload.replace(b"W", properties(version), 1)))
    if version == 4:
        assert raw.rest() == []
    else:
        raw.refused(*MALFORMED, 0x90)


@normative("3.1.1", "MQTT-3.1.2-22")
def test_a_password_without_a_user_name(broker: Opened) -> None:
    """5.0 allows it (3.1.2.9)."""
    raw = broker.open(4)
    raw.send(wire.connect(4, fresh(), password="p"))
    assert raw.rest() == []


@normative("3.1.1", "MQTT-2.2.2-1", "MQTT-2.2.2-2")
@normative("5.0", "MQTT-2.1.3-1")
@both
@pytest.mark.parametrize("flags", [1, 2, 8])
def test_flags_of_the_fixed_header_of_connect(broker: Opened, version: int, flags: int) -> None:
    raw = broker.open(version)
    whole = wire.connect(version, fresh())
    raw.send(bytes([whole[0] | flags]) + whole[1:])
    raw.refused(*MALFORMED)


@normative("3.1.1", "MQTT-3.1.3-1", "MQTT-3.1.2-9", "MQTT-3.1.2-19", "MQTT-3.1.2-21")
@normative("5.0", "MQTT-3.1.3-1", "MQTT-3.1.2-9", "MQTT-3.1.2-17", "MQTT-3.1.2-19")
@both
def test_the_fields_of_the_payload_in_their_order(leafcuttr: Started, version: int) -> None:
    settings = {"mqtt.auth.username": "user", "mqtt.auth.password": "secret"}
    with leafcuttr(settings) as broker:
        watcher = broker.client(4, user="user", password="secret")
        watcher.subscribe("will/topic")
        raw = broker.client(
            version, user="user", password="secret", will=Will("will/topic", b"the will", qos=1)
        )
        raw.close()
        message = watcher.message()
        assert (message.topic, message.payload, message.qos) == ("will/topic", b"the will", 1)


@normative("3.1.1", "MQTT-3.1.3-5", "MQTT-3.1.3-2")
@normative("5.0", "MQTT-3.1.3-5", "MQTT-3.1.3-2")
@every
def test_client_identifiers_of_letters_and_digits(broker: Opened, version: int) -> None:
    letters = string.digits + string.ascii_letters
    for name in ("a", letters[:23], letters[20:43], letters[39:62]):
        broker.client(version, name)


@normative("3.1.1", "MQTT-3.1.3-6")
@normative("5.0", "MQTT-3.1.3-6", "MQTT-3.1.3-7", "MQTT-3.2.2-16")
@both
def test_clients_without_an_identifier_do_not_meet(broker: Opened, version: int) -> None:
    first, second = broker.client(version, ""), broker.client(version, "")
    for raw in (first, second):
        raw.subscribe("to/both")
    second.publish("to/both", b"p")
    assert first.message().payload == second.message().payload == b"p"
    if version == 5:
        assert first.connack is not None and second.connack is not None
        names = {raw.connack.one("assigned_client_id") for raw in (first, second) if raw.connack}
        assert len(names) == 2
        assert all(names)


@normative("5.0", "MQTT-3.1.3-7", "MQTT-3.2.2-16")
def test_an_assigned_identifier_is_one_to_come_back_with(broker: Opened) -> None:
    raw = broker.open()
    connack = raw.connect("", clean=False, properties=[("session_expiry", 60)])
    assert not connack.session_present
    name = connack.one("assigned_client_id")
    raw.disconnect()
    again = broker.open()
    connack = again.connect(name, clean=False)
    assert connack.session_present
    assert connack.one("assigned_client_id") is None


@normative("3.1.1", "MQTT-3.1.3-8", "MQTT-3.1.3-9", "MQTT-3.2.2-4", "MQTT-3.2.2-5")
def test_no_identifier_and_no_clean_session(broker: Opened) -> None:
    raw = broker.open(4)
    raw.send(wire.connect(4, "", clean=False))
    assert raw.refused(2) is not None


@normative("3.1.1", "MQTT-3.1.4-2", "MQTT-3.1.3-2")
@normative("5.0", "MQTT-3.1.4-3", "MQTT-3.1.3-2", "MQTT-3.14.2-2", "MQTT-4.13.2-1")
@every
def test_a_client_is_taken_over(broker: Opened, version: int) -> None:
    name = fresh()
    first = broker.client(version, name)
    second = broker.client(version, name)
    got = first.ended(0x8E)
    assert got is None or got.one("session_expiry") is None
    assert second.ping() == []


@normative("3.1.1", "MQTT-3.1.4-5")
def test_what_follows_a_refused_connect_is_not_acted_on(broker: Opened) -> None:
    watcher, other = broker.client(4), broker.client(4)
    watcher.subscribe("refused/#")
    raw = broker.open(4)
    raw.send(wire.connect(4, "", clean=False), wire.publish(4, "refused/t", b"p"))
    raw.refused(2)
    assert watcher.so_far(other) == []


@normative("5.0", "MQTT-3.1.4-6", "MQTT-3.1.4-2", "MQTT-3.2.2-6", "MQTT-3.2.2-7", "MQTT-3.2.2-8")
def test_what_follows_a_refused_connect_is_not_acted_on_in_5(broker: Opened) -> None:
    watcher, other = broker.client(), broker.client()
    watcher.subscribe("refused5/#")
    raw = broker.open()
    raw.send(
        wire.connect(5, fresh(), properties=[("auth_method", "no such method")]),
        wire.publish(5, "refused5/t", b"p"),
    )
    got = raw.refused(0x8C, 0x87)
    assert got is None or got.reason in CONNECT_REASONS
    assert watcher.so_far(other) == []


@normative("3.1.1", "MQTT-4.8.0-1")
@normative("5.0", "MQTT-3.1.4-1", "MQTT-2.2.2-1", "MQTT-1.5.5-1", "MQTT-4.13.1-1")
@pytest.mark.parametrize(
    "block",
    [
        pytest.param(b"", id="no length"),
        pytest.param(b"\x05", id="length beyond the packet"),
        pytest.param(b"\x80\x00", id="length with a byte too many"),
        pytest.param(b"\x02\x21\x00", id="value too short"),
        pytest.param(wire.property_block([("receive_maximum", 0)]), id="receive maximum 0"),
        pytest.param(wire.property_block([("maximum_packet_size", 0)]), id="maximum packet size 0"),
        pytest.param(wire.property_block([("session_expiry", 1)] * 2), id="twice"),
        pytest.param(wire.property_block([("receive_maximum", 1)] * 2), id="receive maximum twice"),
        pytest.param(wire.property_block([("request_problem", 2)]), id="request problem 2"),
        pytest.param(wire.property_block([("request_response", 2)]), id="request response 2"),
        pytest.param(wire.property_block([("auth_data", b"d")]), id="data without a method"),
        pytest.param(wire.property_block([("topic_alias", 1)]), id="not of CONNECT"),
        pytest.param(wire.property_block([("server_keep_alive", 1)]), id="of CONNACK"),
        pytest.param(b"\x02\x7f\x00", id="unknown"),
        pytest.param(wire.property_block([("user", ("a", b"\xff"))]), id="pair not UTF-8"),
        pytest.param(wire.property_block([("user", ("a\0", "b"))]), id="U+0000 in a pair"),
    ],
)
def test_properties_of_connect_that_are_not_allowed(broker: Opened, block: bytes) -> None:
    """mosquitto 2.0.11 leaves the connection open after `data without a method`, and does not answer."""
    body = wire.text("MQTT") + b"\x05\x02\x00\x00" + block + wire.text(fresh())
    raw = broker.open()
    raw.send(wire.frame(wire.CONNECT, 0, body))
    raw.refused(*MALFORMED)


@normative("5.0", "MQTT-3.1.2-28", "MQTT-3.2.2-9", "MQTT-3.2.2-10", "MQTT-3.2.2-12", "MQTT-3.2.0-2")
def test_what_connack_says_of_the_server(broker: Opened) -> None:
    """Both QoS are served, so none is ruled out; no response information to one that does not ask for it."""
    raw = broker.open()
    connack = raw.connect(will=Will("w", b"", qos=2), properties=[("request_response", 0)])
    assert connack.one("response_information") is None
    assert connack.one("maximum_qos") is None
    assert connack.one("receive_maximum") != 0
    assert connack.one("maximum_packet_size") != 0
    assert connack.one("assigned_client_id") is None
    assert {connack.one(name) for name in ("wildcard_available", "shared_available")} <= {None, 1}
    assert raw.subscribe(("q/0", 0), ("q/1", 1), ("q/2", 2)).reasons == (0, 1, 2)
    for qos in (0, 1, 2):
        raw.publish("other", b"", qos)
    assert raw.ping() == []


@normative("3.1.1", "MQTT-3.1.2-24", "MQTT-3.1.2-8")
@normative("5.0", "MQTT-3.1.2-22", "MQTT-3.2.2-22", "MQTT-3.1.2-8")
def test_a_client_that_says_nothing_is_closed_as_a_failed_network(broker: Opened) -> None:
    """At 1.5 times the keep alive, not before; and the will is published."""
    watcher, topic = broker.client(), fresh("silent")
    watcher.subscribe(topic)
    began = time.monotonic()
    raws = [broker.client(version, keep_alive=1, will=Will(topic, b"gone")) for version in (3, 4, 5)]
    for raw in raws:
        assert raw.connack is not None
        assert raw.connack.one("server_keep_alive") is None
        raw.ended(0x8D)
    assert time.monotonic() - began >= 1.49
    assert [message.payload for message in watcher.messages(3)] == [b"gone"] * 3


@normative("3.1.1", "MQTT-3.1.2-24")
@normative("5.0", "MQTT-3.1.2-22")
def test_each_packet_counts_for_the_keep_alive(broker: Opened) -> None:
    """Less than an interval between packets of two kinds: none is late, unless the machine stops for longer."""
    raws = [broker.client(version, keep_alive=1) for version in (4, 5)]
    began = time.monotonic()
    sent = [began]
    while time.monotonic() - began < 2.2:
        for raw in raws:
            raw.send(wire.PING if len(sent) % 2 else wire.publish(raw.version, "t", b"p"))
        sent.append(time.monotonic())
        time.sleep(0.4)
    if max(after - before for before, after in pairwise(sent)) < 1:
        for raw in raws:
            assert all(packet.kind == wire.PINGRESP for packet in raw.ping())


def test_a_client_of_3_1_has_its_own_protocol_name(broker: Opened) -> None:
    raw = broker.client(3, "client31")
    assert raw.subscribe(("a/b", 1)).reasons == (1,)
    raw.publish("a/b", b"p", 1)
    assert raw.message().payload == b"p"


def test_bytes_come_in_any_pieces(broker: Opened) -> None:
    raw = broker.open()
    whole = (
        wire.connect(5, fresh(), properties=[("user", ("a", "b"))])
        + wire.subscribe(5, 1, [("pieces/#", 1)])
        + wire.publish(5, "pieces/t", b"p" * 200, qos=1, packet_id=7)
    )
    for at in range(len(whole)):
        raw.send(whole[at : at + 1])
    raw.expect(wire.CONNACK)
    raw.expect(wire.SUBACK)
    kinds = {raw.receive().kind for _ in range(2)}
    assert kinds == {wire.PUBACK, wire.PUBLISH}


@normative("3.1.1", "MQTT-3.1.4-2")
@normative("5.0", "MQTT-3.1.4-3", "MQTT-3.2.0-2")
@both
def test_many_connections_of_one_client_at_once(broker: Opened, version: int) -> None:
    """Each gets its CONNACK and is ended by the next one, in whichever order the server takes them."""
    name = fresh()
    raws = [broker.open(version) for _ in range(20)]
    for raw in raws:
        raw.send(wire.connect(version, name))
    assert all(raw.expect(wire.CONNACK).reason == 0 for raw in raws)
    last = broker.client(version, name)
    for raw in raws:
        raw.ended(0x8E)
    assert last.subscribe((fresh(), 1)).reasons == (1,)


@normative("5.0", "MQTT-3.1.2-22", "MQTT-3.2.2-22")
def test_the_servers_longest_keep_alive(leafcuttr: Started) -> None:
    """It is told to clients of 5.0, and holds for all, whatever they asked for."""
    with leafcuttr({"mqtt.keep.alive.max.ms": 1000}) as broker:
        began = time.monotonic()
        raw, older, shorter = (
            broker.client(5, keep_alive=100),
            broker.client(4, keep_alive=0),
            broker.client(5, keep_alive=1),
        )
        assert raw.connack is not None
        assert raw.connack.one("server_keep_alive") == 1
        assert shorter.connack is not None
        assert shorter.connack.one("server_keep_alive") is None
        for one in (raw, older, shorter):
            one.ended(0x8D)
        assert time.monotonic() - began >= 1.49


@normative("5.0", "MQTT-3.1.2-23", "MQTT-3.1.4-5")
def test_the_servers_longest_session(leafcuttr: Started) -> None:
    """CONNACK tells the interval that is used, where it is not that of CONNECT (3.2.2.3.2)."""
    with leafcuttr({"mqtt.session.expiry.max.ms": 60_000}) as broker:
        for asked, told in ((3600, 60), (60, None), (0xFFFFFFFF, 60), (0, None)):
            connack = broker.client(properties=[("session_expiry", asked)]).connack
            assert connack is not None
            assert connack.one("session_expiry") == told
