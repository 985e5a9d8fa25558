"""What clients send, but for PUBLISH: by bytes written out by hand, each rule with its reason code."""

from __future__ import annotations

import pytest

from leafcuttr_mqtt.packets.bodies import MOST_FILTERS
from leafcuttr_mqtt.packets.encoding import varint
from leafcuttr_mqtt.packets.reader import PacketReader
from leafcuttr_mqtt.packets.types import (
    Auth,
    Connect,
    Disconnect,
    Packet,
    PingReq,
    Properties,
    ReasonCode,
    Subscribe,
    SubscriptionRequest,
    Unsubscribe,
    Version,
    Will,
)

R = ReasonCode
V31, V311, V5 = Version


def framed(first: int, body: str) -> bytes:
    raw = bytes.fromhex(body)
    assert len(raw) < 128
    return bytes((first, len(raw))) + raw


def read(version: Version, first: int, body: str) -> Packet:
    reader = PacketReader(1000, version)
    (packet,) = reader.feed(framed(first, body))
    assert reader.error is None
    return packet


def refused(version: Version, first: int, body: str) -> ReasonCode:
    reader = PacketReader(1000, version)
    assert reader.feed(framed(first, body)) == []
    assert reader.error is not None
    return reader.error.reason


def connects(body: str) -> Packet:
    (packet,) = PacketReader(1000).feed(framed(0x10, body))
    return packet


def no_connect(body: str) -> tuple[ReasonCode, Version | None]:
    reader = PacketReader(1000)
    assert reader.feed(framed(0x10, body)) == []
    assert reader.error is not None
    assert reader.error.text.startswith("CONNECT: ")
    return reader.error.reason, reader.version


NAME = "0004 4d515454"
OLD = "0006 4d5149736470 03"
NEW_311 = NAME + "04"
NEW_5 = NAME + "05"


def test_connect() -> None:
    assert connects(OLD + "02 0005 0001 63") == Connect(V31, "c", True, 5)
    assert connects(NEW_311 + "00 ffff 0001 63") == Connect(V311, "c", False, 65_535)
    assert connects(NEW_5 + "00 0000 00 0000") == Connect(V5, "", False, 0)
    assert connects(NEW_311 + "02 0000 0000") == Connect(V311, "", True, 0)
    whole = Connect(V311, "c", True, 5, "u", b"\xff", Will("w", b"\0", 2, True))
    assert connects(NEW_311 + "f6 0005 0001 63 0001 77 0001 00 0001 75 0001 ff") == whole
    of_5 = Connect(
        V5,
        "c",
        False,
        5,
        None,
        b"p",
        Will("w", b"", 1, False, Properties(will_delay_interval=7)),
        Properties(session_expiry_interval=10),
    )
    body = "4c 0005 05 11 0000000a 0001 63 05 18 00000007 0001 77 0000 0001 70"
    assert connects(NEW_5 + body) == of_5


@pytest.mark.parametrize(
    ("start", "answered_in"),
    [
        (NAME + "03", V311),
        (NAME + "06", V5),
        (NAME + "00", V311),
        (NAME + "85", V311),  # 5.0 has no such bit
        (NAME + "ff", V311),
        ("0004 6d717474 04", V311),
        ("0000 04", V311),
        ("0006 4d5149736470 04", V311),
        ("0006 4d5149736470 05", V311),
        ("0020" + "00" * 32 + "04", V311),
    ],
)
def test_versions_that_are_not_supported(start: str, answered_in: Version) -> None:
    """[MQTT-3.1.2-1, 3.1.2-2]; what follows the level is not read, as nobody knows what it is."""
    for rest in ("", "02 0000 0000", "ff"):
        assert no_connect(start + rest) == (R.UNSUPPORTED_PROTOCOL_VERSION, answered_in)


@pytest.mark.parametrize(("start", "version"), [("0006 4d5149736470 83", V31), (NAME + "84", V311)])
def test_a_bridge_gets_no_local_and_retain_as_published(start: str, version: Version) -> None:
    reader = PacketReader(1000)
    assert reader.feed(framed(0x10, start + "02 0000 0001 63")) == [
        Connect(version, "c", True, 0, bridge=True)
    ]
    assert reader.feed(framed(0x82, "0001 0001 61 01 000a 2473686172652f672f61 00")) == [
        Subscribe(
            1, (SubscriptionRequest("a", 1, True, True), SubscriptionRequest("$share/g/a", 0, False, True))
        )
    ]


