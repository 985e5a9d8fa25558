"""What a handler knows of the request beside its body: the client, on which listener, in which version.

A context is made when a connection is accepted (`server.listener`), and nowhere else. Its connection writes the header
of each request into it, and the quotas of its client, ApiVersions what it says of the client's software, the log-in
(`server.login`) the principal.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from leafcuttr.config.listeners import Listener
from leafcuttr.errors import ErrorCode
from leafcuttr.state.identity import ANONYMOUS, ClientIdentity

if TYPE_CHECKING:
    from leafcuttr.state.security.limits import ClientLimits


class LoginOutcome(Protocol):
    """Of one message of a SASL mechanism. A code other than NONE is followed by the end of the connection."""

    @property
    def code(self) -> ErrorCode: ...

    @property
    def message(self) -> str | None: ...

    @property
    def data(self) -> bytes: ...

    @property
    def lifetime_ms(self) -> int: ...


class LoginSession(Protocol):
    """The log-in of a connection (`server.login`)."""

    @property
    def offered(self) -> list[str]:
        """The mechanisms."""
        ...

    @property
    def user(self) -> str | None:
        """Who it is, once that is known."""
        ...

    @property
    def by_token(self) -> bool:
        """Whether it has logged in with a delegation token."""
        ...

    @property
    def expires(self) -> float | None:
        """When the session ends, by the monotonic clock; None: never."""
        ...

    on_login: Callable[[], None]
    on_failure: Callable[[], None]

    def is_over(self) -> bool: ...

    def still_holds(self) -> bool:
        """Whether what the client has logged in with is as it was."""
        ...

    def handshake(self, mechanism: str) -> ErrorCode: ...

    async def authenticate(self, data: bytes) -> LoginOutcome: ...

    def refuse(self, text: str) -> LoginOutcome: ...


@dataclass(slots=True, eq=False)
class RequestContext:
    """One per connection, rewritten for each request: a connection handles one request at a time (as Kafka does)."""

    listener: Listener
    client: ClientIdentity
    connection_id: int
    api_key: int = -1
    api_version: int = -1
    correlation_id: int = -1
    login: LoginSession | None = None
    """None where the listener has no SASL."""
    limits: "ClientLimits | None" = None
    """The quotas that hold for the client now; None: there are none."""


def context_of(listener: Listener, host: str, port: int, connection_id: int) -> RequestContext:
    """The context of a new connection through `listener` from this IP address and port."""
    client = ClientIdentity(ANONYMOUS, listener.name, listener.protocol, host, port)
    return RequestContext(listener, client, connection_id)
