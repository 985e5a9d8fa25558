"""Bytes that are made for many at once: a PUBLISH for all subscribers that get it alike, a run of acknowledgements."""

from array import array
from collections.abc import Sequence
from dataclasses import replace
from sys import byteorder
from typing import Final, Literal

from leafcuttr_mqtt.packets.encoding import text, varint
from leafcuttr_mqtt.packets.properties import write_properties
from leafcuttr_mqtt.packets.types import NO_PROPERTIES, PacketType, Properties, Version


class PublishFrame:
    """A PUBLISH whose packet identifier is left open: with QoS 0 `head` is all of it."""

    __slots__ = ("head", "size", "tail")

    def __init__(self, head: bytes, tail: bytes, size: int) -> None:
        self.head = head
        self.tail = tail
        """What comes after the packet identifier; empty with QoS 0."""
        self.size = size
        """Of the whole packet: what a client's maximum packet size is compared with."""

    def with_id(self, packet_id: int) -> bytes:
        """For QoS 1 and 2."""
        return self.head + packet_id.to_bytes(2, "big") + self.tail

    def again(self, packet_id: int) -> bytes:
        """The same with DUP [MQTT-3.3.1-1]."""
        head = self.head
        return bytes((head[0] | 8,)) + head[1:] + packet_id.to_bytes(2, "big") + self.tail


class PublishFrames:
    """One message for many: its bytes are made once for each version, QoS, RETAIN flag and set of subscription
    identifiers. They are kept as long as this object is: for one turn, as the expiry interval is counted down."""

    __slots__ = ("_frames", "_payload", "_properties", "_topic")

    def __init__(self, topic: str, payload: bytes, properties: Properties = NO_PROPERTIES) -> None:
        """`properties` without a topic alias and without subscription identifiers: these are a client's."""
        self._topic = text(topic)
        self._payload = payload
        self._properties = properties
        self._frames: dict[tuple[bool, int, bool, tuple[int, ...]], PublishFrame] = {}

    def frame(
        self, version: Version, qos: int, retain: bool, identifiers: tuple[int, ...] = ()
    ) -> PublishFrame:
        """Raises ValueError where the packet would be larger than any can be."""
        key = (version == Version.V5, qos, retain, identifiers if version == Version.V5 else ())
        frame = self._frames.get(key)
        if frame is None:
            frame = self._frames[key] = self._made(*key)
        return frame

    def _made(self, five: bool, qos: int, retain: bool, identifiers: tuple[int, ...]) -> PublishFrame:
        properties = b""
        if five:
            wanted = self._properties
            if identifiers:
                wanted = replace(wanted, subscription_identifiers=identifiers)
            properties = write_properties(wanted, PacketType.PUBLISH)
        length = len(self._topic) + (2 if qos else 0) + len(properties) + len(self._payload)
        head = bytes((PacketType.PUBLISH << 4 | qos << 1 | retain,)) + varint(length) + self._topic
        tail = properties + self._payload
        size = len(head) - len(self._topic) + length
        return PublishFrame(head, tail, size) if qos else PublishFrame(head + tail, b"", size)


_FIRST: Final = {
    PacketType.PUBACK: b"\x40\x02\0\0",
    PacketType.PUBREC: b"\x50\x02\0\0",
    PacketType.PUBREL: b"\x62\x02\0\0",
    PacketType.PUBCOMP: b"\x70\x02\0\0",
}


def acknowledgements(
    kind: Literal[PacketType.PUBACK, PacketType.PUBREC, PacketType.PUBREL, PacketType.PUBCOMP],
    packet_ids: Sequence[int],
) -> bytes:
    """One packet of success and without properties for each identifier, in order; the same in all versions."""
    ids = array("H", packet_ids)
    if byteorder == "little":
        ids.byteswap()
    raw = ids.tobytes()
    out = bytearray(_FIRST[kind] * len(ids))
    out[2::4] = raw[::2]
    out[3::4] = raw[1::2]
    return bytes(out)
