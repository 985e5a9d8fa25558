"""Bytes made for many at once are those that the writer makes for each."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_mqtt.packets.frames import PublishFrames, acknowledgements
from leafcuttr_mqtt.packets.reader import PacketReader
from leafcuttr_mqtt.packets.types import (
    PacketType,
    Properties,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    Version,
)
from leafcuttr_mqtt.packets.writer import encode
from support.mqtt_packets import BYTES, IDS, QOS, TOPICS, VERSIONS

MORE = Properties(content_type="x", user_properties=(("a", "b"),), message_expiry_interval=3)


@given(
    st.sampled_from(VERSIONS),
    TOPICS,
    BYTES,
    QOS,
    st.booleans(),
    IDS,
    st.lists(st.integers(1, 300), max_size=3).map(tuple),
    st.sampled_from([Properties(), MORE]),
)
def test_a_frame_is_the_packet(
    version: Version,
    topic: str,
    payload: bytes,
    qos: int,
    retain: bool,
    packet_id: int,
    identifiers: tuple[int, ...],
    properties: Properties,
) -> None:
    frame = PublishFrames(topic, payload, properties).frame(version, qos, retain, identifiers)
    expected = Publish(
        topic,
        payload,
        qos,
        retain,
        packet_id if qos else 0,
        properties=Properties(
            content_type=properties.content_type,
            user_properties=properties.user_properties,
            message_expiry_interval=properties.message_expiry_interval,
            subscription_identifiers=identifiers,
        ),
    )
    raw = encode(expected, version)
    assert frame.size == len(raw)
    if qos:
        assert frame.with_id(packet_id) == raw
        expected.duplicate = True
        assert frame.again(packet_id) == encode(expected, version)
    else:
        assert (frame.head, frame.tail) == (raw, b"")


def test_bytes_are_made_once() -> None:
    frames = PublishFrames("t", b"p", MORE)
    first = frames.frame(Version.V5, 1, False, (3,))
    assert frames.frame(Version.V5, 1, False, (3,)) is first
    # 3.1 and 3.1.1 are the same here, and know no identifiers.
    old = frames.frame(Version.V3_1_1, 1, False)
    assert frames.frame(Version.V3_1, 1, False, (3,)) is old
    others = {
        id(each)
        for each in (
            first,
            old,
            frames.frame(Version.V5, 1, False),
            frames.frame(Version.V5, 1, False, (4,)),
            frames.frame(Version.V5, 2, False, (3,)),
            frames.frame(Version.V5, 1, True, (3,)),
        )
    }
    assert len(others) == 6
    assert MORE.subscription_identifiers == ()


@pytest.mark.parametrize(
    ("kind", "ack"),
    [
        (PacketType.PUBACK, PubAck),
        (PacketType.PUBREC, PubRec),
        (PacketType.PUBREL, PubRel),
        (PacketType.PUBCOMP, PubComp),
    ],
)
@given(ids=st.lists(IDS))
def test_acknowledgements(kind: PacketType, ack: type[PubAck], ids: list[int]) -> None:
    expected = [ack(packet_id) for packet_id in ids]
    raw = acknowledgements(kind, ids)  # type: ignore[arg-type]
    for version in VERSIONS:
        assert raw == b"".join(encode(each, version) for each in expected)
        assert PacketReader(100, version).feed(raw) == expected
