"""`PacketReader`: framing, PUBLISH, acknowledgements, and what ends a connection. By bytes written out by hand."""

from __future__ import annotations

import tracemalloc

import pytest

from leafcuttr_mqtt.packets import reader as module
from leafcuttr_mqtt.packets.bodies import FILTERS_AT_ONCE, MOST_FILTERS, Sender
from leafcuttr_mqtt.packets.fields import MOST_REPEATED
from leafcuttr_mqtt.packets.reader import PacketReader
from leafcuttr_mqtt.packets.types import (
    NO_PROPERTIES,
    Connect,
    Disconnect,
    Packet,
    PingReq,
    Properties,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    ReasonCode,
    Subscribe,
    SubscriptionRequest,
    Unsubscribe,
    Version,
)
from leafcuttr_mqtt.packets.writer import encode

R = ReasonCode
V31, V311, V5 = Version
CONNECT_311 = bytes.fromhex("10 0d 0004 4d515454 04 02 003c 0001 61")
CONNECT_5 = bytes.fromhex("10 0e 0004 4d515454 05 02 003c 00 0001 61")


def refused(reader: PacketReader, data: bytes) -> tuple[ReasonCode, str]:
    assert reader.feed(data) == []
    assert reader.error is not None
    return reader.error.reason, reader.error.text


def of(version: Version, sender: Sender = "client", max_bytes: int = 1000) -> PacketReader:
    return PacketReader(max_bytes, version, sender=sender)


def test_the_version_is_that_of_connect() -> None:
    for raw, version in ((CONNECT_311, V311), (CONNECT_5, V5)):
        reader = PacketReader(100)
        assert reader.version is None
        assert reader.feed(raw) == [Connect(version, "a", True, 60)]
        assert reader.version == version


def test_what_follows_connect_in_the_same_read_is_read_in_its_version() -> None:
    publish_5 = bytes.fromhex("30 05 0001 74 00 78")
    assert PacketReader(100).feed(CONNECT_5 + publish_5)[1] == Publish("t", b"x")
    assert PacketReader(100).feed(CONNECT_311 + publish_5)[1] == Publish("t", b"\0x")


@pytest.mark.parametrize("first", [0x00, 0x20, 0x30, 0x47, 0x82, 0xC0, 0xE0, 0xF0])
def test_the_first_packet_is_connect(first: int) -> None:
    """[MQTT-3.1.0-1]; known from the first byte on: an HTTP request is not waited for."""
    reason, text = refused(PacketReader(100), bytes((first,)))
    assert reason == R.PROTOCOL_ERROR
    assert text == f"the first packet is no CONNECT but begins with 0x{first:02x}"


@pytest.mark.parametrize("first", [0x11, 0x12, 0x14, 0x18, 0x1F])
def test_connect_has_no_flags(first: int) -> None:
    assert refused(PacketReader(100), bytes((first,)))[0] == R.MALFORMED_PACKET


@pytest.mark.parametrize("raw", [CONNECT_311, CONNECT_5])
def test_a_second_connect_is_a_protocol_error(raw: bytes) -> None:
    """[MQTT-3.1.0-2]"""
    reader = PacketReader(100)
    assert len(reader.feed(raw + raw)) == 1
    assert reader.error is not None
    assert (reader.error.reason, reader.error.text) == (R.PROTOCOL_ERROR, "a second CONNECT")


def test_packets_before_a_bad_one_are_returned_and_nothing_after_it() -> None:
    reader = of(V311)
    assert reader.feed(b"\xc0\0\xc0\0\x00\0\xc0\0") == [PingReq(), PingReq()]
    assert reader.error is not None
    assert reader.feed(b"\xc0\0") == []


def test_a_packet_that_is_not_complete_is_kept() -> None:
    reader = of(V311)
    assert reader.feed(b"\xc0\0\x30\x04\0\x01") == [PingReq()]
    assert reader.feed(b"t") == []
    assert reader.feed(b"x\xc0") == [Publish("t", b"x")]
    assert reader.feed(b"\0") == [PingReq()]
    assert reader.error is None


@pytest.mark.parametrize(
    ("version", "reason"), [(V311, R.MALFORMED_PACKET), (V5, R.MALFORMED_PACKET)], ids=["3.1.1", "5.0"]
)
def test_packet_type_0_is_reserved(version: Version, reason: ReasonCode) -> None:
    assert refused(of(version), b"\x00\x00")[0] == reason


def test_auth_is_reserved_before_5() -> None:
    assert refused(of(V311), b"\xf0\0") == (R.MALFORMED_PACKET, "packet type 15 is reserved")


