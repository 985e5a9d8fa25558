"""The log-in of one connection: which step may come next. The steps themselves are those of the mechanisms.

Theory of operation. A client names a mechanism (SaslHandshake), then its messages come, in SaslAuthenticate or, after
version 0 of SaslHandshake, as they are (KIP-152). What is not allowed in a state, and every refusal, ends the log-in
for good: the connection is closed behind the answer. A client that is in may log in again (KIP-368), as the same user
by the same mechanism. A session ends with what the client has shown (a token), or `connections.max.reauth.ms` later;
what a client has shown may also be withdrawn.

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
from leafcuttr.server.login.mechanisms import LoginRefused, LoginStep, ServerExchange
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


def _nothing() -> None:
    """Nobody wants to know."""


class Login:
    """`mechanisms` are those that the listener offers; `lifetime_ms` has `connections.max.reauth.ms` of each."""

    def __init__(
        self, mechanisms: Mapping[str, MakeExchange], clock: Clock, lifetime_ms: Callable[[str], int]
    ) -> None:
        self.state = LoginState.NEW
        self.user: str | None = None
        """Who it is, once that is known."""
        self.principal_type = "User"
        self.mechanism: str | None = None
        self.by_token = False
        """Whether it has shown a delegation token."""
        self.refusal: str | None = None
        """Why it has failed, or is going to, for the log."""
        self.on_login: Callable[[], None] = _nothing
        """Called each time that a client which was in has logged in again."""
        self.on_failure: Callable[[], None] = _nothing
        """Called once, when a client that was in fails to log in again."""
        self.expires: float | None = None
        """When the session ends, by the monotonic clock; None: never."""
        self._mechanisms = mechanisms
        self._clock = clock
        self._lifetime_ms = lifetime_ms
        self._exchange: ServerExchange | None = None
        self._still_holds: Callable[[], bool] | None = None

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
            step = await self._exchange.step(data)
        except LoginRefused as refused:
            return self._refused(str(refused), refused.why)
        if step.user is None:
            self.state = follows
            self.refusal = step.refusal
            return MessageOutcome(ErrorCode.NONE, data=step.answer)
        if self.user is not None and (step.principal_type, step.user) != (self.principal_type, self.user):
            return self._refused("Authentication failed: the principal changed with a later log-in")
        if step.still_holds is not None and not step.still_holds():
            return self._refused("Authentication failed: the credentials have changed meanwhile")
        return self._succeeded(step, step.user)

    def _succeeded(self, step: LoginStep, user: str) -> MessageOutcome:
        was_in = self.user is not None
        self.state, self.user, self._exchange = LoginState.DONE, user, None
        self.principal_type = step.principal_type
        self.by_token, self._still_holds = step.by_token, step.still_holds
        lifetime_ms = self._lifetime(step.expires_ms)
        self.expires = None if lifetime_ms is None else self._clock.monotonic() + lifetime_ms / 1000
        if was_in:
            self.on_login()
        return MessageOutcome(ErrorCode.NONE, data=step.answer, lifetime_ms=lifetime_ms or 0)

    def _lifetime(self, expires_ms: int | None) -> int | None:
        """In milliseconds from now, as Kafka computes it (KIP-368); None: without end."""
        assert self.mechanism is not None
        most_ms = self._lifetime_ms(self.mechanism)
        ends = [most_ms] if most_ms > 0 else []
        if expires_ms is not None:
            ends.append(max(expires_ms - self._clock.now_ms(), 0))
        return min(ends, default=None)

    def still_holds(self) -> bool:
        """Whether what the client has logged in with is as it was."""
        return self._still_holds is None or self._still_holds()

    def refuse(self, text: str) -> MessageOutcome:
        """End it, whatever its mechanism would say."""
        return self._refused(text)

    def is_over(self) -> bool:
        """Whether the session has ended without another log-in (KIP-368)."""
        return self.expires is not None and self._clock.monotonic() >= self.expires

    def _refused(self, text: str, why: str | None = None) -> MessageOutcome:
        return MessageOutcome(
            self._fail(ErrorCode.SASL_AUTHENTICATION_FAILED, self.refusal or why or text), text
        )

    def _fail(self, code: ErrorCode, why: str) -> ErrorCode:
        was_in = self.user is not None and self.state is not LoginState.FAILED
        self.state, self._exchange, self.refusal = LoginState.FAILED, None, why
        if was_in:
            self.on_failure()
        return code
