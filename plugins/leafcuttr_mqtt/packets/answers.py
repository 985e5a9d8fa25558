"""Packets that only a server sends: from the body to the object. For the bridge and for tests."""

from leafcuttr_mqtt.packets.bodies import read_reason
from leafcuttr_mqtt.packets.errors import malformed, protocol_error
from leafcuttr_mqtt.packets.fields import Body
from leafcuttr_mqtt.packets.properties import read_properties
from leafcuttr_mqtt.packets.types import (
    NO_PROPERTIES,
    ConnAck,
    PacketType,
    PingResp,
    SubAck,
    UnsubAck,
    Version,
)


def read_connack(body: Body, version: Version) -> ConnAck:
    """3.2."""
    flags = body.byte("acknowledge flags")
    if version == Version.V3_1:
        flags = 0  # a reserved byte there
    if flags > 1:
        raise malformed("CONNACK: reserved flags are set")  # [MQTT-3.2.2-1]
    if version == Version.V5:
        reason = read_reason(body, PacketType.CONNACK, "server")
        properties = read_properties(body, PacketType.CONNACK)
    else:
        reason, properties = body.byte("return code"), NO_PROPERTIES
        if reason > 5:
            raise malformed(f"CONNACK: return code {reason} is reserved")  # 3.2.2.3 of 3.1.1
    body.done()
    if flags and reason:
        raise protocol_error("CONNACK: session present and refused")  # [MQTT-3.2.2-6]
    return ConnAck(bool(flags), reason, properties)


def read_suback(body: Body, version: Version) -> SubAck:
    """3.9."""
    packet_id = body.packet_id()
    properties = NO_PROPERTIES
    reasons: list[int] = []
    if version == Version.V5:
        properties = read_properties(body, PacketType.SUBACK)
    while body.left():
        if version == Version.V5:
            reasons.append(read_reason(body, PacketType.SUBACK, "server"))
        else:
            reasons.append(body.byte("return code"))
            if reasons[-1] not in (0, 1, 2, 0x80):
                raise malformed(f"SUBACK: return code {reasons[-1]} is reserved")  # [MQTT-3.9.3-2] of 3.1.1
    if not reasons:
        raise protocol_error("SUBACK: no reason code")
    return SubAck(packet_id, tuple(reasons), properties)


def read_unsuback(body: Body, version: Version) -> UnsubAck:
    """3.11."""
    packet_id = body.packet_id()
    if version != Version.V5:
        body.done()
        return UnsubAck(packet_id)
    properties = read_properties(body, PacketType.UNSUBACK)
    reasons: list[int] = []
    while body.left():
        reasons.append(read_reason(body, PacketType.UNSUBACK, "server"))
    if not reasons:
        raise protocol_error("UNSUBACK: no reason code")
    return UnsubAck(packet_id, tuple(reasons), properties)


def read_pingresp(body: Body) -> PingResp:
    body.done()
    return PingResp()
