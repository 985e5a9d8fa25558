"""JKS, the keystores of Java before version 9: keys with their certificates, and trusted certificates. No file is read.

The format is that of `sun.security.provider.JavaKeyStore`: a header, entries, and a SHA-1 of all of it behind the
password. Private keys are encrypted with a stream made by SHA-1 from the password and a salt
(`sun.security.provider.KeyProtector`).
"""

import hmac
from collections.abc import Iterator
from hashlib import sha1
from typing import Final, NamedTuple

from leafcuttr.net.der import OBJECT_IDENTIFIER, OCTET_STRING, SEQUENCE, DerError, first, object_identifier

MAGIC: Final = b"\xfe\xed\xfe\xed"
_DIGEST: Final = 20
"""Of SHA-1. A salt is as long."""
_LONGEST_KEY: Final = 64 << 10
"""Bytes. It is decrypted in Python, octet by octet."""
_WHITENER: Final = b"Mighty Aphrodite"
_KEY_PROTECTOR: Final = "1.3.6.1.4.1.42.2.17.1.1"
_VERSIONS: Final = (1, 2)
_KEY, _TRUSTED = 1, 2


class JksError(ValueError):
    """It is no JKS that can be read. The text says why."""


class JksPasswordError(JksError):
    """The password is another one."""


class JksEntry(NamedTuple):
    """A key, still encrypted, with its certificates in DER; or without a key one trusted certificate."""

    alias: str
    protected_key: bytes | None
    certificates: tuple[bytes, ...]

    def key(self, password: str) -> bytes:
        """The private key, PKCS#8 in DER. Raises JksPasswordError, JksError."""
        assert self.protected_key is not None
        return _unprotected(self.protected_key, _chars(password))


def read_jks(data: bytes, password: str | None) -> list[JksEntry]:
    """All entries. Without a password nothing says whether the file has been changed, as in Java. Raises JksError and
    JksPasswordError."""
    if len(data) < len(MAGIC) + 8 + _DIGEST or not data.startswith(MAGIC):
        raise JksError("it ends too early")
    content, digest = data[:-_DIGEST], data[-_DIGEST:]
    if password is not None:
        found = sha1(_chars(password) + _WHITENER + content, usedforsecurity=False).digest()
        if not hmac.compare_digest(found, digest):
            raise JksPasswordError("the password is another one, or the file has been changed")
    reader = _Reader(content, len(MAGIC))
    version = reader.number(4)
    if version not in _VERSIONS:
        raise JksError(f"its version is {version}")
    return list(_entries(reader, version))


def _entries(reader: "_Reader", version: int) -> Iterator[JksEntry]:
    for _ in range(reader.number(4)):
        kind = reader.number(4)
        alias = reader.text()
        reader.take(8)  # when it was made
        if kind == _KEY:
            protected = reader.take(reader.number(4))
            chain = tuple(_certificate(reader, version) for _ in range(reader.number(4)))
            yield JksEntry(alias, protected, chain)
        elif kind == _TRUSTED:
            yield JksEntry(alias, None, (_certificate(reader, version),))
        else:
            raise JksError(f"an entry of the kind {kind}")


def _certificate(reader: "_Reader", version: int) -> bytes:
    if version > 1:
        kind = reader.text()
        if kind not in ("X.509", "X509"):
            raise JksError(f"a certificate of the kind {kind[:40]!r}")
    return reader.take(reader.number(4))


class _Reader:
    """Big-endian fields. Every method raises JksError where less is left than it needs."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self._at = data, at

    def take(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._data):
            raise JksError("it ends too early")
        found, self._at = self._data[self._at : end], end
        return found

    def number(self, octets: int) -> int:
        return int.from_bytes(self.take(octets), "big")

    def text(self) -> str:
        return self.take(self.number(2)).decode("utf-8", "replace")


def _unprotected(protected: bytes, password: bytes) -> bytes:
    """EncryptedPrivateKeyInfo (RFC 5208, 6) of Java's own algorithm: salt, key, SHA-1 of password and key."""
    try:
        algorithm, encrypted = first(protected).fields(SEQUENCE, 2)[:2]
        kind = object_identifier(algorithm.fields(SEQUENCE, 1)[0].expect(OBJECT_IDENTIFIER))
        content = encrypted.expect(OCTET_STRING)
    except DerError as error:
        raise JksError(f"its private key cannot be read: {error}") from None
    if kind != _KEY_PROTECTOR:
        raise JksError(f"its private key is encrypted by the algorithm {kind}")
    if not 2 * _DIGEST <= len(content) <= _LONGEST_KEY:
        raise JksError(f"its private key has {len(content)} bytes")
    salt, encrypted_key, check = content[:_DIGEST], content[_DIGEST:-_DIGEST], content[-_DIGEST:]
    stream, block = bytearray(), salt
    while len(stream) < len(encrypted_key):
        block = sha1(password + block, usedforsecurity=False).digest()
        stream += block
    key = bytes(one ^ other for one, other in zip(encrypted_key, stream, strict=False))
    if not hmac.compare_digest(sha1(password + key, usedforsecurity=False).digest(), check):
        raise JksPasswordError("the password is another one")
    return key


def _chars(password: str) -> bytes:
    """As Java's `char[]`."""
    return password.encode("utf-16-be", "surrogatepass")
