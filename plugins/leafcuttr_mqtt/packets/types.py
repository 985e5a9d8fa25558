"""MQTT's control packets, as the reader makes them and the writer takes them: one class for all versions.

What a version does not have has its default there: a packet of 3.1.1 has no properties and the reason code 0. Nothing
here checks anything: the reader does, for what comes from the wire.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias


class Version(IntEnum):
    """The protocol level of CONNECT."""

    V3_1 = 3
    """MQTT 3.1, with the protocol name `MQIsdp`."""
    V3_1_1 = 4
    V5 = 5


class ReasonCode(IntEnum):
    """5.0, section 2.4. Names are those of the table; codes that share a number share a member."""

    SUCCESS = 0x00
    """Also normal disconnection, and granted QoS 0."""
    GRANTED_QOS_1 = 0x01
    GRANTED_QOS_2 = 0x02
    DISCONNECT_WITH_WILL = 0x04
    NO_MATCHING_SUBSCRIBERS = 0x10
    NO_SUBSCRIPTION_EXISTED = 0x11
    CONTINUE_AUTHENTICATION = 0x18
    RE_AUTHENTICATE = 0x19
    UNSPECIFIED_ERROR = 0x80
    MALFORMED_PACKET = 0x81
    PROTOCOL_ERROR = 0x82
    IMPLEMENTATION_SPECIFIC_ERROR = 0x83
    UNSUPPORTED_PROTOCOL_VERSION = 0x84
    CLIENT_IDENTIFIER_NOT_VALID = 0x85
    BAD_USER_NAME_OR_PASSWORD = 0x86
    NOT_AUTHORIZED = 0x87
    SERVER_UNAVAILABLE = 0x88
    SERVER_BUSY = 0x89
    BANNED = 0x8A
    SERVER_SHUTTING_DOWN = 0x8B
    BAD_AUTHENTICATION_METHOD = 0x8C
    KEEP_ALIVE_TIMEOUT = 0x8D
    SESSION_TAKEN_OVER = 0x8E
    TOPIC_FILTER_INVALID = 0x8F
    TOPIC_NAME_INVALID = 0x90
    PACKET_IDENTIFIER_IN_USE = 0x91
    PACKET_IDENTIFIER_NOT_FOUND = 0x92
    RECEIVE_MAXIMUM_EXCEEDED = 0x93
    TOPIC_ALIAS_INVALID = 0x94
    PACKET_TOO_LARGE = 0x95
    MESSAGE_RATE_TOO_HIGH = 0x96
    QUOTA_EXCEEDED = 0x97
    ADMINISTRATIVE_ACTION = 0x98
    PAYLOAD_FORMAT_INVALID = 0x99
    RETAIN_NOT_SUPPORTED = 0x9A
    QOS_NOT_SUPPORTED = 0x9B
    USE_ANOTHER_SERVER = 0x9C
    SERVER_MOVED = 0x9D
    SHARED_SUBSCRIPTIONS_NOT_SUPPORTED = 0x9E
    CONNECTION_RATE_EXCEEDED = 0x9F
    MAXIMUM_CONNECT_TIME = 0xA0
    SUBSCRIPTION_IDENTIFIERS_NOT_SUPPORTED = 0xA1
    WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED = 0xA2


class PacketType(IntEnum):
    """The upper half of a packet's first byte (2.1.2)."""

    CONNECT = 1
    CONNACK = 2
    PUBLISH = 3
    PUBACK = 4
    PUBREC = 5
    PUBREL = 6
    PUBCOMP = 7
    SUBSCRIBE = 8
    SUBACK = 9
    UNSUBSCRIBE = 10
    UNSUBACK = 11
    PINGREQ = 12
    PINGRESP = 13
    DISCONNECT = 14
    AUTH = 15


