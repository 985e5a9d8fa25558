"""The server's side of SCRAM, written from RFC 5802 for tests, and of PLAIN, as scripts for a `ScriptedBroker`.

    broker = ScriptedBroker({**SaslServer("SCRAM-SHA-256", "user", "pencil").answers, ...})

Like a broker it keeps keys made of the password, and compares them in the words of the RFC: StoredKey, ServerKey.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode, b64encode
from dataclasses import dataclass
from typing import Any

from leafcuttr.errors import ErrorCode
from leafcuttr.wire.api import ApiKey
from leafcuttr.wire.messages.sasl_authenticate import SaslAuthenticateResponse
from leafcuttr.wire.messages.sasl_handshake import SaslHandshakeResponse
from support.scripted_broker import Call, Script


@dataclass
class SaslServer:
    """Has one mechanism and one user. `lifetime_ms` is how long sessions last; `impostor`: it does not know the
    password, and says yes to any proof."""

    mechanism: str
    user: str
    password: str
    iterations: int = 4096
    lifetime_ms: int = 0
    impostor: bool = False
    salt: bytes = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    more_nonce: str = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    authenticated: int = 0
    """How many authentications have succeeded."""

    @property
    def answers(self) -> dict[int, Script]:
        return {
            ApiKey.SASL_HANDSHAKE: self.handshake,
            ApiKey.SASL_AUTHENTICATE: self.authenticate,
        }

    def handshake(self, call: Call) -> Any:
        call.kept.pop("first", None)
        code = 0 if call.request.mechanism == self.mechanism else ErrorCode.UNSUPPORTED_SASL_MECHANISM
        return SaslHandshakeResponse(error_code=code, mechanisms=[self.mechanism])

    def authenticate(self, call: Call) -> Any:
        said = bytes(call.request.auth_bytes).decode()
        if self.mechanism == "PLAIN":
            return self._done(b"") if said == f"\0{self.user}\0{self.password}" else self._refused()
        if "first" not in call.kept:
            bare = said.removeprefix("n,,")
            name, _, nonce = bare.partition(",r=")
            call.kept["first"] = bare, nonce.partition(",")[0] + self.more_nonce
            if name != "n=" + self.user.replace("=", "=3D").replace(",", "=2C"):
                return self._refused()
            return SaslAuthenticateResponse(auth_bytes=self.server_first(call.kept["first"][1]))
        bare, nonce = call.kept["first"]
        final = self.server_final(bare, nonce, said)
        return self._refused() if final is None else self._done(final)

    def server_first(self, nonce: str) -> bytes:
        return f"r={nonce},s={b64encode(self.salt).decode()},i={self.iterations}".encode()

    def server_final(self, client_first_bare: str, nonce: str, client_final: str) -> bytes | None:
        """None if the proof is wrong."""
        without_proof, _, proof = client_final.rpartition(",p=")
        message = ",".join((client_first_bare, self.server_first(nonce).decode(), without_proof)).encode()
        name = self.mechanism.removeprefix("SCRAM-").replace("-", "").lower()
        password = "anything" if self.impostor else self.password
        salted = hashlib.pbkdf2_hmac(name, password.encode(), self.salt, self.iterations)
        stored = hashlib.new(name, hmac.digest(salted, b"Client Key", name)).digest()
        signature = hmac.digest(stored, message, name)
        client_key = bytes(one ^ other for one, other in zip(b64decode(proof), signature, strict=True))
        proved = hashlib.new(name, client_key).digest() == stored and without_proof == f"c=biws,r={nonce}"
        if not proved and not self.impostor:
            return None
        return b"v=" + b64encode(hmac.digest(hmac.digest(salted, b"Server Key", name), message, name))

    def _done(self, token: bytes) -> SaslAuthenticateResponse:
        self.authenticated += 1
        return SaslAuthenticateResponse(auth_bytes=token, session_lifetime_ms=self.lifetime_ms)

    def _refused(self) -> SaslAuthenticateResponse:
        return SaslAuthenticateResponse(
            error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message="Authentication failed"
        )
