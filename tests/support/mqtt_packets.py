"""Hypothesis strategies for MQTT packets that are allowed: of a version, and of a sender."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from hypothesis import strategies as st

from leafcuttr_mqtt.packets.bodies import Sender
from leafcuttr_mqtt.packets.properties import (
    ALLOWED,
    BINARY,
    BYTE,
    FOUR,
    PAIR,
    TEXT,
    TWO,
    VARINT,
    WILL,
    Property,
)
from leafcuttr_mqtt.packets.reasons import OF_CLIENTS, OF_SERVERS
from leafcuttr_mqtt.packets.types import (
    NO_PROPERTIES,
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
    Will,
)

Draw = Callable[[st.SearchStrategy[Any]], Any]

VERSIONS: Final = tuple(Version)
SENDERS: Final[tuple[Sender, ...]] = ("client", "server")

TEXTS: Final = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8
) | st.just("é" * 100)
BYTES: Final = st.binary(max_size=8) | st.just(bytes(300))
TOPICS: Final = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0+#"), min_size=1, max_size=12
) | st.just("long/" * 60)
FILTERS: Final = TOPICS | st.sampled_from(["#", "+/a", "a/+/#", "$share/g/a"])
IDS: Final = st.integers(1, 65_535)
QOS: Final = st.integers(0, 2)

_VALUES: Final[dict[int, st.SearchStrategy[Any]]] = {
    id(BYTE): st.integers(0, 255),
    id(TWO): st.integers(0, 65_535),
    id(FOUR): st.integers(0, 2**32 - 1),
    id(VARINT): st.integers(0, 268_435_455),
    id(TEXT): TEXTS,
    id(BINARY): BYTES,
    id(PAIR): st.tuples(TEXTS, TEXTS),
}


def values(known: Property) -> st.SearchStrategy[Any]:
    """What one property may be."""
    if known.name == "response_topic":
        return TOPICS
    made = _VALUES[id(known.type)]
    if known.least or known.most is not None:
        made = made.map(
            lambda value: max(known.least, value if known.most is None else min(known.most, value))
        )
    return made


@st.composite
def properties(draw: Draw, kind: int, sender: Sender = "client") -> Properties:
    """Any properties that a packet, or a will, may have."""
    chosen = draw(st.lists(st.sampled_from(sorted(ALLOWED[kind])), unique=True, max_size=4))
    given: dict[str, Any] = {}
    for identifier in chosen:
        known = ALLOWED[kind][identifier]
        if known.many:
            most = 1 if kind == PacketType.SUBSCRIBE and known.least else 3
            given[known.name] = tuple(draw(st.lists(values(known), min_size=1, max_size=most)))
        else:
            given[known.name] = draw(values(known))
    if sender == "client" and kind == PacketType.PUBLISH:
        given.pop("subscription_identifiers", None)
    if sender == "server" and kind == PacketType.DISCONNECT:
        given.pop("session_expiry_interval", None)
    if kind == PacketType.AUTH or (kind == PacketType.CONNECT and "authentication_data" in given):
        given.setdefault("authentication_method", "SCRAM")
    return Properties(**given) if given else NO_PROPERTIES


@st.composite
def _of(draw: Draw, kind: PacketType, version: Version, sender: Sender) -> Packet:
    five = version == Version.V5
    props: Properties = draw(properties(kind, sender)) if five and ALLOWED[kind] else NO_PROPERTIES
    reasons = (OF_CLIENTS if sender == "client" else OF_SERVERS).get(kind, frozenset())
    reason = draw(st.sampled_from(sorted(reasons))) if five and reasons else 0
    match kind:
        case PacketType.CONNECT:
            return _connect(draw, version, props)
        case PacketType.CONNACK:
            if not five:
                reason = draw(st.integers(0, 5))
            present = draw(st.booleans()) and not reason and version != Version.V3_1
            return ConnAck(present, reason, props)
        case PacketType.PUBLISH:
            return _publish(draw, props)
        case PacketType.PUBACK:
            return PubAck(draw(IDS), reason, props)
        case PacketType.PUBREC:
            return PubRec(draw(IDS), reason, props)
        case PacketType.PUBREL:
            return PubRel(draw(IDS), reason, props)
        case PacketType.PUBCOMP:
            return PubComp(draw(IDS), reason, props)
        case PacketType.SUBSCRIBE:
            requests = draw(st.lists(_requests(five), min_size=1, max_size=4))
            return Subscribe(draw(IDS), tuple(requests), props)
        case PacketType.SUBACK:
            codes = st.sampled_from(sorted(reasons) if five else [0, 1, 2, 0x80])
            return SubAck(draw(IDS), tuple(draw(st.lists(codes, min_size=1, max_size=4))), props)
        case PacketType.UNSUBSCRIBE:
            return Unsubscribe(draw(IDS), tuple(draw(st.lists(FILTERS, min_size=1, max_size=4))), props)
        case PacketType.UNSUBACK:
            codes = st.sampled_from(sorted(reasons))
            return UnsubAck(
                draw(IDS), tuple(draw(st.lists(codes, min_size=1, max_size=4))) if five else (), props
            )
        case PacketType.PINGREQ:
            return PingReq()
        case PacketType.PINGRESP:
            return PingResp()
        case PacketType.DISCONNECT:
            return Disconnect(reason, props)
        case PacketType.AUTH:
            return Auth(reason, props)


def _connect(draw: Draw, version: Version, props: Properties) -> Connect:
    five = version == Version.V5
    will = None
    if draw(st.booleans()):
        will_properties = draw(properties(WILL)) if five else NO_PROPERTIES
        will = Will(draw(TOPICS), draw(BYTES), draw(QOS), draw(st.booleans()), will_properties)
    clean = draw(st.booleans())
    client_id = draw(TEXTS)
    if not client_id and (version == Version.V3_1 or (version == Version.V3_1_1 and not clean)):
        client_id = "c"
    user_name = draw(st.none() | TEXTS)
    password = draw(st.none() | BYTES) if five or user_name is not None else None
    bridge = not five and draw(st.booleans())
    keep_alive = draw(st.integers(0, 65_535))
    return Connect(version, client_id, clean, keep_alive, user_name, password, will, props, bridge)


def _publish(draw: Draw, props: Properties) -> Publish:
    qos = draw(QOS)
    topic = draw(TOPICS)
    if props.topic_alias is not None and draw(st.booleans()):
        topic = ""
    packet_id = draw(IDS) if qos else 0
    duplicate = bool(qos) and draw(st.booleans())
    return Publish(topic, draw(BYTES), qos, draw(st.booleans()), packet_id, duplicate, props)


@st.composite
def _requests(draw: Draw, five: bool) -> SubscriptionRequest:
    request = SubscriptionRequest(draw(FILTERS), draw(QOS))
    if not five:
        return request
    return request._replace(
        no_local=draw(st.booleans()) and not request.filter.startswith("$share/"),
        retain_as_published=draw(st.booleans()),
        retain_handling=draw(QOS),
    )


_CLIENTS: Final = (
    PacketType.PUBLISH,
    PacketType.PUBACK,
    PacketType.PUBREC,
    PacketType.PUBREL,
    PacketType.PUBCOMP,
    PacketType.SUBSCRIBE,
    PacketType.UNSUBSCRIBE,
    PacketType.PINGREQ,
    PacketType.DISCONNECT,
    PacketType.AUTH,
)
_SERVERS: Final = (
    PacketType.CONNACK,
    PacketType.PUBLISH,
    PacketType.PUBACK,
    PacketType.PUBREC,
    PacketType.PUBREL,
    PacketType.PUBCOMP,
    PacketType.SUBACK,
    PacketType.UNSUBACK,
    PacketType.PINGRESP,
    PacketType.DISCONNECT,
    PacketType.AUTH,
)


def kinds(version: Version, sender: Sender) -> tuple[PacketType, ...]:
    """The packet types that may come, but for CONNECT (table 2-1 of both specifications, "direction of flow")."""
    found = _CLIENTS if sender == "client" else _SERVERS
    if version == Version.V5:
        return found
    left_out = {PacketType.AUTH} | ({PacketType.DISCONNECT} if sender == "server" else set())
    return tuple(kind for kind in found if kind not in left_out)


def packets(
    version: Version, sender: Sender = "client", kind: PacketType | None = None
) -> st.SearchStrategy[Packet]:
    """One packet, of any kind but CONNECT or of the given one."""
    if kind is not None:
        return _of(kind, version, sender)
    return st.sampled_from(kinds(version, sender)).flatmap(lambda found: _of(found, version, sender))


def as_read(packet: Packet, *, bridge: bool = False) -> Packet:
    """What the reader makes of it: the wishes of a bridge are added."""
    if bridge and isinstance(packet, Subscribe):
        return replace(
            packet,
            requests=tuple(
                each._replace(no_local=not each.filter.startswith("$share/"), retain_as_published=True)
                for each in packet.requests
            ),
        )
    return packet
