"""Packets that a client sends, but for PUBLISH, which is read in `reader`: from the body to the object."""

from collections.abc import Generator
from typing import Final, Literal, TypeAlias

from leafcuttr_mqtt.packets.errors import PacketError, malformed, protocol_error
from leafcuttr_mqtt.packets.fields import Body
from leafcuttr_mqtt.packets.properties import WILL, read_properties
from leafcuttr_mqtt.packets.reasons import OF_CLIENTS, OF_SERVERS
from leafcuttr_mqtt.packets.types import (
    NO_PROPERTIES,
    Auth,
    Connect,
    Disconnect,
    Packet,
    PacketType,
    PingReq,
    Properties,
    PubAck,
    PubComp,
    PubRec,
    PubRel,
    ReasonCode,
    Subscribe,
    SubscriptionRequest,
    Unsubscribe,
    Version,
    Will,
)

Sender: TypeAlias = Literal["client", "server"]

MOST_FILTERS: Final = 10_000
"""In one SUBSCRIBE or UNSUBSCRIBE: a packet that is not too large might have three hundred thousand."""
_BRIDGE: Final = 0x80
_LEVELS: Final = {
    (b"MQIsdp", 3): Version.V3_1,
    (b"MQTT", 4): Version.V3_1_1,
    (b"MQTT", 5): Version.V5,
}


def read_version(body: Body) -> tuple[Version, bool]:
    """Protocol name and level of CONNECT (3.1.2.1, 3.1.2.2), and whether the client says that it is a bridge."""
    name = body.binary("protocol name")
    level = body.byte("protocol level")
    version = _LEVELS.get((name, level))
    if version is not None:
        return version, False
    version = _LEVELS.get((name, level ^ _BRIDGE))
    if version is None or version == Version.V5:
        raise UnsupportedVersion(name, level)
    return version, True


class UnsupportedVersion(PacketError):
    """`answer_in` is the version whose CONNACK says so: 5.0 where the client speaks a later one."""

    def __init__(self, name: bytes, level: int) -> None:
        super().__init__(
            ReasonCode.UNSUPPORTED_PROTOCOL_VERSION,
            f"CONNECT: protocol {name[:16].decode(errors='replace')!r} level {level} is not supported",
        )
        self.answer_in = Version.V5 if name == b"MQTT" and 5 < level < _BRIDGE else Version.V3_1_1


def read_connect(body: Body, version: Version, bridge: bool) -> Connect:
    """What follows the protocol level (3.1.2.3 to 3.1.3)."""
    flags = body.byte("connect flags")
    if flags & 1 and version != Version.V3_1:
        raise malformed("CONNECT: the reserved flag is set")  # [MQTT-3.1.2-3]
    has_will, will_qos, will_retain = bool(flags & 4), flags >> 3 & 3, bool(flags & 0x20)
    has_password, has_name = bool(flags & 0x40), bool(flags & 0x80)
    if will_qos == 3 or (not has_will and (will_qos or will_retain) and version != Version.V3_1):
        raise malformed("CONNECT: the flags of the will contradict one another")  # [MQTT-3.1.2-11 to -15]
    if has_password and not has_name and version == Version.V3_1_1:
        raise malformed("CONNECT: a password without a user name")  # [MQTT-3.1.2-22] of 3.1.1
    keep_alive = body.two("keep alive")
    properties = read_properties(body, PacketType.CONNECT) if version == Version.V5 else NO_PROPERTIES
    if properties.authentication_data is not None and properties.authentication_method is None:
        raise protocol_error("CONNECT: authentication data without a method")  # 3.1.2.11.10
    client_id = body.text("client identifier")
    will = _read_will(body, version, will_qos, will_retain) if has_will else None
    # 3.1 lets both be missing although their flags are set (its section on CONNECT, "User name and password flags").
    optional = version == Version.V3_1
    user_name = body.text("user name") if has_name and (body.left() or not optional) else None
    password = body.binary("password") if has_password and (body.left() or not optional) else None
    body.done()
    clean_start = bool(flags & 2)
    if not client_id and (version == Version.V3_1 or (version == Version.V3_1_1 and not clean_start)):
        # [MQTT-3.1.3-8] of 3.1.1; 3.1 wants one in any case.
        raise PacketError(ReasonCode.CLIENT_IDENTIFIER_NOT_VALID, "CONNECT: no client identifier")
    return Connect(version, client_id, clean_start, keep_alive, user_name, password, will, properties, bridge)


def _read_will(body: Body, version: Version, qos: int, retain: bool) -> Will:
    properties = read_properties(body, WILL) if version == Version.V5 else NO_PROPERTIES
    topic = body.text("will topic")
    check_topic(topic, "CONNECT: will topic")
    check_response_topic(properties, "CONNECT")
    return Will(topic, body.binary("will payload"), qos, retain, properties)


def check_topic(topic: str, what: str) -> None:
    """4.7.1, 4.7.3: a topic name has a character at least and no wildcards."""
    if not topic:
        raise PacketError(ReasonCode.TOPIC_NAME_INVALID, f"{what} is empty")
    if "+" in topic or "#" in topic:
        raise PacketError(ReasonCode.TOPIC_NAME_INVALID, f"{what} contains a wildcard")


def check_response_topic(properties: Properties, name: str) -> None:
    """[MQTT-3.3.2-14]"""
    topic = properties.response_topic
    if topic is not None and (not topic or "+" in topic or "#" in topic):
        raise protocol_error(f"{name}: response topic is no topic name")


