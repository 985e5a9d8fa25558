"""What the client of a WebSocket sends that it may not: it ends the WebSocket, the handler hears of it, and nothing of
it is kept."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import h2.config
import h2.connection
import h2.events
import pytest
import trio
import trio.testing
from hypercorn.protocol.ws_stream import FrameTooLargeError
from wsproto.events import TextMessage

from leafcuttr_sdk.web import ApiError, Application, Exchange
from leafcuttr_sdk.web.arriving import _Bounded
from leafcuttr_sdk.web.asgi import Receive, Scope, Send
from leafcuttr_sdk.web.websockets import refuse_websocket
from support.waiting import within
from support.web_service import Served, serving

UPGRADE = (
    b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
WORD = b"\x81\x82\0\0\0\0hi"
TOO_BIG = b"\x88\x02\x03\xf1"


class Handler:
    """It accepts, or refuses, once it may go on, and notes what it hears."""

    def __init__(self, *, refuses: bool = False) -> None:
        self.go_on = trio.Event()
        self.asked = trio.Event()
        self.heard: list[str] = []
        self.left = trio.Event()
        self._refuses = refuses

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        self.asked.set()
        await self.go_on.wait()
        if self._refuses:
            await refuse_websocket(send, ApiError(503, "Full."))
            return
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] != "websocket.disconnect":
            self.heard.append(message["text"])
            await send({"type": "websocket.send", "text": message["text"]})
        await send({"type": "websocket.send", "text": "farewell"})
        self.left.set()


async def nothing(exchange: Exchange) -> None:
    await exchange.reply("nothing")


async def to_its_end(stream: trio.SocketStream) -> bytes:
    with within(30, "the end of the connection"):
        return b"".join([data async for data in stream])


async def connect(served: Served) -> trio.SocketStream:
    return await trio.open_tcp_stream("127.0.0.1", served.port)


def test_nothing_is_kept_of_a_message_that_is_too_long() -> None:
    buffer = _Bounded(10)
    buffer.extend(TextMessage("x" * 6, message_finished=False))
    assert buffer.to_message()["text"] == "x" * 6 and not buffer.overflowed
    buffer.extend(TextMessage("x" * 4, message_finished=False))
    for data in ("x", "", "x" * 100):
        with pytest.raises(FrameTooLargeError):
            buffer.extend(TextMessage(data, message_finished=False))
        assert buffer.overflowed and buffer.value is None and buffer.length == 0


@pytest.mark.parametrize("frame", [b"\x81\xff\0\1\0\0\0\0\0\0", b"\x01\xfe\x80\0"])
async def test_one_that_claims_a_giant_message_is_closed(tmp_path: Path, frame: bytes) -> None:
    """It does not answer the close frame, and goes on sending."""
    handler = Handler()
    handler.go_on.set()
    async with serving(tmp_path, lambda _: Application(nothing, handler)) as served:
        stream = await connect(served)
        async with stream, trio.open_nursery() as nursery:

            async def send() -> None:
                with pytest.raises(trio.BrokenResourceError):
                    await stream.send_all(UPGRADE)
                    await handler.asked.wait()
                    await trio.testing.wait_all_tasks_blocked()
                    await stream.send_all(WORD + frame + bytes(4))
                    while True:
                        await stream.send_all(b"a" * 32768)

            nursery.start_soon(send)
            received = await to_its_end(stream)
            with within(30, "the handler's end"):
                await handler.left.wait()
            nursery.cancel_scope.cancel()
        head, _, frames = received.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101 ")
        assert frames == b"\x81\x02hi" + TOO_BIG
        assert handler.heard == ["hi"]


@pytest.mark.parametrize("at_once", [pytest.param(True, marks=pytest.mark.long), False])
async def test_what_comes_before_the_answer_of_the_handshake(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, at_once: bool
) -> None:
    handler = Handler()
    async with serving(tmp_path, lambda _: Application(nothing, handler)) as served:
        async with await connect(served) as stream:
            await stream.send_all(UPGRADE + (WORD if at_once else b""))
            with within(30, "the handler's begin"):
                await handler.asked.wait()
            if not at_once:
                await stream.send_all(WORD)
            received = await to_its_end(stream)
            handler.go_on.set()
            with within(30, "the handler's end"):
                await handler.left.wait()
        assert received.startswith(b"HTTP/1.1 400 ") and received.count(b"HTTP/1.1") == 1
        assert received.endswith(b"\r\n\r\n") and handler.heard == []
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_what_comes_while_a_handshake_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    handler = Handler(refuses=True)
    handler.go_on.set()
    async with serving(tmp_path, lambda _: Application(nothing, handler)) as served:
        async with await connect(served) as stream:
            await stream.send_all(UPGRADE)
            with within(30, "the handler's begin"):
                await handler.asked.wait()
            await stream.send_all(WORD)
            received = await to_its_end(stream)
        assert received.startswith(b"HTTP/1.1 503 ") and received.count(b"HTTP/1.1") == 1
        assert received.endswith(b'{"error_code": 503, "message": "Full."}')
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.long
async def test_the_same_over_http_2_costs_its_own_stream(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    handler = Handler()
    common = [(":scheme", "http"), (":authority", "x")]
    opening = [(":method", "CONNECT"), (":protocol", "websocket"), (":path", "/"), *common]
    async with serving(tmp_path, lambda _: Application(nothing, handler)) as served:
        connection = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding=None))
        async with await connect(served) as stream:
            connection.initiate_connection()
            connection.send_headers(1, [*opening, ("sec-websocket-version", "13")])
            connection.send_data(1, WORD)
            connection.send_headers(3, [(":method", "GET"), (":path", "/"), *common], end_stream=True)
            await stream.send_all(connection.data_to_send())
            answers: dict[int, Any] = {}
            with within(30, "both answers"):
                while answers.keys() != {1, 3}:
                    for event in connection.receive_data(await stream.receive_some(65536)):
                        if isinstance(event, h2.events.ResponseReceived):
                            answers[event.stream_id] = dict(event.headers)[b":status"]
                    await stream.send_all(connection.data_to_send())
                handler.go_on.set()
                await handler.left.wait()
        assert answers == {1: b"400", 3: b"200"}
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