@pytest.mark.parametrize("start", [NEW_311, NEW_5])
@pytest.mark.parametrize("cut", range(1, 14))
def test_a_connect_that_ends_too_early(start: str, cut: int) -> None:
    body = bytes.fromhex(start + "02 0000 " + ("00" if start == NEW_5 else "") + "0003 636363")[:-cut].hex()
    assert no_connect(body)[0] == R.MALFORMED_PACKET


@pytest.mark.parametrize("flag", [0x04, 0x40, 0x80])
def test_what_the_flags_announce_has_to_be_there(flag: int) -> None:
    """[MQTT-3.1.2-9, 3.1.2-19, 3.1.2-21]; 3.1 lets user name and password be missing."""
    body = f"{flag | 2:02x} 0000 00 0001 63"
    assert no_connect(NEW_5 + body) == (R.MALFORMED_PACKET, V5)
    body = f"{flag | 2:02x} 0000 0001 63"
    assert no_connect(NEW_311 + body) == (R.MALFORMED_PACKET, V311)
    if flag == 4:
        assert no_connect(OLD + body) == (R.MALFORMED_PACKET, V31)
    else:
        assert connects(OLD + body) == Connect(V31, "c", True, 0)


def test_what_the_flags_do_not_announce_must_not_be_there() -> None:
    """[MQTT-3.1.2-11, 3.1.2-18, 3.1.2-20]"""
    assert no_connect(NEW_311 + "02 0000 0001 63 0001 75") == (R.MALFORMED_PACKET, V311)
    assert no_connect(NEW_5 + "02 0000 00 0001 63 00") == (R.MALFORMED_PACKET, V5)
    assert no_connect(OLD + "02 0000 0001 63 00") == (R.MALFORMED_PACKET, V31)


def test_the_reserved_flag() -> None:
    """[MQTT-3.1.2-3]; in 3.1 it is unused."""
    assert no_connect(NEW_311 + "03 0000 0001 63")[0] == R.MALFORMED_PACKET
    assert no_connect(NEW_5 + "03 0000 00 0001 63")[0] == R.MALFORMED_PACKET
    assert connects(OLD + "03 0000 0001 63") == Connect(V31, "c", True, 0)


@pytest.mark.parametrize("flags", ["0a", "12", "1a", "22", "1e"])
def test_the_flags_of_the_will(flags: str) -> None:
    """[MQTT-3.1.2-11, 3.1.2-13, 3.1.2-14, 3.1.2-15]"""
    will = "0001 77 0000" if flags == "1e" else ""
    assert no_connect(NEW_311 + flags + "0000 0001 63" + will)[0] == R.MALFORMED_PACKET
    assert no_connect(NEW_5 + flags + "0000 00 0001 63" + (will and "00" + will))[0] == R.MALFORMED_PACKET


def test_3_1_does_not_use_the_flags_of_a_will_that_is_not_there() -> None:
    assert connects(OLD + "2a 0000 0001 63") == Connect(V31, "c", True, 0)
    assert no_connect(OLD + "1e 0000 0001 63 0001 77 0000")[0] == R.MALFORMED_PACKET


def test_a_password_without_a_user_name() -> None:
    """[MQTT-3.1.2-22] of 3.1.1; 5.0 allows it (3.1.2.9)."""
    assert no_connect(NEW_311 + "42 0000 0001 63 0001 70")[0] == R.MALFORMED_PACKET
    assert connects(NEW_5 + "42 0000 00 0001 63 0001 70") == Connect(V5, "c", True, 0, None, b"p")


def test_who_has_to_have_a_client_identifier() -> None:
    """[MQTT-3.1.3-8] of 3.1.1; in 3.1 it has a character at least."""
    for body in (NEW_311 + "00 0000 0000", OLD + "02 0000 0000"):
        assert no_connect(body)[0] == R.CLIENT_IDENTIFIER_NOT_VALID


