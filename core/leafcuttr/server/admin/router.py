"""Which path is answered by what. Bytes of HTTP are not here: see `http`. The language of patterns is
`leafcuttr_sdk._paths`.

Paths are added at the start, by the broker and later by plugins.
"""

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

from leafcuttr_sdk._paths import PathTable, split_path
from leafcuttr_sdk.admin import JSON, AdminRoute, Request, Response

__all__ = ["JSON", "Request", "Response", "Router", "as_json", "parse_target", "problem"]

Handler = Callable[[Request], Awaitable[Response]]

LONGEST_PATH: Final = 4096
"""Characters of a request's path as it comes. Names in it are at most a few hundred."""
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class RequestTarget(NamedTuple):
    """What a request is for. `parts` are those of the path, each decoded by itself, so that `%2F` is no border."""

    path: str
    parts: tuple[str, ...]
    query: Mapping[str, list[str]]


class Router:
    """The table of paths. Those of the broker are for GET and HEAD, and change nothing; a plugin's may be for DELETE
    too, which is for programs on this machine."""

    def __init__(self) -> None:
        self._table = PathTable[AdminRoute]()
        self._summaries: dict[str, str] = {}

    def add(self, path: str, handler: Handler, summary: str, methods: tuple[str, ...] = ("GET",)) -> None:
        """Answer a path, or those of a pattern. Raises ValueError if it is none, or cannot be told from another."""
        self._table.add(path, AdminRoute(path, handler, summary, methods))
        self._summaries[path] = summary

    def paths(self) -> Mapping[str, str]:
        """Each path with its summary."""
        return dict(self._summaries)

    async def answer(
        self, request: Request, parts: tuple[str, ...] | None = None, *, is_local: bool = False
    ) -> Response:
        """`parts` are those of the path (`parse_target`), if it has escapes. A slash at the end changes nothing.
        `is_local`: it comes from a program on this machine, which may change something. Raises what the handler
        raises."""
        if parts is None:
            parts = tuple(request.path[1:].split("/"))
        found = self._table.find(parts)
        if not parts[-1]:
            last = max((at for at, part in enumerate(parts) if part), default=0)
            without = self._table.find(parts[: last + 1])
            # The same route may have the slash in `{rest*}`.
            if found is None or (without is not None and without.pattern != found.pattern):
                found = without
        if found is None:
            return problem(404, "not_found", f"{request.path} is not here", paths=sorted(self._summaries))
        route, pattern, parameters = found
        allowed = [
            name for method in route.methods for name in ((method, "HEAD") if method == "GET" else (method,))
        ]
        if request.method not in allowed:
            return problem(
                405,
                "method_not_allowed",
                f"{request.path} takes {' and '.join(allowed)}",
                headers=(("Allow", ", ".join(allowed)),),
            )
        if request.method not in ("GET", "HEAD") and not is_local:
            return problem(
                403,
                "not_local",
                f"{request.method} is for programs on the machine of the broker, and not for web pages",
            )
        return await route.handler(request._replace(parameters=parameters, route=pattern))


def parse_target(target: str) -> RequestTarget:
    """The target of a request, also one in absolute form. Raises ValueError, one line, for a path that is too long, has
    escapes that are none, or control characters."""
    if target.startswith("/"):
        path, _, query = target.partition("#")[0].partition("?")
    else:
        split = urlsplit(target)
        path, query = split.path or "/", split.query
    if len(path) > LONGEST_PATH:
        raise ValueError(f"its path has {len(path)} characters, and may have {LONGEST_PATH}")
    parts = split_path(path.encode())
    whole = "/" + "/".join(parts)
    control = _CONTROL.search(whole)
    if control is not None:
        raise ValueError(f"its path has the control character {control[0]!r}")
    return RequestTarget(whole, parts, parse_qs(query, max_num_fields=1000))


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
