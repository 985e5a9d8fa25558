"""A client on a raw socket: sends bytes, whole or broken, and reads packets. It answers nothing by itself and keeps no
state but the last packet identifier that it gave out.

Everything waits for what has to come, and never for a time; `PATIENCE` only says when a test has failed.
"""

from __future__ import annotations

import itertools
import os
import socket
import struct
from collections import deque
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Self

from mqtt.conformance import wire
from mqtt.conformance.wire import Packet, Properties, Text

PATIENCE: Final = float(os.environ.get("LEAFCUTTR_MQTT_PATIENCE_S", "20"))
"""Seconds for which a packet may let a test wait."""
_NUMBERS: Final = itertools.count(1)
_RUN: Final = os.urandom(2).hex()


def fresh(stem: str = "c") -> str:
    """A name that no other test has, nor one of an earlier run, for a client or a topic: letters and digits only."""
    return f"{stem}{_RUN}{next(_NUMBERS)}"


class Closed(Exception):
    """The server has closed the connection."""


class Raw:
    """One connection. `strict`: the broker promises a DISCONNECT with a reason before it closes a 5.0 connection."""

    def __init__(self, host: str, port: int, version: int = 5, *, strict: bool = False) -> None:
        self.version = version
        self.strict = strict
        self.client_id = ""
        self.connack: Packet | None = None
        self._socket = socket.create_connection((host, port), PATIENCE)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = b""
        self._held: deque[Packet] = deque()
        self._ids = itertools.cycle(range(1, 65536))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Bytes

    def close(self) -> None:
        """Without DISCONNECT: as a network that fails."""
        self._socket.close()

    def reset(self) -> None:
        """Close with a reset, which the server sees as an error."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()

    def send(self, *packets: bytes) -> None:
        """In one segment where it fits. What the server no longer takes is left out: it is what it sent that counts."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self._socket.sendall(b"".join(packets))

    def _fill(self) -> None:
        try:
            got = self._socket.recv(65536)
        except ConnectionResetError:
            got = b""
        except TimeoutError:
            raise AssertionError(f"nothing came; unread: {self._buffer!r}") from None
        if not got:
            raise Closed
        self._buffer += got

    def receive(self) -> Packet:
        """The next packet; `Closed` at the end of the connection."""
        if self._held:
            return self._held.popleft()
        return self._read()

    def _read(self) -> Packet:
        while True:
            whole = _whole(self._buffer)
            if whole is not None:
                start, end = whole
                first, body, self._buffer = self._buffer[0], self._buffer[start:end], self._buffer[end:]
                return wire.decode(self.version, first, body, end)
            self._fill()

    def expect(self, kind: int) -> Packet:
        """The next packet, which has to be of this type."""
        packet = self.receive()
        assert packet.kind == kind, packet
        return packet

    def answer(self, kind: int, packet_id: int) -> Packet:
        """The answer with this packet identifier. Messages may come before it: they are kept for later."""
        held: list[Packet] = []
        while (packet := self.receive()).kind == wire.PUBLISH:
            held.append(packet)
        self._held.extendleft(reversed(held))
        assert (packet.kind, packet.packet_id) == (kind, packet_id), packet
        return packet

    def rest(self) -> list[Packet]:
        """All packets up to the end of the connection, which has to come."""
        found: list[Packet] = []
        while True:
            try:
                found.append(self.receive())
            except Closed:
                assert not self._buffer, f"half a packet at the end: {self._buffer!r}"
                return found

    def bytes_to_the_end(self) -> bytes:
        """All that comes until the server closes, as it is."""
        while True:
            try:
                self._fill()
            except Closed:
                return self._buffer

    def ended(self, *reasons: int) -> Packet | None:
        """The server closes the connection: 5.0 after a DISCONNECT of one of these reasons, older ones without a word.
        The DISCONNECT, if there is one."""
        packets = self.rest()
        if self.version != 5:
            assert packets == []
            return None
        assert len(packets) == 1 or (not packets and not self.strict), packets
        for packet in packets:
            assert packet.kind == wire.DISCONNECT
            assert not reasons or packet.reason in reasons, packet
            return packet
        return None

    def refused(self, *reasons: int) -> Packet | None:
        """A CONNECT is refused: CONNACK with one of these reasons and the end, or just the end. The CONNACK, if any."""
        packets = self.rest()
        assert len(packets) <= 1, packets
        for packet in packets:
            assert packet.kind == wire.CONNACK
            assert packet.reason in reasons, packet
            assert not packet.session_present
            return packet
        return None

    # Packets

    def connect(self, client_id: Text | None = None, **options: Any) -> Packet:
        """CONNECT, and the CONNACK that accepts it."""
        if client_id is None:
            client_id = fresh()
        self.client_id = client_id if isinstance(client_id, str) else client_id.decode()
        self.send(wire.connect(self.version, client_id, **options))
        self.connack = self.expect(wire.CONNACK)
        assert self.connack.reason == 0, self.connack
        return self.connack

    def next_id(self) -> int:
        return next(self._ids)

    def publish(self, topic: Text, payload: bytes = b"", qos: int = 0, **options: Any) -> Packet | None:
        """PUBLISH, with its whole exchange. The PUBACK or PUBREC."""
        packet_id = options.pop("packet_id", None) or (self.next_id() if qos else None)
        self.send(wire.publish(self.version, topic, payload, qos=qos, packet_id=packet_id, **options))
        if not qos:
            return None
        assert packet_id is not None
        got = self.answer(wire.PUBACK if qos == 1 else wire.PUBREC, packet_id)
        if qos == 2 and got.reason < 0x80:
            self.release(packet_id)
        return got

    def release(self, packet_id: int) -> Packet:
        """PUBREL and its PUBCOMP."""
        self.send(wire.answer(wire.PUBREL, packet_id))
        return self.answer(wire.PUBCOMP, packet_id)

    def subscribe(self, *filters: tuple[Text, int] | Text, properties: Properties = ()) -> Packet:
        """SUBSCRIBE and its SUBACK. A filter alone has QoS 2 and no other options."""
        pairs = [one if isinstance(one, tuple) else (one, 2) for one in filters]
        packet_id = self.next_id()
        self.send(wire.subscribe(self.version, packet_id, pairs, properties=properties))
        got = self.answer(wire.SUBACK, packet_id)
        assert len(got.reasons) == len(pairs)
        return got

    def unsubscribe(self, *filters: Text) -> Packet:
        packet_id = self.next_id()
        self.send(wire.unsubscribe(self.version, packet_id, filters))
        return self.answer(wire.UNSUBACK, packet_id)

    def disconnect(self, reason: int | None = None, properties: Properties | None = None) -> None:
        """DISCONNECT; returns when the server has closed as well."""
        self.send(wire.disconnect(self.version, reason, properties))
        assert self.rest() == []
        self.close()

    def message(self, *, acknowledge: bool = True) -> Packet:
        """The next packet, which has to be a PUBLISH; with its whole exchange."""
        packet = self.expect(wire.PUBLISH)
        if acknowledge:
            self.acknowledge(packet)
        return packet

    def acknowledge(self, packet: Packet) -> None:
        if packet.qos == 1:
            self.send(wire.answer(wire.PUBACK, packet.packet_id))
        elif packet.qos == 2:
            self.send(wire.answer(wire.PUBREC, packet.packet_id))
            self.answer(wire.PUBREL, packet.packet_id)
            self.send(wire.answer(wire.PUBCOMP, packet.packet_id))

    def ping(self) -> list[Packet]:
        """PINGREQ; what came before its PINGRESP."""
        self.send(wire.PING)
        found: list[Packet] = []
        while (packet := self.receive()).kind != wire.PINGRESP:
            found.append(packet)
        return found

    def ping_or_end(self) -> list[Packet] | None:
        """PINGREQ, and what comes before its PINGRESP; None if the connection ends instead."""
        try:
            found = self.ping()
        except Closed:
            return None
        return found

    def messages(self, count: int) -> list[Packet]:
        """The next messages, each acknowledged as it comes: exchanges of QoS 2 overlap."""
        found: list[Packet] = []
        under_way: set[int] = set()
        while under_way or len(found) < count:
            packet = self.receive()
            if packet.kind == wire.PUBLISH:
                found.append(packet)
                if packet.qos:
                    kind = wire.PUBACK if packet.qos == 1 else wire.PUBREC
                    self.send(wire.answer(kind, packet.packet_id))
                    under_way |= {packet.packet_id} if packet.qos == 2 else set()
            else:
                assert packet.kind == wire.PUBREL, packet
                under_way.remove(packet.packet_id)
                self.send(wire.answer(wire.PUBCOMP, packet.packet_id))
        return found

    def so_far(self, publisher: Raw, *, acknowledge: bool = True) -> list[Packet]:
        """All messages that come before one that `publisher` sends now, on a topic of its own; acknowledged, with QoS 2
        to the end of the exchange. That one has QoS 0: it may overtake what waits for acknowledgements."""
        topic = fresh("fence")
        packet_id = self.next_id()
        self.send(wire.subscribe(self.version, packet_id, [(topic, 0)]))
        found: list[Packet] = []
        under_way: set[int] = set()
        sent = ended = False
        while under_way or not ended:
            packet = self.receive()
            if packet.kind == wire.SUBACK and packet.packet_id == packet_id:
                publisher.send(wire.publish(publisher.version, topic))
                sent = True
            elif packet.kind == wire.PUBLISH and packet.topic == topic:
                assert sent
                ended = True
            elif packet.kind == wire.PUBLISH:
                found.append(packet)
                if acknowledge and packet.qos:
                    kind = wire.PUBACK if packet.qos == 1 else wire.PUBREC
                    self.send(wire.answer(kind, packet.packet_id))
                    under_way |= {packet.packet_id} if packet.qos == 2 else set()
            elif packet.kind == wire.PUBREL and packet.packet_id in under_way:
                under_way.remove(packet.packet_id)
                self.send(wire.answer(wire.PUBCOMP, packet.packet_id))
            else:
                raise AssertionError(packet)
        return found


def _whole(buffer: bytes) -> tuple[int, int] | None:
    """Where the body of the first packet begins and ends, if all of it is there."""
    length = shift = 0
    for at, byte in enumerate(buffer[1:5], 1):
        length |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return (at + 1, at + 1 + length) if len(buffer) >= at + 1 + length else None
    assert len(buffer) < 5, "the server's remaining length has five bytes"
    return None
