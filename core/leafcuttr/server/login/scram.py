"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677), the server's side, without channel binding, as Kafka has it.

The server learns no password. A user that there is not gets a salt that is the same each time, and is refused at the
end as one with a wrong password; so does a delegation token (KIP-48), whose id is its name and whose HMAC the password.
"""

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from functools import partial
from typing import Final

import trio

from leafcuttr.server.login.mechanisms import LoginRefused, LoginStep
from leafcuttr.state.security.credentials import ScramCredential, ScramMechanism
from leafcuttr.state.security.delegation_tokens import DelegationToken, DelegationTokens
from leafcuttr.state.security.scram import LEAST_ITERATIONS, invented, usual_shape
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

    def __init__(
        self,
        mechanism: ScramMechanism,
        users: Users,
        limiter: trio.CapacityLimiter,
        *,
        tokens: DelegationTokens | None = None,
        now_ms: Callable[[], int] = lambda: 0,
        nonce: str | None = None,
    ) -> None:
        """`tokens` are delegation tokens, which expire by `now_ms`; None: there are none."""
        self._mechanism = mechanism
        self._users = users
        self._tokens = tokens
        self._now_ms = now_ms
        self._limiter = limiter
        self._own_nonce = secrets.token_urlsafe(24) if nonce is None else nonce
        self._name: str | None = None
        self._token: DelegationToken | None = None
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
        by_token = "tokenauth=true" in found["extensions"].split(",")
        if by_token and self._tokens is None:
            raise self._refused("there are no delegation tokens (delegation.token.secret.key)")
        name = _name_of(found["name"])
        authorization = found["authorization"]
        if name is None or (authorization and _name_of(authorization) != name):
            raise self._refused("the name is none, or another one than that to act for")
        self._gs2, self._first_bare = found["gs2"], found["bare"]
        self._nonce = found["nonce"] + self._own_nonce
        self._name = name
        self._credential = credential = await self._of_token(name) if by_token else await self._of_user(name)
        salt = base64.b64encode(credential.salt).decode()
        self._server_first = f"r={self._nonce},s={salt},i={credential.iterations}"
        return self._server_first.encode()

    async def _of_user(self, name: str) -> ScramCredential:
        users, mechanism = self._users, self._mechanism
        await users.have_secret(self._limiter)
        # The same work whether or not there is such a user: how long it takes shall not tell that.
        shape = users.shape_of_nobody(name, mechanism, usual_shape(mechanism))
        nobody = invented(shape, name, users.secret)
        return users.credentials(name).get(mechanism, nobody)

    async def _of_token(self, token_id: str) -> ScramCredential:
        assert self._tokens is not None
        token = self._tokens.get(token_id)
        if token is None or token.has_expired(self._now_ms()):
            await self._users.have_secret(self._limiter)
            return invented(usual_shape(self._mechanism, LEAST_ITERATIONS), token_id, self._users.secret)
        self._token, self._name = token, token.owner.name
        made = partial(self._tokens.credential, token, self._mechanism)
        return await trio.to_thread.run_sync(made, limiter=self._limiter)

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
        return self._done(b"v=" + base64.b64encode(proved), self._name or "", credential)

    def _done(self, answer: bytes, name: str, credential: ScramCredential) -> LoginStep:
        token = self._token
        if token is None or self._tokens is None:
            return LoginStep(answer, name, still_holds=partial(self._users.has, name, credential))
        holds = partial(self._tokens.holds, token)
        return LoginStep(answer, name, expires_ms=token.expires_ms, still_holds=holds, by_token=True)

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
