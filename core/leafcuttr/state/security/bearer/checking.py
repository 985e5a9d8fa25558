"""Bearer tokens as the settings of a listener have them: `sasl.oauthbearer.*`, for all listeners, for one, or for
OAUTHBEARER of one, the narrowest first (KIP-768).
"""

from functools import partial
from typing import Final

import trio

from leafcuttr.config.setting import Value
from leafcuttr.config.settings import Settings
from leafcuttr.errors import StartError
from leafcuttr.state.security.bearer.key_source import KeySettings, KeySource
from leafcuttr.state.security.bearer.keys import KeysError
from leafcuttr.state.security.bearer.token import (
    CheckedToken,
    ClaimRules,
    checked_claims,
    read_token,
)
from leafcuttr.state.security.mechanism_settings import setting_of
from leafcuttr_sdk import Clock

_URL: Final = "sasl.oauthbearer.jwks.endpoint.url"
_MECHANISM: Final = "OAUTHBEARER"


class TokenChecker:
    """Tokens against the keys of one issuer. `limiter` is for the threads in which signatures are checked."""

    def __init__(
        self, keys: KeySource, rules: ClaimRules, clock: Clock, limiter: trio.CapacityLimiter
    ) -> None:
        self._keys = keys
        self._rules = rules
        self._clock = clock
        self._limiter = limiter

    async def check(self, text: str) -> CheckedToken:
        """Raises TokenRefused."""
        token = read_token(text)
        key_id = token.header.get("kid")
        if isinstance(key_id, str) and not self._keys.keys.has(key_id):
            await self._keys.find_unknown(self._clock)
        check = partial(self._keys.keys.check, token)
        await trio.to_thread.run_sync(check, limiter=self._limiter)
        return checked_claims(token.claims, self._rules, self._clock.now_ms() / 1000)


def read_key_source(settings: Settings, listener: str, ca_file: str | None = None) -> KeySource:
    """The keys that a listener needs, read. Raises StartError, one line. Blocks."""
    name, wanted = key_settings(settings, listener, ca_file)
    try:
        source = KeySource(wanted)
        source.read()
    except (KeysError, ValueError) as error:
        raise StartError(f"{name}={wanted.url}: no keys to check tokens with: {error}") from None
    return source


def key_settings(settings: Settings, listener: str, ca_file: str | None = None) -> tuple[str, KeySettings]:
    """Where the keys come from, and the setting that says so. Raises StartError where none does."""
    look = partial(setting_of, settings, listener, _MECHANISM)
    name, url = look(_URL)
    if not url:
        raise StartError(
            f"the listener {listener} offers OAUTHBEARER, and nothing says which keys sign its tokens: "
            f"{_URL} is the issuer's JSON Web Key Set (https:, or file: and a path)"
        )
    return name, KeySettings(
        str(url),
        _seconds(look("sasl.oauthbearer.jwks.endpoint.refresh.ms")[1]),
        _seconds(look("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms")[1]),
        _seconds(look("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms")[1]),
        ca_file=ca_file,
    )


def claim_rules(settings: Settings, listener: str) -> ClaimRules:
    """What the tokens of a listener have to say."""
    look = partial(setting_of, settings, listener, _MECHANISM)
    issuer, audiences = (
        look("sasl.oauthbearer.expected.issuer")[1],
        look("sasl.oauthbearer.expected.audience")[1],
    )
    skew = look("sasl.oauthbearer.clock.skew.seconds")[1]
    return ClaimRules(
        str(issuer) if issuer else None,
        audiences if isinstance(audiences, tuple) else (),
        str(look("sasl.oauthbearer.sub.claim.name")[1]),
        str(look("sasl.oauthbearer.scope.claim.name")[1]),
        float(skew) if isinstance(skew, int) else 0.0,
    )


def _seconds(value: Value) -> float:
    return value / 1000 if isinstance(value, int) else 0.0
