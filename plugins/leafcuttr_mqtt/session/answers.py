"""What the server says of itself and of errors, by version and by what the client wants to know: reason strings, the
properties of CONNACK."""

from typing import Final

from leafcuttr_mqtt.packets.reasons import OF_SERVERS
from leafcuttr_mqtt.packets.types import (
    NO_PROPERTIES,
    Connect,
    PacketType,
    Properties,
    ReasonCode,
    UserProperties,
    Version,
)
from leafcuttr_mqtt.session.limits import MOST_IN_FLIGHT, Limits
from leafcuttr_mqtt.session.sizes import utf8_length

AROUND_REASON: Final = 16
"""Bytes of a packet beside its reason string, at most: fixed header, packet identifier, reason code, lengths."""


def with_reason(text: str | None, largest: int | None, *, beside: int = 0) -> Properties:
    """A reason string, if the packet stays within what the client accepts with it ([MQTT-3.2.2-19], [MQTT-3.14.2-3] and
    their like)."""
    if not text or (largest is not None and utf8_length(text) + AROUND_REASON + beside > largest):
        return NO_PROPERTIES
    return Properties(reason_string=text)


def explained(
    packet: PacketType, reason: ReasonCode, text: str | None, largest: int | None
) -> tuple[ReasonCode, Properties]:
    """Reason and reason string of a packet that ends a connection. What the packet has no code for is unspecified."""
    if reason not in OF_SERVERS[packet]:
        reason = ReasonCode.UNSPECIFIED_ERROR
    return reason, with_reason(text, largest)


def granted_expiry(connect: Connect, limits: Limits) -> int:
    """Seconds that the session outlives its connection."""
    if connect.version < Version.V5:
        # A session that is not clean has no end in 3.1.1 (3.1.2.4).
        return 0 if connect.clean_start else limits.session_expiry_max_s
    return min(connect.properties.session_expiry_interval or 0, limits.session_expiry_max_s)


def granted_keep_alive(connect: Connect, limits: Limits) -> int:
    """Seconds; 0: none."""
    longest = limits.keep_alive_max_s
    if longest and not 0 < connect.keep_alive <= longest:
        return longest
    return connect.keep_alive


def connack_properties(
    connect: Connect,
    limits: Limits,
    *,
    assigned: str | None,
    authentication_data: bytes | None,
    user_properties: UserProperties,
) -> Properties:
    """Of a CONNACK with success in 5.0 (3.2.2.3): what differs from the defaults, or from what the client wanted."""
    wanted = connect.properties
    expiry = granted_expiry(connect, limits)
    keep_alive = granted_keep_alive(connect, limits)
    return Properties(
        session_expiry_interval=None if expiry == (wanted.session_expiry_interval or 0) else expiry,
        receive_maximum=None if limits.receive_maximum >= MOST_IN_FLIGHT else limits.receive_maximum,
        retain_available=None if limits.retain_available else 0,
        maximum_packet_size=limits.maximum_packet_size,
        assigned_client_identifier=assigned,
        topic_alias_maximum=limits.topic_alias_maximum or None,
        server_keep_alive=None if keep_alive == connect.keep_alive else keep_alive,
        authentication_method=wanted.authentication_method,
        authentication_data=authentication_data,
        user_properties=user_properties,
    )
