"""From the bytes of a connection to packets, as they come: 3.1, 3.1.1 and 5.0, what clients send and what servers send.

Framing and PUBLISH are here, which is nearly all that ever comes; other packets are read in `bodies` and `answers`.
"""

from typing import Final

from leafcuttr_mqtt.packets import table
from leafcuttr_mqtt.packets.bodies import (
    Sender,
    Steps,
    UnsupportedVersion,
    check_response_topic,
    check_topic,
    read_connect,
    read_version,
)
from leafcuttr_mqtt.packets.errors import PacketError, malformed, protocol_error
from leafcuttr_mqtt.packets.fields import MAX_VARINT, MOST_REPEATED, Body, decoded
from leafcuttr_mqtt.packets.properties import read_properties
from leafcuttr_mqtt.packets.types import (
    NO_PROPERTIES,
    Packet,
    PacketType,
    Properties,
    Publish,
    ReasonCode,
    Version,
)

_MOST_TOPICS: Final = 8192
_LONGEST_TOPIC: Final = 256


class _TopicNames(dict[bytes, str]):
    """The topic names that came lately, of all connections: each is decoded and checked once. Bounded by number and by
    length: whatever clients send, it is at most a few megabytes."""

    def __missing__(self, raw: bytes) -> str:
        topic = decoded(raw, "PUBLISH: topic name")
        if raw:  # An empty one is the reader's: it may stand for an alias.
            check_topic(topic, "PUBLISH: topic name")
        if len(raw) <= _LONGEST_TOPIC:
            if len(self) >= _MOST_TOPICS:
                self.clear()
            self[raw] = topic
        return topic


_TOPICS: Final = _TopicNames()

_MOST_BLOCKS: Final = 1024
_LONGEST_BLOCK: Final = 64
_BLOCKS: Final[dict[Sender, dict[bytes, Properties]]] = {"client": {}, "server": {}}
"""The properties of PUBLISH that came lately, by their bytes with the property length: devices send the same again and
again, an alias or a content type. Bounded as the topic names are."""


