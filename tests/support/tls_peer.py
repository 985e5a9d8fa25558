"""Certificates of a test, and what a client sees of a handshake with a listener."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path
from typing import NamedTuple, cast

import trustme


class Identity(NamedTuple):
    """A key with its certificates: as a file with both, and as texts."""

    file: str
    key: str
    chain: str


class Certificates:
    """An authority and what it signs, in files of one folder."""

    def __init__(self, folder: Path, name: str = "ca") -> None:
        self.authority = trustme.CA(key_type=trustme.KeyType.ECDSA)
        self.trusted = str(folder / f"{name}.pem")
        self.trusted_text = self.authority.cert_pem.bytes().decode()
        self.authority.cert_pem.write_to_path(self.trusted)
        self._folder, self._name = folder, name

    def issue(self, *names: str, common_name: str | None = None) -> Identity:
        found = self.authority.issue_cert(*names, common_name=common_name)
        file = self._folder / f"{self._name}-{names[0] if names else common_name}.pem"
        found.private_key_and_cert_chain_pem.write_to_path(file)
        chain = b"".join(each.bytes() for each in found.cert_chain_pems)
        return Identity(str(file), found.private_key_pem.bytes().decode(), chain.decode())

    def client(
        self, identity: Identity | None = None, *, only: ssl.TLSVersion | None = None
    ) -> ssl.SSLContext:
        """What a client has that trusts this authority."""
        context = ssl.create_default_context(cafile=self.trusted)
        if identity is not None:
            context.load_cert_chain(identity.file)
        if only is not None:
            context.minimum_version = context.maximum_version = only
        return context


class Seen(NamedTuple):
    """Of a handshake: the version, the cipher suite by OpenSSL's name, and the server's names."""

    version: str
    cipher: str
    names: tuple[str, ...]


def shake_hands(port: int, context: ssl.SSLContext) -> Seen | str:
    """What the client sees; a text is why there is no connection."""
    try:
        with (
            socket.create_connection(("127.0.0.1", port), 60) as sock,
            context.wrap_socket(sock, server_hostname="127.0.0.1") as tls,
        ):
            # In TLS 1.3 the server judges the client's certificate after the client is done: ApiVersions v0.
            tls.sendall(b"\0\0\0\x0a" + b"\0\x12\0\0\0\0\0\1\xff\xff")
            if not tls.recv(4):
                return "the connection was closed"
            found = tls.getpeercert() or {}
            pairs = cast(tuple[tuple[str, str], ...], found.get("subjectAltName", ()))
            names = tuple(value for _, value in pairs)
            return Seen(tls.version() or "", (tls.cipher() or ("",))[0], names)
    except ssl.SSLError as error:
        return error.reason or str(error)
    except ConnectionError:
        return "the connection was reset"
