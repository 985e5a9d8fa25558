"""HTTP/2 as hypercorn has it, with the ends of streams that it leaves out (RFC 9113, 8.1), and within limits.

A service may answer before it has the whole request, as with 413; and a handler may fail after its answer has begun.
Hypercorn ends a connection with KeyError where a client goes on sending the first, and leaves the client of the second
waiting for the rest. Here that one stream is reset, and the others of the connection go on.

Clients may send what hypercorn fails at, or takes without end: requests that are reset at once, whose handlers go on
(CVE-2023-44487); frames that are longer than allowed, of which h2 keeps all before it refuses them; paths that are no
text; trees of priorities, which RFC 9113, 5.3.2 lets a server ignore.
"""

from contextlib import suppress
from functools import partial
from typing import Any, Final, cast

import h11
from h2.errors import ErrorCodes
from h2.events import DataReceived, PriorityUpdated, RequestReceived, StreamEnded
from h2.events import Event as H2Event
from h2.exceptions import ProtocolError
from hypercorn.events import Closed, Event, RawData
from hypercorn.protocol import ProtocolWrapper
from hypercorn.protocol.events import Data, StreamClosed
from hypercorn.protocol.events import Event as StreamEvent
from hypercorn.protocol.h2 import H2Protocol
from hypercorn.protocol.h11 import H2ProtocolAssumedError, H11Protocol
from hypercorn.protocol.http_stream import HTTPStream
from hypercorn.protocol.ws_stream import WSStream
from hypercorn.trio.worker_context import EventWrapper, WorkerContext
from wsproto.connection import ConnectionState

from leafcuttr_sdk.web.asgi import Scope
from leafcuttr_sdk.web.tasks import Tasks
from leafcuttr_sdk.web.unread import Unread, Waiting

MOST_UNDER_WAY: Final = 200
"""Requests of one connection whose handlers are under way: twice the streams that it may have (hypercorn's 100), as
handlers go on when their streams are reset."""
_FRAME_HEAD: Final = 9
_STEP: Final = 16 * 1024
"""Of the 64 KiB that the window of a stream has."""


class _Event(EventWrapper):
    """A task that waits is woken, also if the event was cleared meanwhile."""

    async def clear(self) -> None:
        if self.is_set():
            await super().clear()


class Context(WorkerContext):
    """What the connections of a service share. Two tasks may write to one stream (a handler, and what answers the pings
    of a WebSocket): with hypercorn's events, what the second writes makes the first wait for ever."""

    event_class = _Event


class _Answered:
    """Takes what still arrives for a stream that is answered."""

    async def handle(self, event: StreamEvent) -> None:
        pass


class _Streams(dict[int, HTTPStream | WSStream]):
    """By their numbers. Hypercorn hands what arrives to the stream of its number, also when it has just ended."""

    def __missing__(self, number: int) -> HTTPStream | WSStream:
        return cast("HTTPStream", _Answered())


