"""What a client sends for one request, from its connection to its handler: the messages of ASGI, of which only so many
wait. The bodies of HTTP/2 are in `unread`.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Protocol

import trio
from hypercorn.protocol.events import Data
from hypercorn.protocol.h2 import BUFFER_HIGH_WATER, StreamBuffer
from hypercorn.protocol.ws_stream import WSStream
from hypercorn.typing import ASGIReceiveEvent

from leafcuttr_sdk.web.arriving import end
from leafcuttr_sdk.web.unread import Unread

_GONE: Final = frozenset({"http.disconnect", "websocket.disconnect"})
_ABNORMAL: Final = 1006
"""The connection was lost: RFC 6455, 7.4.1."""
_AT_ONCE: Final = 4096
"""Bytes of frames that are taken at a time, of which there may be one in every six: others have their turn between."""


class Arrivals(Protocol):
    """From a connection to a handler."""

    async def put(self, event: ASGIReceiveEvent) -> None: ...

    async def receive(self) -> ASGIReceiveEvent: ...

    async def answered(self, *, ended: bool) -> None:
        """The handler needs no more; `ended`: it has come to its end."""


class Queue:
    """With so many places: where none is free, the connection waits until the handler has taken something, or has
    answered."""

    def __init__(self, places: int) -> None:
        self._arriving, self._arrived = trio.open_memory_channel[ASGIReceiveEvent](places)
        self._answered = False

    async def put(self, event: ASGIReceiveEvent) -> None:
        if not self._answered:
            await self._arriving.send(event)
        elif event["type"] in _GONE:
            with suppress(trio.WouldBlock):
                self._arriving.send_nowait(event)

    async def receive(self) -> ASGIReceiveEvent:
        return await self._arrived.receive()

    async def answered(self, *, ended: bool) -> None:
        self._answered = True
        with suppress(trio.WouldBlock):
            while True:
                self._arrived.receive_nowait()


class WebSocketQueue(Queue):
    """The messages of a WebSocket over HTTP/2, one stream of several. Its frames wait in `frames`, and a task of its
    own makes messages of them: this one waits for a place, and the connection does not. `leaving` is what the client
    has not taken yet: while that is much, no more of its pings are answered.
    """

    def __init__(
        self,
        places: int,
        stream: WSStream,
        frames: Unread,
        leaving: StreamBuffer,
        spawn: Callable[..., Any],
    ) -> None:
        super().__init__(places)
        self._stream = stream
        self._frames = frames
        self._leaving = leaving
        self._draining = trio.CancelScope()
        self._spawn = spawn
        spawn(self._read)

    async def put(self, event: ASGIReceiveEvent) -> None:
        if event["type"] not in _GONE:
            await super().put(event)
            return
        self._draining.cancel()
        await self._frames.put(event)
        await self._frames.answered(ended=True)  # also if the client has ended its half: nobody hears of them
        # The task of the connection brings it.
        self._spawn(super().put, event)

    async def answered(self, *, ended: bool) -> None:
        await super().answered(ended=ended)
        if ended:
            await self._frames.put({"type": "websocket.disconnect", "code": _ABNORMAL})

    async def _read(self) -> None:
        more = True
        while more and (message := await self._frames.receive())["type"] == "http.request":
            body, more = message["body"], message["more_body"]
            for at in range(0, len(body), _AT_ONCE):
                if at:
                    await trio.lowlevel.checkpoint()
                await self._take(body[at : at + _AT_ONCE])
        if not more:
            await end(self._stream)

    async def _take(self, data: bytes) -> None:
        before = len(self._leaving.buffer)
        await self._stream.handle(Data(stream_id=self._stream.stream_id, data=data))
        if before < len(self._leaving.buffer) >= BUFFER_HIGH_WATER:
            # Hypercorn keeps all answers to pings, however many they are.
            with trio.CancelScope() as self._draining:
                if not self._stream.closed:
                    await self._leaving.drain()
