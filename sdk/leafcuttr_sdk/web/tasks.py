"""The tasks of a connection: one for each request, with a bounded queue of what the client sends of it."""

from collections.abc import Awaitable, Callable
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
from leafcuttr_sdk.web.queues import Arrivals, Queue, WebSocketQueue
from leafcuttr_sdk.web.unread import Unread

_LAST: Final = frozenset({"http.response.body", "websocket.http.response.body", "websocket.close"})
"""Messages of handlers that end an answer, if no more of it is said to come."""


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
        arrivals = self._arrivals(config, scope, send)
        ended = False

        async def answer(message: ASGISendEvent | None) -> None:
            nonlocal ended
            if message is None:
                if not ended:  # it comes twice after a group of exceptions
                    ended = True
                    self.under_way -= 1
                await arrivals.answered(ended=True)
            elif message["type"] in _LAST and not message.get("more_body", False):
                await arrivals.answered(ended=False)
            await send(message)

        self.under_way += 1
        self.spawn(  # pyright: ignore[reportUnknownMemberType]
            _handle,
            app,
            config,
            scope,
            arrivals.receive,
            answer,
            trio.to_thread.run_sync,
            trio.from_thread.run,
        )
        return arrivals.put

    def _arrivals(self, config: Config, scope: Scope, send: object) -> Arrivals:
        stream = getattr(send, "__self__", None)
        places = config.max_app_queue_size
        if scope["type"] == "websocket":
            assert isinstance(stream, WSStream)
            guard(stream)
            # For `websockets.without_compression`: ASGI has no option for it.
            scope["state"]["websocket"] = stream
            if self.unread is not None:
                frames = self.unread(stream.stream_id)
                spawn: Callable[..., None] = self.spawn  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
                leaving = scope["state"]["connection"].buffer_of(scope)
                return WebSocketQueue(places, stream, frames, leaving, spawn)
        elif self.unread is not None:
            assert isinstance(stream, HTTPStream)
            return self.unread(stream.stream_id)
        return Queue(places)
