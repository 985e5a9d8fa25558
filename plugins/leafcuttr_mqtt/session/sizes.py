"""How long the packet of a message is, without writing it: for the maximum packet size of a client (3.1.2.11.4)."""

from leafcuttr_mqtt.messages import Message


def utf8_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def varint_length(value: int) -> int:
    """Of a variable byte integer (1.5.5)."""
    if value < 1 << 7:
        return 1
    if value < 1 << 14:
        return 2
    return 3 if value < 1 << 21 else 4


def properties_of_message(message: Message) -> int:
    """Bytes of the properties that come from the message itself, without the message expiry interval (3.3.2.3)."""
    length = 0
    if message.payload_format is not None:
        length += 2
    if message.content_type is not None:
        length += 3 + utf8_length(message.content_type)
    if message.response_topic is not None:
        length += 3 + utf8_length(message.response_topic)
    if message.correlation_data is not None:
        length += 3 + len(message.correlation_data)
    for name, value in message.user_properties:
        length += 5 + utf8_length(name) + utf8_length(value)
    return length


def publish_size(
    message: Message,
    *,
    v5: bool,
    qos: int,
    identifiers: tuple[int, ...] = (),
    expiry: bool = False,
    alias: bool = False,
    topic_left_out: bool = False,
) -> int:
    """Bytes of the PUBLISH with these fields, its fixed header included (2.1.4)."""
    length = (
        2 + (0 if topic_left_out else utf8_length(message.topic)) + (2 if qos else 0) + len(message.payload)
    )
    if v5:
        properties = properties_of_message(message) + (5 if expiry else 0) + (3 if alias else 0)
        properties += sum(1 + varint_length(each) for each in identifiers)
        length += varint_length(properties) + properties
    return 1 + varint_length(length) + length