@pytest.mark.parametrize("first", [0x20, 0x90, 0xB0, 0xD0])
def test_what_a_client_may_not_send(first: int) -> None:
    for version in (V311, V5):
        assert refused(of(version), bytes((first,)))[0] == R.PROTOCOL_ERROR


@pytest.mark.parametrize("first", [0x10, 0x82, 0xA2, 0xC0])
def test_what_a_server_may_not_send(first: int) -> None:
    for version in (V311, V5):
        assert refused(of(version, "server"), bytes((first,)))[0] == R.PROTOCOL_ERROR


def test_only_the_server_of_5_disconnects() -> None:
    assert of(V5, "server").feed(b"\xe0\0") == [Disconnect()]
    assert refused(of(V311, "server"), b"\xe0\0")[1] == "DISCONNECT from a server"
    assert of(V311).feed(b"\xe0\0") == [Disconnect()]


@pytest.mark.parametrize("kind", [4, 5, 6, 7, 8, 10, 12, 14, 15])
def test_reserved_flags(kind: int) -> None:
    """[MQTT-2.1.3-1, 3.6.1-1, 3.8.1-1, 3.10.1-1, 3.14.1-1, 3.15.1-1]"""
    right = 2 if kind in (6, 8, 10) else 0
    for flags in range(16):
        reader = of(V5)
        reader.feed(bytes((kind << 4 | flags,)))
        if flags == right:
            assert reader.error is None
        else:
            assert reader.error is not None
            assert reader.error.reason == R.MALFORMED_PACKET


def test_3_1_has_no_reserved_flags() -> None:
    """It sends PUBREL and SUBSCRIBE again with DUP."""
    assert of(V31).feed(b"\x6a\x02\0\x01") == [PubRel(1)]
    assert of(V31).feed(b"\x8a\x06\0\x01\0\x01a\x01") == [Subscribe(1, (SubscriptionRequest("a", 1),))]
    assert of(V31).feed(b"\xcf\0") == [PingReq()]


# PUBLISH


@pytest.mark.parametrize("version", [V311, V5])
@pytest.mark.parametrize("first", range(0x30, 0x40))
def test_the_flags_of_publish(first: int, version: Version) -> None:
    qos, retain, duplicate = first >> 1 & 3, bool(first & 1), bool(first & 8)
    packet_id = b"\x12\x34" if qos else b""
    block = b"\0" if version == V5 else b""
    body = b"\0\x01t" + packet_id + block + b"p"
    reader = of(version)
    got = reader.feed(bytes((first, len(body))) + body)
    if qos == 3 or (duplicate and not qos):  # [MQTT-3.3.1-4, 3.3.1-2]
        assert got == []
        assert reader.error is not None
        assert reader.error.reason == R.MALFORMED_PACKET
    else:
        assert got == [Publish("t", b"p", qos, retain, 0x1234 if qos else 0, duplicate)]


def test_3_1_lets_dup_be_set_with_qos_0() -> None:
    assert of(V31).feed(b"\x38\x03\0\x01t") == [Publish("t", b"", duplicate=True)]
    assert refused(of(V31), b"\x36")[0] == R.MALFORMED_PACKET


@pytest.mark.parametrize("version", [V311, V5])
@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("", "topic name"),
        ("00", "topic name"),
        ("0003 7474", "topic name"),
        ("ffff 7474", "topic name"),
        ("0001 74", "packet identifier"),
        ("0001 74 01", "packet identifier"),
    ],
)
def test_a_publish_that_ends_too_early(version: Version, body: str, what: str) -> None:
    raw = bytes.fromhex(body)
    # What comes after it is not taken for a part of it.
    data = bytes((0x32, len(raw))) + raw + b"\xc0\0" * 4
    assert refused(of(version), data) == (R.MALFORMED_PACKET, f"PUBLISH: ends in {what}")
    assert refused(of(version), data[: 2 + len(raw)]) == (R.MALFORMED_PACKET, f"PUBLISH: ends in {what}")


def test_a_publish_of_5_without_a_property_length() -> None:
    assert refused(of(V5), b"\x32\x05\0\x01t\0\x01\xc0\0")[1] == "PUBLISH: ends in property length"


@pytest.mark.parametrize("version", VERSIONS := [V31, V311, V5])
def test_packet_identifier_0(version: Version) -> None:
    """[MQTT-2.2.1-3]"""
    assert refused(of(version), b"\x32\x06\0\x01t\0\0\0") == (
        R.PROTOCOL_ERROR,
        "PUBLISH: packet identifier 0",
    )
    for first in (0x40, 0x50, 0x62, 0x70):
        assert refused(of(version), bytes((first, 2, 0, 0)))[0] == R.PROTOCOL_ERROR
    for first in (0x82, 0xA2):
        assert refused(of(version), bytes((first, 7, 0, 0, 0, 0, 1, 97, 0)))[0] == R.PROTOCOL_ERROR


