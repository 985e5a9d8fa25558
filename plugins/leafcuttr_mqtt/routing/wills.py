"""Wills: the message that a connection leaves behind, as it is published. When that is, `hub` decides."""

from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.packets.types import Will


def will_message(client_id: str, will: Will, now_ms: int) -> Message:
    """The message that a will is, as it is published now."""
    message = Message(will.topic, will.payload, will.qos, will.retain, client_id, now_ms)
    message.take_properties(will.properties)
    return message
