"""The server's side of a SASL mechanism, as `login` sees it. No I/O."""

from collections.abc import Callable
from typing import NamedTuple, Protocol


class LoginRefused(Exception):
    """The client may not come in; the text is what it is told, and says nothing of which part was wrong. `why` is for
    the log, where that may say more."""

    def __init__(self, text: str, why: str | None = None) -> None:
        super().__init__(text)
        self.why = why or text


class LoginStep(NamedTuple):
    """What the client is answered, and who it is once that is known; with it until when that holds, and how to find
    out whether it still does."""

    answer: bytes
    user: str | None = None
    expires_ms: int | None = None
    """By the wall clock, in milliseconds since 1970; None: without end."""
    still_holds: Callable[[], bool] | None = None
    """Whether what the client has shown is as it was: its password, its token. None: it cannot change."""
    by_token: bool = False
    """It was a delegation token (KIP-48)."""
    principal_type: str = "User"
    """Of the principal whose name `user` is."""
    refusal: str | None = None
    """The log-in is going to fail, for this reason: for the log, in case the client does not wait for its end."""


class ServerExchange(Protocol):
    """One log-in by one mechanism."""

    async def step(self, data: bytes) -> LoginStep:
        """The next message of the client. Raises LoginRefused."""
        ...