@pytest.mark.parametrize("topic", [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"a\0b"])
def test_a_topic_name_is_utf_8_without_surrogates_and_nul(topic: bytes) -> None:
    """[MQTT-1.5.4-1, 1.5.4-2]"""
    for version in VERSIONS:
        raw = bytes((0x30, 3 + len(topic), 0, len(topic))) + topic + b"\0"
        assert refused(of(version), raw)[0] == R.MALFORMED_PACKET


def test_a_byte_order_mark_is_a_part_of_the_topic() -> None:
    """[MQTT-1.5.4-3]"""
    assert of(V311).feed(b"\x30\x05\0\x03\xef\xbb\xbf") == [Publish("\ufeff", b"")]


@pytest.mark.parametrize("topic", [b"+", b"a/#", b"a+b", b"#"])
def test_a_topic_name_has_no_wildcards(topic: bytes) -> None:
    """[MQTT-3.3.2-2]"""
    raw = bytes((0x30, 3 + len(topic), 0, len(topic))) + topic + b"\0"
    for version in VERSIONS:
        assert refused(of(version), raw) == (
            R.TOPIC_NAME_INVALID,
            "PUBLISH: topic name contains a wildcard",
        )


def test_an_empty_topic_needs_an_alias() -> None:
    """[MQTT-4.7.3-1]; 3.3.2.1 of 5.0"""
    for version in VERSIONS:
        assert refused(of(version), b"\x30\x03\0\0\0")[0] == R.PROTOCOL_ERROR
    assert of(V5).feed(b"\x30\x06\0\0\x03\x23\0\x01") == [
        Publish("", b"", properties=Properties(topic_alias=1))
    ]


def test_topics_are_decoded_once_and_not_kept_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_TOPICS", 4)
    module._TOPICS.clear()
    first, second = of(V311).feed(b"\x30\x04\0\x02tt" * 2)
    assert isinstance(first, Publish)
    assert isinstance(second, Publish)
    assert first.topic is second.topic
    for number in range(100):
        of(V311).feed(b"\x30\x04\0\x02%02d" % number)
        assert len(module._TOPICS) <= 4
    long = b"t" * 257
    of(V311).feed(b"\x30\x83\x02\x01\x01" + long)
    assert long not in module._TOPICS


def test_the_properties_of_publish_are_read_once_and_not_kept_without_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_MOST_BLOCKS", 4)
    blocks = module._BLOCKS["client"]
    blocks.clear()
    first, second = of(V5).feed(b"\x30\x07\0\x01t\x03\x23\0\x01" * 2)
    assert isinstance(first, Publish)
    assert isinstance(second, Publish)
    assert first.properties is second.properties
    for number in range(100):
        got = of(V5).feed(bytes((0x30, 7, 0, 1, 116, 3, 0x23, 1, number)))
        assert got == [Publish("t", b"", properties=Properties(topic_alias=256 + number))]
        assert 1 <= len(blocks) <= 4
    long = b"\x46\x03\0\x43" + b"x" * 67
    assert of(V5).feed(b"\x30\x4a\0\x01t" + long) == [
        Publish("t", b"", properties=Properties(content_type="x" * 67))
    ]
    assert long not in blocks


def test_known_properties_that_end_after_the_packet() -> None:
    """Those of a good packet, with the beginning of the next one in their place."""
    assert len(of(V5).feed(b"\x30\x07\0\x01t\x03\x23\0\x01")) == 1
    reason, text = refused(of(V5), b"\x30\x05\0\x01t\x03\x23" + b"\0\x01")
    assert (reason, text) == (R.MALFORMED_PACKET, "PUBLISH: the properties end after the packet")


def test_a_subscription_identifier_from_a_client() -> None:
    """[MQTT-3.3.4-6]; also when the same properties were read from a server before."""
    raw = b"\x30\x06\0\x01t\x02\x0b\x05"
    expected = Publish("t", b"", properties=Properties(subscription_identifiers=(5,)))
    assert of(V5, "server").feed(raw) == [expected]
    assert refused(of(V5), raw)[0] == R.PROTOCOL_ERROR


