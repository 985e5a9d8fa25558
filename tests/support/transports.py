"""Transports that a broker in this process can be given in place of plain sockets, with what TLS will bring."""

from __future__ import annotations

import socket
from typing import Any

from leafcuttr.server.transport import PlainTransport, Sendable


class BytesOnly:
    """Cannot send files; takes a part of what it is given, and every third time nothing until it is writable. What it
    has refused has to come again, as OpenSSL demands."""

    can_send_files = False
    buffered = 0
    most_sent = 50_000

    def __init__(self, sock: socket.socket) -> None:
        self.plain = PlainTransport(sock)
        self.calls = 0
        self._refused = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plain, name)

    @property
    def descriptor(self) -> int:
        return self.plain.descriptor

    def send(self, data: Sendable, /) -> int:
        self.calls += 1
        data = bytes(data[: self.most_sent])
        assert data.startswith(self._refused), "other bytes than those that were refused"
        self._refused = b""
        if not self.calls % 3:
            self._refused = data
            raise BlockingIOError
        return self.plain.send(data)

    def send_file(self, region: object) -> int:
        raise AssertionError("this transport cannot send files")


class Buffering:
    """Takes from the socket more than was requested, and hands it out in pieces: what is left shows in `buffered` and
    nowhere else, as decrypted bytes do."""

    can_send_files = True
    most_received = 700
    most_taken = 1 << 20
    """From the socket, at once."""

    def __init__(self, sock: socket.socket) -> None:
        self.plain = PlainTransport(sock)
        self._received = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plain, name)

    @property
    def descriptor(self) -> int:
        return self.plain.descriptor

    @property
    def buffered(self) -> int:
        return len(self._received)

    def receive_into(self, buffer: memoryview, /) -> int:
        if not self._received:
            taken = bytearray(self.most_taken)
            count = self.plain.receive_into(memoryview(taken))
            self._received = bytes(taken[:count])
        size = min(len(buffer), self.most_received, len(self._received))
        buffer[:size] = self._received[:size]
        self._received = self._received[size:]
        return size
