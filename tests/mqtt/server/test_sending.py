"""PUBLISH packets to subscribers."""

from __future__ import annotations

import pytest

from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.packets.reader import PacketReader
from leafcuttr_mqtt.packets.types import Publish, Version
from leafcuttr_mqtt.server.sending import Sendings
from leafcuttr_mqtt.session.types import Delivery, Sending


def sent(sendings: Sendings, sending: Sending, version: Version = Version.V5) -> Publish:
    (packet,) = PacketReader.of_server(10_000, version).feed(sendings.encode(sending, version, 0))
    assert isinstance(packet, Publish)
    return packet


@pytest.mark.parametrize("version", [Version.V3_1_1, Version.V5])
def test_a_message_for_many(version: Version) -> None:
    sendings, message = Sendings(), Message("a", b"x", 2, content_type="t")
    for number in range(1, 4):
        for qos in (0, 1, 2):
            sending = Sending(
                Delivery(message, qos, number == 2, (number,)),
                number if qos else 0,
                number == 3 and qos > 0,
                0,
                False,
                None,
            )
            packet = sent(sendings, sending, version)
            assert (packet.topic, packet.payload, packet.qos, packet.retain) == ("a", b"x", qos, number == 2)
            assert (packet.packet_id, packet.duplicate) == (number if qos else 0, number == 3 and qos > 0)
            if version == Version.V5:
                assert packet.properties.content_type == "t"
                assert packet.properties.subscription_identifiers == (number,)


def test_an_alias_and_what_is_left_of_the_expiry_interval() -> None:
    message = Message("topic", b"x", 1, expires_ms=90_000)
    packet = sent(Sendings(), Sending(Delivery(message, 1, False), 5, False, 3, True, 42))
    assert (packet.topic, packet.properties.topic_alias) == ("", 3)
    assert packet.properties.message_expiry_interval == 42
    packet = sent(Sendings(), Sending(Delivery(message, 1, False), 5, False, 3, False, 42))
    assert (packet.topic, packet.properties.topic_alias) == ("topic", 3)


def test_frames_of_other_messages_are_not_mixed_up() -> None:
    sendings = Sendings()
    for number in range(200):
        packet = sent(
            sendings, Sending(Delivery(Message("a", b"%d" % number), 0, False), 0, False, 0, False, None)
        )
        assert packet.payload == b"%d" % number
    sendings.forget()
    assert not sendings._frames