@pytest.mark.parametrize("topic", [b"+", b"a/#", b""])
def test_a_response_topic_is_a_topic_name(topic: bytes) -> None:
    """[MQTT-3.3.2-14]"""
    block = b"\x08\0" + bytes((len(topic),)) + topic
    raw = bytes((0x30, 4 + len(block), 0, 1, 116, len(block))) + block
    for _ in range(2):
        assert refused(of(V5), raw) == (R.PROTOCOL_ERROR, "PUBLISH: response topic is no topic name")


# Lengths


@pytest.mark.parametrize("size", [127, 128, 129, 16_383, 16_384, 2_097_151, 2_097_152])
@pytest.mark.parametrize("version", [V311, V5])
def test_remaining_lengths(size: int, version: Version) -> None:
    """2.1.4: the ends of what one to four bytes hold."""
    head = b"\0\x01t" + (b"\0" if version == V5 else b"")
    length, rest = b"", size
    while rest > 127:
        length += bytes((rest & 127 | 128,))
        rest >>= 7
    length += bytes((rest,))
    payload = b"p" * (size - len(head))
    raw = b"\x30" + length + head + payload
    assert of(version, max_bytes=len(raw)).feed(raw + b"\xc0\0") == [Publish("t", payload), PingReq()]
    for at in (1, 2, 3, 4, 5, len(raw) - 1):
        reader = of(version, max_bytes=len(raw))
        assert reader.feed(raw[:at]) == []
        assert reader.feed(raw[at:]) == [Publish("t", payload)]
    reason, text = refused(of(version, max_bytes=len(raw) - 1), raw[:5])
    assert reason == R.PACKET_TOO_LARGE
    assert text == f"a packet of {len(raw)} bytes is larger than {len(raw) - 1}"


def test_a_remaining_length_of_five_bytes() -> None:
    for data in (b"\x30\xff\xff\xff\xff", b"\x30\x80\x80\x80\x80\x01"):
        assert refused(of(V311), data)[0] == R.MALFORMED_PACKET


@pytest.mark.parametrize("length", ["8400", "848000", "84808000"])
def test_a_remaining_length_with_more_bytes_than_need_be(length: str) -> None:
    """[MQTT-1.5.5-1]; 3.1.1 does not forbid it."""
    raw = b"\x30" + bytes.fromhex(length) + b"\0\x01tp"
    for cut in range(len(raw)):
        reader = of(V311)
        assert reader.feed(raw[:cut]) + reader.feed(raw[cut:]) == [Publish("t", b"p")]
    for more in (b"", b"\xc0\0"):
        assert refused(of(V5), raw[:-1] + b"\0" + more) == (
            R.MALFORMED_PACKET,
            "the remaining length has more bytes than need be",
        )
    for connect, allowed in ((CONNECT_311, True), (CONNECT_5, False)):
        padded = bytes((0x10, connect[1] | 128, 0)) + connect[2:]
        reader = PacketReader(100)
        assert bool(reader.feed(padded)) == allowed
        assert (reader.error is None) == allowed


def test_nothing_is_allocated_for_what_is_only_claimed() -> None:
    reader = of(V311, max_bytes=300_000_000)
    tracemalloc.start()
    try:
        reader.feed(b"\x30\xff\xff\xff\x7f\0\x01t")
        reader.feed(b"x" * 1000)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()
    assert reader.error is None


def test_a_large_packet_in_many_pieces_is_copied_a_few_times_only() -> None:
    """Bytes that come are added to those before, and not read again from the start."""
    read = 0

    class Counting(PacketReader):
        def _read(self, data: bytes, packets: list[Packet]) -> int:
            nonlocal read
            read += len(data)
            return super()._read(data, packets)

    size = 1_000_000
    reader = Counting(2 * size, V311)
    raw = b"\x30\xc0\x84\x3d\0\x01t" + bytes(size - 3)
    assert reader.feed(raw[:5000]) == []
    assert read == 5000
    read = 0
    for at in range(5000, len(raw) - 1, 1000):
        assert reader.feed(raw[at : min(at + 1000, len(raw) - 1)]) == []
    assert read == 0
    assert reader.feed(raw[-1:]) == [Publish("t", bytes(size - 3))]
    assert read == len(raw)


# Acknowledgements


