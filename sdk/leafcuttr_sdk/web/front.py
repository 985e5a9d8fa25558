"""Every request of an HTTP service comes through here. What all handlers share is done here once: limits of the body,
CORS, errors, counting.
"""

from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import unquote

from leafcuttr_sdk.authentication import ANONYMOUS, Authenticated
from leafcuttr_sdk.errors import BrokerError
from leafcuttr_sdk.web.asgi import Receive, Scope, Send
from leafcuttr_sdk.web.bodies import Gone
from leafcuttr_sdk.web.clients import Clients
from leafcuttr_sdk.web.connection import connection_of
from leafcuttr_sdk.web.cors import Cors, CorsHeaders
from leafcuttr_sdk.web.errors import ApiError, of_broker
from leafcuttr_sdk.web.exchange import Exchange
from leafcuttr_sdk.web.pieces import in_pieces
from leafcuttr_sdk.web.serving import Serving, peer
from leafcuttr_sdk.web.websockets import refuse_websocket

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
"""Those that requests are counted by; all else that clients may call a method is one."""

Handler: TypeAlias = Callable[[Exchange], Awaitable[None]]
"""Answers one request: with `Exchange.answer`, `Exchange.reply` or `Exchange.send`, or by raising ApiError. An error of
the broker is answered as `of_broker` says, any other exception with 500 and its traceback in the log."""
WebSocketHandler: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
"""Serves one WebSocket, by the messages of ASGI. `websockets.refuse_websocket` refuses it."""


class Application(NamedTuple):
    """What a service answers with."""

    handle: Handler
    websocket: WebSocketHandler | None = None
    """None: WebSockets are refused with 404."""
    cors: CorsHeaders = CorsHeaders()
    failed: ApiError = ApiError(500, "The service failed; the broker's log says how.")
    """The answer where the handler has raised something unforeseen."""
    endless: frozenset[str] = frozenset({"stream"})
    """Endpoints (`Exchange.endpoint`) that end when their clients have had enough: no time is counted of them."""
    exchange: type[Exchange] = Exchange


