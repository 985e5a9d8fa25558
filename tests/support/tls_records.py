"""A client of TLS 1.3 that writes its own records behind the handshake: what Python's ssl module does not send.

    client = RecordClient(sock, context)   # shakes hands
    sock.sendall(client.key_updates(1000))

Keys are those that ssl tells in the format of NSS key logs; the rest is RFC 8446, sections 5 and 7.
"""

from __future__ import annotations

import socket
import ssl
import tempfile
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256, SHA384
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

_HANDSHAKE: Final = 22
_APPLICATION_DATA: Final = 23
_KEY_UPDATE_REQUESTED: Final = b"\x18\x00\x00\x01\x01"


class RecordClient:
    """One connection, over a socket that is connected. What the server sends is not read."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, host: str = "127.0.0.1") -> None:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder, "keys")
            context.keylog_filename = str(log)
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            tls = context.wrap_bio(incoming, outgoing, server_hostname=host)
            while True:
                try:
                    tls.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    sock.sendall(outgoing.read())
                    incoming.write(sock.recv(65536))
            sock.sendall(outgoing.read())
            lines = [line.split() for line in log.read_text().splitlines() if line[0] != "#"]
        self._secret = next(bytes.fromhex(one[2]) for one in lines if one[0] == "CLIENT_TRAFFIC_SECRET_0")
        name = (tls.cipher() or ("",))[0]
        assert "AES" in name, name
        self._hash = SHA384() if name.endswith("SHA384") else SHA256()
        self._key_bytes = 32 if "256_GCM" in name else 16
        self._use_secret()

    def _expand(self, label: str, size: int) -> bytes:
        full = b"tls13 " + label.encode()
        info = size.to_bytes(2, "big") + bytes([len(full)]) + full + b"\0"
        return HKDFExpand(self._hash, size, info).derive(self._secret)

    def _use_secret(self) -> None:
        self._cipher, self._iv = AESGCM(self._expand("key", self._key_bytes)), self._expand("iv", 12)
        self._sequence = 0

    def record(self, data: bytes, kind: int = _APPLICATION_DATA) -> bytes:
        """One record of this content, which may be empty."""
        inner = data + bytes([kind])
        header = b"\x17\x03\x03" + (len(inner) + 16).to_bytes(2, "big")
        nonce = (int.from_bytes(self._iv, "big") ^ self._sequence).to_bytes(12, "big")
        self._sequence += 1
        return header + self._cipher.encrypt(nonce, inner, header)

    def key_updates(self, count: int) -> bytes:
        """So many changes of our keys, each of which wants one of the server's (RFC 8446, 4.6.3)."""
        found = bytearray()
        for _ in range(count):
            found += self.record(_KEY_UPDATE_REQUESTED, _HANDSHAKE)
            self._secret = self._expand("traffic upd", self._hash.digest_size)
            self._use_secret()
        return bytes(found)
