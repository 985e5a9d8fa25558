"""A listener of a plugin: its bound sockets, and TLS."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import socket
    import ssl


class Listening(Protocol):
    """What `Broker.listen` hands out. The sockets listen, and are closed at the end of its context."""

    @property
    def sockets(self) -> "Sequence[socket.socket]":
        """One, or several where a host name or the empty host stands for more than one address."""
        ...

    @property
    def host(self) -> str: ...

    @property
    def port(self) -> int:
        """The real one, where 0 was requested."""
        ...

    @property
    def ssl_context(self) -> "ssl.SSLContext | None":
        """None: plaintext."""
        ...
