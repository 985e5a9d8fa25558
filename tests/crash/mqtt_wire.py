"""A client of MQTT 3.1.1 for the crash suite: bytes on a socket, no code of the broker's. Sessions are kept by
those who use it (4.1, 4.4).

A packet is (type, flags, body). Strings have their length in front (1.5.3).
"""

from __future__ import annotations

import socket
import struct
from typing import NamedTuple

CONNACK, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP, SUBACK = 2, 3, 4, 5, 6, 7, 9
PATIENCE_S = 120.0


class Broken(Exception):
    """The connection is no more."""


class Packet(NamedTuple):
    type: int
    flags: int
    body: bytes

    @property
    def packet_id(self) -> int:
        """Of all but PUBLISH, in front."""
        return int.from_bytes(self.body[:2], "big")


class Message(NamedTuple):
    topic: str
    payload: bytes
    qos: int
    packet_id: int
    duplicate: bool


def message_of(packet: Packet) -> Message:
    """What a PUBLISH carries (3.3)."""
    qos = packet.flags >> 1 & 3
    end = 2 + int.from_bytes(packet.body[:2], "big")
    topic = packet.body[2:end].decode()
    packet_id = 0
    if qos:
        packet_id = int.from_bytes(packet.body[end : end + 2], "big")
        end += 2
    return Message(topic, packet.body[end:], qos, packet_id, bool(packet.flags & 8))


def text(value: str) -> bytes:
    encoded = value.encode()
    return struct.pack(">H", len(encoded)) + encoded


def packet(first: int, body: bytes) -> bytes:
    """With its remaining length (2.2.3)."""
    length, size = bytearray(), len(body)
    while True:
        size, part = divmod(size, 128)
        length.append(part | (0x80 if size else 0))
        if not size:
            return bytes((first, *length)) + body


def publish(topic: str, payload: bytes, qos: int, packet_id: int, *, duplicate: bool) -> bytes:
    body = text(topic) + (struct.pack(">H", packet_id) if qos else b"") + payload
    return packet(0x30 | qos << 1 | (8 if duplicate else 0), body)


def acknowledgement(kind: int, packet_id: int) -> bytes:
    return packet(kind << 4 | (2 if kind == PUBREL else 0), struct.pack(">H", packet_id))


class Connection:
    """One connection, up to its end. Whatever goes wrong with it is `Broken`."""

    def __init__(self, port: int, client_id: str) -> None:
        """Connects with a session that stays (clean session 0). `session_present`: whether the broker had it."""
        self._buffer = b""
        try:
            self._socket = socket.create_connection(("127.0.0.1", port), 5.0)
        except OSError as error:
            raise Broken(str(error)) from None
        self._socket.settimeout(PATIENCE_S)
        self.send(packet(0x10, text("MQTT") + bytes((4, 0)) + struct.pack(">H", 0) + text(client_id)))
        answer = self.read()
        if answer.type != CONNACK or answer.body[1]:
            raise AssertionError(f"{client_id} is refused: {answer}")
        self.session_present = bool(answer.body[0])

    def send(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise Broken(str(error)) from None

    def subscribe(self, filters: dict[str, int]) -> None:
        body = struct.pack(">H", 1) + b"".join(text(one) + bytes((qos,)) for one, qos in filters.items())
        self.send(packet(0x82, body))
        answer = self.read()
        if answer.type != SUBACK or answer.body[2:] != bytes(filters.values()):
            raise AssertionError(f"no SUBACK with what was requested: {answer}")

    def read(self) -> Packet:
        """The next packet."""
        while True:
            found = self._take()
            if found is not None:
                return found
            self._receive()

    def read_now(self, wait_s: float) -> list[Packet]:
        """All that is there within so many seconds, or as soon as there is something."""
        self._socket.settimeout(wait_s)
        try:
            self._receive()
        except TimeoutError:
            pass
        finally:
            self._socket.settimeout(PATIENCE_S)
        found: list[Packet] = []
        while (one := self._take()) is not None:
            found.append(one)
        return found

    def _receive(self) -> None:
        try:
            data = self._socket.recv(65536)
        except TimeoutError:
            raise
        except OSError as error:
            raise Broken(str(error)) from None
        if not data:
            raise Broken("the broker has closed it")
        self._buffer += data

    def _take(self) -> Packet | None:
        size, shift, at = 0, 0, 1
        while True:
            if at >= len(self._buffer):
                return None
            size |= (self._buffer[at] & 127) << shift
            shift += 7
            at += 1
            if self._buffer[at - 1] < 128:
                break
        if len(self._buffer) < at + size:
            return None
        found = Packet(self._buffer[0] >> 4, self._buffer[0] & 15, self._buffer[at : at + size])
        self._buffer = self._buffer[at + size :]
        return found

    def close(self) -> None:
        """Without DISCONNECT."""
        self._socket.close()
