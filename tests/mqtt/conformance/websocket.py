"""WebSocket as far as the tests need it, on a plain socket: a handshake, and frames as they like (RFC 6455)."""

from __future__ import annotations

import base64
import os
import struct
from contextlib import suppress
from typing import Final

from mqtt.conformance.raw import PATIENCE, Closed, Raw

CONTINUATION, TEXT, BINARY, CLOSE = 0, 1, 2, 8
_CONTROL: Final = 8


def frame(kind: int, payload: bytes, *, final: bool = True) -> bytes:
    """A frame of a client, masked."""
    mask = os.urandom(4)
    size = len(payload)
    head = bytes([final << 7 | kind])
    if size < 126:
        head += bytes([0x80 | size])
    else:
        head += b"\xfe" + struct.pack(">H", size)
    return head + mask + bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))


class WebSocket(Raw):
    """An MQTT client over WebSocket. `send` puts each packet into a frame of its own; `protocol` is what the server has
    selected."""

    def __init__(
        self, host: str, port: int, version: int = 5, *, offered: str | None = "mqtt", strict: bool
    ) -> None:
        super().__init__(host, port, version, strict=strict)
        self.frames = b""
        self.kinds: set[int] = set()
        lines = [
            "GET /mqtt HTTP/1.1",
            f"Host: {host}:{port}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}",
            "Sec-WebSocket-Version: 13",
            *([f"Sec-WebSocket-Protocol: {offered}"] if offered is not None else []),
        ]
        self.send_bytes("\r\n".join([*lines, "", ""]).encode())
        head = b""
        while b"\r\n\r\n" not in head:
            got = self._socket.recv(1)
            if not got:
                raise Closed
            head += got
        status, *fields = head.decode("latin-1").split("\r\n")
        self.status = int(status.split()[1])
        named = dict(line.lower().split(": ", 1) for line in fields if ": " in line)
        self.protocol = named.get("sec-websocket-protocol")

    def send_bytes(self, data: bytes) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):
            self._socket.sendall(data)

    def send(self, *packets: bytes) -> None:
        for packet in packets:
            self.send_bytes(frame(BINARY, packet))

    def _fill(self) -> None:
        """Frames to the bytes that are in them; the end of either is the end."""
        while (whole := self._frame()) is None:
            self._socket.settimeout(PATIENCE)
            try:
                got = self._socket.recv(65536)
            except ConnectionResetError:
                got = b""
            if not got:
                raise Closed
            self.frames += got
        kind, payload = whole
        if kind == CLOSE:
            raise Closed
        if kind < _CONTROL:
            self.kinds.add(kind)
            self._buffer += payload

    def _frame(self) -> tuple[int, bytes] | None:
        data = self.frames
        if len(data) < 2:
            return None
        assert not data[1] & 0x80, "a server does not mask"
        size, at = data[1] & 0x7F, 2
        if size == 126:
            size, at = int.from_bytes(data[2:4], "big"), 4
        elif size == 127:
            size, at = int.from_bytes(data[2:10], "big"), 10
        if len(data) < at + size:
            return None
        self.frames = data[at + size :]
        return data[0] & 0x0F, data[at : at + size]
