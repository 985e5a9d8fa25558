"""One connection of an HTTP service: bytes in, bytes out. The protocols (HTTP/1.1, HTTP/2, WebSocket) are hypercorn's.

This stands in the place of `hypercorn.trio.tcp_server`, which starts a task whenever a connection becomes idle, and
waits without end for a peer that does not take its answer, even when the server stops. When a connection is idle, and
when it ends at a stop, `Broker.serve` decides by `ByteStream.busy`.
"""

from collections.abc import Awaitable
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Final, TypeVar

import trio
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.protocol.h2 import H2Protocol, StreamBuffer
from hypercorn.protocol.h11 import H11WSConnection
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import AppWrapper, ConnectionState

from leafcuttr_sdk.web.asgi import Scope
from leafcuttr_sdk.web.http2 import Http2, Protocols
from leafcuttr_sdk.web.tasks import Tasks
from leafcuttr_sdk.web.unread import Waiting

if TYPE_CHECKING:
    import ssl

    from leafcuttr_sdk.serving import ByteStream

_MAX_RECEIVE: Final = 64 * 1024
T = TypeVar("T")

_OF_FRAMES: Final = 4096
"""Bytes that are taken at a time where a client sends frames, of which there may be one in every nine bytes or fewer:
others have their turn behind some hundred of them."""
_FAREWELL_S: Final = 0.5
PIECE: Final = 64 * 1024
"""Bytes of an answer that a client has to take within `send_s`; then it has as long for the next ones."""


class Connection:
    """`serve` returns when it is closed; `address` is that of the listener."""

    def __init__(
        self,
        app: AppWrapper,
        config: Config,
        context: WorkerContext,
        stream: "ByteStream",
        address: tuple[str, int],
        waiting: Waiting,
        *,
        send_s: float,
    ) -> None:
        self._app = app
        self._config = config
        self._context = context
        self._stream = stream
        self._address = address
        self.waiting = waiting
        self.send_s = send_s
        self._send_lock = trio.Lock()
        self._scope = trio.CancelScope()
        self._broken: trio.BrokenResourceError | None = None
        self._held: list[bytes] | None = None
        self._sending = trio.CancelScope()
        self._until = inf
        """When the client must have taken all that is sent."""
        self.tls: ssl.SSLObject | None = stream.tls
        """For the certificate of the client; None where there is no TLS."""

    async def serve(self) -> None:
        """Raises BrokenResourceError where the client has reset it."""
        with self._scope:
            try:
                await self._serve()
            except* (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
                pass
        await self._close()
        if self._broken is not None:
            raise self._broken

    def cut(self) -> None:
        """Close it now, whatever it is at."""
        self._scope.cancel()
        self._sending.cancel()

    async def end(self, scope: Scope) -> None:
        """End the answer to the request of this scope where it is: over HTTP/2 its stream, and no other."""
        protocol = self._protocol.protocol
        if isinstance(protocol, Http2):
            await protocol.end_stream_of(scope)
        else:
            self.cut()

    async def hurried(self, work: Awaitable[T]) -> T:
        """Do some work. Once that is cancelled, the client has half a second to take what is being sent, and what is
        sent behind that. One that takes nothing would hold it for `send_s`, as a send that has begun goes on.

        For what goes on for long, and ends with a log-in or a right. Over HTTP/2 sends do not wait for one client.
        """
        failure: Exception | None = None
        cancelled = True
        found: list[T] = []

        async def watch() -> None:
            try:
                await trio.sleep_forever()
            finally:
                if cancelled:
                    self.hurry()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch)
            try:
                found.append(await work)
                cancelled = False
            except Exception as error:
                # Beside the task here it would come out in a group.
                failure, cancelled = error, False
            nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure
        return found[0]

    def hurry(self) -> None:
        """The client has half a second for what is sent, up to the end of this answer."""
        if not isinstance(self._protocol.protocol, H2Protocol):
            self._until = trio.current_time() + _FAREWELL_S
            self._sending.deadline = min(self._sending.deadline, self._until)

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
        alpn = (self.tls and self.tls.selected_alpn_protocol()) or "http/1.1"
        peer = self._stream.peer
        is_local = not peer.port
        self._stream.busy = False
        async with Tasks() as group:
            self._protocol = Protocols(
                self._app,
                self._config,
                self._context,
                group,
                ConnectionState({"connection": self}),
                self.tls is not None,
                None if is_local else (peer.host, peer.port),
                None if is_local else self._address,
                self._send,
                alpn_protocol=alpn,
            )
            await self._protocol.initiate()
            await self._read()

    async def _read(self) -> None:
        while True:
            try:
                data = await self._stream.receive_some(_MAX_RECEIVE)
            except trio.ClosedResourceError:
                break
            except trio.BrokenResourceError as error:
                self._note(error)
                break
            if not data:
                break
            await self._take(bytes(data))
            inner = self._protocol.protocol
            if self._stream.busy and isinstance(inner, H2Protocol) and inner.idle:
                # The preface of HTTP/2 is taken for a request, so Hypercorn does not say that none is under way.
                self._stream.busy = False
        await self._protocol.handle(Closed())

    async def _take(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            inner = self._protocol.protocol
            frames = isinstance(inner, H2Protocol) or isinstance(inner.connection, H11WSConnection)
            size = _OF_FRAMES if frames else _MAX_RECEIVE
            if at:
                await trio.lowlevel.checkpoint()
            await self._protocol.handle(RawData(data[at : at + size]))
            at += size

    async def _send(self, event: Event) -> None:
        if isinstance(event, RawData):
            if not event.data:
                return
            if self._held is not None:
                self._held.append(event.data)
            else:
                await self._send_all(event.data)
        elif isinstance(event, Updated):
            self._stream.busy = not event.idle
            if event.idle:
                self._until = inf
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
                            self._sending.deadline = min(trio.current_time() + self.send_s, self._until)
                            await self._stream.send_all(data[start : start + PIECE])
                    except trio.ClosedResourceError:
                        self._scope.cancel()
                    except trio.BrokenResourceError as error:
                        self._note(error)
                        self._scope.cancel()
                if self._sending.cancelled_caught:
                    # A client that does not take an answer for so long gets no more of it.
                    self._scope.cancel()

    def _note(self, error: trio.BrokenResourceError) -> None:
        """A client that ends its connection without a word of TLS, as browsers do, has not reset it."""
        if isinstance(error.__cause__, ConnectionError):
            self._broken = error

    async def _close(self) -> None:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 1):
            # Behind what another task is about to send: an answer, while this one has met what is no request.
            async with self._send_lock:
                if self.tls is None:
                    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                        await self._stream.send_eof()
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 1):
            await self._stream.aclose()


def connection_of(scope: Scope) -> Connection:
    """The connection that a request came over."""
    connection: Connection = scope["state"]["connection"]
    return connection
