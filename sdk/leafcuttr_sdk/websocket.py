"""A listener for WebSockets, served by the handler of a byte stream: what browsers speak for MQTT, for example.

It needs the package trio-websocket: the extra of a plugin that uses it names `trio-websocket>=0.11`, and its
`Plugin.modules` has `trio_websocket`. Import this module where the service runs, not where the plugin is declared.

The bytes of binary messages are one stream, in their order; where one message ends and the next begins the handler does
not see. A text message ends the connection.
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import trio
from trio.abc import HalfCloseableStream

from leafcuttr_sdk._origins import Origins
from leafcuttr_sdk._stream_over import StreamOver
from leafcuttr_sdk._websocket_pieces import Pieces
from leafcuttr_sdk.errors import PluginError
from leafcuttr_sdk.serving import ByteStream, Handler
from leafcuttr_sdk.trouble import Complaints

if TYPE_CHECKING:
    import logging

    from trio_websocket import WebSocketConnection, WebSocketRequest

    from leafcuttr_sdk.broker import Broker

_PIECE: Final = 64 * 1024
_OF_FRAMES: Final = 4096
"""Bytes that are read at a time where frames are not counted, of which there may be many."""
_FAREWELL_S: Final = 1.0
_NORMAL: Final = (1000, 1001, 1005)
"""Codes with which a client ends a connection as it should (RFC 6455, 7.4.1)."""
_UNSUPPORTED: Final = 1003
_HEAD_ENDS: Final = b"\r\n\r\n"


async def serve(
    broker: "Broker",
    prefix: str,
    handler: Handler,
    *,
    subprotocols: Iterable[str] = (),
    path: str | None = None,
    max_message_bytes: int | None = 1024 * 1024,
    origins: Iterable[str] | None = None,
    authenticates: bool = False,
    task_status: "trio.TaskStatus[Any]" = trio.TASK_STATUS_IGNORED,
) -> None:
    """As `Broker.serve`, with WebSockets: `handler` gets each as a `ByteStream`.

    With `subprotocols` a client has to offer one of them, and the first of ours that it offers is agreed on; with a
    `path` it has to request that one. Their handshake has `<prefix>.handshake.timeout.ms` too. `max_message_bytes` is
    what is kept of a message until it is whole; a longer one ends the connection. None: the handler gets the parts of a
    message as they come, so that there is no limit and nothing is kept.

    A browser lets the pages of every site open a WebSocket to any host. Those of the host that the client has asked
    for may, at any port, and those of `origins` (`*`: all); by default these are what `<prefix>.allowed.origins` of
    `websocket_settings` says. Another one is refused with 403, with a line in the log a minute. Clients that are no
    browsers send no origin.

    Raises PluginError as `Broker.serve`, and where trio-websocket is not installed.
    """
    setting = ""
    if origins is None:
        origins = ()
        with suppress(KeyError):  # `serving_settings` has no such setting
            origins, setting = broker.settings.list(f"{prefix}.allowed.origins"), f"{prefix}.allowed.origins"
    served = websocket_handler(
        handler,
        subprotocols=subprotocols,
        path=path,
        max_message_bytes=max_message_bytes,
        origins=origins,
        origins_setting=setting,
        logger=broker.logger,
        handshake_s=broker.settings.int(f"{prefix}.handshake.timeout.ms") / 1000,
    )
    await broker.serve(prefix, served, authenticates=authenticates, task_status=task_status)


def websocket_handler(
    handler: Handler,
    *,
    subprotocols: Iterable[str] = (),
    path: str | None = None,
    max_message_bytes: int | None = 1024 * 1024,
    origins: Iterable[str] = (),
    origins_setting: str = "",
    logger: "logging.Logger | None" = None,
    handshake_s: float = 10.0,
) -> Handler:
    """A handler for `Broker.serve` that does the handshake of WebSockets, and then calls this one: what `serve` is made
    of. `origins_setting` is the name of where `origins` come from, for what a page of another one is told; `logger`
    gets that too. Raises PluginError where trio-websocket is not installed."""
    try:
        from trio_websocket import ConnectionClosed, wrap_server_stream
    except ModuleNotFoundError:
        raise PluginError(
            "a listener for WebSockets needs the package trio-websocket, which is not installed: "
            "pip install 'trio-websocket>=0.11'"
        ) from None
    asked = _Asked(tuple(subprotocols), path, origins, origins_setting, logger)

    async def handle(stream: ByteStream) -> None:
        carrier = _Carrier(stream, None if max_message_bytes is not None else Pieces())
        async with trio.open_nursery() as nursery:
            reading: trio.Nursery = await nursery.start(_reading, carrier)
            connection: WebSocketConnection | None = None
            with trio.move_on_after(handshake_s) as patience:
                async with trio.open_nursery() as waiting:
                    waiting.start_soon(_cancel_once, carrier.gone, waiting.cancel_scope)
                    request = await wrap_server_stream(
                        reading, carrier, message_queue_size=1, max_message_size=max_message_bytes or _PIECE
                    )
                    with suppress(ConnectionClosed):
                        connection = await asked.answered(request, stream)
                    waiting.cancel_scope.cancel()
            if patience.cancelled_caught:
                raise trio.BrokenResourceError(f"no handshake of a WebSocket within {handshake_s:g} s")
            if connection is None:
                raise trio.BrokenResourceError("no handshake of a WebSocket")
            websocket = _WebSocketByteStream(stream, carrier, connection)
            try:
                await handler(websocket)
            finally:
                with trio.CancelScope(shield=True):
                    await websocket.aclose()
            nursery.cancel_scope.cancel()

    return handle


async def _reading(carrier: "_Carrier", *, task_status: "trio.TaskStatus[trio.Nursery]") -> None:
    """Hold the task that reads the WebSocket. It answers what is wrong, and pings, and raises where the client has
    gone meanwhile; the handler that uses the connection is told that as well."""
    from trio_websocket import ConnectionClosed
    from wsproto.utilities import LocalProtocolError

    try:
        async with trio.open_nursery() as nursery:
            task_status.started(nursery)
            await trio.sleep_forever()
    # The second: a ping has come behind our close frame, and trio-websocket wants to answer it. The third: the host of
    # the handshake can be none (wsproto decodes it).
    except* (ConnectionClosed, LocalProtocolError, UnicodeError):
        pass
    finally:
        carrier.gone.set()


class _Asked:
    """What a client has to ask for in the handshake, and whose pages may."""

    def __init__(
        self,
        subprotocols: tuple[str, ...],
        path: str | None,
        origins: Iterable[str],
        setting: str,
        logger: "logging.Logger | None",
    ) -> None:
        self._subprotocols = subprotocols
        self._path = path
        self._origins = Origins(origins, any_port=True)
        self._setting = setting
        self._complain = None if logger is None else Complaints(logger)

    async def answered(self, request: "WebSocketRequest", stream: ByteStream) -> "WebSocketConnection | None":
        reason = self._why_refused(request)
        if reason is not None:
            if self._complain is not None:
                host = stream.peer.host
                # By the address alone: there are as many origins as a client likes.
                self._complain(host, "%s refused a client at %s: %s", stream.listener, host, reason)
            await request.reject(403, body=f"{reason}\n".encode())
            return None
        if self._path is not None and request.path.partition("?")[0] != self._path:
            await request.reject(404, body=b"no WebSocket is served at this path\n")
            return None
        offered = request.proposed_subprotocols
        ours = self._subprotocols
        agreed = next((name for name in ours if name in offered), None)
        if ours and agreed is None:
            await request.reject(400, body=f"offer the subprotocol {' or '.join(ours)}\n".encode())
            return None
        return await request.accept(subprotocol=agreed)

    def _why_refused(self, request: "WebSocketRequest") -> str | None:
        """By each header Origin that there is: of two, what stands in front of us may have added one."""
        host: str = request._event.host  # pyright: ignore[reportPrivateUsage]
        for name, value in request.headers:
            origin = value.decode("latin-1")
            if name.lower() == b"origin" and not self._origins.allows(origin, host):
                return self._origins.refusal(origin, host, self._setting)
        return None


async def _cancel_once(event: trio.Event, scope: trio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


class _Carrier(HalfCloseableStream):
    """What carries the WebSocket. It receives only while the handler wants something (`wanted`): so the connection is
    as idle or busy as its handler, and what a client sends meanwhile waits in the kernel. `gone` is set at its end.
    With `pieces` messages are cut into these."""

    def __init__(self, stream: ByteStream, pieces: Pieces | None) -> None:
        self._stream = stream
        self._pieces = pieces
        self.wanted = trio.Event()
        self.wanted.set()  # the request of the handshake, up to its end
        self._head: bytes | None = b""
        self.gone = trio.Event()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        # A handler that has just been given its message needs one turn until it says that it wants no more.
        for _ in range(2):
            await trio.lowlevel.checkpoint()
        await self.wanted.wait()
        while True:
            if self._pieces is not None and self._pieces.more:
                cut = self._cut(b"")
                if cut:
                    return cut
                await trio.lowlevel.checkpoint()
                continue
            data: bytes | bytearray = b""
            try:
                data = await self._stream.receive_some(_OF_FRAMES if self._pieces is None else _PIECE)
            finally:
                if not data:
                    self.gone.set()
            cut = self._cut(bytes(data))
            if cut or not data:
                return cut

    def _cut(self, data: bytes) -> bytes:
        """What is read of this; nothing: more has to come for that."""
        frames = 0
        if self._head is not None:
            before = self._head[-len(_HEAD_ENDS) :]
            self._head = before + data
            if _HEAD_ENDS not in self._head:
                return data
            frames = self._head.index(_HEAD_ENDS) + len(_HEAD_ENDS) - len(before)
            self._head, self.wanted = None, trio.Event()
        return data if self._pieces is None else data[:frames] + self._pieces.feed(data[frames:])

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def send_eof(self) -> None:
        await self._stream.send_eof()

    async def aclose(self) -> None:
        self.gone.set()
        await self._stream.aclose()


class _WebSocketByteStream(StreamOver, HalfCloseableStream):
    """See `leafcuttr_sdk.ByteStream`."""

    def __init__(self, stream: ByteStream, carrier: _Carrier, connection: "WebSocketConnection") -> None:
        self._stream = stream
        self._carrier = carrier
        self._connection = connection
        self._rest = b""
        self._receiving = False
        self._closed = False

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        if max_bytes is not None and max_bytes < 1:
            raise ValueError("max_bytes must be >= 1")
        await trio.lowlevel.checkpoint()
        if self._closed:
            raise trio.ClosedResourceError("this connection was closed")
        if self._receiving:
            raise trio.BusyResourceError("another task is receiving from this connection")
        self._receiving = True
        try:
            while not self._rest:
                message = await self._message()
                if message is None:
                    return b""
                self._rest = message
        finally:
            self._receiving = False
        data, self._rest = self._rest[:max_bytes], self._rest[max_bytes or len(self._rest) :]
        return data

    async def _message(self) -> bytes | None:
        """The next one; None at the end."""
        from trio_websocket import ConnectionClosed

        self._carrier.wanted.set()
        try:
            message = await self._connection.get_message()
        except ConnectionClosed as error:
            code = error.reason.code if error.reason is not None else 1006
            if code in _NORMAL:
                return None
            raise trio.BrokenResourceError(f"the WebSocket has ended with code {code}") from None
        finally:
            self._carrier.wanted = trio.Event()
        if isinstance(message, str):
            await self._close(_UNSUPPORTED)
            raise trio.BrokenResourceError("a text message came, and only binary ones are taken")
        return message

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        from trio_websocket import ConnectionClosed

        await trio.lowlevel.checkpoint()
        if self._closed:
            raise trio.ClosedResourceError("this connection was closed")
        view = memoryview(data).cast("B")
        try:
            for at in range(0, len(view), _PIECE):
                await self._connection.send_message(bytes(view[at : at + _PIECE]))
        except ConnectionClosed:
            raise trio.BrokenResourceError("the WebSocket has ended") from None

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def send_eof(self) -> None:
        raise NotImplementedError("a WebSocket cannot end one direction only")

    async def aclose(self) -> None:
        self._closed = True
        await self._close(1000)

    async def _close(self, code: int) -> None:
        """The closing handshake, if the client does its part soon."""
        self._carrier.wanted.set()
        with trio.move_on_after(_FAREWELL_S):
            await self._connection.aclose(code)
        await self._stream.aclose()
