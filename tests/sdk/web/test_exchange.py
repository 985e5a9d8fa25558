"""One request and its answer, over real connections."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import httpx
import pytest
import trio

from leafcuttr_sdk.web import ApiError, Application, Exchange
from support.web_service import serving


async def test_what_a_handler_finds(tmp_path: Path) -> None:
    async def handle(exchange: Exchange) -> None:
        await exchange.reply(
            {
                "method": exchange.method,
                "path": exchange.path,
                "query": exchange.query,
                "header": [exchange.header(b"x-a"), exchange.header(b"x-b")],
                "principal": str(exchange.principal),
            },
            status=201,
            headers=[(b"x-made", b"1")],
        )

    async with serving(tmp_path, lambda _: Application(handle)) as served, served.client() as client:
        headers = [("x-a", "1"), ("X-A", "2")]
        answer = await client.get("/caf%C3%A9/?q=1&q=&r=%C3%BC", headers=headers)
        assert (answer.status_code, answer.headers["x-made"]) == (201, "1")
        assert answer.json() == {
            "method": "GET",
            "path": "/café",
            "query": {"q": ["1", ""], "r": ["ü"]},
            "header": ["2", None],
            "principal": "User:ANONYMOUS",
        }
        for query in ("a=%FF", "&".join(["a=1"] * 1001)):
            assert (await client.get(f"/?{query}")).status_code == 400


@pytest.mark.parametrize("http2", [False, True])
async def test_whether_a_body_is_read(tmp_path: Path, http2: bool) -> None:
    async def handle(exchange: Exchange) -> None:
        before = exchange.all_read
        body = await exchange.read()
        await exchange.reply([before, len(body), exchange.all_read])

    async def chunks() -> object:
        yield b"abc"

    async with (
        serving(tmp_path, lambda _: Application(handle)) as served,
        served.client(http2=http2, http1=not http2) as client,
    ):
        assert (await client.post("/", content=b"abc")).json() == [False, 3, True]
        assert (await client.post("/", content=chunks())).json() == [False, 3, True]  # type: ignore[arg-type]
        assert (await client.post("/", content=b"")).json()[1:] == [0, True]
        # Of HTTP/2 only the frames say that there is none.
        assert (await client.get("/")).json() == [not http2, 0, True]


async def test_answers_without_a_body(tmp_path: Path) -> None:
    async def handle(exchange: Exchange) -> None:
        await exchange.answer(204, b"")

    async with serving(tmp_path, lambda _: Application(handle)) as served, served.client() as client:
        for _ in range(2):
            answer = await client.get("/")
            assert (answer.status_code, answer.content) == (204, b"")
            assert not {"content-length", "content-type"} & answer.headers.keys()


async def test_json_that_is_none_and_what_json_cannot_say(tmp_path: Path) -> None:
    async def handle(exchange: Exchange) -> None:
        value = await exchange.read_json(1000)
        await exchange.reply(value)

    async with serving(tmp_path, lambda _: Application(handle)) as served, served.client() as client:
        assert (await client.post("/", content=b'{"a": "\xc3\xbc"}')).content == '{"a":"ü"}'.encode()
        lone = await client.post("/", content=b'"\\ud800"')
        assert lone.content == b'"\xed\xa0\x80"', "as it came: the handler decides what it takes"
        for content in (b"", b"{", b"\xff", b"[" * 999, b" " * 1001):
            answer = await client.post("/", content=content)
            assert answer.status_code == (413 if len(content) > 1000 else 400)
            assert isinstance(json.loads(answer.content)["message"], str)


class Kinds(Exchange):
    ERROR_TYPES: ClassVar = ("application/a+json", "application/b+json")


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("*/*", "application/a+json"),
        ("application/b+json", "application/b+json"),
        ("image/png", "application/json"),
    ],
)
async def test_the_media_type_of_errors(tmp_path: Path, accept: str, content_type: str) -> None:
    async def handle(exchange: Exchange) -> None:
        raise ApiError(409, "Not now.")

    make = Application(handle, exchange=Kinds)
    async with serving(tmp_path, lambda _: make) as served, served.client() as client:
        answer: httpx.Response = await client.get("/", headers={"accept": accept})
        assert (answer.status_code, answer.headers["content-type"]) == (409, content_type)


async def test_the_time_behind_the_last_part_of_an_answer_is_of_the_quota_too() -> None:
    class Quota:
        is_of_time = True
        charged: ClassVar[list[float]] = []

        def spent(self, seconds: float) -> None:
            self.charged.append(seconds)

    async def admitted() -> Quota:
        return Quota()

    async def handle(exchange: Exchange) -> None:
        await trio.lowlevel.checkpoint()

    scope: Any = {"method": "GET", "headers": []}
    one: Any = SimpleNamespace(admitted=admitted)
    exchange = Exchange(scope, None, None, one)  # type: ignore[arg-type]
    await exchange.begin()
    await exchange.handle(handle)
    (seconds,) = Quota.charged
    assert seconds > 0