class Front:
    """The ASGI application of a service. `name` is that of its metrics, `leafcuttr_<name>_requests_total`; `title` is
    for the log."""

    def __init__(self, serving: Serving, application: Application, name: str, title: str) -> None:
        self._serving = serving
        self._application = application
        self._handle = application.handle
        self._exchange = application.exchange
        cors = application.cors
        self._clients: Clients | None = None
        if serving.authentication.ways != ("none",):
            self._clients = Clients(serving.authentication, serving.broker.logger, title)
            cors = cors._replace(headers=cors.headers + b", authorization")
        self._cors = Cors(serving.limits.origins, cors, f"{serving.limits.prefix}.cors.allowed.origins")
        self._log = serving.broker.logger
        metrics = serving.broker.metrics
        self._requests = metrics.counter(
            f"leafcuttr_{name}_requests_total", "Requests that were answered.", "endpoint", "method", "status"
        )
        self._seconds = metrics.counter(
            f"leafcuttr_{name}_request_seconds_total", "Time from their heads to their answers.", "endpoint"
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        _make_relative(scope)
        _drop_slash(scope)
        send = in_pieces(scope, send)
        if scope["type"] == "websocket":
            await self._websocket(scope, receive, send)
            return
        peer.set(scope["client"])
        exchange = self._exchange(scope, receive, send, self._serving)
        try:
            _check_framing(exchange)
            if self._cors_answered(exchange):
                await exchange.answer(204, b"")
                return
            if self._clients is None:
                await exchange.begin()
                await exchange.handle(self._handle)
            else:
                await self._handle_for_client(self._clients, exchange)
        except Gone:
            pass
        except ApiError as error:
            if not exchange.status:
                await exchange.refuse(error)
        except BrokerError as error:
            if exchange.status:
                raise
            await exchange.refuse(of_broker(error))
        except Exception as error:
            reason = self._serving.tell(error, f"{exchange.method} {scope['path']}")
            if exchange.status:
                raise
            if reason is None:
                await exchange.refuse(self._application.failed)
            else:
                await exchange.refuse(ApiError(503, f"The broker has run out of something: {reason}."))
        finally:
            if exchange.body is not None:
                exchange.body.release()
            self._count(exchange)

    async def _handle_for_client(self, clients: Clients, exchange: Exchange) -> None:
        client = await clients.identify(exchange.scope)
        exchange.principal = client.principal
        with self._serving.while_logged_in(client) as time:
            await exchange.begin()
            await exchange.handle(self._handle)
        if time.cancelled_caught:
            if not exchange.status:
                raise clients.refusal("The credentials have expired.")
            # What has begun cannot become an error.
            await connection_of(exchange.scope).end(exchange.scope)

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        serve = self._application.websocket
        peer.set(scope["client"])
        client = Authenticated(ANONYMOUS)
        connection = connection_of(scope)
        try:
            if self._clients is not None:
                client = await self._clients.identify(scope)
            if serve is None:
                raise ApiError(404, f"There is no WebSocket at {scope['path']}.")
            with self._serving.while_logged_in(client) as time:
                await self._serving.admitted()
        except ApiError as error:
            await receive()
            await refuse_websocket(send, error)
            return
        with self._serving.while_logged_in(client) as time:
            await connection.hurried(serve(scope, receive, send))
        if time.cancelled_caught:
            await connection.end(scope)

    def _cors_answered(self, exchange: Exchange) -> bool:
        """Whether that was a preflight, which needs no more than its headers. Raises ApiError 403 for what a page may
        not send."""
        origin = exchange.header(b"origin")
        if origin is None:
            return False
        exchange.extra = self._cors.headers(origin)
        if exchange.method == "POST":
            self._cors.check_post(origin, exchange.header(b"host") or "", exchange.header(b"content-type"))
        if exchange.method != "OPTIONS" or b"access-control-request-method" not in exchange.headers:
            return False
        allowed = self._cors.preflight(origin)
        if allowed is None:
            return False
        exchange.extra = [*exchange.extra, *allowed]
        return True

    def _count(self, exchange: Exchange) -> None:
        if not exchange.status:
            return
        took = perf_counter() - exchange.began
        method = exchange.method if exchange.method in METHODS else "other"
        endpoint = exchange.endpoint
        self._requests.add(1, endpoint, method, str(exchange.status))
        if endpoint not in self._application.endless:
            self._seconds.add(took, endpoint)
        self._log.debug(
            "%s %s %d %.1f ms %s",
            exchange.method,
            exchange.scope["path"],
            exchange.status,
            took * 1e3,
            exchange.principal,
        )


def _make_relative(scope: Scope) -> None:
    """A target in absolute form (`GET http://host/path`), as clients of a forward proxy send it, means its path: RFC
    9112, 3.2.2."""
    raw = scope["raw_path"]
    scheme, mark, rest = raw.partition(b"://")
    if raw.startswith(b"/") or not mark or scheme.lower() not in (b"http", b"https"):
        return
    path = b"/" + rest.partition(b"/")[2]
    scope["raw_path"] = path
    scope["path"] = unquote(path.decode("ascii"))


def _drop_slash(scope: Scope) -> None:
    """A path with a slash at its end means the one without it, as with other proxies. Two are an empty segment."""
    raw = scope["raw_path"]
    if len(raw) > 1 and raw.endswith(b"/"):
        scope["raw_path"] = raw[:-1]
        scope["path"] = scope["path"][:-1]


def _check_framing(exchange: Exchange) -> None:
    """Two ways to say where a body ends are one too many: what stands in front of us may believe the other one, and
    take the rest for a request (RFC 9112, 6.1)."""
    if b"transfer-encoding" in exchange.headers and b"content-length" in exchange.headers:
        raise ApiError(
            400,
            "A request has Content-Length or Transfer-Encoding, not both.",
            (("connection", "close"),),
        )
