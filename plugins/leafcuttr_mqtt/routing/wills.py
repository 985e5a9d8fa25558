"""Wills: the message that a connection leaves behind, as it is published. When that is, `hub` decides."""

from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.packets.types import Will


def will_message(client_id: str, will: Will, now_ms: int) -> Message:
    """The message that a will is, as it is published now."""
    properties = will.properties
    expiry = properties.message_expiry_interval
    return Message(
        topic=will.topic,
        payload=will.payload,
        qos=will.qos,
        retain=will.retain,
        client_id=client_id,
        arrived_ms=now_ms,
        expires_ms=None if expiry is None else now_ms + expiry * 1000,
        payload_format=properties.payload_format_indicator,
        content_type=properties.content_type,
        response_topic=properties.response_topic,
        correlation_data=properties.correlation_data,
        user_properties=properties.user_properties,
    )
