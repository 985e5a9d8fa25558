"""The log-in of one connection: which step may come next. The steps themselves are those of the mechanisms.

Theory of operation. A client names a mechanism (SaslHandshake), then its messages come, in SaslAuthenticate or, after
version 0 of SaslHandshake, as they are (KIP-152). What is not allowed in a state, and every refusal, ends the log-in
for good: the connection is closed behind the answer. A client that is in may log in again (KIP-368), as the same user
by the same mechanism.

| state | SaslHandshake | SaslAuthenticate |
|---|---|---|
| NEW | HANDSHAKEN | FAILED |
| HANDSHAKEN | FAILED | EXCHANGING, DONE or FAILED |
| EXCHANGING | FAILED | EXCHANGING, DONE or FAILED |
| DONE | AGAIN | FAILED |
| AGAIN | FAILED | AGAIN, DONE or FAILED |
| FAILED | FAILED | FAILED |
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, NamedTuple

from leafcuttr.errors import ErrorCode
from leafcuttr.server.login.mechanisms import LoginRefused, ServerExchange
from leafcuttr_sdk import Clock

MakeExchange = Callable[[], ServerExchange]


class LoginState(Enum):
    NEW = "new"
    HANDSHAKEN = "handshaken"
    EXCHANGING = "exchanging"
    DONE = "done"
    AGAIN = "again"
    FAILED = "failed"


_MAY_HANDSHAKE: Final = {LoginState.NEW: LoginState.HANDSHAKEN, LoginState.DONE: LoginState.AGAIN}
_MAY_AUTHENTICATE: Final = {
    LoginState.HANDSHAKEN: LoginState.EXCHANGING,
    LoginState.EXCHANGING: LoginState.EXCHANGING,
    LoginState.AGAIN: LoginState.AGAIN,
}


class MessageOutcome(NamedTuple):
    """Of a message: what to answer. A code other than NONE is followed by the end of the connection."""

    code: ErrorCode
    message: str | None = None
    data: bytes = b""
    lifetime_ms: int = 0
    """How long the session lasts; 0: without end."""


class Login:
    """`mechanisms` are those that the listener offers; `lifetime_ms` is `connections.max.reauth.ms`."""

    def __init__(
        self, mechanisms: Mapping[str, MakeExchange], clock: Clock, lifetime_ms: Callable[[], int]
    ) -> None:
        self.state = LoginState.NEW
        self.user: str | None = None
        """Who it is, once that is known."""
        self.mechanism: str | None = None
        self.refusal: str | None = None
        """Why it has failed, for the log."""
        self.checks_stored = False
        """Whether it is one of the stored users."""
        self.on_failure: Callable[[], None] = lambda: None
        """Called once, when a client that was in fails to log in again."""
        self.expires: float | None = None
        """When the session ends, by the monotonic clock; None: never."""
        self._mechanisms = mechanisms
        self._clock = clock
        self._lifetime_ms = lifetime_ms
        self._exchange: ServerExchange | None = None

    @property
    def offered(self) -> list[str]:
        return list(self._mechanisms)

    def handshake(self, mechanism: str) -> ErrorCode:
        """The client names a mechanism."""
        follows = _MAY_HANDSHAKE.get(self.state)
        if follows is None:
            return self._fail(ErrorCode.ILLEGAL_SASL_STATE, "SaslHandshake came at the wrong time")
        make = self._mechanisms.get(mechanism)
        if make is None:
            return self._fail(
                ErrorCode.UNSUPPORTED_SASL_MECHANISM, f"the mechanism {mechanism[:100]!r} is not enabled"
            )
        if self.state is LoginState.DONE and mechanism != self.mechanism:
            return self._fail(ErrorCode.ILLEGAL_SASL_STATE, "the mechanism changed with a later log-in")
        self.state, self.mechanism = follows, mechanism
        self._exchange = make()
        return ErrorCode.NONE

    async def authenticate(self, data: bytes) -> MessageOutcome:
        """A message of the mechanism."""
        follows = _MAY_AUTHENTICATE.get(self.state)
        if follows is None or self._exchange is None:
            text = "SaslAuthenticate request received after successful authentication"
            if self.state is not LoginState.DONE:
                text = "SaslAuthenticate came at the wrong time"
            return MessageOutcome(self._fail(ErrorCode.ILLEGAL_SASL_STATE, text), text)
        try:
            answer, user = await self._exchange.step(data)
        except LoginRefused as refused:
            return self._refused(str(refused))
        if user is None:
            self.state = follows
            return MessageOutcome(ErrorCode.NONE, data=answer)
        if self.user is not None and user != self.user:
            return self._refused("Authentication failed: the principal changed with a later log-in")
        self.checks_stored = self._exchange.checks_stored
        self.state, self.user, self._exchange = LoginState.DONE, user, None
        lifetime_ms = self._lifetime_ms()
        self.expires = self._clock.monotonic() + lifetime_ms / 1000 if lifetime_ms > 0 else None
        return MessageOutcome(ErrorCode.NONE, data=answer, lifetime_ms=max(lifetime_ms, 0))

    def is_over(self) -> bool:
        """Whether the session has ended without another log-in (KIP-368)."""
        return self.expires is not None and self._clock.monotonic() >= self.expires

    def _refused(self, text: str) -> MessageOutcome:
        return MessageOutcome(self._fail(ErrorCode.SASL_AUTHENTICATION_FAILED, text), text)

    def _fail(self, code: ErrorCode, why: str) -> ErrorCode:
        was_in = self.user is not None and self.state is not LoginState.FAILED
        self.state, self._exchange, self.refusal = LoginState.FAILED, None, why
        if was_in:
            self.on_failure()
        return code
