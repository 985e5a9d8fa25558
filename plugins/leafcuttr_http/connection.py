"""One TCP or TLS connection: bytes in, bytes out, and when it ends. The protocols (HTTP/1.1, HTTP/2, WebSocket) are
hypercorn's.

This stands in the place of `hypercorn.trio.tcp_server`, which starts a task whenever a connection becomes idle, and
waits without end for a peer that does not take its answer, even when the server stops.
"""

from contextlib import suppress
from typing import Final

import trio
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.protocol import ProtocolWrapper
from hypercorn.protocol.h2 import H2Protocol, StreamBuffer
from hypercorn.trio.task_group import TaskGroup
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import AppWrapper, ConnectionState
from hypercorn.utils import parse_socket_addr

from leafcuttr_http.asgi import Scope

_MAX_RECEIVE: Final = 64 * 1024
_HANDSHAKE_S: Final = 20.0
PIECE: Final = 64 * 1024
"""Bytes of an answer that a client has to take within `send_s`; then it has as long for the next ones."""

Stream = trio.SocketStream | trio.SSLStream[trio.SocketStream]


class Connection:
    """`serve` returns when it is closed. `idle_since` is None while a request is being answered."""

    def __init__(
        self,
        app: AppWrapper,
        config: Config,
        context: WorkerContext,
        stream: Stream,
        *,
        idle_s: float,
        send_s: float,
    ) -> None:
        self._app = app
        self._config = config
        self._context = context
        self._stream = stream
        self._idle_s = idle_s
        self.send_s = send_s
        self._send_lock = trio.Lock()
        self._scope = trio.CancelScope()
        self._idle = trio.CancelScope()
        self._held: list[bytes] | None = None
        self._sending = trio.CancelScope()
        self.idle_since: float | None = trio.current_time()

    async def serve(self) -> None:
        with self._scope:
            try:
                await self._serve()
            except* (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
                pass
        await self._close()

    def stop(self) -> None:
        """Close it now if it is idle; otherwise hypercorn does after the request at hand."""
        if self.idle_since is not None:
            self._scope.cancel()

    def cut(self) -> None:
        """Close it now, whatever it is at."""
        self._scope.cancel()
        self._sending.cancel()

    def hold(self) -> None:
        """Keep back what is sent until `release`, so that the head and the body of an answer leave together."""
        self._held = []

    async def release(self) -> None:
        held, self._held = self._held, None
        if held:
            await self._send_all(b"".join(held))

    def buffer_of(self, scope: Scope) -> StreamBuffer | None:
        """Where HTTP/2 keeps what is to leave for the request of this scope."""
        protocol = self._protocol.protocol
        if isinstance(protocol, H2Protocol):
            for number, stream in protocol.streams.items():
                if getattr(stream, "scope", None) is scope:
                    return protocol.stream_buffers.get(number)
        return None

    async def _serve(self) -> None:
        alpn = "http/1.1"
        if isinstance(self._stream, trio.SSLStream):
            with trio.move_on_after(_HANDSHAKE_S) as handshake:
                await self._stream.do_handshake()
            if handshake.cancelled_caught:
                return
            alpn = self._stream.selected_alpn_protocol() or alpn
            sock = self._stream.transport_stream.socket
        else:
            sock = self._stream.socket
        client = parse_socket_addr(sock.family, sock.getpeername())
        server = parse_socket_addr(sock.family, sock.getsockname())
        async with TaskGroup() as group:
            self._protocol = ProtocolWrapper(
                self._app,
                self._config,
                self._context,
                group,
                ConnectionState({"connection": self}),
                isinstance(self._stream, trio.SSLStream),
                client,
                server,
                self._send,
                alpn,
            )
            group.spawn(self._watch)
            await self._protocol.initiate()
            await self._read()
            self._idle.cancel()

    async def _read(self) -> None:
        while True:
            try:
                data = await self._stream.receive_some(_MAX_RECEIVE)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                break
            if not data:
                break
            await self._protocol.handle(RawData(bytes(data)))
            inner = self._protocol.protocol
            if self.idle_since is None and isinstance(inner, H2Protocol) and inner.idle:
                # The preface of HTTP/2 looks like a request; nobody says that none is under way.
                self.idle_since = trio.current_time()
        await self._protocol.handle(Closed())

    async def _send(self, event: Event) -> None:
        if isinstance(event, RawData):
            if not event.data:
                return
            if self._held is not None:
                self._held.append(event.data)
            else:
                await self._send_all(event.data)
        elif isinstance(event, Updated):
            self.idle_since = trio.current_time() if event.idle else None
        elif isinstance(event, Closed):
            with trio.CancelScope(shield=True):
                await self.release()
                await self._close()
            await self._protocol.handle(Closed())

    async def _send_all(self, data: bytes) -> None:
        # An application that is cancelled, as Quart's are when the client leaves, must not leave half a message behind.
        with trio.CancelScope(shield=True):
            async with self._send_lock:
                self._sending = trio.CancelScope()
                with self._sending:
                    try:
                        for start in range(0, len(data), PIECE):
                            self._sending.deadline = trio.current_time() + self.send_s
                            await self._stream.send_all(data[start : start + PIECE])
                    except (trio.BrokenResourceError, trio.ClosedResourceError):
                        self._scope.cancel()
                if self._sending.cancelled_caught:
                    # Who does not take an answer for so long gets no more of it.
                    self._scope.cancel()

    async def _watch(self) -> None:
        """Closes what has been idle for too long, or has not finished the head of its first request."""
        with self._idle:
            while True:
                since = self.idle_since
                now = trio.current_time()
                if since is None:
                    await trio.sleep(self._idle_s)
                elif since + self._idle_s <= now:
                    self._scope.cancel()
                    return
                else:
                    await trio.sleep_until(since + self._idle_s)

    async def _close(self) -> None:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 1):
            # Behind what another task is about to send: an answer, while this one has met what is no request.
            async with self._send_lock:
                if isinstance(self._stream, trio.SocketStream):
                    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                        await self._stream.send_eof()
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 1):
            await self._stream.aclose()