class Http2(H2Protocol):
    """The protocol of one connection."""

    def __init__(self, *connection: Any) -> None:
        super().__init__(*connection)
        self.streams = _Streams()
        self._unread: dict[int, Unread] = {}
        self._owed = 0
        """Bytes that the window of the connection lacks, and that nothing waits for."""
        self._waiting: Waiting = self.connection_state["connection"].waiting
        cast("Tasks", self.task_group).unread = self._begin_body

    async def handle(self, event: Event) -> None:
        await super().handle(event)
        if isinstance(event, Closed):
            # What answers pings would wait for ever. What handlers send has its time (`pieces`).
            for buffer in list(self.stream_buffers.values()):
                await buffer._paused.set()  # pyright: ignore[reportPrivateUsage]
        # All frames that are whole have been taken, so what is left is the beginning of one.
        left = len(self.connection.incoming_buffer._data)  # pyright: ignore[reportPrivateUsage]
        if not self.closed and left > self.connection.max_inbound_frame_size + _FRAME_HEAD:
            await self._end(ErrorCodes.FRAME_SIZE_ERROR)

    async def end_stream_of(self, scope: Scope) -> None:
        """Reset the stream of the request of this scope; nothing more of its handler is sent. The others go on."""
        for number, stream in self.streams.items():
            if getattr(stream, "scope", None) is scope:
                stream.closed = True
                del self.streams[number]
                self._unread.pop(number, None)
                await self.stream_buffers[number].close()
                await self._reset(number, ErrorCodes.CANCEL)
                await self._window_updated(number)  # so that the task that sends drops the buffer
                return

    async def _handle_events(self, events: list[H2Event]) -> None:
        try:
            others: list[H2Event] = []
            for event in events:
                if not isinstance(event, (DataReceived, StreamEnded)):
                    others.append(event)
                    continue
                if others:
                    await super()._handle_events(others)
                    others = []
                if isinstance(event, DataReceived):
                    await self._data_received(event)
                else:
                    await self._stream_ended(event)
            self._give_back_of_connection()
            await super()._handle_events(others)
        except ProtocolError:
            # What hypercorn answers does not fit what the client has sent behind that, as a GOAWAY.
            await self.send(Closed())

    async def _data_received(self, event: DataReceived) -> None:
        unread = self._unread.get(event.stream_id)
        if unread is None:
            await super()._handle_events([event])
            return
        padding = event.flow_controlled_length - len(event.data)
        unread.owed += padding
        self._owed += padding + unread.arrived(event.data)
        self._give_back(unread)

    async def _stream_ended(self, event: StreamEnded) -> None:
        unread = self._unread.get(event.stream_id)
        if unread is not None and isinstance(self.streams.get(event.stream_id), WSStream):
            # Hypercorn tells the handler nothing.
            await unread.put({"type": "http.request", "body": b"", "more_body": False})
        else:
            await super()._handle_events([event])

    def _begin_body(self, number: int) -> Unread:
        unread = self._unread[number] = Unread(number, self._waiting, self._credit)
        return unread

    async def _credit(self, unread: Unread, of_connection: int) -> None:
        self._owed += of_connection
        if not self.closed:
            self._give_back(unread)
            self._give_back_of_connection()
            await self._flush()

    def _give_back(self, unread: Unread) -> None:
        """In large steps: each small frame of a client would be answered with one otherwise."""
        if unread.owed >= _STEP and not unread.ended:
            owed, unread.owed = unread.owed, 0
            with suppress(ProtocolError, KeyError):  # it has just ended
                self.connection.increment_flow_control_window(owed, unread.number)

    def _give_back_of_connection(self) -> None:
        if self._owed:
            owed, self._owed = self._owed, 0
            with suppress(ProtocolError):
                self.connection.increment_flow_control_window(owed)

    async def _close_stream(self, stream_id: int) -> None:
        await super()._close_stream(stream_id)
        self._unread.pop(stream_id, None)

    async def _create_stream(self, request: RequestReceived) -> None:
        if self.closed:
            return
        if not _makes_sense(request):
            await self._reset(request.stream_id, ErrorCodes.PROTOCOL_ERROR)
            return
        under_way = cast("Tasks", self.task_group).under_way
        if max(under_way, len(self.stream_buffers)) >= MOST_UNDER_WAY:
            await self._end(ErrorCodes.ENHANCE_YOUR_CALM)
            return
        await super()._create_stream(request)
        stream = self.streams.get(request.stream_id)
        if isinstance(stream, WSStream) and stream.closed:
            # Hypercorn has refused the handshake, and keeps the stream.
            await self.stream_send(StreamClosed(stream_id=request.stream_id))

    async def _priority_updated(self, event: PriorityUpdated) -> None:
        """All streams have the same."""

    async def _end(self, code: ErrorCodes) -> None:
        """The client gets this as the reason."""
        with suppress(ProtocolError):
            self.connection.close_connection(code)
            await self._flush()
        await self.send(Closed())

    async def _send_data(self, stream_id: int) -> None:
        await super()._send_data(stream_id)
        if stream_id not in self.stream_buffers:
            # The answer has left. What the client would still send is of no use.
            await self._reset(stream_id, ErrorCodes.NO_ERROR)

    async def stream_send(self, event: StreamEvent) -> None:
        if self.closed and isinstance(event, Data):
            return
        stream = self.streams.get(event.stream_id)
        await super().stream_send(event)
        if not isinstance(event, StreamClosed):
            return
        buffer = self.stream_buffers.get(event.stream_id)
        if buffer is None or buffer._complete:  # pyright: ignore[reportPrivateUsage]
            return
        if isinstance(stream, WSStream) and _is_closed(stream):
            buffer.set_complete()
        else:
            await self._reset(event.stream_id, ErrorCodes.INTERNAL_ERROR)
        await self._window_updated(event.stream_id)  # so that the task that sends drops the buffer

    async def _reset(self, stream_id: int, code: ErrorCodes) -> None:
        # h2 refuses it where both sides have ended the stream already.
        with suppress(ProtocolError):
            self.connection.reset_stream(stream_id, code)
            await self._flush()


def _is_closed(stream: WSStream) -> bool:
    """Whether both sides have sent their close frames."""
    connection = getattr(stream, "connection", None)
    return connection is not None and connection.state is ConnectionState.CLOSED


def _makes_sense(request: RequestReceived) -> bool:
    """Whether hypercorn can read it. h2 has checked its fields (RFC 9113, 8.3), but lets bytes of any kind through, and
    CONNECT for other protocols than WebSocket (RFC 8441)."""
    fields = dict(request.headers or ())
    path, method = fields.get(b":path", b"\xff"), fields[b":method"]
    if method.upper() == b"CONNECT" and fields.get(b":protocol") != b"websocket":
        return False
    return path.isascii() and method.isascii()


class Http1(H11Protocol):
    """HTTP/1.1, without the way from there to HTTP/2 by `Upgrade: h2c`, which RFC 9113, 3.1 has given up: the request
    is answered as any other. What stands in front of us may hand that header on, and takes what comes then for one
    answer: whatever rules it has would not hold for the requests in there. And hypercorn does not look at the settings
    that come with it before it has agreed."""

    async def _check_protocol(self, event: h11.Request) -> None:
        headers = [field for field in event.headers if field[0] != b"upgrade"]
        await super()._check_protocol(
            h11.Request(
                method=event.method, target=event.target, headers=headers, http_version=event.http_version
            )
        )


class Protocols(ProtocolWrapper):
    """The protocol that a connection speaks: HTTP/1.1 until the client has chosen `Http2`."""

    def __init__(self, *connection: Any, alpn_protocol: str) -> None:
        super().__init__(*connection)
        self._http2 = partial(Http2, *connection)
        self.protocol = self._http2() if alpn_protocol == "h2" else Http1(*connection)

    async def handle(self, event: Event) -> None:
        try:
            await self.protocol.handle(event)
            return
        except H2ProtocolAssumedError as assumed:
            data = assumed.data
        self.protocol = self._http2()
        await self.protocol.initiate()
        await self.protocol.handle(RawData(data))