UserProperties: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(slots=True, unsafe_hash=True)
class Properties:
    """The properties of one packet (2.2.2). None: it is not there, which is not the same as its default value.

    Not to be changed once a packet has them: `NO_PROPERTIES` is shared by all packets without any. (Hence a hash,
    without which it could be no default.)
    """

    payload_format_indicator: int | None = None
    message_expiry_interval: int | None = None
    """Seconds."""
    content_type: str | None = None
    response_topic: str | None = None
    correlation_data: bytes | None = None
    subscription_identifiers: tuple[int, ...] = ()
    """Several are allowed in PUBLISH only."""
    session_expiry_interval: int | None = None
    """Seconds; 0xFFFFFFFF: never."""
    assigned_client_identifier: str | None = None
    server_keep_alive: int | None = None
    authentication_method: str | None = None
    authentication_data: bytes | None = None
    request_problem_information: int | None = None
    will_delay_interval: int | None = None
    request_response_information: int | None = None
    response_information: str | None = None
    server_reference: str | None = None
    reason_string: str | None = None
    receive_maximum: int | None = None
    topic_alias_maximum: int | None = None
    topic_alias: int | None = None
    maximum_qos: int | None = None
    retain_available: int | None = None
    user_properties: UserProperties = ()
    maximum_packet_size: int | None = None
    wildcard_subscription_available: int | None = None
    subscription_identifier_available: int | None = None
    shared_subscription_available: int | None = None


NO_PROPERTIES: Final = Properties()
"""What packets without properties share. It must not be changed."""


@dataclass(slots=True)
class Will:
    topic: str
    payload: bytes
    qos: int
    retain: bool
    properties: Properties = NO_PROPERTIES


@dataclass(slots=True)
class Connect:
    version: Version
    client_id: str
    """Empty: the server is to assign one."""
    clean_start: bool
    keep_alive: int
    """Seconds; 0: none."""
    user_name: str | None = None
    password: bytes | None = None
    will: Will | None = None
    properties: Properties = NO_PROPERTIES
    bridge: bool = False
    """The client says that it is a bridge: bit 7 of the protocol level, in 3.1 and 3.1.1 only, as mosquitto's bridges
    do. What it subscribes to is delivered with no local and retain as published, which these versions cannot ask for:
    the reader sets both in `SubscriptionRequest`."""


@dataclass(slots=True)
class ConnAck:
    session_present: bool
    reason: int
    """Of 5.0 a `ReasonCode`; of 3.1 and 3.1.1 a return code, 0 to 5."""
    properties: Properties = NO_PROPERTIES


@dataclass(slots=True)
class Publish:
    topic: str
    """Empty where an alias stands for it."""
    payload: bytes
    qos: int = 0
    retain: bool = False
    packet_id: int = 0
    """0 with QoS 0."""
    duplicate: bool = False
    properties: Properties = NO_PROPERTIES


@dataclass(slots=True)
class PubAck:
    packet_id: int
    reason: int = 0
    properties: Properties = NO_PROPERTIES


@dataclass(slots=True)
class PubRec:
    packet_id: int
    reason: int = 0
    properties: Properties = NO_PROPERTIES


@dataclass(slots=True)
class PubRel:
    packet_id: int
    reason: int = 0
    properties: Properties = NO_PROPERTIES


@dataclass(slots=True)
class PubComp:
    packet_id: int
    reason: int = 0
    properties: Properties = NO_PROPERTIES


class SubscriptionRequest(NamedTuple):
    """A topic filter of SUBSCRIBE with its options (3.8.3.1)."""

    filter: str
    """As it was sent, `$share/<name>/` included."""
    qos: int
    no_local: bool = False
    retain_as_published: bool = False
    retain_handling: int = 0


@dataclass(slots=True)
class Subscribe:
    packet_id: int
    requests: tuple[SubscriptionRequest, ...]
    properties: Properties = NO_PROPERTIES


@dataclass(slots=True)
class SubAck:
    packet_id: int
    reasons: tuple[int, ...]
    """Of 3.1.1: 0, 1, 2 or 0x80."""
    properties: Properties = NO_PROPERTIES


@dataclass(slots=True)
class Unsubscribe:
    packet_id: int
    filters: tuple[str, ...]
    properties: Properties = NO_PROPERTIES


@dataclass(slots=True)
class UnsubAck:
    packet_id: int
    reasons: tuple[int, ...] = ()
    """Written in 5.0 only."""
    properties: Properties = NO_PROPERTIES


@dataclass(slots=True)
class PingReq:
    pass


@dataclass(slots=True)
class PingResp:
    pass


@dataclass(slots=True)
class Disconnect:
    reason: int = 0
    properties: Properties = NO_PROPERTIES


@dataclass(slots=True)
class Auth:
    reason: int = 0
    properties: Properties = NO_PROPERTIES


Packet: TypeAlias = (
    Connect
    | ConnAck
    | Publish
    | PubAck
    | PubRec
    | PubRel
    | PubComp
    | Subscribe
    | SubAck
    | Unsubscribe
    | UnsubAck
    | PingReq
    | PingResp
    | Disconnect
    | Auth
)
