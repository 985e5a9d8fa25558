"""What a handler knows of the request beside its body: the client, on which listener, in which version.

A context is made when a connection is accepted (`server.listener`), and nowhere else. Its connection writes the header
of each request into it, ApiVersions what it says of the client's software; authentication will write the principal.
"""

from dataclasses import dataclass

from leafcuttr.config.listeners import Listener
from leafcuttr.state.identity import ANONYMOUS, ClientIdentity


@dataclass(slots=True, eq=False)
class RequestContext:
    """One per connection, rewritten for each request: a connection handles one request at a time (as Kafka does)."""

    listener: Listener
    client: ClientIdentity
    connection_id: int
    api_key: int = -1
    api_version: int = -1
    correlation_id: int = -1


def context_of(listener: Listener, host: str, port: int, connection_id: int) -> RequestContext:
    """The context of a new connection through `listener` from this IP address and port."""
    client = ClientIdentity(ANONYMOUS, listener.name, listener.protocol, host, port)
    return RequestContext(listener, client, connection_id)
