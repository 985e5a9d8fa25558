"""What has arrived of the bodies of HTTP/2, and for WebSockets over it, and their handlers have not taken.

A stream has a window, and what its handler has not taken is not given back to it: so much waits here for each, and its
client sends no more (RFC 9113, 5.2). The window of the connection is given back at once, or one handler that does not
read would hold up all streams beside its own. Where too much waits in the whole service the connection's is held back
as well.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import trio

if TYPE_CHECKING:
    from hypercorn.typing import ASGIReceiveEvent

_PIECE = 64 * 1024
Credit: TypeAlias = Callable[["Unread", int], Awaitable[None]]
"""Gives back to the window of a stream what is `owed` to it, and so many bytes to that of its connection."""


class Waiting:
    """The bytes that wait in one service, and from how many on connections are held back."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.size = 0


class Unread:
    """The body of one request, from its stream to its handler; or the frames of a WebSocket, which have no end but that
    of the client. No call but `receive` waits for the handler."""

    def __init__(self, number: int, waiting: Waiting, credit: Credit) -> None:
        self.number = number
        self.owed = 0
        """Bytes that were taken and not given back to the window of the stream yet."""
        self.ended = False
        """Whether all of the body has arrived."""
        self._waiting = waiting
        self._credit = credit
        self._data = bytearray()
        self._held = 0
        """Bytes of these that the connection's window lacks."""
        self._told = False
        self._dropped = False
        self._gone: ASGIReceiveEvent | None = None
        self._more = trio.Event()

    def arrived(self, data: bytes) -> int:
        """Returns how much of this the window of the connection gets back at once."""
        if self._dropped:
            self.owed += len(data)
            return len(data)
        self._data += data
        self._waiting.size += len(data)
        if data:
            self._more.set()
        if self._waiting.size <= self._waiting.most:
            return len(data)
        self._held += len(data)
        return 0

    async def put(self, event: "ASGIReceiveEvent") -> None:
        """What else there is for the handler: the end of the body, or of the client."""
        if event["type"] == "http.request":
            self.ended = True
        else:
            self._gone = event
            if not self.ended:
                await self._drop()  # nobody can do anything with a part
        self._more.set()

    async def receive(self) -> Any:
        """The next message for the handler, as of ASGI."""
        await trio.lowlevel.checkpoint()
        while not self._data and (self._told or not self.ended) and self._gone is None:
            self._more = trio.Event()
            await self._more.wait()
        if self._gone is not None and (self._told or not self.ended):
            return self._gone
        body = bytes(self._data[:_PIECE])
        held = self._take(len(body))
        self._told = self.ended and not self._data
        await self._credit(self, held)
        return {"type": "http.request", "body": body, "more_body": not self._told}

    async def answered(self, *, ended: bool) -> None:
        """The handler needs no more of it. What follows is the same whether it has `ended` too."""
        await self._drop()

    async def _drop(self) -> None:
        self._dropped = True
        await self._credit(self, self._take(len(self._data)))

    def _take(self, size: int) -> int:
        """Returns what the window of the connection gets."""
        del self._data[:size]
        self.owed += size
        self._waiting.size -= size
        held, self._held = self._held, 0
        return held
