"""The service: listens, serves, and stops so that requests in flight are answered."""

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Final, cast

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.trio.worker_context import WorkerContext

from leafcuttr_http.connection import Connection, Stream
from leafcuttr_http.front import Front
from leafcuttr_http.lazy_app import LazyApp
from leafcuttr_http.proxy import Proxy
from leafcuttr_http.settings import PREFIX, read_limits
from leafcuttr_http.streams import websocket
from leafcuttr_sdk.trouble import Complaints, exhausted

if TYPE_CHECKING:
    from hypercorn.typing import ASGIFramework

    from leafcuttr_sdk.broker import Broker
    from leafcuttr_sdk.listening import Listening

_PAUSE_S: Final = 0.25
_GRACE_S: Final = 2.0
"""How long requests in flight may take once the service stops. The broker's own deadline is a few seconds."""
_BUSY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nconnection: close\r\n"
    b"retry-after: 1\r\ncontent-length: 58\r\n\r\n"
    b'{"error_code":503,"message":"There are too many clients."}'
)


class HttpProxy:
    """The service `http`."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._limits = read_limits(broker.settings)
        self._complain = Complaints(broker.logger)
        self._connections: set[Connection] = set()
        self._left = trio.Event()
        self._context = WorkerContext(None)
        self._count = broker.metrics.gauge(
            "leafcuttr_http_connections", "Connections of clients that are open."
        )
        self._count.set(0)
        self._pauses = broker.metrics.counter(
            "leafcuttr_http_accept_pauses_total",
            "How often the HTTP proxy stopped accepting connections, because of the limit of open files.",
        )
        self._pauses.add(0)

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        closing = trio.Event()
        async with self._broker.listen(PREFIX) as listening, trio.open_nursery() as service:
            nursery = await service.start(_keep, closing)
            proxy = Proxy(self._broker, self._limits, nursery, closing)
            app = ASGIWrapper(cast("ASGIFramework", Front(proxy, LazyApp(proxy))))
            config = _config(self._broker.logger)
            try:
                task_status.started()
                async with trio.open_nursery() as accepting:
                    for listener in _listeners(listening):
                        accepting.start_soon(
                            self._accept, listener, partial(self._serve, app, config), nursery
                        )
            finally:
                # This does not wait: what comes after is the grace of `_keep`.
                await self._context.terminated.set()
                for connection in list(self._connections):
                    connection.stop()
                closing.set()
                nursery.start_soon(self._cut)

    async def _accept(
        self,
        listener: "trio.SocketListener | trio.SSLListener[trio.SocketStream]",
        serve: Callable[[Stream], Awaitable[None]],
        nursery: trio.Nursery,
    ) -> None:
        """As `trio.serve_listeners`, which says with a traceback, ten times a second, that nothing can be accepted."""
        while True:
            try:
                stream = await listener.accept()
            except OSError as error:
                reason = exhausted(error)
                if reason is None:
                    raise
                self._pauses.add(1)
                self._complain("pause", "the HTTP proxy pauses: %s", reason, level=logging.WARNING)
                await trio.sleep(_PAUSE_S)
            else:
                nursery.start_soon(_and_close, serve, stream)

    async def _cut(self) -> None:
        """Ends what has not come to its end within the grace."""
        with trio.move_on_after(_GRACE_S):
            while self._connections:
                await self._left.wait()
        for connection in self._connections:
            connection.cut()

    async def _serve(self, app: ASGIWrapper, config: Config, stream: Stream) -> None:
        if len(self._connections) >= self._limits.connections:
            await _turn_away(stream)
            return
        connection = Connection(
            app, config, self._context, stream, idle_s=self._limits.idle_s, send_s=self._limits.request_s
        )
        self._connections.add(connection)
        self._count.set(len(self._connections))
        try:
            await connection.serve()
        except* Exception as failed:
            # Hypercorn's protocols raise for some of what clients send: no reason for more than a line.
            log, reason = self._broker.logger, exhausted(failed)
            if reason is not None:
                self._complain(reason, "a connection of the HTTP proxy failed: %s", reason)
            else:
                log.warning(
                    "a connection of the HTTP proxy failed: %r",
                    failed.exceptions[0],
                    exc_info=log.isEnabledFor(logging.DEBUG),
                )
        finally:
            self._connections.discard(connection)
            self._count.set(len(self._connections))
            self._left.set()
            self._left = trio.Event()


async def _and_close(serve: Callable[[Stream], Awaitable[None]], stream: Stream) -> None:
    try:
        await serve(stream)
    finally:
        await trio.aclose_forcefully(stream)


async def _keep(closing: trio.Event, *, task_status: trio.TaskStatus[trio.Nursery]) -> None:
    """Holds the connections, and outlives the cancellation of the service by the grace."""
    with trio.CancelScope(shield=True) as scope:
        async with trio.open_nursery() as nursery:
            task_status.started(nursery)
            await closing.wait()
            # A moment later than `_cut`, for what no connection waits for.
            scope.deadline = trio.current_time() + _GRACE_S + 0.5


async def _turn_away(stream: Stream) -> None:
    with trio.move_on_after(1):
        try:
            if isinstance(stream, trio.SocketStream):
                await stream.send_all(_BUSY)
        except trio.BrokenResourceError:
            pass
        finally:
            await trio.aclose_forcefully(stream)


def _listeners(listening: "Listening") -> list[trio.SocketListener | trio.SSLListener[trio.SocketStream]]:
    plain = [trio.SocketListener(trio.socket.from_stdlib_socket(sock)) for sock in listening.sockets]
    context = listening.ssl_context
    if context is None:
        return list(plain)
    context.set_alpn_protocols(["h2", "http/1.1"])
    return [trio.SSLListener(listener, context, https_compatible=True) for listener in plain]


def _config(logger: logging.Logger) -> Config:
    config = Config()
    config.errorlog = logger
    config.include_server_header = False
    config.keep_alive_max_requests = 2**31
    # Pieces of a body, at most 64 KiB each, that wait for the endpoint to take them.
    config.max_app_queue_size = 4
    # Kept until it is whole, for every WebSocket that there is: so many characters, in UTF-8.
    config.websocket_max_message_size = 4 * websocket.LONGEST
    return config
