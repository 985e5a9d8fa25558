"""The record of a message, and the message of a record.

The payload is the value, as it is. All else is in headers whose names begin with `mqtt.`; user properties are headers
of their own names, but for those whose names begin so too: they have `mqtt.user.` in front, so that no client can write
what it is not. Numbers and flags are text.
"""

from typing import Final

from leafcuttr_mqtt.mapping.outcomes import Refusal
from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.packets.types import UserProperties
from leafcuttr_mqtt.topics.names import why_no_name
from leafcuttr_sdk.batches.builder import EncodedHeaders, encode_headers
from leafcuttr_sdk.batches.varints import VARINTS
from leafcuttr_sdk.records import Headers, StoredRecord

PREFIX: Final = "mqtt."
TOPIC: Final = "mqtt.topic"
QOS: Final = "mqtt.qos"
RETAIN: Final = "mqtt.retain"
CLIENT_ID: Final = "mqtt.client_id"
CONTENT_TYPE: Final = "mqtt.content_type"
RESPONSE_TOPIC: Final = "mqtt.response_topic"
CORRELATION_DATA: Final = "mqtt.correlation_data"
PAYLOAD_FORMAT: Final = "mqtt.payload_format"
EXPIRY: Final = "mqtt.expiry_interval"
"""Seconds, from the record's timestamp on."""
MESSAGE_NUMBER: Final = "mqtt.message.number"
"""Of a message with QoS 2: what tells a start that it has been stored."""
VIA: Final = "mqtt.via"
"""Kafka topics that the message has come from, with commas between them: it does not go back into them."""
USER: Final = "mqtt.user."
REFUSED_CODE: Final = "mqtt.refused.code"
REFUSED_REASON: Final = "mqtt.refused.reason"
REFUSED_TOPIC: Final = "mqtt.refused.topic"

FIXED_COUNT: Final = 4
_NUMBERED: Final = VARINTS[FIXED_COUNT + 1]
_NUMBER_NAME: Final = VARINTS[len(MESSAGE_NUMBER)] + MESSAGE_NUMBER.encode()
MAX_TEXT: Final = 65_535
"""Bytes of a text in MQTT (1.5.4), and of binary data (1.5.6)."""


def fixed_headers(topic: str, qos: int, retain: bool, client_id: str) -> Headers:
    """Those that every message has: `FIXED_COUNT` of them."""
    return (
        (TOPIC, topic.encode()),
        (QOS, b"%d" % qos),
        (RETAIN, b"true" if retain else b"false"),
        (CLIENT_ID, client_id.encode()),
    )


def other_headers(message: Message, number: int | None = None) -> list[tuple[str, bytes | None]]:
    """The others; none for a message without properties."""
    found: list[tuple[str, bytes | None]] = []
    if message.content_type is not None:
        found.append((CONTENT_TYPE, message.content_type.encode()))
    if message.response_topic is not None:
        found.append((RESPONSE_TOPIC, message.response_topic.encode()))
    if message.correlation_data is not None:
        found.append((CORRELATION_DATA, message.correlation_data))
    if message.payload_format is not None:
        found.append((PAYLOAD_FORMAT, b"%d" % message.payload_format))
    if message.expires_ms is not None:
        found.append((EXPIRY, b"%d" % max((message.expires_ms - message.arrived_ms) // 1000, 0)))
    if message.via:
        found.append((VIA, ",".join(message.via).encode()))
    if number is not None:
        found.append((MESSAGE_NUMBER, b"%d" % number))
    for name, value in message.user_properties:
        found.append((USER + name if name.startswith(PREFIX) else name, value.encode()))
    return found


def letter_headers(refusal: Refusal) -> list[tuple[str, bytes | None]]:
    """Those of a dead letter."""
    return [
        (REFUSED_TOPIC, refusal.kafka_topic.encode()),
        (REFUSED_CODE, b"%d" % refusal.code),
        (REFUSED_REASON, refusal.text.encode("utf-8", "replace")),
    ]


def body_of(headers: Headers) -> bytes:
    """Headers as they stand in a record, without their number in front: bodies may be joined."""
    return encode_headers(headers)[len(VARINTS[len(headers)]) :]


def with_others(fixed_body: bytes, others: list[tuple[str, bytes | None]]) -> EncodedHeaders:
    """The fixed headers of a record, encoded already, and others behind them."""
    count = FIXED_COUNT + len(others)
    return EncodedHeaders(VARINTS[count] + fixed_body + body_of(tuple(others)))


def with_number(fixed_body: bytes, number: int) -> EncodedHeaders:
    """The same for a message without properties that has a number: what most with QoS 2 are like."""
    digits = b"%d" % number
    return EncodedHeaders(_NUMBERED + fixed_body + _NUMBER_NAME + VARINTS[len(digits)] + digits)


def has_others(message: Message) -> bool:
    """Whether `other_headers` has any without a number."""
    return message.has_properties or bool(message.via)


def message_of(record: StoredRecord) -> Message | None:
    """The message that was stored as a record; None for one that was not stored by this plugin, or of which filters
    have left too little. The RETAIN flag is that of the publisher."""
    headers = dict(record.headers)  # of two with the same name the last one counts
    topic = _text(headers.get(TOPIC))
    if topic is None or why_no_name(topic):
        return None
    qos = headers.get(QOS)
    message = Message(
        topic,
        record.value or b"",
        qos=int(qos) if qos in (b"0", b"1", b"2") else 0,
        retain=headers.get(RETAIN) == b"true",
        client_id=_text(headers.get(CLIENT_ID)) or "",
    )
    set_properties(message, record)
    return message


def set_properties(message: Message, record: StoredRecord) -> None:
    """Give a message what the timestamp and the headers of a record say, as far as a message can have it."""
    headers = dict(record.headers)
    message.arrived_ms = record.timestamp
    message.content_type = _text(headers.get(CONTENT_TYPE))
    response_topic = _text(headers.get(RESPONSE_TOPIC))
    if response_topic is not None and why_no_name(response_topic) is None:
        message.response_topic = response_topic
    correlation_data = headers.get(CORRELATION_DATA)
    if correlation_data is not None and len(correlation_data) <= MAX_TEXT:
        message.correlation_data = correlation_data
    payload_format = headers.get(PAYLOAD_FORMAT)
    if payload_format == b"0" or (
        payload_format == b"1" and _text(message.payload, len(message.payload)) is not None
    ):
        message.payload_format = int(payload_format)
    expiry = headers.get(EXPIRY)
    if expiry is not None and expiry.isdigit() and len(expiry) <= 10:
        message.expires_ms = record.timestamp + min(int(expiry), 0xFFFFFFFF) * 1000
    via = _text(headers.get(VIA))
    if via:
        message.via = tuple(via.split(","))
    message.user_properties = _user_properties(record.headers)


def _user_properties(headers: Headers) -> UserProperties:
    found: list[tuple[str, str]] = []
    for name, value in headers:
        if name.startswith(PREFIX):
            if not name.startswith(USER):
                continue
            name = name.removeprefix(USER)
        text = _text(value)
        if text is not None and _is_text(name):
            found.append((name, text))
    return tuple(found)


def _text(value: bytes | None, most: int = MAX_TEXT) -> str | None:
    """A text that MQTT can carry (1.5.4)."""
    if value is None or len(value) > most:
        return None
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text and most == MAX_TEXT else text


def _is_text(name: str) -> bool:
    try:
        return len(name.encode()) <= MAX_TEXT and "\0" not in name
    except UnicodeEncodeError:
        return False