@pytest.mark.parametrize(("first", "ack"), [(0x40, PubAck), (0x50, PubRec), (0x62, PubRel), (0x70, PubComp)])
def test_acknowledgements(first: int, ack: type[PubAck]) -> None:
    code = 0x92 if first in (0x62, 0x70) else 0x80
    raw = bytes((first, 2, 0x12, 0x34))
    for version in VERSIONS:
        for sender in ("client", "server"):
            assert of(version, sender).feed(raw * 3) == [ack(0x1234)] * 3
    assert of(V5).feed(bytes((first, 3, 0, 1, 0))) == [ack(1)]
    assert of(V5).feed(bytes((first, 3, 0, 1, code))) == [ack(1, code)]
    assert of(V5).feed(bytes((first, 4, 0, 1, code, 0))) == [ack(1, code)]
    assert of(V5).feed(bytes((first, 8, 0, 1, code, 4, 0x1F, 0, 1, 0x78))) == [
        ack(1, code, Properties(reason_string="x"))
    ]
    assert refused(of(V5), bytes((first, 3, 0, 1, 0x01)))[0] == R.PROTOCOL_ERROR
    assert refused(of(V5), bytes((first, 5, 0, 1, code, 0, 0)))[0] == R.MALFORMED_PACKET
    assert refused(of(V5), bytes((first, 1, 0)))[0] == R.MALFORMED_PACKET
    for version in (V31, V311):
        assert refused(of(version), bytes((first, 3, 0, 1, 0)))[0] == R.MALFORMED_PACKET


def test_packets_without_properties_share_one_object() -> None:
    (publish,) = of(V5).feed(b"\x30\x04\0\x01t\0")
    assert isinstance(publish, Publish)
    assert publish.properties is NO_PROPERTIES


def filters(count: int) -> list[str]:
    return [f"a/{number}" for number in range(count)]


@pytest.mark.parametrize("version", [V311, V5])
@pytest.mark.parametrize("kind", [Subscribe, Unsubscribe])
def test_a_packet_with_many_filters_is_read_in_steps(kind: type, version: Version) -> None:
    """Others have their turns in between."""
    many = filters(MOST_FILTERS)
    packet = (
        Subscribe(1, tuple([SubscriptionRequest(each, 1) for each in many]))
        if kind is Subscribe
        else Unsubscribe(1, tuple(many))
    )
    reader = of(version, max_bytes=2_000_000)
    read = reader.feed(encode(PingReq(), version) + encode(packet, version) + encode(PingReq(), version))
    assert read == [PingReq()]
    steps = 1
    while reader.steps is not None:
        assert not read or steps == 1
        read = reader.feed(b"")
        steps += 1
    assert steps >= len(many) / FILTERS_AT_ONCE
    assert read == [packet, PingReq()]
    assert reader.feed(encode(PingReq(), version)) == [PingReq()]


def test_what_comes_while_a_packet_is_read_in_steps_is_read_behind_it() -> None:
    packet = Unsubscribe(1, tuple(filters(FILTERS_AT_ONCE + 1)))
    ping = encode(PingReq(), V5)
    reader = of(V5, max_bytes=1_000_000)
    assert reader.feed(encode(packet, V5) + ping[:1]) == []
    assert reader.steps is not None
    assert reader.feed(ping[1:] + ping[:1]) == [packet, PingReq()]
    assert reader.steps is None
    assert reader.feed(ping[1:]) == [PingReq()]


def test_so_many_filters_as_are_read_in_a_step_need_one_step() -> None:
    packet = Unsubscribe(1, tuple(filters(FILTERS_AT_ONCE)))
    reader = of(V5, max_bytes=1_000_000)
    assert reader.feed(encode(packet, V5)) == [packet]
    assert reader.steps is None


def test_an_error_in_a_later_step() -> None:
    raw = encode(Unsubscribe(1, (*filters(FILTERS_AT_ONCE), "last")), V5)
    reader = of(V5, max_bytes=1_000_000)
    assert reader.feed(raw[:-4] + b"\0\0\0\0" + encode(PingReq(), V5)) == []
    assert reader.steps is not None and reader.error is None
    assert reader.feed(b"") == []
    assert reader.error is not None and reader.error.reason == R.MALFORMED_PACKET
    assert reader.steps is None
    assert reader.feed(encode(PingReq(), V5)) == []


def test_a_packet_of_a_client_has_so_many_user_properties_at_most() -> None:
    """They are taken in one step by all that has to do with the packet."""
    fits = Publish("t", b"", properties=Properties(user_properties=(("a", "b"),) * MOST_REPEATED))
    more = Publish("t", b"", properties=Properties(user_properties=(("a", "b"),) * (MOST_REPEATED + 1)))
    assert of(V5, max_bytes=1_000_000).feed(encode(fits, V5)) == [fits]
    assert refused(of(V5, max_bytes=1_000_000), encode(more, V5)) == (
        R.QUOTA_EXCEEDED,
        "PUBLISH: more than 1,000 user_properties",
    )
    # A bridge goes on, whatever comes from the broker that it was told to speak to.
    assert of(V5, "server", max_bytes=1_000_000).feed(encode(more, V5)) == [more]
