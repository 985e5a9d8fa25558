"""An application of Quart that answers as the other handlers of a service do. As a handler: test_frameworks.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from leafcuttr_sdk.web import Application, LateApp, as_asgi, make_quart
from support.web_service import serving

KINDS = ("application/a+json", "application/json")


def make() -> Any:
    from leafcuttr_sdk.web.quart_app import reply

    app = make_quart("tested", KINDS)

    @app.get("/kinds")
    async def kinds() -> Any:
        return reply({"ü": 1}, 202, {"x-a": "1"}, KINDS)

    return as_asgi(app)


async def test_media_types_of_answers_and_errors(tmp_path: Path) -> None:
    app = LateApp(make, "leafcuttr_sdk.web.quart_app")
    async with serving(tmp_path, lambda _: Application(app)) as served, served.client() as client:
        answer = await client.get("/kinds")
        assert (answer.status_code, answer.headers["x-a"]) == (202, "1")
        assert (answer.headers["content-type"], answer.text) == (KINDS[0], '{"ü":1}')
        answer = await client.get("/kinds", headers={"accept": KINDS[1]})
        assert answer.headers["content-type"] == KINDS[1]
        answer = await client.get("/kinds", headers={"accept": "image/png"})
        assert (answer.status_code, answer.headers["content-type"]) == (406, "application/json")
        answer = await client.get("/nowhere")
        assert (answer.status_code, answer.headers["content-type"]) == (404, KINDS[0])
        assert (await client.get("//kinds")).status_code == 404, "an empty segment is one"
        answer = await client.post("/kinds")
        assert (answer.status_code, "GET" in answer.headers["allow"]) == (405, True)


@pytest.mark.parametrize("host", [b"a b", b"\xff", b"[", b"x" * 300, b"a/b"])
async def test_a_host_that_is_none_is_no_failure(
    tmp_path: Path, host: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    app = LateApp(make, "leafcuttr_sdk.web.quart_app")
    async with (
        serving(tmp_path, lambda _: Application(app)) as served,
        await trio.open_tcp_stream("127.0.0.1", served.port) as stream,
    ):
        await stream.send_all(b"GET /kinds HTTP/1.1\r\nHost: " + host + b"\r\nConnection: close\r\n\r\n")
        with trio.fail_after(60):
            answer = b"".join([data async for data in stream])
    assert answer.split(b" ")[1][:1] in (b"2", b"4"), answer
    assert not [record for record in caplog.records if record.exc_info]


async def test_a_body_of_http_2_without_a_length_is_read_within_the_limits(tmp_path: Path) -> None:
    """Also by a path that nobody has: the application is not handed what is not read."""

    async def endless() -> Any:
        for _ in range(100):
            yield bytes(10_000)

    app = LateApp(make, "leafcuttr_sdk.web.quart_app")
    limits = {"max.request.bytes": 1024}
    async with (
        serving(tmp_path, lambda _: Application(app), limits) as served,
        served.client(http1=False, http2=True) as client,
    ):
        answer = await client.post("/nowhere", content=endless())
        assert answer.status_code == 413