Ack: TypeAlias = type[PubAck] | type[PubRec] | type[PubRel] | type[PubComp]


def read_ack(
    body: Body, version: Version, sender: Sender, kind: PacketType, ack: Ack
) -> PubAck | PubRec | PubRel | PubComp:
    """3.4 to 3.7: reason code and properties may be left out."""
    packet_id = body.packet_id()
    if version != Version.V5 or not body.left():
        body.done()
        return ack(packet_id)
    reason = read_reason(body, kind, sender)
    properties = read_properties(body, kind) if body.left() else NO_PROPERTIES
    body.done()
    return ack(packet_id, reason, properties)


def read_reason(body: Body, kind: PacketType, sender: Sender) -> int:
    reason = body.byte("reason code")
    if reason not in (OF_CLIENTS if sender == "client" else OF_SERVERS)[kind]:
        raise protocol_error(f"{body.name}: reason code 0x{reason:02x} is not allowed")
    return reason


Steps: TypeAlias = Generator[None, None, Packet]
"""A packet that is read in steps: it may have so many fields that it takes long."""
FILTERS_AT_ONCE: Final = 2000
"""Filters of SUBSCRIBE and UNSUBSCRIBE that are read in one step: some milliseconds."""


def read_subscribe(body: Body, version: Version, bridge: bool) -> Steps:
    """3.8."""
    packet_id = body.packet_id()
    properties = read_properties(body, PacketType.SUBSCRIBE) if version == Version.V5 else NO_PROPERTIES
    requests: list[SubscriptionRequest] = []
    while body.left():
        if requests and not len(requests) % FILTERS_AT_ONCE:
            yield
        topic_filter = body.text("topic filter")
        options = body.byte("subscription options")
        if len(requests) >= MOST_FILTERS:
            raise _too_many_filters("SUBSCRIBE")
        requests.append(_request(topic_filter, options, version, bridge))
    if not requests:
        raise protocol_error("SUBSCRIBE: no topic filter")  # [MQTT-3.8.3-2]
    return Subscribe(packet_id, tuple(requests), properties)


def _request(topic_filter: str, options: int, version: Version, bridge: bool) -> SubscriptionRequest:
    qos = options & 3
    if version != Version.V5:
        if qos == 3 or (options & 0xFC and version != Version.V3_1):
            raise malformed(f"SUBSCRIBE: QoS byte 0x{options:02x}")  # [MQTT-3.8.3-4] of 3.1.1
        no_local = bridge and not topic_filter.startswith("$share/")
        return SubscriptionRequest(topic_filter, qos, no_local, bridge)
    if options & 0xC0:
        raise malformed("SUBSCRIBE: reserved options are set")  # [MQTT-3.8.3-5]
    no_local, retain_handling = bool(options & 4), options >> 4
    if qos == 3 or retain_handling == 3:
        raise protocol_error(f"SUBSCRIBE: options 0x{options:02x}")  # 3.8.3.1
    if no_local and topic_filter.startswith("$share/"):
        raise protocol_error("SUBSCRIBE: no local on a shared subscription")  # [MQTT-3.8.3-4]
    return SubscriptionRequest(topic_filter, qos, no_local, bool(options & 8), retain_handling)


def read_unsubscribe(body: Body, version: Version) -> Steps:
    """3.10."""
    packet_id = body.packet_id()
    properties = read_properties(body, PacketType.UNSUBSCRIBE) if version == Version.V5 else NO_PROPERTIES
    filters: list[str] = []
    while body.left():
        if filters and not len(filters) % FILTERS_AT_ONCE:
            yield
        if len(filters) >= MOST_FILTERS:
            raise _too_many_filters("UNSUBSCRIBE")
        filters.append(body.text("topic filter"))
    if not filters:
        raise protocol_error("UNSUBSCRIBE: no topic filter")  # [MQTT-3.10.3-2]
    return Unsubscribe(packet_id, tuple(filters), properties)


def _too_many_filters(name: str) -> PacketError:
    return PacketError(ReasonCode.QUOTA_EXCEEDED, f"{name}: more than {MOST_FILTERS:,} topic filters")


def read_pingreq(body: Body) -> PingReq:
    body.done()
    return PingReq()


def read_disconnect(body: Body, version: Version, sender: Sender) -> Disconnect:
    """3.14: reason code and properties may be left out."""
    if version != Version.V5 or not body.left():
        body.done()
        return Disconnect()
    reason = read_reason(body, PacketType.DISCONNECT, sender)
    properties = read_properties(body, PacketType.DISCONNECT) if body.left() else NO_PROPERTIES
    body.done()
    if sender == "server" and properties.session_expiry_interval is not None:
        raise protocol_error("DISCONNECT: session expiry interval from a server")  # [MQTT-3.14.2-2]
    return Disconnect(reason, properties)


def read_auth(body: Body, sender: Sender) -> Auth:
    """3.15: both may be left out together, for success."""
    if not body.left() and sender == "server":
        return Auth()
    reason = read_reason(body, PacketType.AUTH, sender)
    properties = read_properties(body, PacketType.AUTH)
    body.done()
    if properties.authentication_method is None:
        raise protocol_error("AUTH: no authentication method")  # 3.15.2.2.2
    return Auth(reason, properties)
