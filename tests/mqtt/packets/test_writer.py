"""The bytes of packets, written out by hand where a version leaves something out; what cannot be written."""

from __future__ import annotations

import pytest

from leafcuttr_mqtt.packets.types import (
    NO_PROPERTIES,
    Auth,
    ConnAck,
    Connect,
    Disconnect,
    Packet,
    PingReq,
    PingResp,
    Properties,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    SubAck,
    Subscribe,
    SubscriptionRequest,
    UnsubAck,
    Unsubscribe,
    Version,
    Will,
)
from leafcuttr_mqtt.packets.writer import encode

V31, V311, V5 = Version
WHY = Properties(reason_string="x")


@pytest.mark.parametrize(
    ("packet", "version", "raw"),
    [
        (Connect(V31, "c", True, 5), V31, "10 0f 0006 4d5149736470 03 02 0005 0001 63"),
        (Connect(V311, "c", False, 5), V311, "10 0d 0004 4d515454 04 00 0005 0001 63"),
        (Connect(V311, "c", False, 5, bridge=True), V311, "10 0d 0004 4d515454 84 00 0005 0001 63"),
        (Connect(V5, "", True, 0), V5, "10 0d 0004 4d515454 05 02 0000 00 0000"),
        (Connect(V5, "", True, 0, bridge=True), V5, "10 0d 0004 4d515454 05 02 0000 00 0000"),
        (
            Connect(V311, "c", True, 5, "u", b"", Will("w", b"m", 2, True)),
            V311,
            "10 18 0004 4d515454 04 f6 0005 0001 63 0001 77 0001 6d 0001 75 0000",
        ),
        (
            Connect(V5, "c", True, 5, None, b"p", Will("w", b"m", 0, False)),
            V5,
            "10 18 0004 4d515454 05 46 0005 00 0001 63 00 0001 77 0001 6d 0001 70",
        ),
        (ConnAck(True, 0), V31, "20 02 00 00"),
        (ConnAck(True, 0), V311, "20 02 01 00"),
        (ConnAck(True, 0), V5, "20 03 01 00 00"),
        (ConnAck(False, 5, WHY), V311, "20 02 00 05"),
        (Publish("t", b"p"), V311, "30 04 0001 74 70"),
        (Publish("t", b"p"), V5, "30 05 0001 74 00 70"),
        (Publish("t", b"", 2, True, 9, True), V311, "3d 05 0001 74 0009"),
        (PubAck(9), V5, "40 02 0009"),
        (PubAck(9, 0x10), V5, "40 03 0009 10"),
        (PubAck(9, 0, WHY), V5, "40 08 0009 00 04 1f 0001 78"),
        (PubAck(9, 0x87, WHY), V311, "40 02 0009"),
        (PubRec(9, 0x80), V5, "50 03 0009 80"),
        (PubRel(9), V311, "62 02 0009"),
        (PubRel(9, 0x92), V5, "62 03 0009 92"),
        (PubComp(9, 0x92), V5, "70 03 0009 92"),
        (
            Subscribe(9, (SubscriptionRequest("a", 2, True, True, 2),)),
            V311,
            "82 06 0009 0001 61 02",
        ),
        (
            Subscribe(9, (SubscriptionRequest("a", 2, True, True, 2),)),
            V5,
            "82 07 0009 00 0001 61 2e",
        ),
        (SubAck(9, (0, 1, 2, 0x80)), V311, "90 06 0009 00 01 02 80"),
        (SubAck(9, (0x87, 0xA2)), V311, "90 04 0009 80 80"),
        (SubAck(9, (0x87,)), V5, "90 04 0009 00 87"),
        (Unsubscribe(9, ("a", "b")), V311, "a2 08 0009 0001 61 0001 62"),
        (UnsubAck(9, (0x11,)), V311, "b0 02 0009"),
        (UnsubAck(9, (0x11,)), V5, "b0 04 0009 00 11"),
        (PingReq(), V311, "c0 00"),
        (PingResp(), V5, "d0 00"),
        (Disconnect(), V5, "e0 00"),
        (Disconnect(0x8E), V5, "e0 01 8e"),
        (Disconnect(0, WHY), V5, "e0 06 00 04 1f 0001 78"),
        (Disconnect(0x8E), V311, "e0 00"),
        (Auth(), V5, "f0 00"),
        (Auth(0, Properties()), V5, "f0 00"),
        (Auth(0x18, Properties(authentication_method="m")), V5, "f0 06 18 04 15 0001 6d"),
        (Auth(0x18), V5, "f0 02 18 00"),
    ],
)
def test_bytes(packet: Packet, version: Version, raw: str) -> None:
    assert encode(packet, version).hex() == raw.replace(" ", "")


def test_properties_that_are_empty_are_as_none() -> None:
    for packet in (
        PubAck(9, 0, Properties()),
        Disconnect(0, Properties()),
        Publish("t", b"", properties=Properties()),
    ):
        without = type(packet)(**{name: getattr(packet, name) for name in packet.__slots__})
        without.properties = NO_PROPERTIES
        assert encode(packet, V5) == encode(without, V5)


@pytest.mark.parametrize(
    "packet",
    [
        Publish("x" * 65_536, b""),
        Publish("\ud800", b""),
        Publish("t", b"", 1, packet_id=65_536),
        Publish("t", b"", 1, packet_id=-1),
        Publish("t", b"", properties=Properties(message_expiry_interval=2**32)),
        Publish("t", b"", properties=Properties(message_expiry_interval=-1)),
        Publish("t", b"", properties=Properties(correlation_data=bytes(65_536))),
        Publish("t", b"", properties=Properties(subscription_identifiers=(2**28,))),
        Connect(V5, "c", True, 65_536),
        Disconnect(256),
    ],
)
def test_what_no_packet_can_hold(packet: Packet) -> None:
    with pytest.raises(ValueError):
        encode(packet, V5)


@pytest.mark.long
def test_the_largest_packet() -> None:
    most = 268_435_455 - 3
    raw = encode(Publish("t", bytes(most)), V311)
    assert raw[:5] == b"\x30\xff\xff\xff\x7f"
    with pytest.raises(ValueError, match="268435456 is more than 268435455"):
        encode(Publish("t", bytes(most + 1)), V311)
