"""An application of Quart as the handler: what it gets, how it refuses, and when it is made."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from typing import Any

from leafcuttr_sdk.errors import UnknownTopicOrPartition
from leafcuttr_sdk.web import ApiError, Application, LateApp, as_asgi, make_quart
from support.web_service import serving


def make() -> Any:
    from quart import request

    app = make_quart("tested")

    @app.post("/echo")
    async def echo() -> Any:
        return {"got": (await request.get_data()).decode()}

    @app.get("/api")
    async def api() -> Any:
        raise ApiError(40999, "Not now.", (("retry-after", "1"),))

    @app.get("/broker")
    async def broker() -> Any:
        raise UnknownTopicOrPartition("no such topic")

    @app.get("/broken")
    async def broken() -> Any:
        raise RuntimeError("a secret")

    return as_asgi(app)


async def test_requests_and_refusals(tmp_path: Path) -> None:
    limits = {"max.request.bytes": 2000}
    app = LateApp(make, "leafcuttr_sdk.web.quart_app")
    async with serving(tmp_path, lambda _: Application(app), limits) as served, served.client() as client:
        headers = {"content-encoding": "gzip"}
        answer = await client.post("/echo", content=gzip.compress(b"x" * 1500), headers=headers)
        assert answer.json() == {"got": "x" * 1500}
        answer = await client.post("/echo", content=gzip.compress(b"x" * 3000), headers=headers)
        assert (answer.status_code, "lc.plugin.tested.max.request.bytes" in answer.text) == (413, True)
        answer = await client.get("/api")
        assert (answer.status_code, answer.headers["retry-after"]) == (409, "1")
        assert answer.json() == {"error_code": 40999, "message": "Not now."}
        answer = await client.get("/broker")
        assert (answer.status_code, answer.json()["error_code"]) == (500, 50002)
        answer = await client.get("/broken")
        assert (answer.status_code, "secret" in answer.text) == (500, False)
        assert answer.json()["error_code"] == 500
        answer = await client.get("/nowhere")
        assert answer.json() == {"error_code": 404, "message": "There is nothing at /nowhere."}
        answer = await client.get("/echo")
        assert (answer.status_code, answer.headers["allow"]) == (405, "OPTIONS, POST")


async def test_it_is_made_at_the_first_request_and_again_where_that_failed(tmp_path: Path) -> None:
    tried = 0

    def fails_once() -> Any:
        nonlocal tried
        tried += 1
        assert "quart_trio" in sys.modules
        if tried == 1:
            raise RuntimeError("not yet")
        return make()

    app = LateApp(fails_once, "quart_trio")
    async with serving(tmp_path, lambda _: Application(app)) as served, served.client() as client:
        assert tried == 0
        assert (await client.get("/api")).status_code == 500
        assert [(await client.get("/api")).status_code for _ in range(2)] == [409, 409]
    assert tried == 2
