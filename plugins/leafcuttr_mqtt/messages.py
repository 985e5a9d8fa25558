"""Application messages, as they go through the broker: from a publisher, a will or a Kafka topic to subscribers, to
Kafka topics and to the log. No packets and no I/O."""

from dataclasses import dataclass

from leafcuttr_mqtt.packets.types import Properties, UserProperties


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

    def take_properties(self, properties: Properties) -> None:
        """Take over what goes from a publisher to its subscribers as it is (3.3.2.3)."""
        expiry_s = properties.message_expiry_interval
        if expiry_s is not None:
            self.expires_ms = self.arrived_ms + expiry_s * 1000
        self.payload_format = properties.payload_format_indicator
        self.content_type = properties.content_type
        self.response_topic = properties.response_topic
        self.correlation_data = properties.correlation_data
        self.user_properties = properties.user_properties

    @property
    def has_properties(self) -> bool:
        """Whether its packets have any of these."""
        return bool(
            self.user_properties
            or self.expires_ms is not None
            or self.content_type is not None
            or self.response_topic is not None
            or self.correlation_data is not None
            or self.payload_format is not None
        )
