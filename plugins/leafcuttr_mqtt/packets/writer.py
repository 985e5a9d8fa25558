"""From packets to bytes, in the version of a connection. What a version does not have is left out."""

from collections.abc import Callable
from typing import Any, Final

from leafcuttr_mqtt.packets.encoding import ONE_BYTE, binary, text, varint
from leafcuttr_mqtt.packets.properties import WILL, write_properties
from leafcuttr_mqtt.packets.types import (
    Auth,
    ConnAck,
    Connect,
    Disconnect,
    Packet,
    PacketType,
    PingReq,
    PingResp,
    Properties,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    SubAck,
    Subscribe,
    SubscriptionRequest,
    UnsubAck,
    Unsubscribe,
    Version,
)

_V5: Final = Version.V5


def encode(packet: Packet, version: Version) -> bytes:
    """The bytes of one packet. Raises ValueError for what no packet can hold: a text or binary field of more than
    65,535 bytes or with surrogates, a number larger than its field, a packet of more than 256 MB. What a packet may not
    hold is not checked."""
    first, write = _WRITERS[type(packet)]
    try:
        flags, body = write(packet, version)
    except OverflowError as error:
        raise ValueError(f"{type(packet).__name__}: {error}") from None
    return bytes((first | flags,)) + varint(len(body)) + body


def _two(value: int) -> bytes:
    return value.to_bytes(2, "big")


def _properties(properties: Properties, kind: int, version: Version) -> bytes:
    return write_properties(properties, kind) if version == _V5 else b""


def _connect(packet: Connect, version: Version) -> tuple[int, bytes]:
    will = packet.will
    flags = packet.clean_start << 1
    if will is not None:
        flags |= 4 | will.qos << 3 | will.retain << 5
    flags |= (packet.password is not None) << 6 | (packet.user_name is not None) << 7
    bridge = 0x80 if packet.bridge and version != _V5 else 0
    pieces = [
        text("MQIsdp" if version == Version.V3_1 else "MQTT"),
        bytes((version | bridge, flags)),
        _two(packet.keep_alive),
        _properties(packet.properties, PacketType.CONNECT, version),
        text(packet.client_id),
    ]
    if will is not None:
        pieces += (_properties(will.properties, WILL, version), text(will.topic), binary(will.payload))
    if packet.user_name is not None:
        pieces.append(text(packet.user_name))
    if packet.password is not None:
        pieces.append(binary(packet.password))
    return 0, b"".join(pieces)


def _connack(packet: ConnAck, version: Version) -> tuple[int, bytes]:
    # 3.1 has no session present: its byte is reserved.
    present = packet.session_present and version != Version.V3_1
    body = bytes((present, packet.reason))
    return 0, body + _properties(packet.properties, PacketType.CONNACK, version)


def _publish(packet: Publish, version: Version) -> tuple[int, bytes]:
    flags = packet.duplicate << 3 | packet.qos << 1 | packet.retain
    return flags, b"".join(
        (
            text(packet.topic),
            _two(packet.packet_id) if packet.qos else b"",
            _properties(packet.properties, PacketType.PUBLISH, version),
            packet.payload,
        )
    )


def _ack(kind: PacketType) -> Callable[[Any, Version], tuple[int, bytes]]:
    flags = 2 if kind == PacketType.PUBREL else 0

    def write(packet: PubAck | PubRec | PubRel | PubComp, version: Version) -> tuple[int, bytes]:
        return flags, _two(packet.packet_id) + _short(packet.reason, packet.properties, kind, version)

    return write


def _short(reason: int, properties: Properties, kind: PacketType, version: Version) -> bytes:
    """A reason code and properties that are left out where they say nothing (3.4.2.1, 3.14.2.1)."""
    if version != _V5:
        return b""
    block = write_properties(properties, kind)
    if block != b"\0":
        return bytes((reason,)) + block
    return bytes((reason,)) if reason else b""


def _subscribe(packet: Subscribe, version: Version) -> tuple[int, bytes]:
    pieces = [_two(packet.packet_id), _properties(packet.properties, PacketType.SUBSCRIBE, version)]
    for request in packet.requests:
        pieces += (text(request.filter), ONE_BYTE[_options(request, version)])
    return 2, b"".join(pieces)


def _options(request: SubscriptionRequest, version: Version) -> int:
    """3.8.3.1."""
    if version != _V5:
        return request.qos
    return (
        request.qos | request.no_local << 2 | request.retain_as_published << 3 | request.retain_handling << 4
    )


def _suback(packet: SubAck, version: Version) -> tuple[int, bytes]:
    reasons = packet.reasons
    if version != _V5:
        reasons = tuple(min(reason, 0x80) for reason in reasons)  # 3.9.3 of 3.1.1: one failure for all
    properties = _properties(packet.properties, PacketType.SUBACK, version)
    return 0, _two(packet.packet_id) + properties + bytes(reasons)


def _unsubscribe(packet: Unsubscribe, version: Version) -> tuple[int, bytes]:
    properties = _properties(packet.properties, PacketType.UNSUBSCRIBE, version)
    return 2, _two(packet.packet_id) + properties + b"".join([text(each) for each in packet.filters])


def _unsuback(packet: UnsubAck, version: Version) -> tuple[int, bytes]:
    properties = _properties(packet.properties, PacketType.UNSUBACK, version)
    reasons = bytes(packet.reasons) if version == _V5 else b""
    return 0, _two(packet.packet_id) + properties + reasons


def _ping(_: PingReq | PingResp, __: Version) -> tuple[int, bytes]:
    return 0, b""


def _disconnect(packet: Disconnect, version: Version) -> tuple[int, bytes]:
    return 0, _short(packet.reason, packet.properties, PacketType.DISCONNECT, version)


def _auth(packet: Auth, version: Version) -> tuple[int, bytes]:
    block = write_properties(packet.properties, PacketType.AUTH)
    if not packet.reason and block == b"\0":
        return 0, b""  # 3.15.2.1
    return 0, bytes((packet.reason,)) + block


_WRITERS: Final[dict[type[Any], tuple[int, Callable[[Any, Version], tuple[int, bytes]]]]] = {
    Connect: (PacketType.CONNECT << 4, _connect),
    ConnAck: (PacketType.CONNACK << 4, _connack),
    Publish: (PacketType.PUBLISH << 4, _publish),
    PubAck: (PacketType.PUBACK << 4, _ack(PacketType.PUBACK)),
    PubRec: (PacketType.PUBREC << 4, _ack(PacketType.PUBREC)),
    PubRel: (PacketType.PUBREL << 4, _ack(PacketType.PUBREL)),
    PubComp: (PacketType.PUBCOMP << 4, _ack(PacketType.PUBCOMP)),
    Subscribe: (PacketType.SUBSCRIBE << 4, _subscribe),
    SubAck: (PacketType.SUBACK << 4, _suback),
    Unsubscribe: (PacketType.UNSUBSCRIBE << 4, _unsubscribe),
    UnsubAck: (PacketType.UNSUBACK << 4, _unsuback),
    PingReq: (PacketType.PINGREQ << 4, _ping),
    PingResp: (PacketType.PINGRESP << 4, _ping),
    Disconnect: (PacketType.DISCONNECT << 4, _disconnect),
    Auth: (PacketType.AUTH << 4, _auth),
}
