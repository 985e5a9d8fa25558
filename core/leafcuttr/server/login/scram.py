"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677), the server's side, without channel binding, as Kafka has it.

The server learns no password. A user that there is not gets a salt that is the same each time, and is refused at the
end as one with a wrong password.
"""

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from functools import partial
from typing import Final

import trio

from leafcuttr.server.login.mechanisms import LoginRefused, LoginStep
from leafcuttr.state.security.credentials import ScramCredential, ScramMechanism
from leafcuttr.state.security.scram import invented
from leafcuttr.state.security.users import Users

_FIRST: Final = re.compile(
    r"(?P<gs2>(?P<binding>n|y|p=[A-Za-z0-9.\-]+),(?:a=(?P<authorization>[^,]*))?,)"
    r"(?P<bare>(?P<reserved>m=[^,]*,)?n=(?P<name>[^,]*),r=(?P<nonce>[\x21-\x2B\x2D-\x7E]+)(?P<extensions>(?:,.*)?))"
)
_FINAL: Final = re.compile(
    r"(?P<without>c=(?P<binding>[A-Za-z0-9+/=]*),r=(?P<nonce>[\x21-\x2B\x2D-\x7E]+)(?:,[^p][^,]*)*),"
    r"p=(?P<proof>[A-Za-z0-9+/=]+)"
)
_SAFE: Final = re.compile(r"[^=]|=2C|=3D")


class ScramServer:
    """Two messages of the client: its name and nonce, and the proof. `nonce` is for tests with known vectors."""

    checks_stored = True

    def __init__(
        self,
        mechanism: ScramMechanism,
        users: Users,
        limiter: trio.CapacityLimiter,
        *,
        nonce: str | None = None,
    ) -> None:
        self._mechanism = mechanism
        self._users = users
        self._limiter = limiter
        self._own_nonce = secrets.token_urlsafe(24) if nonce is None else nonce
        self._name: str | None = None
        self._credential: ScramCredential | None = None
        self._gs2 = self._first_bare = self._server_first = self._nonce = ""

    async def step(self, data: bytes) -> LoginStep:
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise self._refused("a message is not UTF-8") from None
        if self._credential is None:
            return LoginStep(await self._begin(text))
        return self._end(text, self._credential)

    async def _begin(self, text: str) -> bytes:
        found = _FIRST.fullmatch(text)
        if found is None or found["reserved"]:
            raise self._refused("the first message is none of SCRAM")
        if found["binding"].startswith("p"):
            raise self._refused("channel binding is not offered")
        if "tokenauth=true" in found["extensions"].split(","):
            raise self._refused("there are no delegation tokens")
        name = _name_of(found["name"])
        authorization = found["authorization"]
        if name is None or (authorization and _name_of(authorization) != name):
            raise self._refused("the name is none, or another one than that to act for")
        self._gs2, self._first_bare = found["gs2"], found["bare"]
        self._nonce = found["nonce"] + self._own_nonce
        stored = self._users.credentials(name).get(self._mechanism)
        self._name = name
        if stored is None:
            # Where the secret is made the disk is written.
            invent = partial(lambda: invented(self._mechanism, name, self._users.secret))
            stored = await trio.to_thread.run_sync(invent, limiter=self._limiter)
        self._credential = stored
        salt = base64.b64encode(stored.salt).decode()
        self._server_first = f"r={self._nonce},s={salt},i={stored.iterations}"
        return self._server_first.encode()

    def _end(self, text: str, credential: ScramCredential) -> LoginStep:
        """RFC 5802, section 3: whether ClientProof was made with the password."""
        found = _FINAL.fullmatch(text)
        if (
            found is None
            # Not equal: librdkafka puts its own nonce before it once more, which Kafka accepts too.
            or not found["nonce"].endswith(self._nonce)
            or _base64(found["binding"]) != self._gs2.encode()
        ):
            raise self._refused("the last message does not belong to the first")
        message = ",".join((self._first_bare, self._server_first, found["without"])).encode()
        hash_name = self._mechanism.hash_name
        signature = hmac.digest(credential.stored_key, message, hash_name)
        proof = _base64(found["proof"])
        if len(proof) != len(signature):
            raise self._invalid()
        client_key = bytes(one ^ other for one, other in zip(proof, signature, strict=True))
        stored_key = hashlib.new(hash_name, client_key).digest()
        if not hmac.compare_digest(stored_key, credential.stored_key):
            raise self._invalid()
        proved = hmac.digest(credential.server_key, message, hash_name)
        return LoginStep(b"v=" + base64.b64encode(proved), self._name)

    def _invalid(self) -> LoginRefused:
        return LoginRefused(
            "Authentication failed during authentication due to invalid credentials with SASL mechanism "
            f"{self._mechanism.sasl_name}"
        )

    def _refused(self, why: str) -> LoginRefused:
        return LoginRefused(f"Authentication failed with SASL mechanism {self._mechanism.sasl_name}: {why}")


def _name_of(escaped: str) -> str | None:
    """RFC 5802, section 5.1; None for what is no saslname."""
    if not escaped or _SAFE.sub("", escaped):
        return None
    return escaped.replace("=2C", ",").replace("=3D", "=")


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
