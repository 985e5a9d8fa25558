"""Plain handlers by method and path: the handler of a service that needs no framework."""

from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from leafcuttr_sdk.web import openapi
from leafcuttr_sdk.web.errors import ApiError
from leafcuttr_sdk.web.exchange import Exchange
from leafcuttr_sdk.web.front import Handler


class Routes:
    """The routes of a service; itself a `Handler`.

    A path such as `/tables/{table}/rows/{key}` names parts in braces, which the handler finds decoded in
    `Exchange.parameters`. A last part such as `{rest*}` is all that is left, slashes included, perhaps nothing. A route
    without such parts is preferred to one with them, then the one that was added first. GET answers HEAD too.
    `Exchange.endpoint`, what requests are counted as, is the path of the route.
    """

    def __init__(self) -> None:
        self._exact: Final[dict[str, dict[str, Handler]]] = {}
        self._patterns: Final[list[tuple[tuple[str, ...], str, dict[str, Handler]]]] = []
        self._operations: Final[dict[str, dict[str, Any]]] = {}

    def add(
        self, method: str, path: str, handler: Handler, operation: Mapping[str, Any] | None = None
    ) -> None:
        """Answer this method (in capitals) of this path with the handler. `operation` is what the OpenAPI document says
        of it; without one it is left out there. Raises ValueError for a path without a slash at its beginning, and for
        a route that is there already."""
        if not path.startswith("/") or not method.isupper():
            raise ValueError(f"{method} {path} is no method in capitals with a path that begins with a slash")
        methods = self._methods(path)
        if method in methods:
            raise ValueError(f"{method} {path} is there already")
        methods[method] = handler
        if operation is not None:
            shown = path.replace("*}", "}")
            self._operations.setdefault(shown, {})[method.lower()] = dict(operation)

    def describe(
        self,
        title: str,
        version: str,
        schemas: Mapping[str, Any] | None = None,
        *,
        description: str = "",
        ways: Iterable[str] = ("none",),
    ) -> dict[str, Any]:
        """The OpenAPI document of the routes that have an `operation`; `schemas` beside `Error`. `ways` are those of
        `Serving.authentication`."""
        known = {"Error": openapi.error_schema(), **(schemas or {})}
        return openapi.document(title, version, self._operations, known, description=description, ways=ways)

    async def __call__(self, exchange: Exchange) -> None:
        path: bytes = exchange.scope["raw_path"]
        exact = path.decode("latin-1")
        methods = self._exact.get(exact)
        if methods is None:
            methods, exchange.endpoint, exchange.parameters = self._find(path, exchange)
        else:
            exchange.endpoint = exact
        handler = methods.get(exchange.method)
        if handler is None and exchange.method == "HEAD":
            handler = methods.get("GET")
        if handler is None:
            allowed = ", ".join(sorted({*methods, *(["HEAD"] if "GET" in methods else [])}))
            raise ApiError(405, f"{exchange.path} does not take {exchange.method}.", (("allow", allowed),))
        await handler(exchange)

    def _find(self, path: bytes, exchange: Exchange) -> tuple[dict[str, Handler], str, dict[str, str]]:
        for parts, name, methods in self._patterns:
            parameters = _match(parts, path)
            if parameters is not None:
                return methods, name, parameters
        raise ApiError(404, f"There is nothing at {exchange.path}.")

    def _methods(self, path: str) -> dict[str, Handler]:
        if "{" not in path:
            return self._exact.setdefault(path, {})
        for _, known, there in self._patterns:
            if known == path:
                return there
        parts = tuple(path.split("/"))
        names = [_name(part) for part in parts if part.startswith("{")]
        if any(part.endswith("*}") for part in parts[:-1]) or len(set(names)) < len(names):
            raise ValueError(f"{path}: only the last part may be all that is left, and each name stands once")
        methods: dict[str, Handler] = {}
        self._patterns.append((parts, path, methods))
        return methods


def _name(part: str) -> str:
    return part[1:-1].removesuffix("*")


def _match(parts: tuple[str, ...], path: bytes) -> dict[str, str] | None:
    """The parts of the path by name, decoded; None where it is another one, or no UTF-8."""
    ends_open = parts[-1].endswith("*}")
    pieces = path.split(b"/", len(parts) - 1) if ends_open else path.split(b"/")
    if ends_open and len(pieces) == len(parts) - 1:
        pieces.append(b"")  # `/files` of `/files/{rest*}`
    if len(pieces) != len(parts):
        return None
    found: dict[str, str] = {}
    for part, piece in zip(parts, pieces, strict=True):
        if not part.startswith("{"):
            if part.encode() != piece:
                return None
            continue
        try:
            found[_name(part)] = unquote_to_bytes(piece).decode()
        except UnicodeDecodeError:
            return None
        if not piece and not part.endswith("*}"):
            return None
    return found
