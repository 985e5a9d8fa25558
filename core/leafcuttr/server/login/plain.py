"""PLAIN (RFC 4616): the name and the password as they are."""

import hmac
from collections.abc import Mapping
from functools import partial
from typing import Final

import trio

from leafcuttr.server.login.mechanisms import LoginRefused, LoginStep
from leafcuttr.state.security.credentials import ScramMechanism
from leafcuttr.state.security.users import Users

_REFUSED: Final = "Authentication failed: Invalid username or password"


class PlainServer:
    """Against the users that the settings name, if they name some; else against those that are stored."""

    def __init__(self, named: Mapping[str, str] | None, users: Users, limiter: trio.CapacityLimiter) -> None:
        self.checks_stored = named is None
        self._named = named
        self._users = users
        self._limiter = limiter

    async def step(self, data: bytes) -> LoginStep:
        parts = data.split(b"\0")
        if len(parts) != 3:
            raise LoginRefused(f"Invalid SASL/PLAIN response: expected 3 tokens, got {min(len(parts), 4)}")
        try:
            authorization, name, password = (part.decode() for part in parts)
        except UnicodeDecodeError:
            raise LoginRefused("Authentication failed: not UTF-8") from None
        if not name or not password:
            what = "username" if not name else "password"
            raise LoginRefused(f"Authentication failed: {what} not specified")
        if not await self._fits(name, password):
            raise LoginRefused(_REFUSED)
        if authorization and authorization != name:
            raise LoginRefused(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        return LoginStep(b"", name)

    async def _fits(self, name: str, password: str) -> bool:
        if self._named is not None:
            # A user that there is not takes as long as a wrong password, which this is.
            wanted = self._named.get(name) or f"{password}x"
            return hmac.compare_digest(wanted.encode(), password.encode())
        return await trio.to_thread.run_sync(
            partial(self._fits_stored, name, password.encode()), limiter=self._limiter
        )

    def _fits_stored(self, name: str, password: bytes) -> bool:
        from leafcuttr.state.security.scram import fits, invented

        stored = self._users.credentials(name)
        mechanism = next(iter(sorted(stored)), ScramMechanism.SCRAM_SHA_256)
        credential = stored.get(mechanism) or invented(mechanism, name, self._users.secret)
        return fits(mechanism, credential, password)