class PacketReader:
    """Reads what one side of one connection sends.

    Not more is kept than one packet that is not complete, and not more memory is used for it than bytes of it have
    come: at most `max_bytes`, which counts the fixed header as 3.1.2.11.4 does.
    """

    __slots__ = (
        "_bridge",
        "_most_repeated",
        "_needed",
        "_pending",
        "_rules",
        "_sender",
        "error",
        "max_bytes",
        "steps",
        "version",
    )

    def __init__(
        self,
        max_bytes: int,
        version: Version | None = None,
        *,
        sender: Sender = "client",
        bridge: bool = False,
        trusted: bool = False,
    ) -> None:
        """Without a version the first packet has to be CONNECT, and the reader takes the version from it. What a
        trusted client sends is handed on from a server, and is not bounded (`MOST_REPEATED`)."""
        self.max_bytes = max_bytes
        self.version = version
        """That of CONNECT, as soon as it is read, also where the rest of CONNECT is at fault. After a version that is
        not supported: the one to answer in."""
        self.error: PacketError | None = None
        """Set: the connection is to end, and nothing is read after it."""
        self._sender: Sender = sender
        self._bridge = bridge
        # A server is chosen by those who run this broker, and what it sends has to go on, whatever it is.
        self._most_repeated = MAX_VARINT if trusted or sender == "server" else MOST_REPEATED
        self._pending = bytearray()
        self._needed = 0
        self.steps: Steps | None = None
        """Set: `feed` has stopped in a packet that takes long to read (SUBSCRIBE may have 10,000 filters). Call it
        again, without bytes, after others have had their turns. What came behind it is pending."""
        self._rules = table.rules(version, sender)

    @classmethod
    def of_server(cls, max_bytes: int, version: Version) -> "PacketReader":
        """Reads what a server sends."""
        return cls(max_bytes, version, sender="server")

    def feed(self, data: bytes) -> list[Packet]:
        """All packets that are complete with `data`, unless it stops at `steps`. Where one is bad: those before it, and
        `error` is set."""
        packets: list[Packet] = []
        if self.error is not None:
            return packets
        pending = self._pending
        if self.steps is not None:
            pending += data
            if not self._go_on(self.steps, packets):
                return packets
            data = b""
        if pending:
            pending += data
            if len(pending) < self._needed:
                return packets
            data = bytes(pending)
            pending.clear()
        try:
            at = self._read(data, packets)
        except PacketError as error:
            self.error = error
            return packets
        if at < len(data):
            pending += memoryview(data)[at:]
        return packets

    def _go_on(self, steps: Steps, packets: list[Packet]) -> bool:
        """The next step of a packet that takes long; whether it is complete."""
        try:
            next(steps)
        except StopIteration as done:
            packets.append(done.value)
            self.steps, self._needed = None, 0
            return True
        except PacketError as error:
            self.error, self.steps = error, None
            return False
        self.steps = steps
        return False

    def _read(self, data: bytes, packets: list[Packet]) -> int:
        """Where the first packet begins that is not complete; `_needed` is then how many bytes it takes at least.

        PUBLISH is read in place: a call for each would cost a fifth more (tests/bench/mqtt_packets.py).
        """
        rules, max_bytes = self._rules, self.max_bytes
        five = self.version == Version.V5
        append, new = packets.append, object.__new__
        topics, blocks = _TOPICS, _BLOCKS[self._sender]
        at, size = 0, len(data)
        while at < size:
            first = data[at]
            rule = rules[first]
            if rule is None:
                raise self._refused(first)
            start = at + 2
            if start > size:
                self._needed = 2
                return at
            end = start + data[at + 1]
            if end - start > 127:
                if start < size and 0 < data[start] < 128:
                    end += (data[start] << 7) - 127
                    start += 1
                else:
                    start, end = _long(data, at + 1)
                    if not start:
                        self._needed = size - at + 1
                        return at
                    if five and not data[start - 1]:
                        raise malformed(_PADDED)
            if end - at > max_bytes:
                raise PacketError(
                    ReasonCode.PACKET_TOO_LARGE, f"a packet of {end - at} bytes is larger than {max_bytes}"
                )
            if end > size:
                self._needed = end - at
                return at
            if rule.publish:
                if end - start < 2:
                    raise malformed("PUBLISH: ends in topic name")
                split = start + 2 + (data[start] << 8 | data[start + 1])
                if split > end:
                    raise malformed("PUBLISH: ends in topic name")
                publish = new(Publish)
                publish.topic = topic = topics[data[start + 2 : split]]
                publish.qos = rule.qos
                publish.retain = rule.retain
                publish.duplicate = rule.duplicate
                if rule.qos:
                    if split + 2 > end:
                        raise malformed("PUBLISH: ends in packet identifier")
                    publish.packet_id = packet_id = data[split] << 8 | data[split + 1]
                    if not packet_id:
                        raise protocol_error("PUBLISH: packet identifier 0")  # [MQTT-2.2.1-3]
                    split += 2
                else:
                    publish.packet_id = 0
                publish.properties = NO_PROPERTIES
                if five:
                    if split < end and not data[split]:
                        split += 1
                    else:
                        after = split + 1 + data[split] if split < end else end + 1
                        known = blocks.get(data[split:after]) if after <= end else None
                        if known is not None:
                            publish.properties = known
                            split = after
                        else:
                            body = Body("PUBLISH", data, split, end, self._most_repeated)
                            publish.properties = self._publish_properties(body)
                            split = body.at
                if not topic and publish.properties.topic_alias is None:
                    # [MQTT-4.7.3-1]; 3.3.2.1 of 5.0
                    raise protocol_error("PUBLISH: no topic name and no topic alias")
                publish.payload = data[split:end]
                append(publish)
            elif rule.ack is not None and end - start == 2:
                packet_id = data[start] << 8 | data[start + 1]
                if not packet_id:
                    raise protocol_error(f"{rule.name}: packet identifier 0")
                append(rule.ack(packet_id))
            else:
                body = Body(rule.name, data, start, end, self._most_repeated)
                if rule.kind == PacketType.CONNECT:
                    append(self._connect(body, start - at > 2 and not data[start - 1]))
                    rules = self._rules
                    five = self.version == Version.V5
                elif rule.in_steps is not None:
                    assert self.version is not None
                    if not self._go_on(rule.in_steps(body, self.version, self._bridge), packets):
                        return end
                else:
                    assert self.version is not None
                    append(rule.read(body, self.version, self._sender, self._bridge))
            at = end
        return at

    def _connect(self, body: Body, padded: bool) -> Packet:
        try:
            self.version, self._bridge = read_version(body)
        except UnsupportedVersion as error:
            self.version = error.answer_in
            raise
        if padded and self.version == Version.V5:
            raise malformed(_PADDED)
        self._rules = table.rules(self.version, self._sender)
        return read_connect(body, self.version, self._bridge)

    def _publish_properties(self, body: Body) -> Properties:
        start = body.at
        properties = read_properties(body, PacketType.PUBLISH)
        check_response_topic(properties, "PUBLISH")
        if properties.subscription_identifiers and self._sender == "client":
            raise protocol_error("PUBLISH: a subscription identifier from a client")  # [MQTT-3.3.4-6]
        if body.at - start <= _LONGEST_BLOCK:
            blocks = _BLOCKS[self._sender]
            if len(blocks) >= _MOST_BLOCKS:
                blocks.clear()
            blocks[body.data[start : body.at]] = properties
        return properties

    def _refused(self, first: int) -> PacketError:
        """Why no packet may begin with this byte."""
        kind, flags = first >> 4, first & 15
        if self.version is None:
            if kind == PacketType.CONNECT:
                return malformed(f"CONNECT: flags {flags:#x}")
            return protocol_error(
                f"the first packet is no CONNECT but begins with 0x{first:02x}"
            )  # [MQTT-3.1.0-1]
        if kind == 0 or (kind == PacketType.AUTH and self.version != Version.V5):
            return malformed(f"packet type {kind} is reserved")  # 2.1.2
        name = PacketType(kind).name
        if kind not in table.sent_by(self.version, self._sender):
            if kind == PacketType.CONNECT and self._sender == "client":
                return protocol_error("a second CONNECT")  # [MQTT-3.1.0-2]
            return protocol_error(f"{name} from a {self._sender}")
        return malformed(f"{name}: flags {flags:#x}")  # [MQTT-2.1.3-1, 3.3.1-2, 3.3.1-4]


_PADDED: Final = "the remaining length has more bytes than need be"
"""[MQTT-1.5.5-1]. 3.1.1 has no such rule, and there are clients that always write it in four bytes."""


def _long(data: bytes, at: int) -> tuple[int, int]:
    """Where the body behind a remaining length of more than one byte (2.1.4) begins and ends; 0: it is not complete."""
    length = 0
    for count in range(4):
        if at + count >= len(data):
            return 0, 0
        byte = data[at + count]
        length |= (byte & 127) << 7 * count
        if byte < 128:
            start = at + count + 1
            return start, start + length
    raise malformed("the remaining length has more than four bytes")  # 1.5.5
