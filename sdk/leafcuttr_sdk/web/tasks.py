"""The tasks of a connection: one for each request, with a bounded queue of what the client sends of it."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import trio
from hypercorn.config import Config
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
_GONE: Final = frozenset({"http.disconnect", "websocket.disconnect"})


class Tasks(TaskGroup):
    """As hypercorn's, but nobody waits for a handler that has answered: what it has not taken of the request is
    dropped. Hypercorn waits for a place in the queue instead, for ever: neither other requests nor the end of the
    connection are seen then.
    """

    under_way = 0
    """Handlers that have not come to their end."""
    unread: Callable[[int], Unread] | None = None
    """Of HTTP/2: what keeps the body of the request with this number."""

    async def spawn_app(
        self,
        app: AppWrapper,
        config: Config,
        scope: Scope,
        send: Callable[[ASGISendEvent | None], Awaitable[None]],
    ) -> Callable[[ASGIReceiveEvent], Awaitable[None]]:
        arriving, arrived = trio.open_memory_channel[ASGIReceiveEvent](config.max_app_queue_size)
        answered = ended = False
        unread: Unread | None = None
        if scope["type"] == "websocket":
            stream = getattr(send, "__self__", None)
            assert isinstance(stream, WSStream)
            guard(stream)
            # For `websockets.without_compression`: ASGI has no option for it.
            scope["state"]["websocket"] = stream
        elif self.unread is not None:
            stream = getattr(send, "__self__", None)
            assert isinstance(stream, HTTPStream)
            unread = self.unread(stream.stream_id)

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
                if unread is not None:
                    await unread.answered()
            await send(message)

        async def put(event: ASGIReceiveEvent) -> None:
            if not answered:
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
            arrived.receive if unread is None else unread.receive,
            answer,
            trio.to_thread.run_sync,
            trio.from_thread.run,
        )
        return put if unread is None else unread.put
