"""Server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html): one request, one answer without
end.

An event is a record and has an id, by which a client goes on where it was: an EventSource sends it by itself, in
`Last-Event-ID`. Before the first event, and with each heartbeat, comes an id alone, so that a client that has seen
nothing yet loses nothing either. What is no record has a type: `gap` (retention was faster), `unreadable` (a
partition), `reset` (another topic of that name), `end`.
"""

from typing import TYPE_CHECKING, Final

import trio

from leafcuttr_http.negotiation import choose
from leafcuttr_http.streams.beginning import subscribe
from leafcuttr_http.streams.events import Chunk
from leafcuttr_http.streams.query import read
from leafcuttr_http.streams.reader import GoneError, notice
from leafcuttr_http.streams.subscription import StoppingError
from leafcuttr_sdk.web.connection import PIECE, connection_of

if TYPE_CHECKING:
    from leafcuttr_http.streams.streams import Streams
    from leafcuttr_http.streams.subscription import Subscription
    from leafcuttr_sdk.web.asgi import Receive
    from leafcuttr_sdk.web.exchange import Exchange

EVENTS: Final = "text/event-stream"


async def serve(streams: "Streams", exchange: "Exchange", topic: str) -> None:
    """Answer the request. Raises ApiError before the answer has begun."""
    choose(exchange.header(b"accept"), (EVENTS,))
    requested = read(exchange.scope["query_string"], exchange.header(b"last-event-id"))
    connection = connection_of(exchange.scope)
    with streams.opened():
        subscription, notices = await subscribe(streams, topic, requested)
        headers = [
            (b"content-type", EVENTS.encode()),
            (b"cache-control", b"no-store"),
            (b"x-accel-buffering", b"no"),
        ]
        await exchange.send({"type": "http.response.start", "status": 200, "headers": headers})
        if exchange.method == "HEAD":
            subscription.close()
            await exchange.send({"type": "http.response.body", "body": b"", "more_body": False})
            return
        first = b"retry: 1000\nid: " + subscription.positions.id() + b"\n\n"
        await _send(exchange, first + Chunk([], subscription.positions, tuple(notices)).sse)
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_left, exchange.receive, scope)
                last = b""
                try:
                    with streams.while_allowed(topic) as allowed:
                        last = await connection.hurried(_write(streams, subscription, exchange))
                    if allowed.cancelled_caught:
                        end = notice("end", reason="denied", message=f"{topic} may not be read any more")
                        last = Chunk([], subscription.positions, (end,)).sse
                finally:
                    subscription.close()
                await _send(exchange, last)
                await exchange.send({"type": "http.response.body", "body": b"", "more_body": False})
                scope.cancel()


async def _write(streams: "Streams", subscription: "Subscription", exchange: "Exchange") -> bytes:
    """Until the end; what is to be said then."""
    heartbeat_s = streams.proxy.limits.heartbeat_s
    try:
        while True:
            chunk = await subscription.next(heartbeat_s)
            if chunk is None:
                await _send(exchange, b": still here\nid: " + subscription.positions.id() + b"\n\n")
            else:
                await _send(exchange, chunk.sse)
                streams.events.add(len(chunk.events), "sse")
                await streams.proxy.serving.sent(len(chunk.sse))
    except GoneError:
        end = notice("end", reason="deleted", message="the topic was deleted")
    except StoppingError:
        end = notice("end", reason="stopping", message="the broker is stopping; connect again")
    except Exception as error:
        streams.proxy.tell(error, "a stream")
        end = notice("end", reason="failed", message="the broker's log says how")
    return Chunk([], subscription.positions, (end,)).sse


async def _send(exchange: "Exchange", data: bytes) -> None:
    for start in range(0, len(data), PIECE):
        await exchange.send(
            {"type": "http.response.body", "body": data[start : start + PIECE], "more_body": True}
        )


async def _left(receive: "Receive", scope: trio.CancelScope) -> None:
    """Ends the stream when its client goes."""
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
