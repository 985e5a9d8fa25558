"""What is the same for all that serve WebSockets: how one is refused, whose pages may open one, and its compression."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from trio_websocket import open_websocket_url

from leafcuttr_sdk.web import ApiError, Application, Exchange
from leafcuttr_sdk.web.asgi import Receive, Scope, Send
from leafcuttr_sdk.web.websockets import check_origin, refuse_websocket, without_compression
from support.web_service import serving

HEADERS = {
    "connection": "Upgrade",
    "upgrade": "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
    "sec-websocket-extensions": "permessage-deflate",
}


async def nothing(exchange: Exchange) -> None:
    await exchange.reply("nothing")


@pytest.mark.parametrize(
    ("origin", "origins", "allowed"),
    [
        (None, (), True),
        ("http://host:8080", (), True),
        ("HTTP://HOST:8080", (), True),
        ("http://host", (), False),
        ("null", (), False),
        ("https://a.example", ("https://a.example",), True),
        ("https://a.example.evil", ("https://a.example",), False),
        ("https://b.example", ("*",), True),
    ],
)
def test_whose_pages_may_open_one(origin: str | None, origins: tuple[str, ...], allowed: bool) -> None:
    headers = [(b"host", b"host:8080"), *([(b"origin", origin.encode())] if origin else [])]
    scope: Scope = {"headers": headers}
    if allowed:
        check_origin(scope, frozenset(origins), "lc.x.origins")
        return
    with pytest.raises(ApiError, match=r"may not read here; lc\.x\.origins names") as raised:
        check_origin(scope, frozenset(origins), "lc.x.origins")
    assert raised.value.code == 403


async def test_one_that_is_refused_is_told_why(tmp_path: Path) -> None:
    async def websocket(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await refuse_websocket(send, ApiError(50301, "Full.", (("retry-after", "7"),)))

    make = Application(nothing, websocket)
    async with serving(tmp_path, lambda _: make) as served, served.client() as client:
        answer: httpx.Response = await client.get("/", headers=HEADERS)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "7")
        assert answer.json() == {"error_code": 50301, "message": "Full."}


@pytest.mark.parametrize("compressed", [False, True])
async def test_compression_is_left_out_where_it_is_not_wanted(tmp_path: Path, compressed: bool) -> None:
    agreed: list[Any] = []

    async def websocket(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        if not compressed:
            without_compression(scope)
        await send({"type": "websocket.accept"})
        message = await receive()
        await send({"type": "websocket.send", "text": message["text"] + "!"})
        await send({"type": "websocket.close", "code": 1000})

    make = Application(nothing, websocket)
    async with serving(tmp_path, lambda _: make) as served:
        async with served.client() as client, client.stream("GET", "/", headers=HEADERS) as answer:
            agreed.append(answer.headers.get("sec-websocket-extensions"))
        async with open_websocket_url(f"ws://127.0.0.1:{served.port}/") as connection:
            await connection.send_message("a")
            assert await connection.get_message() == "a!"
    assert agreed == ["permessage-deflate" if compressed else None]
