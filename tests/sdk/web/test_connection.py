"""One connection: what leaves together, when it is closed, and what is known of its TLS."""

from __future__ import annotations

import ssl
from pathlib import Path

import httpx
import pytest
import trio
import trustme

from leafcuttr.plugins.serving.stream import SocketByteStream
from leafcuttr_sdk.web import Application, Exchange
from support.waiting import within
from support.web_service import Served, serving

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


async def hello(exchange: Exchange) -> None:
    await exchange.reply("hello")


async def closed(stream: trio.SocketStream) -> bytes:
    """What comes until the server closes."""
    with within(30, "the end of the connection"):
        return b"".join([data async for data in stream])


async def test_the_head_and_the_body_of_an_answer_leave_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[bytes] = []
    real = SocketByteStream.send_all

    async def counting(self: SocketByteStream, data: bytes) -> None:
        if b"HTTP/1.1 200" in bytes(data):
            sent.append(bytes(data))
        await real(self, data)

    async with serving(tmp_path, lambda _: Application(hello)) as served, served.client() as client:
        monkeypatch.setattr(SocketByteStream, "send_all", counting)
        assert (await client.get("/")).json() == "hello"
    assert [data.endswith(b'\r\n\r\n"hello"') for data in sent] == [True]


@pytest.mark.parametrize("begin", [b"", GET[:10], GET, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"])
async def test_an_idle_one_is_closed(tmp_path: Path, begin: bytes) -> None:
    limits = {"idle.timeout.ms": 400}
    async with serving(tmp_path, lambda _: Application(hello), limits) as served:
        async with await trio.open_tcp_stream("127.0.0.1", served.port) as stream:
            await stream.send_all(begin)
            assert (b"hello" in await closed(stream)) == (begin == GET)
        await empty(served)


async def test_one_whose_request_is_under_way_is_not_idle(tmp_path: Path) -> None:
    go_on = trio.Event()

    async def handle(exchange: Exchange) -> None:
        await go_on.wait()
        await hello(exchange)

    limits = {"idle.timeout.ms": 250}
    async with (
        serving(tmp_path, lambda _: Application(handle), limits) as served,
        await trio.open_tcp_stream("127.0.0.1", served.port) as stream,
    ):
        await stream.send_all(GET)
        async with await trio.open_tcp_stream("127.0.0.1", served.port) as other:
            await closed(other)
        go_on.set()
        assert b"hello" in await closed(stream)


async def test_a_client_that_does_not_take_its_answer_is_cut(tmp_path: Path) -> None:
    async def handle(exchange: Exchange) -> None:
        await exchange.answer(200, bytes(50_000_000))

    limits = {"request.timeout.ms": 100}
    async with (
        serving(tmp_path, lambda _: Application(handle), limits) as served,
        await trio.open_tcp_stream("127.0.0.1", served.port) as stream,
    ):
        await stream.send_all(GET)
        await empty(served)


async def test_a_client_that_leaves_in_the_middle_is_no_failure(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path, lambda _: Application(hello)) as served:
        for begin in (
            b"",
            GET[:10],
            GET,
            GET * 10,
            b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx",
        ):
            stream = await trio.open_tcp_stream("127.0.0.1", served.port)
            await stream.send_all(begin)
            # With a reset, as of a process that is killed.
            stream.socket.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            await stream.aclose()
        await empty(served)
        async with served.client() as client:
            assert (await client.get("/")).json() == "hello"
    assert not [record for record in caplog.records if record.exc_info]


async def test_tls_and_the_certificate_of_the_client(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "keys.pem"))
    authority.cert_pem.write_to_path(str(tmp_path / "trust.pem"))

    async def handle(exchange: Exchange) -> None:
        tls = exchange.scope["state"]["connection"].tls
        shown = tls.getpeercert() if tls is not None else None
        await exchange.reply([exchange.scope["scheme"], bool(shown)])

    settings = {
        "ssl.keystore.location": str(tmp_path / "keys.pem"),
        "ssl.truststore.location": str(tmp_path / "trust.pem"),
        "ssl.client.auth": "requested",
    }
    async with serving(tmp_path, lambda _: Application(handle), settings) as served:
        url = f"https://127.0.0.1:{served.port}/"
        for shows in (False, True):
            context = ssl.create_default_context(cafile=str(tmp_path / "trust.pem"))
            if shows:
                authority.issue_cert("a@example.com").configure_cert(context)
            for http2 in (False, True):
                async with httpx.AsyncClient(verify=context, http2=http2, timeout=30) as client:
                    answer = await client.get(url)
                    assert answer.json() == ["https", shows]
                    assert answer.http_version == ("HTTP/2" if http2 else "HTTP/1.1")


async def empty(served: Served) -> None:
    with within(30, "no connection that is left"):
        while "leafcuttr_tested_connections 0.0" not in await served.metrics():
            pass
