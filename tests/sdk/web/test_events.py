"""Server-sent events: their form, the pace of the client, and the three ways they end."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
import trio

from leafcuttr_sdk.web import Application, EventStream, Exchange, event_stream
from support.web_service import serving


async def lines_until(answer: httpx.Response, last: str) -> list[str]:
    found = []
    async for line in answer.aiter_lines():
        found.append(line)
        if line == last:
            break
    return found


async def test_what_events_look_like(tmp_path: Path) -> None:
    ended = trio.Event()

    async def handle(exchange: Exchange) -> None:
        async with event_stream(exchange) as events:
            await events.send("one")
            await events.send("two\r\nlines\rmore", event="pair", id="7")
            for wrong in ({"event": "a\nb"}, {"id": "a\rb"}, {"id": "\0"}):
                with pytest.raises(ValueError, match="one line"):
                    await events.send("x", **wrong)
            await events.send("end")
        ended.set()

    async with serving(tmp_path, lambda _: Application(handle)) as served, served.client() as client:
        answer = await client.get("/")
        assert answer.headers["content-type"] == "text/event-stream"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.text == (
            "data: one\n\nevent: pair\ndata: two\ndata: lines\ndata: more\nid: 7\n\ndata: end\n\n"
        )
        with trio.fail_after(10):
            await ended.wait()
        assert 'endpoint="stream"' in await served.metrics()
        head = await client.head("/")
        assert (head.status_code, head.content) == (200, b"")


async def test_a_client_that_leaves_ends_it(tmp_path: Path) -> None:
    outcome: list[str] = []
    ended = trio.Event()

    async def handle(exchange: Exchange) -> None:
        try:
            async with event_stream(exchange) as events:
                try:
                    await events.send("here")
                    await trio.sleep_forever()
                finally:
                    outcome.append("cancelled")
            outcome.append("went on")
        finally:
            ended.set()

    async with serving(tmp_path, lambda _: Application(handle)) as served:
        async with served.client() as client, client.stream("GET", "/") as answer:
            await lines_until(answer, "data: here")
        with trio.fail_after(10):
            await ended.wait()
        assert outcome[0] == "cancelled"


async def test_the_stop_ends_it_and_the_answer_is_whole(tmp_path: Path) -> None:
    async def handle(exchange: Exchange) -> None:
        async with event_stream(exchange) as events:
            await events.send("here")
            await trio.sleep_forever()

    async with (
        serving(tmp_path, lambda _: Application(handle)) as served,
        served.client() as client,
        client.stream("GET", "/") as answer,
    ):
        lines = answer.aiter_lines()
        assert await anext(lines) == "data: here"
        served.stop()
        with trio.fail_after(10):
            rest = [line async for line in lines]  # raises where the answer has no end
    assert rest == [""]


async def test_a_silent_stream_has_heartbeats(tmp_path: Path) -> None:
    async def handle(exchange: Exchange) -> None:
        async with event_stream(exchange, heartbeat_s=0.01):
            await trio.sleep_forever()

    async with (
        serving(tmp_path, lambda _: Application(handle)) as served,
        served.client() as client,
        client.stream("GET", "/") as answer,
    ):
        with trio.fail_after(10):
            assert await lines_until(answer, ": still here")


async def test_an_error_in_it_is_said_and_ends_the_connection(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def handle(exchange: Exchange) -> None:
        async with event_stream(exchange) as events:
            await events.send("here")
            raise RuntimeError("broken")

    async with serving(tmp_path, lambda _: Application(handle)) as served, served.client() as client:
        with pytest.raises(httpx.RemoteProtocolError):
            await client.get("/")
    assert next(record.message for record in caplog.records if record.exc_info) == "GET / failed"


@pytest.mark.parametrize("http2", [False, True])
async def test_a_client_that_does_not_read_holds_it_back_and_is_cut(tmp_path: Path, http2: bool) -> None:
    sent = 0
    ended = trio.Event()

    async def handle(exchange: Exchange) -> None:
        nonlocal sent
        try:
            async with event_stream(exchange) as events:
                while True:
                    await events.send("x" * 100_000)
                    sent += 1
        finally:
            ended.set()

    limits = {"request.timeout.ms": 300}
    async with (
        serving(tmp_path, lambda _: Application(handle), limits) as served,
        served.client(http2=http2, http1=not http2) as client,
        client.stream("GET", "/") as answer,
    ):
        assert answer.status_code == 200
        with trio.fail_after(30):
            await ended.wait()
        assert sent < 1000, "what the kernel and one window hold"


def test_the_class_says_what_a_slow_client_does() -> None:
    assert "slow client" in (EventStream.__doc__ or "")
