"""A mechanism of a plugin: what its exchange says, as a log-in sees it.

What comes here is already well formed, and fails with one line (`plugins.authentication`).
"""

from typing import Final

from leafcuttr.server.login.mechanisms import LoginRefused, LoginStep
from leafcuttr_sdk.authentication import AuthenticationExchange, Challenge, Refused

_LATEST_MS: Final = 1 << 52
"""An end behind this is none: SaslAuthenticate could not say it."""


class PluggedServer:
    """One log-in by the mechanism of this name."""

    def __init__(self, mechanism: str, exchange: AuthenticationExchange) -> None:
        self._mechanism = mechanism
        self._exchange = exchange

    async def step(self, data: bytes) -> LoginStep:
        outcome = await self._exchange.step(data)
        if isinstance(outcome, Challenge):
            return LoginStep(outcome.data)
        if isinstance(outcome, Refused):
            raise self._refused(outcome.reason)
        kind, name = outcome.principal
        if not _is_utf8(kind) or not _is_utf8(name):
            raise self._refused("the principal is not UTF-8")
        expires_ms = outcome.expires_ms
        if expires_ms is not None and expires_ms > _LATEST_MS:
            expires_ms = None
        return LoginStep(outcome.data, name, expires_ms, outcome.still_holds, principal_type=kind)

    def _refused(self, why: str) -> LoginRefused:
        return LoginRefused(
            f"Authentication failed with SASL mechanism {self._mechanism}",
            f"Authentication failed with SASL mechanism {self._mechanism}: {why}",
        )


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
