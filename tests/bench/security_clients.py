#!/usr/bin/env python3
"""Many clients that connect at once: TCP, TLS, log-in by SCRAM-SHA-256, one answered request each; then they stay.

  security_clients.py HOST:PORT COUNT [--authority FILE] [--user NAME --password TEXT]

Prints one JSON line when all are served (`began` and `ended`, by time.monotonic), and ends with its standard input. One
thread, non-blocking sockets: the client takes as little of the processor as it can.
"""

import argparse
import base64
import hashlib
import hmac
import json
import os
import selectors
import socket
import ssl
import struct
import sys
import time
from collections.abc import Generator

from rawclient import framed

_API_VERSIONS, _SASL_HANDSHAKE, _SASL_AUTHENTICATE = 18, 17, 36
Steps = Generator[bytes, bytes, None]
"""Gives requests, and is sent the bodies of their answers."""

_SALTED: dict[tuple[bytes, int], bytes] = {}


def steps(user: str, password: str) -> Steps:
    if user:
        name = b"SCRAM-SHA-256"
        answer = yield framed(_SASL_HANDSHAKE, 1, struct.pack(">h", len(name)) + name)
        assert answer[:2] == b"\0\0", answer
        nonce = base64.b64encode(os.urandom(18)).decode()
        bare = f"n={user},r={nonce}"
        first = _auth_bytes((yield _authenticate(f"n,,{bare}")))
        fields = dict(part.split("=", 1) for part in first.split(","))
        proven = f"c=biws,r={fields['r']}"
        salted = _salted(password, base64.b64decode(fields["s"]), int(fields["i"]))
        key = hmac.digest(salted, b"Client Key", "sha256")
        signed = f"{bare},{first},{proven}".encode()
        signature = hmac.digest(hashlib.sha256(key).digest(), signed, "sha256")
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True))).decode()
        last = _auth_bytes((yield _authenticate(f"{proven},p={proof}")))
        assert last.startswith("v="), last
    yield framed(_API_VERSIONS, 0, b"")


def _salted(password: str, salt: bytes, iterations: int) -> bytes:
    """Once for all clients: it is the client's time, not the broker's."""
    if (salt, iterations) not in _SALTED:
        _SALTED[salt, iterations] = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, iterations)
    return _SALTED[salt, iterations]


def _authenticate(text: str) -> bytes:
    data = text.encode()
    return framed(_SASL_AUTHENTICATE, 0, struct.pack(">i", len(data)) + data)


def _auth_bytes(answer: bytes) -> str:
    error, message = struct.unpack_from(">hh", answer)
    assert error == 0, answer
    at = 4 + max(message, 0)
    (size,) = struct.unpack_from(">i", answer, at)
    return answer[at + 4 : at + 4 + size].decode()


class Client:
    """One connection. `turn` does what can be done without waiting, and says for what to wait; None: it is served."""

    def __init__(self, address: tuple[str, int], context: ssl.SSLContext | None, script: Steps) -> None:
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.connect_ex(address)
        self._context = context
        self._script = script
        self._connected = False
        self._out = b""
        self._in = b""

    def turn(self) -> int | None:
        try:
            return self._turn()
        except (ssl.SSLWantReadError, BlockingIOError):
            return selectors.EVENT_READ
        except ssl.SSLWantWriteError:
            return selectors.EVENT_WRITE

    def _turn(self) -> int | None:
        if not self._connected:
            if not isinstance(self.socket, ssl.SSLSocket):
                if error := self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                    raise OSError(error, os.strerror(error))
                if self._context is not None:
                    self.socket = self._context.wrap_socket(
                        self.socket, server_hostname="127.0.0.1", do_handshake_on_connect=False
                    )
            if isinstance(self.socket, ssl.SSLSocket):
                self.socket.do_handshake()
            self._connected = True
            self._out = next(self._script)
        while True:
            if self._out:
                self._out = self._out[self.socket.send(self._out) :]
            got = self.socket.recv(4096)
            if not got:
                raise ConnectionError("the broker closed the connection")
            self._in += got
            if len(self._in) >= 4 and len(self._in) - 4 >= struct.unpack_from(">i", self._in)[0]:
                answer, self._in = self._in[8:], b""
                try:
                    self._out = self._script.send(answer)
                except StopIteration:
                    return None


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("address")
    parser.add_argument("count", type=int)
    parser.add_argument("--authority")
    parser.add_argument("--user", default="")
    parser.add_argument("--password", default="")
    given = parser.parse_args()
    host, port = given.address.split(":")
    context = ssl.create_default_context(cafile=given.authority) if given.authority else None
    began = time.monotonic()
    waiting = selectors.DefaultSelector()
    held = [Client((host, int(port)), context, steps(given.user, given.password)) for _ in range(given.count)]
    for one in held:
        waiting.register(one.socket.fileno(), selectors.EVENT_WRITE, one)
    while waiting.get_map():
        for key, _ in waiting.select(60):
            one = key.data
            event = one.turn()
            if event is None:
                waiting.unregister(key.fd)
            elif event != key.events:
                waiting.modify(key.fd, event, one)
    print(json.dumps({"began": began, "ended": time.monotonic()}), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
