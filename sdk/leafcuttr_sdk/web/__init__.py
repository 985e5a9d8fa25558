"""What an HTTP service needs: HTTP/1.1, HTTP/2 and WebSockets with limits, errors as JSON, CORS, routes, static files,
server-sent events, OpenAPI, applications of quart-trio, a graceful stop.

It needs the extra `leafcuttr[web]` (quart-trio and hypercorn), which a plugin names in its own distribution. The names
are found in the modules of this package when they are first used; where a package of the extra is missing, that is a
PluginError with one line. `web_settings`, `ApiError` and `openapi` need no extra.

    server, connection      listening, one connection, the stop; the protocols are hypercorn's
    front                   every request comes through here: limits, CORS, errors, counting
    serving, settings       what the handlers of one start share; what can be set
    exchange, bodies        one request and its answer; reading a body within its limits (`asgi`: the types of both)
    http2, tasks            the ends of streams of HTTP/2; the tasks of requests
    arriving                what the client of a WebSocket may not send
    pieces                  answers over HTTP/2 that a client has to take in time
    errors, negotiation     errors as JSON; media types
    cors                    which pages of other origins may call
    websockets              what is the same for all that serve them
    frameworks, quart_app   an application of Quart as the handler
    routes, static_files    plain handlers by method and path; the files of a folder
    events                  server-sent events
    openapi                 elements of OpenAPI, and the document
"""

import importlib
from typing import TYPE_CHECKING, Any, Final

from leafcuttr_sdk.errors import PluginError

if TYPE_CHECKING:
    from leafcuttr_sdk.web.cors import CorsHeaders
    from leafcuttr_sdk.web.errors import ApiError
    from leafcuttr_sdk.web.events import EventStream, event_stream
    from leafcuttr_sdk.web.exchange import Exchange
    from leafcuttr_sdk.web.frameworks import LateApp
    from leafcuttr_sdk.web.front import Application, Handler
    from leafcuttr_sdk.web.quart_app import as_asgi, make_quart
    from leafcuttr_sdk.web.routes import Routes
    from leafcuttr_sdk.web.server import HttpServer
    from leafcuttr_sdk.web.serving import Serving
    from leafcuttr_sdk.web.settings import web_settings
    from leafcuttr_sdk.web.static_files import StaticFiles

_PLACES: Final = {
    "cors": "CorsHeaders",
    "errors": "ApiError",
    "events": "EventStream event_stream",
    "exchange": "Exchange",
    "frameworks": "LateApp",
    "front": "Application Handler",
    "quart_app": "as_asgi make_quart",
    "routes": "Routes",
    "server": "HttpServer",
    "serving": "Serving",
    "settings": "web_settings",
    "static_files": "StaticFiles",
}
_MODULES: Final = {name: module for module, names in _PLACES.items() for name in names.split()}
_EXTRA: Final = frozenset({"h11", "h2", "hypercorn", "quart", "quart_trio", "trio", "werkzeug", "wsproto"})

__all__ = [
    "ApiError",
    "Application",
    "CorsHeaders",
    "EventStream",
    "Exchange",
    "Handler",
    "HttpServer",
    "LateApp",
    "Routes",
    "Serving",
    "StaticFiles",
    "as_asgi",
    "event_stream",
    "make_quart",
    "web_settings",
]


def __getattr__(name: str) -> Any:
    """Raises PluginError where a package of the extra is missing."""
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _EXTRA:
            raise
        raise PluginError(
            f"leafcuttr_sdk.web needs {missing}, which is not installed; mend it with: pip install 'leafcuttr[web]'"
        ) from None
    globals()[name] = value
    return value
