"""MQTT's packets as bytes, for the tests and by the specification alone: nothing here comes from the plugin. What a
test wants to be broken it can break: builders check nothing.

Section numbers are those of 5.0.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

CONNECT, CONNACK, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP = range(1, 8)
SUBSCRIBE, SUBACK, UNSUBSCRIBE, UNSUBACK, PINGREQ, PINGRESP, DISCONNECT, AUTH = range(8, 16)

Text: TypeAlias = str | bytes
"""A string, or the bytes that are to stand for one."""
Properties: TypeAlias = Iterable[tuple[str, Any]]

PROPERTIES: Final[dict[str, tuple[int, str]]] = {
    "payload_format": (1, "byte"),
    "message_expiry": (2, "four"),
    "content_type": (3, "text"),
    "response_topic": (8, "text"),
    "correlation_data": (9, "data"),
    "subscription_id": (11, "variable"),
    "session_expiry": (17, "four"),
    "assigned_client_id": (18, "text"),
    "server_keep_alive": (19, "two"),
    "auth_method": (21, "text"),
    "auth_data": (22, "data"),
    "request_problem": (23, "byte"),
    "will_delay": (24, "four"),
    "request_response": (25, "byte"),
    "response_information": (26, "text"),
    "server_reference": (28, "text"),
    "reason_string": (31, "text"),
    "receive_maximum": (33, "two"),
    "topic_alias_maximum": (34, "two"),
    "topic_alias": (35, "two"),
    "maximum_qos": (36, "byte"),
    "retain_available": (37, "byte"),
    "user": (38, "pair"),
    "maximum_packet_size": (39, "four"),
    "wildcard_available": (40, "byte"),
    "subscription_id_available": (41, "byte"),
    "shared_available": (42, "byte"),
}
"""Names, identifiers and types of all properties (2.2.2.2)."""
_BY_NUMBER: Final = {number: (name, kind) for name, (number, kind) in PROPERTIES.items()}
_FORMATS: Final = {"byte": ">B", "two": ">H", "four": ">I"}


def variable(number: int, *, bytes_at_least: int = 1) -> bytes:
    """A variable byte integer (1.5.5); with more bytes than it needs where that is wanted."""
    out = bytearray()
    while True:
        number, low = divmod(number, 128)
        more = number or len(out) + 1 < bytes_at_least
        out.append(low | (0x80 if more else 0))
        if not more:
            return bytes(out)


def text(value: Text) -> bytes:
    """A string or binary data, with its length before it (1.5.4, 1.5.6)."""
    raw = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
    return struct.pack(">H", len(raw)) + raw


def one_property(name: str, value: Any) -> bytes:
    number, kind = PROPERTIES[name]
    if kind in _FORMATS:
        body = struct.pack(_FORMATS[kind], value)
    elif kind == "variable":
        body = variable(value)
    elif kind == "pair":
        body = text(value[0]) + text(value[1])
    else:
        body = text(value)
    return bytes([number]) + body


def property_block(properties: Properties) -> bytes:
    """All properties with their length before them."""
    body = b"".join(one_property(name, value) for name, value in properties)
    return variable(len(body)) + body


def frame(kind: int, flags: int, body: bytes) -> bytes:
    """The fixed header and the rest."""
    return bytes([kind << 4 | flags]) + variable(len(body)) + body


@dataclass
class Will:
    topic: Text
    payload: bytes = b""
    qos: int = 0
    retain: bool = False
    properties: Properties = ()


def connect(
    version: int,
    client_id: Text,
    *,
    clean: bool = True,
    keep_alive: int = 0,
    will: Will | None = None,
    user: Text | None = None,
    password: Text | None = None,
    properties: Properties = (),
    name: Text | None = None,
    level: int | None = None,
    flags: int | None = None,
    payload: bytes | None = None,
) -> bytes:
    """CONNECT. The last four take the place of what follows from the others."""
    own = (user is not None) << 7 | (password is not None) << 6 | clean << 1
    rest = text(client_id)
    if will is not None:
        own |= will.retain << 5 | will.qos << 3 | 1 << 2
        rest += (property_block(will.properties) if version == 5 else b"") + text(will.topic)
        rest += text(will.payload)
    rest += b"".join(text(part) for part in (user, password) if part is not None)
    head = text(name if name is not None else b"MQIsdp" if version == 3 else b"MQTT")
    head += bytes([version if level is None else level, own if flags is None else flags])
    head += struct.pack(">H", keep_alive) + (property_block(properties) if version == 5 else b"")
    return frame(CONNECT, 0, head + (rest if payload is None else payload))


def publish(
    version: int,
    topic: Text,
    payload: bytes = b"",
    *,
    qos: int = 0,
    packet_id: int | None = None,
    retain: bool = False,
    dup: bool = False,
    properties: Properties = (),
) -> bytes:
    body = text(topic) + (struct.pack(">H", packet_id) if packet_id is not None else b"")
    body += (property_block(properties) if version == 5 else b"") + payload
    return frame(PUBLISH, dup << 3 | qos << 1 | retain, body)


def answer(
    kind: int,
    packet_id: int,
    reason: int | None = None,
    properties: Properties | None = None,
    *,
    flags: int | None = None,
) -> bytes:
    """PUBACK, PUBREC, PUBREL or PUBCOMP."""
    body = struct.pack(">H", packet_id)
    if reason is not None:
        body += bytes([reason])
    if properties is not None:
        body += property_block(properties)
    return frame(kind, (2 if kind == PUBREL else 0) if flags is None else flags, body)


def subscribe(
    version: int,
    packet_id: int,
    filters: Sequence[tuple[Text, int]],
    *,
    properties: Properties = (),
    flags: int = 2,
) -> bytes:
    """SUBSCRIBE, each filter with its byte of options (3.8.3.1)."""
    body = struct.pack(">H", packet_id) + (property_block(properties) if version == 5 else b"")
    body += b"".join(text(name) + bytes([options]) for name, options in filters)
    return frame(SUBSCRIBE, flags, body)


def unsubscribe(
    version: int, packet_id: int, filters: Sequence[Text], *, properties: Properties = (), flags: int = 2
) -> bytes:
    body = struct.pack(">H", packet_id) + (property_block(properties) if version == 5 else b"")
    return frame(UNSUBSCRIBE, flags, body + b"".join(text(name) for name in filters))


def disconnect(version: int, reason: int | None = None, properties: Properties | None = None) -> bytes:
    body = b"" if reason is None else bytes([reason])
    if properties is not None:
        body += property_block(properties)
    return frame(DISCONNECT, 0, body)


def auth(reason: int, properties: Properties = (), *, flags: int = 0) -> bytes:
    return frame(AUTH, flags, bytes([reason]) + property_block(properties))


PING: Final = frame(PINGREQ, 0, b"")


@dataclass
class Packet:
    """What a server sent. Fields that the packet has not keep their defaults."""

    kind: int
    flags: int
    size: int
    """Of the whole packet, in bytes."""
    body: bytes = field(repr=False)
    packet_id: int = 0
    reason: int = 0
    reasons: tuple[int, ...] = ()
    session_present: bool = False
    properties: list[tuple[str, Any]] = field(default_factory=list)
    topic: str = ""
    payload: bytes = b""

    @property
    def qos(self) -> int:
        return self.flags >> 1 & 3

    @property
    def dup(self) -> bool:
        return bool(self.flags & 8)

    @property
    def retain(self) -> bool:
        return bool(self.flags & 1)

    def all(self, name: str) -> list[Any]:
        """The values of a property, in their order."""
        return [value for each, value in self.properties if each == name]

    def one(self, name: str) -> Any:
        """The value of a property that may be there once; None without it."""
        found = self.all(name)
        assert len(found) <= 1, f"{name} came {len(found)} times"
        return found[0] if found else None


class _Body:
    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.at = 0

    def take(self, count: int) -> bytes:
        assert self.at + count <= len(self.raw), "the server's packet is too short"
        self.at += count
        return self.raw[self.at - count : self.at]

    def number(self, form: str) -> int:
        value: int = struct.unpack(form, self.take(struct.calcsize(form)))[0]
        return value

    def data(self) -> bytes:
        return self.take(self.number(">H"))

    def variable(self) -> int:
        number = shift = 0
        while True:
            byte = self.number(">B")
            number |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                assert byte or shift == 7, "the server's integer has more bytes than it needs"
                return number

    def rest(self) -> bytes:
        return self.take(len(self.raw) - self.at)

    def properties(self) -> list[tuple[str, Any]]:
        end = self.variable() + self.at
        assert end <= len(self.raw), "the server's properties are too short"
        found: list[tuple[str, Any]] = []
        while self.at < end:
            name, kind = _BY_NUMBER[self.number(">B")]
            value: Any
            if kind in _FORMATS:
                value = self.number(_FORMATS[kind])
            elif kind == "variable":
                value = self.variable()
            elif kind == "pair":
                value = (self.data().decode(), self.data().decode())
            else:
                value = self.data().decode() if kind == "text" else self.data()
            found.append((name, value))
        assert self.at == end, "the server's properties are longer than they say"
        return found


def decode(version: int, first: int, body: bytes, size: int) -> Packet:
    """A packet of a server. AssertionError where it has not the form that section 3 gives it."""
    packet = Packet(first >> 4, first & 15, size, body)
    read = _Body(body)
    five = version == 5
    if packet.kind != PUBLISH:
        assert packet.flags == (2 if packet.kind == PUBREL else 0), "flags of the server's fixed header"
    if packet.kind == CONNACK:
        flags = read.number(">B")
        assert flags in (0, 1), "reserved bits of the acknowledge flags"
        packet.session_present = bool(flags)
        packet.reason = read.number(">B")
        packet.properties = read.properties() if five else []
    elif packet.kind == PUBLISH:
        packet.topic = read.data().decode()
        if packet.qos:
            packet.packet_id = read.number(">H")
            assert packet.packet_id, "a packet identifier of 0"
        packet.properties = read.properties() if five else []
        packet.payload = read.rest()
    elif packet.kind in (PUBACK, PUBREC, PUBREL, PUBCOMP):
        packet.packet_id = read.number(">H")
        _read_reason(packet, read, five)
    elif packet.kind in (SUBACK, UNSUBACK):
        packet.packet_id = read.number(">H")
        packet.properties = read.properties() if five else []
        packet.reasons = tuple(read.rest() if five or packet.kind == SUBACK else b"")
    elif packet.kind in (DISCONNECT, AUTH):
        assert five, "a server of this version has no such packet"
        _read_reason(packet, read, five)
    else:
        assert packet.kind == PINGRESP, f"no packet of a server: type {packet.kind}"
    assert not read.rest(), "the server's packet is too long"
    return packet


def _read_reason(packet: Packet, read: _Body, five: bool) -> None:
    if five and read.at < len(read.raw):
        packet.reason = read.number(">B")
        if read.at < len(read.raw):
            packet.properties = read.properties()
