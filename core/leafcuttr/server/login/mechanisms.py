"""The server's side of a SASL mechanism, as `login` sees it. No I/O."""

from typing import NamedTuple, Protocol


class LoginRefused(Exception):
    """The client may not come in; the text is what it is told, and says nothing of which part was wrong."""


class LoginStep(NamedTuple):
    """What the client is answered, and who it is once that is known."""

    answer: bytes
    user: str | None = None


class ServerExchange(Protocol):
    """One log-in by one mechanism."""

    @property
    def checks_stored(self) -> bool:
        """Whether the user is one of those that are stored, which can be changed while it is in."""
        ...

    async def step(self, data: bytes) -> LoginStep:
        """The next message of the client. Raises LoginRefused."""
        ...
