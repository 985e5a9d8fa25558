"""The authenticator: the token of stations, as a bearer token of HTTP, and by challenge and response where it must not
cross the network: a station answers with its name and the HMAC of the challenge."""

import hmac
import secrets

from leafcuttr_greenhouse import TOKEN
from leafcuttr_sdk import (
    Authenticated,
    AuthenticationExchange,
    BearerToken,
    Broker,
    Challenge,
    Credentials,
    PluginError,
    Principal,
    Refused,
)


class SharedToken:
    def __init__(self, broker: Broker) -> None:
        token = broker.settings.optional_text(TOKEN)
        if not token:
            raise PluginError(f"{TOKEN} is not set")
        self._token = token.encode()

    async def authenticate(self, credentials: Credentials) -> Authenticated | None:
        if not isinstance(credentials, BearerToken):
            return None
        if hmac.compare_digest(credentials.token.encode("utf-8", "replace"), self._token):
            return Authenticated(Principal("User", "station"))
        return None

    def begin(self, mechanism: str) -> AuthenticationExchange:
        return Proof(self._token)


class Proof:
    """One exchange of CRAM-SHA256; its server speaks first."""

    def __init__(self, token: bytes) -> None:
        self._token = token
        self._challenge = b""

    async def step(self, data: bytes) -> Challenge | Authenticated | Refused:
        if not self._challenge:
            self._challenge = secrets.token_hex(16).encode()
            return Challenge(self._challenge)
        name, _, proof = data.decode("utf-8", "replace").rpartition(" ")
        right = hmac.digest(self._token, self._challenge, "sha256").hex()
        if name and hmac.compare_digest(proof.encode(), right.encode()):
            return Authenticated(Principal("Station", name), data=b"welcome")
        return Refused("the proof is wrong")
