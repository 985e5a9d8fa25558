"""Plain handlers by method and path: the handler of a service that needs no framework."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from leafcuttr_sdk._paths import PathTable, parts_of_pattern, split_path
from leafcuttr_sdk.web import openapi
from leafcuttr_sdk.web.errors import ApiError
from leafcuttr_sdk.web.exchange import Exchange
from leafcuttr_sdk.web.front import Handler


class Routes:
    """The routes of a service; itself a `Handler`.

    A path such as `/tables/{table}/rows/{key}` names parts in braces, which the handler finds decoded in
    `Exchange.parameters`: one part of the request's path, in which `%2F` is a slash. A last part such as `{rest*}` is
    all that is left, slashes included, perhaps nothing. Of two routes for a path the first part in which they differ
    decides: literal before `{name}`, `{name}` before `{rest*}`. GET answers HEAD too. `Exchange.endpoint`, what
    requests are counted as, is the path of the route.
    """

    def __init__(self) -> None:
        self._exact: Final[
            dict[str, dict[str, Handler]]
        ] = {}  # by the path as it comes: most requests need no more
        self._table: Final = PathTable[dict[str, Handler]]()
        self._operations: Final[dict[str, dict[str, Any]]] = {}

    def add(
        self, method: str, path: str, handler: Handler, operation: Mapping[str, Any] | None = None
    ) -> None:
        """Answer this method (in capitals) of this path with the handler. `operation` is what the OpenAPI document says
        of it; without one it is left out there. Raises ValueError for a path that is none, for a route that is there
        already, and for one that differs from another in the names of its parts only."""
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
        try:
            found = self._table.find(split_path(path))
        except ValueError:
            found = None
        if found is None:
            raise ApiError(404, f"There is nothing at {exchange.path}.")
        return found

    def _methods(self, path: str) -> dict[str, Handler]:
        methods = self._table.get(path)
        if methods is None:
            methods = dict[str, Handler]()
            self._table.add(path, methods)
            if all(part.kind == "literal" for part in parts_of_pattern(path)):
                self._exact[path] = methods
        return methods
