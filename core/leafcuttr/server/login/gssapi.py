"""GSSAPI (RFC 4752): Kerberos tickets. What a ticket says is `state.security.kerberos.acceptor`, which blocks and so
runs in a worker thread.

Behind the tickets the two agree on a security layer. There is none but none, as in Kafka: TLS protects what follows.

| awaited | what follows |
|---|---|
| a token | a token, until the client is known; then, with or without a last token, the layers |
| nothing, if there was a last token | the layers |
| the layer and the authorization id | the end |
"""

from collections.abc import Callable
from enum import Enum
from typing import Final, NamedTuple, TypeVar

import trio

from leafcuttr.server.login.mechanisms import LoginRefused, LoginStep
from leafcuttr.state.security.kerberos.acceptor import Acceptor, KerberosError, SecurityContext
from leafcuttr.state.security.kerberos.names import KerberosRules, NoShortName, parse_principal

_LAYERS: Final = b"\x01\0\0\0"
"""RFC 4752, section 3.2: no security layer, and so no largest message of one."""
_NO_LAYER: Final = 1
_REFUSED: Final = (
    "Authentication failed during authentication due to invalid credentials with SASL mechanism GSSAPI"
)
_Made = TypeVar("_Made")


class _Awaited(Enum):
    TOKEN = "token"
    NOTHING = "nothing"
    LAYER = "layer"


class _Client(NamedTuple):
    principal: str
    user: str
    expires_ms: int | None


class GssapiServer:
    """One log-in with a ticket. `own_realm` is that of the service, where the machine has no default one."""

    def __init__(
        self,
        acceptor: Callable[[], Acceptor],
        rules: KerberosRules,
        own_realm: str,
        limiter: trio.CapacityLimiter,
        now_ms: Callable[[], int],
    ) -> None:
        """`acceptor` blocks and raises KerberosError, ImportError."""
        self._acceptor = acceptor
        self._rules = rules
        self._own_realm = own_realm
        self._limiter = limiter
        self._now_ms = now_ms
        self._awaited = _Awaited.TOKEN
        self._context: SecurityContext | None = None
        self._client: _Client | None = None

    async def step(self, data: bytes) -> LoginStep:
        if self._awaited is _Awaited.TOKEN:
            return LoginStep(await self._in_worker(self._accept, data))
        if self._awaited is _Awaited.NOTHING:
            if data:
                raise LoginRefused(_REFUSED, "GSSAPI: the client answers the last token")
            return LoginStep(await self._in_worker(self._layers))
        return await self._in_worker(self._end, data)

    async def _in_worker(self, call: Callable[..., _Made], *arguments: bytes) -> _Made:
        """Raises LoginRefused."""
        try:
            return await trio.to_thread.run_sync(call, *arguments, limiter=self._limiter)
        except (KerberosError, NoShortName, ImportError) as error:
            raise LoginRefused(_REFUSED, f"GSSAPI: {error}") from None

    def _accept(self, token: bytes) -> bytes:
        acceptor = self._acceptor()
        if self._context is None:
            self._context = acceptor.begin()
        shown = self._context.accept(token)
        if shown.principal is None:
            return shown.answer
        self._client = self._known(shown.principal, shown.lasts_s, acceptor.default_realm or self._own_realm)
        if shown.answer:
            self._awaited = _Awaited.NOTHING
            return shown.answer
        return self._layers()

    def _known(self, principal: str, lasts_s: int | None, realm: str) -> _Client:
        try:
            name = parse_principal(principal)
        except ValueError as error:
            raise NoShortName(str(error)) from None
        expires_ms = None if lasts_s is None else self._now_ms() + lasts_s * 1000
        return _Client(principal, self._rules.short_name(name, realm), expires_ms)

    def _layers(self) -> bytes:
        assert self._context is not None
        self._awaited = _Awaited.LAYER
        return self._context.wrap(_LAYERS)

    def _end(self, data: bytes) -> LoginStep:
        assert self._context is not None and self._client is not None
        chosen, client = self._context.unwrap(data), self._client
        if len(chosen) < len(_LAYERS) or chosen[0] != _NO_LAYER:
            raise LoginRefused(_REFUSED, "GSSAPI: the client wants a security layer; there is none but none")
        wanted = chosen[len(_LAYERS) :].decode(errors="replace")
        if wanted and wanted not in (client.principal, client.user):
            raise LoginRefused(
                "Authentication failed: Client requested an authorization id that is different from its principal"
            )
        return LoginStep(b"", client.user, expires_ms=client.expires_ms)
