"""Answers over HTTP/2: what a client has not room for waits with the handler, not in memory."""

from __future__ import annotations

from pathlib import Path

import h2.config
import h2.connection
import h2.events
import trio
import trio.testing

from leafcuttr_sdk.web import Application, Exchange
from leafcuttr_sdk.web.connection import PIECE
from leafcuttr_sdk.web.pieces import in_pieces
from support.waiting import within
from support.web_service import serving


async def test_over_http_1_nothing_is_changed() -> None:
    async def send(message: object) -> None:
        pass

    assert in_pieces({"http_version": "1.1"}, send) is send


async def test_a_large_answer_leaves_as_its_client_takes_it(tmp_path: Path) -> None:
    """A client with a window of 64 KB: the buffer of the stream never has more than one piece."""
    waiting: list[int] = []
    ended = trio.Event()

    async def handle(exchange: Exchange) -> None:
        async def watch() -> None:
            while True:
                buffer = exchange.scope["state"]["connection"].buffer_of(exchange.scope)
                waiting.append(len(buffer.buffer) if buffer is not None else 0)
                await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch)
            await exchange.answer(200, bytes(1_000_000))
            nursery.cancel_scope.cancel()
        ended.set()

    async with (
        serving(tmp_path, lambda _: Application(handle)) as served,
        await trio.open_tcp_stream("127.0.0.1", served.port) as stream,
    ):
        client = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        client.initiate_connection()
        fields = [(":method", "GET"), (":path", "/"), (":scheme", "http"), (":authority", "x")]
        client.send_headers(1, fields, end_stream=True)
        await stream.send_all(client.data_to_send())
        got = 0
        with within(30, "the whole answer"):
            while got < 1_000_000:
                for event in client.receive_data(await stream.receive_some(65536)):
                    if isinstance(event, h2.events.DataReceived):
                        got += len(event.data or b"")
                        client.acknowledge_received_data(event.flow_controlled_length or 0, 1)
                await stream.send_all(client.data_to_send())
            await ended.wait()
    assert got == 1_000_000
    assert 0 < max(waiting) <= PIECE


async def test_one_that_takes_nothing_is_cut(tmp_path: Path) -> None:
    ended = trio.Event()

    async def handle(exchange: Exchange) -> None:
        try:
            await exchange.answer(200, bytes(1_000_000))
        finally:
            ended.set()

    async with (
        serving(tmp_path, lambda _: Application(handle), {"request.timeout.ms": 100}) as served,
        await trio.open_tcp_stream("127.0.0.1", served.port) as stream,
    ):
        client = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        client.initiate_connection()
        fields = [(":method", "GET"), (":path", "/"), (":scheme", "http"), (":authority", "x")]
        client.send_headers(1, fields, end_stream=True)
        await stream.send_all(client.data_to_send())
        with within(30, "the end of the handler and of the connection"):
            await ended.wait()
            async for _ in stream:
                pass
