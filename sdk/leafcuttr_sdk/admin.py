"""What a plugin can add to the admin port: health checks and paths."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Final, NamedTuple

from leafcuttr_sdk._described import described

JSON: Final = "application/json"


@described
class Finding(NamedTuple):
    """What a check has found. `detail` is one line for a person, empty where there is nothing to say."""

    fine: bool
    detail: str = ""


@described
class HealthCheck(NamedTuple):
    """One check. `look` is synchronous and quick: it says what is known. One that raises is not fine."""

    name: str
    """Unique among those of its plugin, whose name `/health` puts before it: `<plugin>:<name>`."""
    summary: str
    """What it checks, in one line."""
    look: Callable[[], Finding]
    required: bool = False
    """Whether the broker is not ready while it is not fine; otherwise it is degraded."""


@described
class Request(NamedTuple):
    """One request, GET or HEAD. `path` is decoded, `headers` have lower-case names; there is no body."""

    method: str
    path: str
    query: Mapping[str, list[str]] = {}
    headers: Mapping[str, str] = {}


@described
class Response(NamedTuple):
    """One answer. A body that comes in pieces is sent as it comes, and not made at all for HEAD."""

    body: bytes | AsyncGenerator[bytes, None]
    content_type: str = JSON
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


@described
class AdminRoute(NamedTuple):
    """One path. `summary` is its line in the answer to `/`. The handler runs on the loop and does not keep it."""

    path: str
    """Begins with a slash; of a plugin the part after `/plugins/<its name>`."""
    handler: Callable[[Request], Awaitable[Response]]
    summary: str
