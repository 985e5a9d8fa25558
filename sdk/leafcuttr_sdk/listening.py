"""A listener of a plugin: its bound sockets, and TLS."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import socket
    import ssl


class Listening(Protocol):
    """What `Broker.listen` returns. The sockets listen, and are closed at the end of its context."""

    @property
    def sockets(self) -> "Sequence[socket.socket]":
        """One, or several where a host name or the empty host stands for more than one address, or there is a Unix
        socket too. None where the port is -1."""
        ...

    @property
    def host(self) -> str:
        """The address; empty for every address, and where the port is -1."""
        ...

    @property
    def port(self) -> int:
        """The real one, where 0 was requested; -1: it is not open."""
        ...

    @property
    def ssl_context(self) -> "ssl.SSLContext | None":
        """None: plaintext. It stays the same when its certificate is replaced."""
        ...

    @property
    def max_connections(self) -> int:
        """How many connections of this listener may be open at this moment: `<prefix>.max.connections`, or a share of
        the limit of open files. `Broker.serve` keeps to it; a server that accepts connections itself has to."""
        ...

    @property
    def accept_pauses(self) -> int:
        """How often `Broker.serve` has stopped accepting connections for a moment, because the process had run out of
        descriptors or memory. 0 where it does not serve."""
        ...
