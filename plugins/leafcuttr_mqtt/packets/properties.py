"""The properties of 5.0 (2.2.2): which exist, of which type, in which packets, and how often; their bytes.

The rules of a single value are here; those that need the rest of a packet are in the reader.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from leafcuttr_mqtt.packets.encoding import binary, text, varint
from leafcuttr_mqtt.packets.errors import PacketError, malformed, protocol_error
from leafcuttr_mqtt.packets.fields import Body
from leafcuttr_mqtt.packets.types import NO_PROPERTIES, PacketType, Properties, ReasonCode

WILL: Final = 0
"""The properties of a will (3.1.3.2), which is no packet: the number of a packet type that does not exist."""

_C, _CA, _P, _D = PacketType.CONNECT, PacketType.CONNACK, PacketType.PUBLISH, PacketType.DISCONNECT
_ACKS = (PacketType.PUBACK, PacketType.PUBREC, PacketType.PUBREL, PacketType.PUBCOMP)
_ANSWERS = (_CA, *_ACKS, PacketType.SUBACK, PacketType.UNSUBACK, _D, PacketType.AUTH)


class DataType(NamedTuple):
    """One of the data types of 1.5."""

    read: Callable[[Body, str], Any]
    write: Callable[[Any], bytes]


BYTE: Final = DataType(Body.byte, lambda value: value.to_bytes(1, "big"))
TWO: Final = DataType(Body.two, lambda value: value.to_bytes(2, "big"))
FOUR: Final = DataType(Body.four, lambda value: value.to_bytes(4, "big"))
VARINT: Final = DataType(Body.varint, varint)
TEXT: Final = DataType(Body.text, text)
BINARY: Final = DataType(Body.binary, binary)
PAIR: Final = DataType(
    lambda body, what: (body.text(what), body.text(what)), lambda pair: text(pair[0]) + text(pair[1])
)


class Property(NamedTuple):
    identifier: int
    name: str
    """Of the field in `Properties`."""
    type: DataType
    packets: tuple[int, ...]
    """The packet types that may have it (2.2.2.2), and `WILL`."""
    many: bool = False
    """It may be there several times: the field is a tuple."""
    least: int = 0
    most: int | None = None
    """The values that are allowed, where not all of the type are."""
    reason: ReasonCode = ReasonCode.PROTOCOL_ERROR
    """Why others are refused."""


def _flag(identifier: int, name: str, *packets: int) -> Property:
    return Property(identifier, name, BYTE, packets, most=1)


PROPERTIES: Final = (
    _flag(0x01, "payload_format_indicator", _P, WILL),
    Property(0x02, "message_expiry_interval", FOUR, (_P, WILL)),
    Property(0x03, "content_type", TEXT, (_P, WILL)),
    Property(0x08, "response_topic", TEXT, (_P, WILL)),
    Property(0x09, "correlation_data", BINARY, (_P, WILL)),
    # In SUBSCRIBE once only: `read_properties` says so.
    Property(0x0B, "subscription_identifiers", VARINT, (_P, PacketType.SUBSCRIBE), many=True, least=1),
    Property(0x11, "session_expiry_interval", FOUR, (_C, _CA, _D)),
    Property(0x12, "assigned_client_identifier", TEXT, (_CA,)),
    Property(0x13, "server_keep_alive", TWO, (_CA,)),
    Property(0x15, "authentication_method", TEXT, (_C, _CA, PacketType.AUTH)),
    Property(0x16, "authentication_data", BINARY, (_C, _CA, PacketType.AUTH)),
    _flag(0x17, "request_problem_information", _C),
    Property(0x18, "will_delay_interval", FOUR, (WILL,)),
    _flag(0x19, "request_response_information", _C),
    Property(0x1A, "response_information", TEXT, (_CA,)),
    Property(0x1C, "server_reference", TEXT, (_CA, _D)),
    Property(0x1F, "reason_string", TEXT, _ANSWERS),
    Property(0x21, "receive_maximum", TWO, (_C, _CA), least=1),
    Property(0x22, "topic_alias_maximum", TWO, (_C, _CA)),
    Property(0x23, "topic_alias", TWO, (_P,), least=1, reason=ReasonCode.TOPIC_ALIAS_INVALID),
    _flag(0x24, "maximum_qos", _CA),
    _flag(0x25, "retain_available", _CA),
    Property(
        0x26,
        "user_properties",
        PAIR,
        (WILL, _C, _P, PacketType.SUBSCRIBE, PacketType.UNSUBSCRIBE, *_ANSWERS),
        many=True,
    ),
    Property(0x27, "maximum_packet_size", FOUR, (_C, _CA), least=1),
    _flag(0x28, "wildcard_subscription_available", _CA),
    _flag(0x29, "subscription_identifier_available", _CA),
    _flag(0x2A, "shared_subscription_available", _CA),
)
"""All of 2.2.2.2."""

ALLOWED: Final = {
    packet: {each.identifier: each for each in PROPERTIES if packet in each.packets}
    for packet in (WILL, *PacketType)
}
"""By packet type and identifier."""

_NAMES: Final = {each.identifier: each.name for each in PROPERTIES}


def read_properties(body: Body, packet: int) -> Properties:
    """The property length and the properties. One of another packet is malformed (2.2.2.2), a second one of a kind
    and a value that is not allowed are protocol errors (those of each property in section 3)."""
    size = body.varint("property length")
    if not size:
        return NO_PROPERTIES
    outer, end = body.end, body.at + size
    if end > outer:
        raise malformed(f"{body.name}: the properties end after the packet")
    body.end = end
    allowed = ALLOWED[packet]
    properties = Properties()
    many: dict[str, list[Any]] = {}
    while body.at < end:
        identifier = body.varint("property identifier")
        known = allowed.get(identifier)
        if known is None:
            raise malformed(f"{body.name}: property {_NAMES.get(identifier, hex(identifier))} is not allowed")
        name = known.name
        value = known.type.read(body, name)
        if (known.least and value < known.least) or (known.most is not None and value > known.most):
            raise PacketError(known.reason, f"{body.name}: {name} is {value}")
        if known.many:
            values = many.setdefault(name, [])
            if len(values) >= body.most_repeated:
                raise PacketError(
                    ReasonCode.QUOTA_EXCEEDED, f"{body.name}: more than {body.most_repeated:,} {name}"
                )
            values.append(value)
        elif getattr(properties, name) is not None:
            raise protocol_error(f"{body.name}: {name} twice")
        else:
            setattr(properties, name, value)
    body.end = outer
    for name, values in many.items():
        setattr(properties, name, tuple(values))
    if packet == PacketType.SUBSCRIBE and len(properties.subscription_identifiers) > 1:
        raise protocol_error(f"{body.name}: subscription_identifiers twice")
    return properties


def write_properties(properties: Properties, packet: int) -> bytes:
    """The property length and the properties that the packet may have; others are left out."""
    if properties is NO_PROPERTIES:
        return b"\0"
    pieces: list[bytes] = []
    for identifier, known in ALLOWED[packet].items():
        value = getattr(properties, known.name)
        if value is None or value == ():
            continue
        mark = identifier.to_bytes(1, "big")
        for each in value if known.many else (value,):
            pieces += (mark, known.type.write(each))
    whole = b"".join(pieces)
    return varint(len(whole)) + whole
