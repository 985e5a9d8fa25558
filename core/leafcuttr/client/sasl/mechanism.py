"""What a mechanism is: messages to the server, made of what the server says."""

from typing import Protocol


class SaslRefusal(Exception):
    """The server is not what it should be, or says no: the text follows the broker's address and a colon."""


class SaslMechanism(Protocol):
    """One authentication: not to be used for a second."""

    def first(self) -> bytes:
        """The message that begins it."""
        ...

    def respond(self, challenge: bytes) -> bytes | None:
        """The next message; None once the server has accepted us and, where the mechanism has it, proved itself. It
        may take long: it belongs in a thread. Raises SaslRefusal."""
        ...
