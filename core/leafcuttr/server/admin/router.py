"""Which path is answered by what. Bytes of HTTP are not here: see `http`.

Paths are added at the start, by the broker and later by plugins.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import parse_qs, unquote, urlsplit

from leafcuttr_sdk.admin import JSON, AdminRoute, Request, Response

__all__ = ["JSON", "Request", "Response", "Router", "as_json", "parse_target", "problem"]

Handler = Callable[[Request], Awaitable[Response]]


class Router:
    """The table of paths. All are for GET and HEAD: the admin endpoint changes nothing."""

    def __init__(self) -> None:
        self._routes: dict[str, AdminRoute] = {}

    def add(self, path: str, handler: Handler, summary: str) -> None:
        """Answer a path. Raises ValueError if it is taken or does not begin with a slash."""
        if not path.startswith("/") or "?" in path:
            raise ValueError(f"{path!r} is no path")
        if path in self._routes:
            raise ValueError(f"{path} is answered already")
        self._routes[path] = AdminRoute(path, handler, summary)

    def paths(self) -> Mapping[str, str]:
        """Each path with its summary."""
        return {route.path: route.summary for route in self._routes.values()}

    async def answer(self, request: Request) -> Response:
        """Raises what the handler raises."""
        route = self._routes.get(request.path) or self._routes.get(request.path.rstrip("/"))
        if route is None:
            return problem(404, "not_found", f"{request.path} is not here", paths=sorted(self._routes))
        if request.method not in ("GET", "HEAD"):
            return problem(
                405,
                "method_not_allowed",
                f"{request.path} takes GET and HEAD",
                headers=(("Allow", "GET, HEAD"),),
            )
        return await route.handler(request)


def parse_target(target: str) -> tuple[str, Mapping[str, list[str]]]:
    """Path and query of a request's target, also of one in absolute form. Raises ValueError."""
    parts = urlsplit(target)
    return unquote(parts.path) or "/", parse_qs(parts.query, max_num_fields=1000)


def as_json(value: object, status: int = 200, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    """An answer in JSON, one line."""
    return Response(
        json.dumps(value).encode() + b"\n", JSON, status, (*headers, ("Cache-Control", "no-store"))
    )


def problem(
    status: int, code: str, message: str, headers: tuple[tuple[str, str], ...] = (), **more: object
) -> Response:
    """An error in JSON: `{"error": code, "message": ...}`."""
    return as_json({"error": code, "message": message, **more}, status, headers)
