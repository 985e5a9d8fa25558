"""Requests that are legal but rare, and some that are meant to do harm."""

from __future__ import annotations

import gzip
import json

import httpx
import pytest
import trio

from leafcuttr_http.bulk import _Lines
from support.http_proxy import Running
from support.said import said

BODY = b'{"records":[{"value":1}]}'


async def ask(proxy: Running, request: bytes) -> bytes:
    """All answers to what is sent on one connection, until it is closed."""
    got = b""
    async with await trio.open_tcp_stream("127.0.0.1", proxy.port) as stream:
        await stream.send_all(request)
        with trio.fail_after(30):
            while data := await stream.receive_some(65536):
                got += data
    return got


@pytest.mark.parametrize("scheme", [b"http", b"HTTP", b"https"])
async def test_a_target_in_absolute_form_means_its_path(proxy: Running, scheme: bytes) -> None:
    target = scheme + b"://proxy.example:8080"
    post = b"POST %s/topics/t HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
    post += b"content-length: %d\r\nconnection: close\r\n\r\n%s"
    assert (await ask(proxy, post % (target, len(BODY), BODY))).startswith(b"HTTP/1.1 200 ")
    get = b"GET %s%s HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
    assert b'{"beginning_offset":0,"end_offset":1}' in await ask(
        proxy, get % (target, b"/topics/t/partitions/0/offsets?x=1")
    )
    assert b'"cluster_id"' in await ask(proxy, get % (target, b""))
    assert b"text/event-stream" in await ask(
        proxy, b"HEAD %s/topics/t/stream HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n" % target
    )


@pytest.mark.parametrize("path", [b"/topics/t", b"/consumers/g", b"/topics/t/stream", b"/nothing"])
async def test_a_request_framed_twice_is_refused_and_nothing_behind_it_is_read(
    proxy: Running, path: bytes
) -> None:
    method = b"GET" if path.endswith(b"stream") else b"POST"
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
    answer = await ask(
        proxy,
        b"%s %s HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 4\r\n"
        b"transfer-encoding: chunked\r\n\r\n%s"
        % (method, path, chunked)
        + b"GET /brokers HTTP/1.1\r\nhost: x\r\n\r\n",
    )
    assert answer.startswith(b"HTTP/1.1 400 ") and answer.count(b"HTTP/1.1") == 1
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error_code"] == 400
    assert not proxy.broker.topics.names()


async def test_head_of_a_stream_has_no_body_and_ends(proxy: Running) -> None:
    await proxy.broker.topics.create("t")
    async with proxy.client() as client:
        answer = await client.head("/topics/t/stream")
        assert answer.status_code == 200 and answer.headers["content-type"] == "text/event-stream"
        assert (await client.head("/topics/other/stream")).status_code == 404
        assert (await client.head("/topics/t/stream?offset=x")).status_code == 422
    assert await proxy.counted("leafcuttr_http_streams") == 0


@pytest.mark.long
async def test_an_upload_of_blank_lines_is_read_in_short_turns(proxy: Running) -> None:
    pieces = list(_Lines(100).feed(b"\n" * 65536))
    assert len(pieces) > 100 and not any(pieces)
    lines = b"\n" * 2_000_000 + b'{"value":1}\n'
    async with proxy.client() as client:
        answer = await client.post(
            "/topics/t",
            content=gzip.compress(lines),
            headers={"content-type": "application/x-ndjson", "content-encoding": "gzip"},
        )
    assert [json.loads(line)["offset"] for line in answer.text.splitlines()] == [0]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("wish", [{"format": []}, {"format": 0}, {"auto.offset.reset": False}])
async def test_a_consumer_whose_settings_are_no_texts_is_refused(
    proxy: Running, wish: dict[str, object]
) -> None:
    async with httpx.AsyncClient(base_url=proxy.url) as client:
        answer = await client.post("/consumers/g", json=wish)
    assert answer.status_code == 422 and answer.json()["error_code"] == 42204


async def test_a_websocket_elsewhere_is_refused_in_a_line(
    proxy: Running, caplog: pytest.LogCaptureFixture
) -> None:
    upgrade = b"connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"
    upgrade += b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    for path in (b"/brokers", b"/nothing", b"/topics/t", b"/topics/%FF/stream", b"/topics//stream"):
        answer = await ask(proxy, b"GET %s HTTP/1.1\r\nhost: x\r\n%s" % (path, upgrade))
        assert answer.startswith(b"HTTP/1.1 404 "), path
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error_code"] in (404, 40401)
    assert said(caplog) == []


@pytest.mark.parametrize("host", [b"a..b", b"x" * 64, b"x" * 12_000, b"\xff"])
async def test_a_host_that_is_no_name_is_refused_without_a_word_in_the_log(
    proxy: Running, caplog: pytest.LogCaptureFixture, host: bytes
) -> None:
    answer = await ask(proxy, b"GET /brokers HTTP/1.1\r\nconnection: close\r\nhost: %s\r\n\r\n" % host)
    assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 200 ") if host == b"\xff" else b"HTTP/1.1 400 ")
    assert said(caplog) == []
