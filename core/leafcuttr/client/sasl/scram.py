"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677), the client's side, without channel binding, as Kafka has it.

Neither side learns the password from what is sent, and the server proves that it knows it too. As in Kafka and
librdkafka, names and passwords are UTF-8 as they are, without SASLprep: the broker has made its keys of the same bytes.
A server can make the client work by a high number of iterations, so that number is bounded.
"""

import base64
import binascii
import hashlib
import hmac
import secrets
from typing import Final

from leafcuttr.client.sasl.mechanism import SaslRefusal
from leafcuttr.client.settings import ClientSasl

HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
LEAST_ITERATIONS: Final = 4096
"""RFC 7677, section 4. Kafka makes no keys with fewer, and Java clients take none."""
MOST_ITERATIONS: Final = 1_000_000
"""Half a second of a processor; Kafka makes no keys with more than 16,384."""
_GS2: Final = "n,,"


class Scram:
    """Three messages: names and nonces, the proof, the server's signature. `nonce` is for tests with known vectors."""

    def __init__(self, sasl: ClientSasl, *, nonce: str | None = None) -> None:
        self._sasl = sasl
        self._hash = HASHES[sasl.mechanism]
        self._nonce = secrets.token_urlsafe(24) if nonce is None else nonce
        self._first_bare = f"n={_escaped(sasl.username)},r={self._nonce}"
        if sasl.is_token:
            self._first_bare += ",tokenauth=true"  # KIP-48
        self._signature: bytes | None = None

    def first(self) -> bytes:
        return (_GS2 + self._first_bare).encode()

    def respond(self, challenge: bytes) -> bytes | None:
        try:
            text = challenge.decode()
        except UnicodeDecodeError:
            raise SaslRefusal("what it answers in SCRAM is not UTF-8") from None
        if self._signature is None:
            return self._prove(text)
        self._verify(text, self._signature)
        return None

    def _prove(self, server_first: str) -> bytes:
        """RFC 5802, section 3."""
        nonce, salt, iterations = _read_server_first(server_first, self._nonce)
        salted = hashlib.pbkdf2_hmac(self._hash, self._sasl.password.encode(), salt, iterations)
        client_key = self._hmac(salted, b"Client Key")
        stored_key = hashlib.new(self._hash, client_key).digest()
        without_proof = f"c={_base64(_GS2.encode())},r={nonce}"
        message = ",".join((self._first_bare, server_first, without_proof)).encode()
        signature = self._hmac(stored_key, message)
        proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
        self._signature = self._hmac(self._hmac(salted, b"Server Key"), message)
        return f"{without_proof},p={_base64(proof)}".encode()

    def _verify(self, server_final: str, signature: bytes) -> None:
        attributes = _attributes(server_final)
        if "e" in attributes:
            raise SaslRefusal(f"it ends SCRAM: {attributes['e'][:100]!r}")
        if not hmac.compare_digest(_from_base64("v", attributes), signature):
            raise SaslRefusal(
                "it has not proved in SCRAM that it knows the password: it may be another server"
            )

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._hash)


def _read_server_first(text: str, own_nonce: str) -> tuple[str, bytes, int]:
    attributes = _attributes(text)
    if "m" in attributes:
        raise SaslRefusal("it requires an extension of SCRAM that we do not have")
    nonce = attributes.get("r", "")
    if not nonce.startswith(own_nonce) or len(nonce) == len(own_nonce):
        raise SaslRefusal("its nonce in SCRAM does not follow ours")
    salt, count = _from_base64("s", attributes), attributes.get("i", "")
    if not salt:
        raise SaslRefusal("its salt in SCRAM is empty")
    # Not int() of any length: the text is the server's.
    iterations = int(count) if count.isascii() and count.isdigit() and len(count) < 10 else -1
    if not LEAST_ITERATIONS <= iterations <= MOST_ITERATIONS:
        raise SaslRefusal(
            f"it wants {count[:20]!r} iterations of SCRAM; from {LEAST_ITERATIONS} to {MOST_ITERATIONS} are made"
        )
    return nonce, salt, iterations


def _attributes(text: str) -> dict[str, str]:
    """`a=value,b=value`; a value may contain `=`."""
    found: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals or len(name) != 1 or name in found:
            raise SaslRefusal(f"what it answers is no SCRAM: {text[:60]!r}")
        found[name] = value
    return found


def _escaped(name: str) -> str:
    return name.replace("=", "=3D").replace(",", "=2C")


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _from_base64(name: str, attributes: dict[str, str]) -> bytes:
    try:
        return base64.b64decode(attributes.get(name, ""), validate=True)
    except (binascii.Error, ValueError):
        raise SaslRefusal(f"its {name}= in SCRAM is no base64") from None
