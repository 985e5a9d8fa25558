"""PUBLISH packets to subscribers as bytes. Those of one message that many get alike are made once."""

from dataclasses import replace
from typing import Final

from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.packets.frames import PublishFrames
from leafcuttr_mqtt.packets.types import Publish, Version
from leafcuttr_mqtt.packets.writer import encode
from leafcuttr_mqtt.routing.router import properties_of
from leafcuttr_mqtt.session.types import Sending

_REMEMBERED: Final = 64


class Sendings:
    """The frames of the messages that were sent last."""

    def __init__(self) -> None:
        self._frames: dict[int, tuple[Message, PublishFrames]] = {}

    def encode(self, sending: Sending, version: Version, now_ms: int) -> bytes:
        delivery = sending.delivery
        message = delivery.message
        assert message is not None
        if sending.alias or message.expires_ms is not None:
            return _encode_alone(sending, message, version, now_ms)
        known = self._frames.get(id(message))
        if known is None:
            if len(self._frames) >= _REMEMBERED:
                self._frames.clear()
            frames = PublishFrames(message.topic, message.payload, properties_of(message, now_ms))
            self._frames[id(message)] = (message, frames)
        else:
            frames = known[1]
        frame = frames.frame(version, delivery.qos, delivery.retain, delivery.identifiers)
        if not delivery.qos:
            return frame.head
        return frame.again(sending.packet_id) if sending.duplicate else frame.with_id(sending.packet_id)

    def forget(self) -> None:
        """At the end of a turn: they are not kept for messages that are gone."""
        self._frames.clear()


def _encode_alone(sending: Sending, message: Message, version: Version, now_ms: int) -> bytes:
    delivery = sending.delivery
    properties = replace(
        properties_of(message, now_ms),
        message_expiry_interval=sending.expiry_s,
        topic_alias=sending.alias or None,
        subscription_identifiers=delivery.identifiers,
    )
    return encode(
        Publish(
            "" if sending.topic_left_out else message.topic,
            message.payload,
            delivery.qos,
            delivery.retain,
            sending.packet_id,
            sending.duplicate,
            properties,
        ),
        version,
    )
