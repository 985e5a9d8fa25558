"""What a plugin can add to the admin port: health checks and paths."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Final, NamedTuple

from leafcuttr_sdk._described import described

JSON: Final = "application/json"
METHODS: Final = ("GET", "DELETE")
"""What a route may have. There are no bodies, so there is no PUT; any web page may make a browser send a POST."""


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
    """One request: GET, HEAD, or another method of its route. `path` is decoded, `headers` have lower-case names; there
    is no body."""

    method: str
    path: str
    query: Mapping[str, list[str]] = {}
    headers: Mapping[str, str] = {}
    parameters: Mapping[str, str] = {}
    """What stands in the path for the parts in braces of `AdminRoute.path`, decoded. It is what a client has written:
    any text but `.`, `..` and control characters, also one with slashes, which came as `%2F`."""
    route: str = ""
    """The path of the route with its braces, `/plugins/<name>` before it: what to count requests by. `path` may be
    anything a client likes."""


@described
class Response(NamedTuple):
    """One answer. A body that comes in pieces is sent as it comes, and not made at all for HEAD."""

    body: bytes | AsyncGenerator[bytes, None]
    content_type: str = JSON
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


@described
class AdminRoute(NamedTuple):
    """One path, or all of a pattern. `summary` is its line in the answer to `/`. The handler runs on the loop and does
    not keep it. It is called for `methods`, and for HEAD as for GET: that answer is sent without its body. Other
    methods get 405."""

    path: str
    """Begins with a slash; of a plugin the part after `/plugins/<its name>`.

    A part may be a name in braces, as in `/subjects/{subject}/versions/{version}`: one part of the request's path that
    is not empty, decoded in `Request.parameters`. A last part such as `{rest*}` is all that is left, slashes included,
    perhaps nothing. Of two routes for a path the first part in which they differ decides: literal before `{name}`,
    `{name}` before `{rest*}`. A plugin with two routes that differ in such names only is left out."""
    handler: Callable[[Request], Awaitable[Response]]
    summary: str
    methods: tuple[str, ...] = ("GET",)
    """Of METHODS. GET changes nothing. A request by another one reaches the handler only if it comes from a program on
    the machine of the broker and from no web page: the admin port need not have authentication, and is open to others
    where they read metrics."""
