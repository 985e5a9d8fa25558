"""The tasks of a connection: one for each request, with a bounded queue of what the client sends of it."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import trio
from hypercorn.config import Config
from hypercorn.protocol.events import Data
from hypercorn.protocol.http_stream import HTTPStream
from hypercorn.protocol.ws_stream import WSStream
from hypercorn.trio.task_group import (
    TaskGroup,
    _handle,  # pyright: ignore[reportPrivateUsage, reportUnknownVariableType]
)
from hypercorn.typing import AppWrapper, ASGIReceiveEvent, ASGISendEvent, Scope

from leafcuttr_sdk.web.arriving import guard
from leafcuttr_sdk.web.unread import Unread

_LAST: Final = frozenset({"http.response.body", "websocket.http.response.body", "websocket.close"})
"""Messages of handlers that end an answer, if no more of it is said to come."""
_ABNORMAL: Final = 1006
"""The connection was lost: RFC 6455, 7.4.1."""
_GONE: Final = frozenset({"http.disconnect", "websocket.disconnect"})


class Tasks(TaskGroup):
    """As hypercorn's, but nobody waits for a handler that has answered: what it has not taken of the request is
    dropped. Hypercorn waits for a place in the queue instead, for ever: neither other requests nor the end of the
    connection are seen then.
    """

    under_way = 0
    """Handlers that have not come to their end."""
    unread: Callable[[int], Unread] | None = None
    """Of HTTP/2: what keeps what arrives for the request with this number."""

    async def spawn_app(
        self,
        app: AppWrapper,
        config: Config,
        scope: Scope,
        send: Callable[[ASGISendEvent | None], Awaitable[None]],
    ) -> Callable[[ASGIReceiveEvent], Awaitable[None]]:
        arriving, arrived = trio.open_memory_channel[ASGIReceiveEvent](config.max_app_queue_size)
        answered = ended = False
        body: Unread | None = None
        frames: Unread | None = None
        """Of a WebSocket over HTTP/2, which is one stream of several."""
        stream = getattr(send, "__self__", None)
        if scope["type"] == "websocket":
            assert isinstance(stream, WSStream)
            guard(stream)
            # For `websockets.without_compression`: ASGI has no option for it.
            scope["state"]["websocket"] = stream
            if self.unread is not None:
                frames = self.unread(stream.stream_id)
                self.spawn(_read_frames, frames, stream)  # pyright: ignore[reportUnknownMemberType]
        elif self.unread is not None:
            assert isinstance(stream, HTTPStream)
            body = self.unread(stream.stream_id)

        async def answer(message: ASGISendEvent | None) -> None:
            nonlocal answered, ended
            if message is None and not ended:  # which comes twice after a group of exceptions
                ended = True
                self.under_way -= 1
            if message is None or (message["type"] in _LAST and not message.get("more_body", False)):
                answered = True
                with suppress(trio.WouldBlock):
                    while True:
                        arrived.receive_nowait()
                if body is not None:
                    await body.answered()
            if message is None and frames is not None:
                await frames.put({"type": "websocket.disconnect", "code": _ABNORMAL})
            await send(message)

        async def put(event: ASGIReceiveEvent) -> None:
            if frames is not None and event["type"] in _GONE:
                await frames.put(event)
            if not answered:
                if frames is not None and event["type"] in _GONE:
                    # The task of the connection brings it, and has other streams to look after.
                    self.spawn(arriving.send, event)  # pyright: ignore[reportUnknownMemberType]
                else:
                    await arriving.send(event)
            elif event["type"] in _GONE:
                with suppress(trio.WouldBlock):
                    arriving.send_nowait(event)

        self.under_way += 1
        self.spawn(  # pyright: ignore[reportUnknownMemberType]
            _handle,
            app,
            config,
            scope,
            arrived.receive if body is None else body.receive,
            answer,
            trio.to_thread.run_sync,
            trio.from_thread.run,
        )
        return put if body is None else body.put


async def _read_frames(frames: Unread, stream: WSStream) -> None:
    """What arrives for a WebSocket over HTTP/2, in a task of its own: this one waits where its handler does not take
    messages, and the connection does not."""
    while (message := await frames.receive())["type"] == "http.request":
        await stream.handle(Data(stream_id=stream.stream_id, data=message["body"]))
