"""The server of an HTTP service: `Broker.serve` accepts its connections and ends them, the protocols are hypercorn's.
Requests in flight are answered at the stop."""

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, cast

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config

from leafcuttr_sdk.web.connection import Connection
from leafcuttr_sdk.web.front import Application, Front
from leafcuttr_sdk.web.http2 import Context
from leafcuttr_sdk.web.serving import Serving
from leafcuttr_sdk.web.settings import read_limits
from leafcuttr_sdk.web.unread import Waiting

if TYPE_CHECKING:
    from hypercorn.typing import ASGIFramework

    from leafcuttr_sdk.broker import Broker
    from leafcuttr_sdk.listening import Listening
    from leafcuttr_sdk.serving import ByteStream

_PROTOCOLS: Final = ("h2", "http/1.1")
_LONGEST_MESSAGE: Final = 16 * 1024
"""Bytes of a message from the client of a WebSocket."""
_GRACE_S: Final = 3.5
"""How long what the service has started beside its connections may go on once it stops: a moment longer than the
connections, which `Broker.serve` cuts."""
_BUSY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nconnection: close\r\n"
    b"retry-after: 1\r\ncontent-length: 58\r\n\r\n"
    b'{"error_code":503,"message":"There are too many clients."}'
)


class HttpServer:
    """Serves HTTP/1.1, HTTP/2 and WebSockets on the listener of `web_settings(prefix, ...)`, until it is cancelled.

    `name` is that of its metrics, `leafcuttr_<name>_...`, and begins with that of the plugin; `title` stands for it in
    lines of the log. It is made when its service is, and run once.
    """

    def __init__(self, broker: "Broker", prefix: str, *, name: str, title: str) -> None:
        self._broker = broker
        self._prefix = prefix
        self._name = name
        self._title = title
        self._limits = read_limits(broker.settings, prefix)
        self._authentication = broker.authentication(prefix)
        self._context = Context(None)
        self._waiting = Waiting(self._limits.buffered_bytes)
        self._listening: Listening | None = None
        self._open = 0
        self._paused = 0
        self._count = broker.metrics.gauge(
            f"leafcuttr_{name}_connections", "Connections of clients that are open."
        )
        self._count.set(0)
        self._pauses = broker.metrics.counter(
            f"leafcuttr_{name}_accept_pauses_total",
            f"How often {title} stopped accepting connections, because of the limit of open files.",
        )
        self._pauses.add(0)

    async def run(
        self, make: Callable[[Serving], Application], *, task_status: trio.TaskStatus[None]
    ) -> None:
        """Serve what `make` returns. At the stop requests in flight have two seconds to be answered. Raises
        PluginError, in a group, where the address cannot be bound."""
        closing, kept = trio.Event(), _Kept()
        async with trio.open_nursery() as service:
            service.start_soon(kept.run, closing)
            service.start_soon(self._close_at_the_stop, closing)
            try:
                nursery = await kept.nursery()
                serving = Serving(self._broker, self._limits, self._authentication, nursery, closing)
                app = ASGIWrapper(
                    cast("ASGIFramework", Front(serving, make(serving), self._name, self._title))
                )
                try:
                    await self._broker.serve(
                        self._prefix,
                        partial(self._serve, app, _config(self._broker.logger)),
                        authenticates=self._authentication.required,
                        alpn_protocols=_PROTOCOLS,
                        refusal=_BUSY,
                        task_status=_Started(self, task_status),
                    )
                finally:
                    serving.end()
            finally:
                kept.ended.set()

    def now_open(self, listening: "Listening") -> None:
        self._listening, self._paused = listening, listening.accept_pauses

    async def _close_at_the_stop(self, closing: trio.Event) -> None:
        """While the connections go on: what answers for long ends, and hypercorn takes no further request of them."""
        try:
            await trio.sleep_forever()
        finally:
            await self._context.terminated.set()  # this does not wait
            closing.set()

    async def _serve(self, app: ASGIWrapper, config: Config, stream: "ByteStream") -> None:
        assert self._listening is not None
        address = self._listening.host, self._listening.port
        self._open += 1
        self._note(self._listening)
        try:
            await Connection(
                app, config, self._context, stream, address, self._waiting, send_s=self._limits.request_s
            ).serve()
        finally:
            self._open -= 1
            self._note(self._listening)

    def _note(self, listening: "Listening") -> None:
        self._count.set(self._open)
        if listening.accept_pauses > self._paused:
            self._pauses.add(listening.accept_pauses - self._paused)
            self._paused = listening.accept_pauses


class _Started:
    """The task status of `Broker.serve`: it gives the listener to the server."""

    def __init__(self, server: HttpServer, task_status: trio.TaskStatus[None]) -> None:
        self._server = server
        self._task_status = task_status

    def started(self, value: "Listening | None" = None) -> None:
        assert value is not None
        self._server.now_open(value)
        self._task_status.started()


class _Kept:
    """Holds what the service has started beside its connections, as long as these are served, and a while longer."""

    def __init__(self) -> None:
        self.ended = trio.Event()
        """No connection is served any more."""
        self._begun = trio.Event()
        self._nursery: trio.Nursery | None = None

    async def nursery(self) -> trio.Nursery:
        await self._begun.wait()
        assert self._nursery is not None
        return self._nursery

    async def run(self, closing: trio.Event) -> None:
        """Not by `Nursery.start`: where that is cancelled it waits without end for what is shielded."""
        with trio.CancelScope(shield=True) as scope:
            async with trio.open_nursery() as self._nursery:
                self._begun.set()
                await closing.wait()
                scope.deadline = trio.current_time() + _GRACE_S
                await self.ended.wait()


def _config(logger: logging.Logger) -> Config:
    config = Config()
    config.errorlog = logger
    config.include_server_header = False
    config.keep_alive_max_requests = 2**31
    # Pieces of a body, at most 64 KiB each, that wait for the endpoint to take them.
    config.max_app_queue_size = 4
    # Kept until it is whole, for every WebSocket that there is.
    config.websocket_max_message_size = _LONGEST_MESSAGE
    return config