@pytest.mark.parametrize("topic", ["0000", "0001 2b", "0003 612f23"])
def test_the_topic_of_a_will(topic: str) -> None:
    assert no_connect(NEW_311 + f"06 0000 0001 63 {topic} 0000")[0] == R.TOPIC_NAME_INVALID
    assert no_connect(NEW_5 + f"06 0000 00 0001 63 00 {topic} 0000")[0] == R.TOPIC_NAME_INVALID


@pytest.mark.parametrize("bad", ["0001 ff", "0001 00", "0003 eda080"])
def test_texts_of_connect(bad: str) -> None:
    """[MQTT-1.5.4-1, 3.1.3-4, 3.1.3-9, 3.1.3-10]"""
    for body in (f"02 0000 {bad}", f"06 0000 0001 63 {bad} 0000", f"82 0000 0001 63 {bad}"):
        assert no_connect(NEW_311 + body)[0] == R.MALFORMED_PACKET


def test_properties_of_connect() -> None:
    assert no_connect(NEW_5 + "02 0000 04 16 0001 64 0001 63")[0] == R.PROTOCOL_ERROR  # data, no method
    both = Properties(authentication_method="m", authentication_data=b"d")
    assert connects(NEW_5 + "02 0000 08 15 0001 6d 16 0001 64 0001 63") == Connect(
        V5, "c", True, 0, properties=both
    )
    # A will's property in CONNECT, and one of CONNECT in a will.
    assert no_connect(NEW_5 + "02 0000 05 18 00000000 0001 63")[0] == R.MALFORMED_PACKET
    assert no_connect(NEW_5 + "06 0000 00 0001 63 05 11 00000000 0001 77 0000")[0] == R.MALFORMED_PACKET
    # The response topic of a will.
    assert no_connect(NEW_5 + "06 0000 00 0001 63 04 08 0001 2b 0001 77 0000")[0] == R.PROTOCOL_ERROR


def test_subscribe() -> None:
    assert read(V311, 0x82, "0007 0001 61 00 0001 23 02") == Subscribe(
        7, (SubscriptionRequest("a", 0), SubscriptionRequest("#", 2))
    )
    assert read(V5, 0x82, "0007 02 0b05 0001 61 2d") == Subscribe(
        7, (SubscriptionRequest("a", 1, True, True, 2),), Properties(subscription_identifiers=(5,))
    )
    assert read(V5, 0x82, "0007 00 0000 00") == Subscribe(7, (SubscriptionRequest("", 0),))


@pytest.mark.parametrize(
    ("version", "body", "reason"),
    [
        (V311, "0007", R.PROTOCOL_ERROR),  # [MQTT-3.8.3-3] of 3.1.1
        (V5, "0007 00", R.PROTOCOL_ERROR),  # [MQTT-3.8.3-2]
        (V311, "00", R.MALFORMED_PACKET),
        (V5, "0007", R.MALFORMED_PACKET),
        (V311, "0007 0001 61", R.MALFORMED_PACKET),
        (V311, "0007 0002 61 00", R.MALFORMED_PACKET),
        (V311, "0007 0001 ff 00", R.MALFORMED_PACKET),
        (V311, "0007 0001 61 03", R.MALFORMED_PACKET),  # [MQTT-3.8.3-4] of 3.1.1
        (V311, "0007 0001 61 04", R.MALFORMED_PACKET),
        (V311, "0007 0001 61 80", R.MALFORMED_PACKET),
        (V31, "0007 0001 61 03", R.MALFORMED_PACKET),
        (V5, "0007 00 0001 61 40", R.MALFORMED_PACKET),  # [MQTT-3.8.3-5]
        (V5, "0007 00 0001 61 80", R.MALFORMED_PACKET),
        (V5, "0007 00 0001 61 03", R.PROTOCOL_ERROR),
        (V5, "0007 00 0001 61 30", R.PROTOCOL_ERROR),
        (V5, "0007 00 000a 2473686172652f672f61 04", R.PROTOCOL_ERROR),  # [MQTT-3.8.3-4]
        (V5, "0007 02 0b00 0001 61 00", R.PROTOCOL_ERROR),  # 3.8.2.1.2
        (V5, "0007 04 0b01 0b02 0001 61 00", R.PROTOCOL_ERROR),
        (V5, "0007 03 230001 0001 61 00", R.MALFORMED_PACKET),
    ],
)
def test_subscribes_that_are_refused(version: Version, body: str, reason: ReasonCode) -> None:
    assert refused(version, 0x82, body) == reason


