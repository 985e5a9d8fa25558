"""HTTP/2 as hypercorn has it, with the ends of streams that it leaves out (RFC 9113, 8.1).

A service may answer before it has the whole request, as with 413; and a handler may fail after its answer has begun.
Hypercorn ends a connection with KeyError where a client goes on sending the first, and leaves the client of the second
waiting for the rest. Here that one stream is reset, and the others of the connection go on.
"""

from contextlib import suppress
from functools import partial
from typing import Any, cast

from h2.errors import ErrorCodes
from h2.exceptions import ProtocolError
from hypercorn.events import Event, RawData
from hypercorn.protocol import ProtocolWrapper
from hypercorn.protocol.events import Event as StreamEvent
from hypercorn.protocol.events import StreamClosed
from hypercorn.protocol.h2 import H2Protocol
from hypercorn.protocol.h11 import H2CProtocolRequiredError, H2ProtocolAssumedError
from hypercorn.protocol.http_stream import HTTPStream
from hypercorn.protocol.ws_stream import WSStream


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

    async def _send_data(self, stream_id: int) -> None:
        await super()._send_data(stream_id)
        if stream_id not in self.stream_buffers:
            # The answer has left. What the client would still send is of no use.
            await self._reset(stream_id, ErrorCodes.NO_ERROR)

    async def stream_send(self, event: StreamEvent) -> None:
        await super().stream_send(event)
        if isinstance(event, StreamClosed):
            buffer = self.stream_buffers.get(event.stream_id)
            if buffer is not None and not buffer._complete:  # pyright: ignore[reportPrivateUsage]
                await self._reset(event.stream_id, ErrorCodes.INTERNAL_ERROR)
                await self._window_updated(event.stream_id)  # so that the task that sends drops the buffer

    async def _reset(self, stream_id: int, code: ErrorCodes) -> None:
        # h2 refuses it where both sides have ended the stream already.
        with suppress(ProtocolError):
            self.connection.reset_stream(stream_id, code)
            await self._flush()


class Protocols(ProtocolWrapper):
    """The protocol that a connection speaks: HTTP/1.1 until the client has chosen `Http2`."""

    def __init__(self, *connection: Any, alpn_protocol: str) -> None:
        super().__init__(*connection)
        self._http2 = partial(Http2, *connection)
        if alpn_protocol == "h2":
            self.protocol = self._http2()

    async def handle(self, event: Event) -> None:
        try:
            await self.protocol.handle(event)
            return
        except H2ProtocolAssumedError as assumed:
            data = assumed.data
            self.protocol = self._http2()
            await self.protocol.initiate()
        except H2CProtocolRequiredError as required:
            data = required.data
            self.protocol = self._http2()
            await self.protocol.initiate(required.headers, required.settings)
        if data:
            await self.protocol.handle(RawData(data))
