"""What a handler knows of the request beside its body: who asks, on which listener, in which version."""

from dataclasses import dataclass

from leafcuttr.config.listeners import Listener


@dataclass(slots=True, eq=False)
class RequestContext:
    """One per connection, rewritten for each request: a connection handles one request at a time (as Kafka does)."""

    listener: Listener
    peer: str
    connection_id: int
    principal: str = "User:ANONYMOUS"
    api_key: int = -1
    api_version: int = -1
    correlation_id: int = -1
    client_id: str | None = None
