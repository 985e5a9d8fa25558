"""PLAIN (RFC 4616): the name and the password as they are."""

import hmac
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, TypeAlias

import trio

from leafcuttr.server.login.mechanisms import LoginRefused, LoginStep
from leafcuttr.state.security.passwords import fitting_credential
from leafcuttr.state.security.users import Users

_REFUSED: Final = "Authentication failed: Invalid username or password"

NamedPasswords: TypeAlias = Callable[[], Mapping[str, str] | None]
"""The names and passwords that the settings have now; None: they name nobody."""


class PlainServer:
    """Against the users that the settings name, if they name some; else against those that are stored."""

    def __init__(self, named: NamedPasswords, users: Users, limiter: trio.CapacityLimiter) -> None:
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
        still_holds = await self._shown(name, password)
        if still_holds is None:
            raise LoginRefused(_REFUSED)
        if authorization and authorization != name:
            raise LoginRefused(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        return LoginStep(b"", name, still_holds=still_holds)

    async def _shown(self, name: str, password: str) -> Callable[[], bool] | None:
        """Whether it is the password, now and later; None: it is not."""
        named = self._named()
        if named is not None:
            # A user that there is not takes as long as a wrong password, which this is.
            wanted = named.get(name) or f"{password}x"
            right = hmac.compare_digest(wanted.encode(), password.encode())
            return partial(self._is_named, name, wanted) if right else None
        credential = await fitting_credential(self._users, name, password.encode(), self._limiter)
        return None if credential is None else partial(self._users.has, name, credential)

    def _is_named(self, name: str, password: str) -> bool:
        named = self._named()
        return named is not None and named.get(name) == password
