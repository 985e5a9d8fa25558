"""The same stream over WebSocket (RFC 6455), with flow control: for clients that want to say how much they can take.

Messages are JSON. From here: `{"type": "records", "id": ..., "records": [...]}`, a message for some records;
`{"type": "heartbeat", "id": ...}`; and gap, unreadable, reset, end as in `sse`. To here: `{"credits": 100}`, where the
request had the parameter `credits`: so many records more may come. Without it only the connection holds the stream
back.

A page of another origin may open a WebSocket without a preflight request (CORS does not hold there), so the origin is
checked here: allowed are that of the proxy itself, and those that lc.http.proxy.cors.allowed.origins names.
"""

import json
from enum import IntEnum
from typing import TYPE_CHECKING, Final

import trio

from leafcuttr_http.errors import ApiError, of_broker
from leafcuttr_http.streams.beginning import subscribe
from leafcuttr_http.streams.events import Chunk, Event, Notice
from leafcuttr_http.streams.query import MOST_CREDITS, read
from leafcuttr_http.streams.reader import GoneError
from leafcuttr_http.streams.subscription import StoppingError
from leafcuttr_sdk.errors import BrokerError
from leafcuttr_sdk.web.connection import connection_of
from leafcuttr_sdk.web.websockets import check_origin, refuse_websocket, without_compression

if TYPE_CHECKING:
    from leafcuttr_http.streams.streams import Streams
    from leafcuttr_http.streams.subscription import Subscription
    from leafcuttr_sdk.web.asgi import Message, Receive, Scope, Send
    from leafcuttr_sdk.web.connection import Connection

LONGEST: Final = 4096
"""Characters of a message from a client."""
_AT_ONCE: Final = 1000
_AT_ONCE_CHARACTERS: Final = 64 * 1024
"""Records in a message, and their length; but one record at least."""


class Close(IntEnum):
    """Why a stream ends: RFC 6455, 7.4.1, and one of our own."""

    GOING_AWAY = 1001
    UNSUPPORTED = 1003
    POLICY = 1008
    TOO_BIG = 1009
    FAILED = 1011
    TOPIC_GONE = 4404


class _Closing(Exception):
    """The stream is to be closed."""

    def __init__(self, code: Close, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class _Credits:
    """How many records may still be sent. None is any number."""

    def __init__(self, count: int | None) -> None:
        self.count = count
        self._granted = trio.Event()

    def grant(self, count: int) -> None:
        if self.count is None:
            raise _Closing(Close.POLICY, "this stream was opened without credits")
        self.count = min(self.count + count, MOST_CREDITS)
        self._granted.set()

    async def some(self, wait_s: float) -> int:
        """How many records may be sent now; 0 if none may within so many seconds."""
        if self.count is None:
            return _AT_ONCE
        if not self.count:
            self._granted = trio.Event()
            with trio.move_on_after(wait_s):
                await self._granted.wait()
        return min(self.count, _AT_ONCE)

    def spend(self, count: int) -> None:
        if self.count is not None:
            self.count -= count


async def serve(
    streams: "Streams", scope: "Scope", receive: "Receive", send: "Send", topic: str | None
) -> None:
    """One WebSocket, from its handshake to its end. `topic` is None where the path is that of no stream."""
    await receive()
    try:
        if topic is None:
            raise ApiError(404, f"There is no WebSocket at {scope['path']}.")
        check_origin(scope, streams.proxy.limits.origins, "lc.http.proxy.cors.allowed.origins")
        requested = read(scope["query_string"], None, websocket=True)
        with streams.opened():
            subscription, notices = await subscribe(streams, topic, requested)
            without_compression(scope)
            await send({"type": "websocket.accept", "subprotocol": None, "headers": []})
            try:
                credits = _Credits(requested.credits)
                await _run(streams, connection_of(scope), subscription, notices, credits, receive, send)
            finally:
                subscription.close()
    except ApiError as error:
        await refuse_websocket(send, error)
    except BrokerError as error:
        await refuse_websocket(send, of_broker(error))


async def _run(
    streams: "Streams",
    connection: "Connection",
    subscription: "Subscription",
    notices: list[Notice],
    credits: _Credits,
    receive: "Receive",
    send: "Send",
) -> None:
    serving = streams.proxy.serving
    closing: _Closing | None = None
    left = False

    async def listen(scope: trio.CancelScope) -> None:
        nonlocal closing, left
        try:
            while (message := await receive())["type"] == "websocket.receive":
                credits.grant(_credits(message))
                await serving.sent(0)  # a client above its quota is not read
            left = True
        except _Closing as error:
            closing = error
        scope.cancel()

    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serving.measured, listen(scope))
            try:
                with streams.while_allowed(subscription.topic) as allowed:
                    writing = serving.measured(_write(streams, subscription, notices, credits, send))
                    await connection.hurried(writing)
                if allowed.cancelled_caught:
                    closing = _Closing(Close.POLICY, f"{subscription.topic} may not be read any more")
            except GoneError:
                closing = _Closing(Close.TOPIC_GONE, "the topic was deleted")
            except StoppingError:
                closing = _Closing(Close.GOING_AWAY, "the broker is stopping")
            except Exception as error:
                streams.proxy.tell(error, "a stream")
                closing = _Closing(Close.FAILED, "the broker's log says how")
            scope.cancel()
    if closing is not None and not left:
        await send({"type": "websocket.close", "code": int(closing.code), "reason": str(closing)})