def test_3_1_does_not_use_the_upper_bits_of_the_qos_byte() -> None:
    assert read(V31, 0x82, "0007 0001 61 f9") == Subscribe(7, (SubscriptionRequest("a", 1),))


def test_unsubscribe() -> None:
    assert read(V311, 0xA2, "0007 0001 61 0001 23") == Unsubscribe(7, ("a", "#"))
    assert read(V5, 0xA2, "0007 07 26 0001 6b 0001 76 0001 61") == Unsubscribe(
        7, ("a",), Properties(user_properties=(("k", "v"),))
    )
    assert refused(V311, 0xA2, "0007") == R.PROTOCOL_ERROR  # [MQTT-3.10.3-2]
    assert refused(V5, 0xA2, "0007 00") == R.PROTOCOL_ERROR
    assert refused(V5, 0xA2, "0007 02 0b05 0001 61") == R.MALFORMED_PACKET
    assert refused(V5, 0xA2, "0007 00 0001") == R.MALFORMED_PACKET
    assert refused(V5, 0xA2, "0007 00 0001 ff") == R.MALFORMED_PACKET


def test_pingreq() -> None:
    assert read(V5, 0xC0, "") == PingReq()
    assert refused(V5, 0xC0, "00") == R.MALFORMED_PACKET
    assert refused(V311, 0xC0, "00") == R.MALFORMED_PACKET


def test_disconnect() -> None:
    assert read(V311, 0xE0, "") == Disconnect()
    assert refused(V311, 0xE0, "00") == R.MALFORMED_PACKET
    assert read(V5, 0xE0, "") == Disconnect()
    assert read(V5, 0xE0, "04") == Disconnect(4)
    assert read(V5, 0xE0, "00 05 11 00000009") == Disconnect(0, Properties(session_expiry_interval=9))
    assert refused(V5, 0xE0, "8b") == R.PROTOCOL_ERROR  # a server's reason
    assert refused(V5, 0xE0, "00 00 00") == R.MALFORMED_PACKET
    assert refused(V5, 0xE0, "00 01") == R.MALFORMED_PACKET


def test_auth() -> None:
    method = Properties(authentication_method="m", authentication_data=b"\xff")
    assert read(V5, 0xF0, "18 08 15 0001 6d 16 0001 ff") == Auth(0x18, method)
    assert read(V5, 0xF0, "19 04 15 0001 6d") == Auth(0x19, Properties(authentication_method="m"))
    assert refused(V5, 0xF0, "18 00") == R.PROTOCOL_ERROR  # 3.15.2.2.2
    assert refused(V5, 0xF0, "18") == R.MALFORMED_PACKET
    assert refused(V5, 0xF0, "00 04 15 0001 6d") == R.PROTOCOL_ERROR  # only a server succeeds
    assert refused(V5, 0xF0, "") == R.MALFORMED_PACKET
    assert refused(V5, 0xF0, "18 04 15 0001 6d 00") == R.MALFORMED_PACKET


@pytest.mark.one_in(2)
@pytest.mark.parametrize("version", [V311, V5])
@pytest.mark.parametrize(("first", "each"), [(0x82, "000161 00"), (0xA2, "000161")])
def test_there_is_a_limit_for_topic_filters(version: Version, first: int, each: str) -> None:
    """A packet is no larger than it may be, and is refused before all of it is read."""

    def fed(count: int) -> PacketReader:
        body = bytes.fromhex("0001" + ("00" if version == V5 else "")) + bytes.fromhex(each) * count
        reader = PacketReader(1 << 20, version)
        packets = reader.feed(bytes((first,)) + varint(len(body)) + body)
        while reader.steps is not None:
            packets += reader.feed(b"")
        assert len(packets) == (reader.error is None)
        return reader

    assert fed(MOST_FILTERS).error is None
    error = fed(MOST_FILTERS + 1).error
    assert error is not None
    assert (error.reason, MOST_FILTERS) == (R.QUOTA_EXCEEDED, 10_000)
    assert error.text.endswith("SCRIBE: more than 10,000 topic filters")
