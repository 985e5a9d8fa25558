"""Application messages, as they go through the broker: from a publisher, a will or a Kafka topic to subscribers, to
Kafka topics and to the log. No packets and no I/O."""

from dataclasses import dataclass

from leafcuttr_mqtt.packets.types import UserProperties


@dataclass(slots=True)
class Message:
    """One application message. It is shared by all that it is delivered to, and not changed once it is published."""

    topic: str
    payload: bytes
    qos: int = 0
    """As it was published."""
    retain: bool = False
    """As it was published."""
    client_id: str = ""
    """Of the publisher; empty: the broker itself."""
    arrived_ms: int = 0
    """When it came, or a will was published: milliseconds since 1970."""
    expires_ms: int | None = None
    """When it is worth nothing any more: `arrived_ms` and the message expiry interval."""
    payload_format: int | None = None
    content_type: str | None = None
    response_topic: str | None = None
    correlation_data: bytes | None = None
    user_properties: UserProperties = ()
    via: tuple[str, ...] = ()
    """Kafka topics that it has come from: it is not stored in them again."""