async def _write(
    streams: "Streams", subscription: "Subscription", notices: list[Notice], credits: _Credits, send: "Send"
) -> None:
    heartbeat_s = streams.proxy.limits.heartbeat_s
    at = subscription.positions.id().decode()
    await _say(send, [*notices, Notice("heartbeat", f'{{"id":"{at}"}}')])
    while True:
        chunk = await subscription.next(heartbeat_s)
        if chunk is None:
            at = subscription.positions.id().decode()
            await _say(send, [Notice("heartbeat", f'{{"id":"{at}"}}')])
            continue
        await _say(send, chunk.notices)
        events = chunk.events
        if credits.count is None:
            for count, text in _messages(chunk):
                await send({"type": "websocket.send", "text": text})
                streams.events.add(count, "websocket")
                await streams.proxy.serving.sent(len(text))
            continue
        while events:
            count = await credits.some(heartbeat_s)
            if streams.stopping:
                raise StoppingError
            if not count:
                await _say(send, [Notice("heartbeat", f'{{"id":"{at}"}}')])
                continue
            some = events[: _fitting(events, count)]
            events = events[len(some) :]
            text = _records(some)
            await send({"type": "websocket.send", "text": text})
            streams.events.add(len(some), "websocket")
            await streams.proxy.serving.sent(len(text))
            credits.spend(len(some))
            at = some[-1].id


def _messages(chunk: Chunk) -> list[tuple[int, str]]:
    """All of its records, with how many are in each message; written once for all streams that get them."""
    messages: list[tuple[int, str]] | None = chunk.__dict__.get("websocket")
    if messages is None:
        messages = chunk.__dict__["websocket"] = []
        events = chunk.events
        while events:
            some = events[: _fitting(events, _AT_ONCE)]
            messages.append((len(some), _records(some)))
            events = events[len(some) :]
    return messages


def _fitting(events: list[Event], most: int) -> int:
    """How many of them go into one message."""
    size = 0
    for number, event in enumerate(events[:most]):
        size += len(event.data)
        if size > _AT_ONCE_CHARACTERS and number:
            return number
    return min(most, len(events))


def _records(events: list[Event]) -> str:
    return f'{{"type":"records","id":"{events[-1].id}","records":[{",".join([event.data for event in events])}]}}'


async def _say(send: "Send", notices: "tuple[Notice, ...] | list[Notice]") -> None:
    for name, data in notices:
        members = f",{data[1:]}" if len(data) > 2 else "}"
        await send({"type": "websocket.send", "text": f'{{"type":"{name}"{members}'})


def _credits(message: "Message") -> int:
    text = message.get("text")
    if text is None:
        raise _Closing(Close.UNSUPPORTED, "messages are text")
    if len(text) > LONGEST:
        raise _Closing(Close.TOO_BIG, f"a message has at most {LONGEST} characters")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise _Closing(Close.POLICY, "a message is JSON") from None
    count = document.get("credits") if type(document) is dict and len(document) == 1 else None
    if type(count) is not int or not 0 < count <= MOST_CREDITS:
        raise _Closing(Close.POLICY, f'a message is {{"credits": n}} with n from 1 to {MOST_CREDITS}')
    return count
