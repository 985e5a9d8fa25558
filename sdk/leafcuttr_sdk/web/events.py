"""Server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html): one request, one answer without
end, at the pace of its client.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

import trio

from leafcuttr_sdk.web.asgi import RawHeaders
from leafcuttr_sdk.web.connection import PIECE, connection_of
from leafcuttr_sdk.web.exchange import Exchange

EVENTS: Final = "text/event-stream"
_HEADERS: Final[RawHeaders] = [
    (b"content-type", EVENTS.encode()),
    (b"cache-control", b"no-store"),
    # nginx would collect them otherwise.
    (b"x-accel-buffering", b"no"),
]


class EventStream:
    """Sends events. Each call returns once the client has taken what was sent: a slow client holds back its own stream
    only, and is cut where it takes nothing for `<prefix>.request.timeout.ms`."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._lock = trio.Lock()
        self.last_sent = trio.current_time()

    async def send(self, data: str, *, event: str = "", id: str | None = None) -> None:
        """One event. `id` is what the client sends in `Last-Event-ID` when it comes back. Raises ValueError where the
        name or the id has more than one line."""
        if any(mark in text for text in (event, id or "") for mark in "\r\n\0"):
            raise ValueError("the name and the id of an event have one line")
        lines = [f"data: {line}" for line in data.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
        if event:
            lines.insert(0, f"event: {event}")
        if id is not None:
            lines.append(f"id: {id}")
        await self.write("\n".join([*lines, "", ""]).encode("utf-8", "replace"))

    async def write(self, data: bytes) -> None:
        """What is formatted already: whole events, with the empty line behind each."""
        async with self._lock:
            for start in range(0, len(data), PIECE):
                await self._exchange.send(
                    {"type": "http.response.body", "body": data[start : start + PIECE], "more_body": True}
                )
            self.last_sent = trio.current_time()


@asynccontextmanager
async def event_stream(
    exchange: Exchange, *, heartbeat_s: float | None = 15.0, until: trio.Event | None = None
) -> AsyncGenerator[EventStream, None]:
    """Answer the request with events for as long as the context lasts. What is in it is cancelled when the client has
    left, and when `until` is set, which is `Serving.closing` if it is not given; then the context ends without an
    exception. A stream that is silent for `heartbeat_s` sends a comment, so that what stands between does not take it
    for dead. A request of HEAD gets the head only."""
    exchange.endpoint = "stream"
    await exchange.send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
    events = EventStream(exchange)
    connection = connection_of(exchange.scope)
    left = ended = False

    async def watch() -> None:
        nonlocal left
        try:
            while (await exchange.receive())["type"] != "http.disconnect":
                pass
        finally:
            if not ended:  # but for the log-in, or the service, or the client
                connection.hurry()
        left = True
        inner.cancel()

    async def stop() -> None:
        await (until or exchange.serving.closing).wait()
        inner.cancel()

    async def beat(seconds: float) -> None:
        while True:
            await trio.sleep_until(events.last_sent + seconds)
            if trio.current_time() >= events.last_sent + seconds:
                await events.write(b": still here\n\n")

    failure: BaseException | None = None
    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as inner:
            nursery.start_soon(watch)
            nursery.start_soon(stop)
            if heartbeat_s is not None:
                nursery.start_soon(beat, heartbeat_s)
            if exchange.method == "HEAD":
                inner.cancel()
            try:
                yield events
            except Exception as error:
                # Beside the tasks here it would come out in a group.
                failure = error
        ended = True
        nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure
    if not left:
        await exchange.send({"type": "http.response.body", "body": b"", "more_body": False})
