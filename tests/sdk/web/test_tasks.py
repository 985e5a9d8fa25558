"""What a client goes on sending of a request that is answered holds nothing up."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
import trio.testing
from trio_websocket import open_websocket_url

from leafcuttr_sdk.web import Application, Exchange
from leafcuttr_sdk.web.asgi import Receive, Scope, Send
from support.waiting import within
from support.web_service import serving

HEAD = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\n\r\n"


async def receive_all(stream: trio.SocketStream) -> bytes:
    with within(30, "the end of the connection"):
        return b"".join([data async for data in stream])


async def test_a_body_that_the_handler_does_not_read(tmp_path: Path) -> None:
    """More of it is there than its queue has places for, when the answer begins. The client gets the answer though it
    sends to its end, and the connection closes."""
    go_on = trio.Event()

    async def handle(exchange: Exchange) -> None:
        await go_on.wait()
        await exchange.reply("done")

    async with serving(tmp_path, lambda _: Application(handle)) as served:
        stream = await trio.open_tcp_stream("127.0.0.1", served.port)
        async with stream, trio.open_nursery() as nursery:
            nursery.start_soon(stream.send_all, HEAD + bytes(2_000_000))
            for _ in range(20):
                await trio.testing.wait_all_tasks_blocked()
            go_on.set()
            answer = await receive_all(stream)
        assert answer.startswith(b"HTTP/1.1 200 ") and answer.endswith(b'"done"')
        assert b"\r\nconnection: close\r\n" in answer


async def test_a_small_one_does_not_end_the_connection(tmp_path: Path) -> None:
    async def handle(exchange: Exchange) -> None:
        await exchange.reply("done")

    async with serving(tmp_path, lambda _: Application(handle)) as served, served.client() as client:
        for _ in range(3):
            answer = await client.post("/", content=bytes(50_000))
            assert (answer.json(), "connection" in answer.headers) == ("done", False)


@pytest.mark.parametrize("fails", [False, True])
async def test_a_handler_that_sends_its_own_answer(tmp_path: Path, fails: bool) -> None:
    """Without `Exchange.answer`, and one that raises in the middle: the connection ends, and is not kept for ever."""
    go_on = trio.Event()

    async def handle(exchange: Exchange) -> None:
        await go_on.wait()
        await exchange.send({"type": "http.response.start", "status": 200, "headers": []})
        if fails:
            raise RuntimeError("broken")
        await exchange.send({"type": "http.response.body", "body": b"done", "more_body": False})

    async with serving(tmp_path, lambda _: Application(handle)) as served:
        stream = await trio.open_tcp_stream("127.0.0.1", served.port)
        async with stream, trio.open_nursery() as nursery:

            async def send() -> None:
                with pytest.raises(trio.BrokenResourceError):
                    while True:
                        await stream.send_all(HEAD + bytes(2_000_000))

            nursery.start_soon(send)
            for _ in range(20):
                await trio.testing.wait_all_tasks_blocked()
            go_on.set()
        with within(30, "no connection that is left"):
            while "leafcuttr_tested_connections 0.0" not in await served.metrics():
                pass


async def test_messages_to_a_websocket_that_is_closed(tmp_path: Path) -> None:
    go_on = trio.Event()

    async def handle(exchange: Exchange) -> None:
        await exchange.reply("done")

    async def websocket(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        await go_on.wait()
        await send({"type": "websocket.close", "code": 1000})

    async with serving(tmp_path, lambda _: Application(handle, websocket)) as served:
        async with open_websocket_url(f"ws://127.0.0.1:{served.port}/") as connection:
            for _ in range(12):
                await connection.send_message("x" * 1000)
            for _ in range(20):
                await trio.testing.wait_all_tasks_blocked()
            go_on.set()
            with within(30, "the close of the WebSocket"):
                while connection.closed is None:
                    try:
                        await connection.get_message()
                    except Exception:
                        break
        with within(30, "no connection that is left"):
            while "leafcuttr_tested_connections 0.0" not in await served.metrics():
                pass
