"""What all handlers share: limits of bodies, errors, CORS, WebSockets that nobody serves, and the stop."""

from __future__ import annotations

import logging
from pathlib import Path

import httpx
import pytest
import trio
import trio.testing
from trio_websocket import open_websocket_url

from leafcuttr_sdk.errors import UnknownTopicOrPartition
from leafcuttr_sdk.web import ApiError, Application, Exchange, Routes
from support.web_service import serving


async def echo(exchange: Exchange) -> None:
    await exchange.reply({"json": await exchange.read_json(100), "query": exchange.query})


async def count(exchange: Exchange) -> None:
    size = 0
    async for piece in exchange.pieces():
        size += len(piece)
    await exchange.reply(size)


async def refuse(exchange: Exchange) -> None:
    raise ApiError(42207, "Never.", (("retry-after", "9"),))


async def broker(exchange: Exchange) -> None:
    raise UnknownTopicOrPartition("no such topic")


async def fail(exchange: Exchange) -> None:
    raise RuntimeError("a secret")


def application() -> Application:
    routes = Routes()
    for method, path, handler in (
        ("POST", "/echo", echo),
        ("POST", "/count", count),
        ("GET", "/refuse", refuse),
        ("GET", "/broker", broker),
        ("GET", "/fail", fail),
    ):
        routes.add(method, path, handler)
    return Application(routes)


async def test_bodies_queries_and_errors(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    limits = {"max.request.bytes": 1024}
    async with serving(tmp_path, lambda _: application(), limits) as served, served.client() as client:

        async def got(path: str, body: bytes | None = None) -> tuple[int, object]:
            method = "GET" if body is None else "POST"
            answer = await client.request(method, path, content=body)
            assert answer.headers["content-type"] == "application/json"
            found = answer.json()
            return answer.status_code, found.get("error_code", found) if isinstance(found, dict) else found

        assert await got("/echo?a=1&a=&b=%C3%BC", b"[1]") == (
            200,
            {"json": [1], "query": {"a": ["1", ""], "b": ["ü"]}},
        )
        assert await got("/echo?" + "&".join(["a=1"] * 1001), b"[1]") == (400, 400)
        assert await got("/echo", b"[") == (400, 400)
        assert await got("/echo", b"[" * 90) == (400, 400)
        assert await got("/echo", b" " * 101) == (413, 413)
        assert await got("/echo", b" " * 1025) == (413, 413)
        assert await got("/count", b" " * 100_000) == (200, 100_000)
        assert await got("/refuse") == (422, 42207)
        assert await got("/broker") == (500, 50002)
        assert await got("/fail") == (500, 500)
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == [
        "GET /fail failed"
    ]


async def test_pages_of_other_origins(tmp_path: Path) -> None:
    allowed = {"cors.allowed.origins": "https://a.example/"}
    async with serving(tmp_path, lambda _: application(), allowed) as served, served.client() as client:
        asked = {"access-control-request-method": "POST"}
        good = await client.options("/echo", headers={"origin": "https://A.example", **asked})
        assert good.status_code == 204
        assert good.headers["access-control-allow-origin"] == "https://A.example"
        assert "content-type" in good.headers["access-control-allow-headers"]
        other = await client.options("/echo", headers={"origin": "https://b.example", **asked})
        assert (other.status_code, "access-control-allow-origin" in other.headers) == (405, False)


@pytest.mark.parametrize("http2", [False, True])
async def test_what_pages_of_other_origins_post_unasked(tmp_path: Path, http2: bool) -> None:
    """As a form of a page does; the handler is not reached."""
    allowed = {"cors.allowed.origins": "https://a.example"}
    async with (
        serving(tmp_path, lambda _: application(), allowed) as served,
        httpx.AsyncClient(base_url=served.url, http1=not http2, http2=http2) as client,
    ):

        async def posted(origin: str, **headers: str) -> tuple[int, str]:
            answer = await client.post("/echo", content=b"[1]", headers={"origin": origin, **headers})
            return answer.status_code, answer.json().get("message", "")

        refused = (
            403,
            "Pages of 'https://b.example' may not send this; "
            "lc.plugin.tested.cors.allowed.origins names those that may.",
        )
        assert await posted("https://b.example") == refused
        assert await posted("https://b.example", **{"content-type": "text/plain"}) == refused
        assert await posted("https://b.example", **{"content-type": "application/json"}) == (200, "")
        assert await posted("https://a.example") == (200, "")
        assert await posted(served.url) == (200, "")


async def test_nobody_serves_websockets(tmp_path: Path) -> None:
    async with serving(tmp_path, lambda _: application()) as served:
        with pytest.raises(Exception) as raised:
            async with open_websocket_url(f"ws://127.0.0.1:{served.port}/x"):
                pass
        assert "404" in repr(raised.value)


async def test_a_request_in_flight_is_answered_at_the_stop(tmp_path: Path) -> None:
    began, go_on = trio.Event(), trio.Event()

    async def handle(exchange: Exchange) -> None:
        began.set()
        await go_on.wait()
        await exchange.reply("done")

    async with serving(tmp_path, lambda _: Application(handle)) as served, served.client() as client:
        answers: list[httpx.Response] = []

        async def request() -> None:
            answers.append(await client.get("/"))

        with trio.fail_after(20):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(request)
                await began.wait()
                served.stop()
                for _ in range(20):
                    await trio.testing.wait_all_tasks_blocked()
                go_on.set()
    assert [answer.json() for answer in answers] == ["done"]
