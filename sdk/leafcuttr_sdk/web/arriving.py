"""What arrives over a WebSocket, where hypercorn keeps more of it than it should, or answers it in a wrong way.

Hypercorn refuses a message that is too long with a close frame, and then keeps the rest of it, without end, until the
client closes too. And it answers what comes before the handshake is answered with a second answer beside the
handler's own, of which the handler hears nothing.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from hypercorn.protocol.events import Body, Data, Event, StreamClosed
from hypercorn.protocol.ws_stream import (
    ASGIWebsocketState,
    FrameTooLargeError,
    WebsocketBuffer,
    WSStream,
)
from hypercorn.typing import ASGIReceiveEvent
from wsproto.events import Message
from wsproto.frame_protocol import CloseReason


class _Bounded(WebsocketBuffer):
    """A message until it is whole; nothing is kept of one that is too long."""

    overflowed = False

    def extend(self, event: "Message[Any]") -> None:
        if self.overflowed or self.length + len(event.data) > self.max_length:
            self.overflowed = True
            self.clear()
            raise FrameTooLargeError
        super().extend(event)  # pyright: ignore[reportUnknownMemberType]


def guard(stream: WSStream) -> None:
    """Before its request is handled: end this WebSocket with the first thing that its client may not send."""
    handle = stream.handle
    buffer = stream.buffer = _Bounded(stream.buffer.max_length)

    async def guarded(event: Event) -> None:
        if not isinstance(event, (Body, Data)) or stream.closed:
            await handle(event)
        elif stream.handshake.accepted:
            await handle(event)
            if buffer.overflowed and not stream.closed:
                # The close frame has been sent; a client that goes on sending does not answer it.
                await stream.send(StreamClosed(stream_id=stream.stream_id))
        elif event.data and not _answered(stream):
            await _refuse(stream)

    stream.handle = guarded  # type: ignore[method-assign]


async def end(stream: WSStream) -> None:
    """Over HTTP/2: the client has ended its half of the stream, as the end of a connection is without it (RFC 8441,
    5)."""
    if stream.closed:
        return
    if stream.handshake.accepted:
        stream.connection.receive_data(None)
        await stream._handle_events()  # pyright: ignore[reportPrivateUsage]
    elif not _answered(stream):
        await _refuse(stream)


def _answered(stream: WSStream) -> bool:
    """Whether an answer has begun, which then is no WebSocket."""
    return stream.state is not ASGIWebsocketState.HANDSHAKE or hasattr(stream, "response")


async def _refuse(stream: WSStream) -> None:
    """A client has to wait for the answer of the handshake (RFC 6455, 4.1). From here on nothing of the handler is
    sent."""
    stream.closed = True
    tell: Callable[[ASGIReceiveEvent], Awaitable[None]] | None
    tell = stream.app_put  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if tell is not None:
        await tell({"type": "websocket.disconnect", "code": int(CloseReason.ABNORMAL_CLOSURE)})
    await stream._send_error_response(400)  # pyright: ignore[reportPrivateUsage]
    await stream.send(StreamClosed(stream_id=stream.stream_id))
