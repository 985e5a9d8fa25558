"""Which reason codes a packet may have (2.4 of 5.0, the table of each packet), and the return codes of 3.1.1."""

from typing import Final

from leafcuttr_mqtt.packets.types import PacketType, ReasonCode

R = ReasonCode

_RECEIVED: Final = frozenset(
    {
        R.SUCCESS,
        R.NO_MATCHING_SUBSCRIBERS,
        R.UNSPECIFIED_ERROR,
        R.IMPLEMENTATION_SPECIFIC_ERROR,
        R.NOT_AUTHORIZED,
        R.TOPIC_NAME_INVALID,
        R.PACKET_IDENTIFIER_IN_USE,
        R.QUOTA_EXCEEDED,
        R.PAYLOAD_FORMAT_INVALID,
    }
)
"""3.4.2.1 and 3.5.2.1."""

_RELEASED: Final = frozenset({R.SUCCESS, R.PACKET_IDENTIFIER_NOT_FOUND})
"""3.6.2.1 and 3.7.2.1."""

_EITHER_DISCONNECTS: Final = frozenset(
    {
        R.SUCCESS,
        R.UNSPECIFIED_ERROR,
        R.MALFORMED_PACKET,
        R.PROTOCOL_ERROR,
        R.IMPLEMENTATION_SPECIFIC_ERROR,
        R.TOPIC_NAME_INVALID,
        R.RECEIVE_MAXIMUM_EXCEEDED,
        R.TOPIC_ALIAS_INVALID,
        R.PACKET_TOO_LARGE,
        R.MESSAGE_RATE_TOO_HIGH,
        R.QUOTA_EXCEEDED,
        R.ADMINISTRATIVE_ACTION,
        R.PAYLOAD_FORMAT_INVALID,
    }
)
"""3.14.2.1: Client or Server."""

OF_CLIENTS: Final = {
    PacketType.PUBACK: _RECEIVED,
    PacketType.PUBREC: _RECEIVED,
    PacketType.PUBREL: _RELEASED,
    PacketType.PUBCOMP: _RELEASED,
    PacketType.DISCONNECT: _EITHER_DISCONNECTS | {R.DISCONNECT_WITH_WILL},
    PacketType.AUTH: frozenset({R.CONTINUE_AUTHENTICATION, R.RE_AUTHENTICATE}),
}

OF_SERVERS: Final = {
    PacketType.CONNACK: frozenset(
        {
            R.SUCCESS,
            R.UNSPECIFIED_ERROR,
            R.MALFORMED_PACKET,
            R.PROTOCOL_ERROR,
            R.IMPLEMENTATION_SPECIFIC_ERROR,
            R.UNSUPPORTED_PROTOCOL_VERSION,
            R.CLIENT_IDENTIFIER_NOT_VALID,
            R.BAD_USER_NAME_OR_PASSWORD,
            R.NOT_AUTHORIZED,
            R.SERVER_UNAVAILABLE,
            R.SERVER_BUSY,
            R.BANNED,
            R.BAD_AUTHENTICATION_METHOD,
            R.TOPIC_NAME_INVALID,
            R.PACKET_TOO_LARGE,
            R.QUOTA_EXCEEDED,
            R.PAYLOAD_FORMAT_INVALID,
            R.RETAIN_NOT_SUPPORTED,
            R.QOS_NOT_SUPPORTED,
            R.USE_ANOTHER_SERVER,
            R.SERVER_MOVED,
            R.CONNECTION_RATE_EXCEEDED,
        }
    ),
    PacketType.PUBACK: _RECEIVED,
    PacketType.PUBREC: _RECEIVED,
    PacketType.PUBREL: _RELEASED,
    PacketType.PUBCOMP: _RELEASED,
    PacketType.SUBACK: frozenset(
        {
            R.SUCCESS,
            R.GRANTED_QOS_1,
            R.GRANTED_QOS_2,
            R.UNSPECIFIED_ERROR,
            R.IMPLEMENTATION_SPECIFIC_ERROR,
            R.NOT_AUTHORIZED,
            R.TOPIC_FILTER_INVALID,
            R.PACKET_IDENTIFIER_IN_USE,
            R.QUOTA_EXCEEDED,
            R.SHARED_SUBSCRIPTIONS_NOT_SUPPORTED,
            R.SUBSCRIPTION_IDENTIFIERS_NOT_SUPPORTED,
            R.WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED,
        }
    ),
    PacketType.UNSUBACK: frozenset(
        {
            R.SUCCESS,
            R.NO_SUBSCRIPTION_EXISTED,
            R.UNSPECIFIED_ERROR,
            R.IMPLEMENTATION_SPECIFIC_ERROR,
            R.NOT_AUTHORIZED,
            R.TOPIC_FILTER_INVALID,
            R.PACKET_IDENTIFIER_IN_USE,
        }
    ),
    PacketType.DISCONNECT: _EITHER_DISCONNECTS
    | {
        R.NOT_AUTHORIZED,
        R.SERVER_BUSY,
        R.SERVER_SHUTTING_DOWN,
        R.BAD_AUTHENTICATION_METHOD,  # 2.4 has it, 3.14.2.1 has not.
        R.KEEP_ALIVE_TIMEOUT,
        R.SESSION_TAKEN_OVER,
        R.TOPIC_FILTER_INVALID,
        R.RETAIN_NOT_SUPPORTED,
        R.QOS_NOT_SUPPORTED,
        R.USE_ANOTHER_SERVER,
        R.SERVER_MOVED,
        R.SHARED_SUBSCRIPTIONS_NOT_SUPPORTED,
        R.CONNECTION_RATE_EXCEEDED,
        R.MAXIMUM_CONNECT_TIME,
        R.SUBSCRIPTION_IDENTIFIERS_NOT_SUPPORTED,
        R.WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED,
    },
    PacketType.AUTH: frozenset({R.SUCCESS, R.CONTINUE_AUTHENTICATION}),
}

_RETURN_CODES: Final = {
    R.SUCCESS: 0,
    R.UNSUPPORTED_PROTOCOL_VERSION: 1,
    R.CLIENT_IDENTIFIER_NOT_VALID: 2,
    R.SERVER_UNAVAILABLE: 3,
    R.SERVER_BUSY: 3,
    R.SERVER_SHUTTING_DOWN: 3,
    R.QUOTA_EXCEEDED: 3,
    R.CONNECTION_RATE_EXCEEDED: 3,
    R.BAD_USER_NAME_OR_PASSWORD: 4,
    R.NOT_AUTHORIZED: 5,
    R.BANNED: 5,
}


def return_code(reason: ReasonCode) -> int | None:
    """The return code of 3.1 and 3.1.1 (3.2.2.3 there) that says the same in CONNACK. None: there is none, and the
    connection is closed without a CONNACK [MQTT-3.2.2-6 of 3.1.1]."""
    return _RETURN_CODES.get(reason)
