"""What a client may cost: bytes, time, connections. And the stop."""

from __future__ import annotations

import contextlib
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import trio
import trustme

from leafcuttr_http.settings import PREFIX, settings
from leafcuttr_sdk.settings import Type
from support.http_proxy import Running, running
from support.waiting import within

HEAD = b"POST /topics/t HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


async def receive_all(stream: trio.abc.Stream) -> bytes:
    """Until the server closes."""
    got = b""
    with within(30, "the end of the connection"):
        while data := await stream.receive_some(65536):
            got += data
    return got


def body_of(answer: bytes) -> dict[str, object]:
    found: dict[str, object] = json.loads(answer.partition(b"\r\n\r\n")[2])
    return found


@pytest.mark.setting("lc.http.proxy.max.request.bytes")
async def test_too_much_is_refused_before_it_is_sent(tmp_path: Path) -> None:
    async with running(tmp_path / "data", {"max.request.bytes": 2000}) as proxy:
        stream = await trio.open_tcp_stream("127.0.0.1", proxy.port)
        async with stream:
            await stream.send_all(HEAD + b"Content-Length: 2001\r\n\r\n")
            answer = b""
            with within(30, "the answer to the head alone"):
                while b"}" not in answer:
                    answer += await stream.receive_some(65536)
        assert answer.startswith(b"HTTP/1.1 413 ") and b"\r\nconnection: close\r\n" in answer
        assert body_of(answer)["error_code"] == 413


async def test_too_much_in_chunks_is_not_read_to_its_end(tmp_path: Path) -> None:
    async with running(tmp_path / "data", {"max.request.bytes": 2000}) as proxy:
        stream = await trio.open_tcp_stream("127.0.0.1", proxy.port)
        async with stream:
            await stream.send_all(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
            # Of a gigabyte the client gets as far as the server takes it: until the answer is there.
            chunk = b"10000\r\n" + bytes(0x10000) + b"\r\n"
            answer = b""

            async def send() -> None:
                with pytest.raises(trio.BrokenResourceError):
                    for _ in range(16_000):
                        await stream.send_all(chunk)

            async with trio.open_nursery() as nursery:
                nursery.start_soon(send)
                with trio.fail_after(30):
                    while b"}" not in answer:
                        answer += await stream.receive_some(65536)
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert not proxy.broker.topics.names()


async def test_the_connection_goes_on_after_a_small_body_that_was_not_read(proxy: Running) -> None:
    async with proxy.client() as client:
        for _ in range(3):
            answer = await client.post(
                "/topics/t", content=b"x" * 1000, headers={"content-type": "text/plain"}
            )
            assert answer.status_code == 415 and "connection" not in answer.headers
        answer = await client.post("/nothing", content=b"x" * 1000)
        assert answer.status_code == 404


@pytest.mark.parametrize("path", [b"/topics/t", b"/consumers/g"])
@pytest.mark.setting("lc.http.proxy.request.timeout.ms")
async def test_slow_senders_are_cut(tmp_path: Path, path: bytes) -> None:
    async with running(tmp_path / "data", {"request.timeout.ms": 50}) as proxy:
        stream = await trio.open_tcp_stream("127.0.0.1", proxy.port)
        async with stream:
            head = HEAD.replace(b"/topics/t", path)
            await stream.send_all(head + b'Content-Length: 100\r\n\r\n{"records":')
            answer = await receive_all(stream)
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert body_of(answer)["error_code"] == 408


@pytest.mark.parametrize("sent", [b"", HEAD, b"GET /topics HTTP/1.1\r\nHost: x\r\n\r\n"])
@pytest.mark.setting("lc.http.proxy.idle.timeout.ms")
async def test_idle_connections_are_closed(tmp_path: Path, sent: bytes) -> None:
    async with running(tmp_path / "data", {"idle.timeout.ms": 400}) as proxy:
        stream = await trio.open_tcp_stream("127.0.0.1", proxy.port)
        async with stream:
            await stream.send_all(sent) if sent else None
            answer = await receive_all(stream)
        assert answer.startswith(b"HTTP/1.1 200 ") if sent.endswith(b"\r\n\r\n") else not answer


@pytest.mark.setting("lc.http.proxy.max.connections")
async def test_connections_are_bounded(tmp_path: Path) -> None:
    async with running(tmp_path / "data", {"max.connections": 2}) as proxy:
        first = await trio.open_tcp_stream("127.0.0.1", proxy.port)
        async with first, proxy.client() as client:
            await first.send_all(HEAD)
            assert (await client.get("/topics")).status_code == 200
            third = await trio.open_tcp_stream("127.0.0.1", proxy.port)
            async with third:
                answer = await receive_all(third)
            assert answer.startswith(b"HTTP/1.1 503 ") and body_of(answer)["error_code"] == 503
            await first.aclose()
            with trio.fail_after(30):
                while True:
                    async with proxy.client() as another:
                        try:
                            if (await another.get("/topics")).status_code == 200:
                                break
                        except httpx.TransportError:
                            pass


@pytest.mark.setting("lc.http.proxy.max.buffered.bytes")
async def test_the_memory_for_bodies_is_bounded(tmp_path: Path) -> None:
    async with running(tmp_path / "data", {"max.buffered.bytes": 100_000}) as proxy, proxy.client() as client:
        headers = {"content-type": "application/json"}
        body = b'{"records":[{"value":"' + b"x" * 60_000 + b'"}]}'
        stream = await trio.open_tcp_stream("127.0.0.1", proxy.port)
        async with stream:
            await stream.send_all(HEAD + b"Content-Length: 60100\r\n\r\n" + body[:60_000])
            with within(30, "a request that is refused"):
                while (
                    answer := await client.post("/topics/t", content=body, headers=headers)
                ).status_code == 200:
                    pass
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        with trio.fail_after(30):
            while (await client.post("/topics/t", content=body, headers=headers)).status_code != 200:
                pass


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "noise",
    [
        b"\x00\x01\x02\r\n\r\n",
        b"GET / HTTP/0.3\r\n\r\n",
        b"GET  HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /topics/t HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /topics/t HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /topics/t HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 100,
    ],
)
async def test_noise_costs_one_connection(tmp_path: Path, noise: bytes) -> None:
    async with running(tmp_path / "data", {"idle.timeout.ms": 500}) as proxy:
        stream = await trio.open_tcp_stream("127.0.0.1", proxy.port)
        async with stream:
            await stream.send_all(noise)
            with contextlib.suppress(trio.BrokenResourceError):
                await receive_all(stream)
        async with proxy.client() as client:
            assert (await client.get("/topics")).status_code == 200


async def test_leaving_in_the_middle_leaves_nothing_behind(proxy: Running) -> None:
    for sent in (
        HEAD,
        HEAD + b"Content-Length: 100\r\n\r\n{",
        HEAD + b'Content-Length: 16\r\n\r\n{"records":[{}]}',
    ):
        stream = await trio.open_tcp_stream("127.0.0.1", proxy.port)
        await stream.send_all(sent)
        await stream.aclose()
    async with proxy.client() as client:
        assert (await client.get("/topics")).status_code == 200


async def test_http_1_0_and_close(proxy: Running) -> None:
    stream = await trio.open_tcp_stream("127.0.0.1", proxy.port)
    async with stream:
        await stream.send_all(b"GET /topics HTTP/1.0\r\n\r\n")
        assert (await receive_all(stream)).endswith(b"\r\n\r\n[]")


async def test_pipelined_requests_are_answered_in_order(proxy: Running) -> None:
    stream = await trio.open_tcp_stream("127.0.0.1", proxy.port)
    async with stream:
        one = HEAD + b'Content-Length: 16\r\n\r\n{"records":[{}]}'
        await stream.send_all(one * 5)
        got = b""
        with trio.fail_after(30):
            while got.count(b'"key_schema_id":null}') < 5:
                got += await stream.receive_some(65536)
    positions = [got.index(b'"offset":%d,' % number) for number in range(5)]
    assert positions == sorted(positions)


async def test_expect_100_continue(proxy: Running) -> None:
    stream = await trio.open_tcp_stream("127.0.0.1", proxy.port)
    async with stream:
        await stream.send_all(HEAD + b"Expect: 100-continue\r\nContent-Length: 16\r\n\r\n")
        with trio.fail_after(30):
            assert (await stream.receive_some(1000)).startswith(b"HTTP/1.1 100 ")
            await stream.send_all(b'{"records":[{}]}')
            assert (await stream.receive_some(1000)).startswith(b"HTTP/1.1 200 ")


async def test_the_stop_answers_what_is_in_flight_and_closes_the_rest(tmp_path: Path) -> None:
    async with running(tmp_path / "data") as proxy:
        idle = await trio.open_tcp_stream("127.0.0.1", proxy.port)
        half = await trio.open_tcp_stream("127.0.0.1", proxy.port)
        await half.send_all(HEAD + b"Expect: 100-continue\r\nContent-Length: 16\r\n\r\n")
        await idle.send_all(b"GET /topics HTTP/1.1\r\nHost: x\r\n\r\n")
        with trio.fail_after(30):
            assert (await half.receive_some(1000)).startswith(b"HTTP/1.1 100 ")
            await idle.receive_some(1000)
        proxy.stop()
        with trio.CancelScope(shield=True), trio.fail_after(30):
            assert b"HTTP" not in await receive_all(idle)
            await half.send_all(b'{"records":[{}]}')
            assert (await receive_all(half)).startswith(b"HTTP/1.1 200 ")


async def test_the_stop_does_not_wait_for_silent_clients(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It ends before the broker gives it up, for which a busy machine has time enough."""
    monkeypatch.setattr("leafcuttr.plugins.services.service.STOP_S", 30.0)
    async with running(tmp_path / "data", {"request.timeout.ms": 200_000}) as proxy:
        half = await trio.open_tcp_stream("127.0.0.1", proxy.port)
        await half.send_all(HEAD + b"Content-Length: 16\r\n\r\n{")
        async with proxy.client() as client:
            await client.get("/topics")
    assert "left behind" not in caplog.text


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.mark.parametrize("http2", [False, True])
async def test_tls(tmp_path: Path, authority: trustme.CA, http2: bool) -> None:
    keystore = tmp_path / "server.pem"
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(keystore)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    async with running(tmp_path / "data", {"ssl.keystore.location": str(keystore)}) as proxy:
        url = f"https://127.0.0.1:{proxy.port}"
        async with httpx.AsyncClient(base_url=url, verify=trusting, http2=http2, timeout=30) as client:
            for number in range(3):
                answer = await client.post("/topics/t", json={"records": [{"value": number}]})
                assert answer.status_code == 200
                assert answer.http_version == ("HTTP/2" if http2 else "HTTP/1.1")
                assert answer.json()["offsets"][0]["offset"] == number
            assert (await client.get("/nothing")).status_code == 404
        plain = await trio.open_tcp_stream("127.0.0.1", proxy.port)
        async with plain:
            await plain.send_all(b"GET / HTTP/1.1\r\n\r\n")
            with contextlib.suppress(trio.BrokenResourceError):
                await receive_all(plain)


async def test_http_2_without_tls(proxy: Running) -> None:
    async with httpx.AsyncClient(http1=False, http2=True, base_url=proxy.url, timeout=30) as client:

        async def post(number: int) -> None:
            answer = await client.post("/topics/t", json={"records": [{"value": number}]})
            assert (answer.status_code, answer.http_version) == (200, "HTTP/2")

        async with trio.open_nursery() as nursery:
            for number in range(10):
                nursery.start_soon(post, number)
    assert len(await proxy.records("t")) == 10


async def test_over_the_limit_with_http_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This client does not read before it has sent its body, so all of it has to be taken, as long as it may need for
    that. What becomes of one that is cut before its end: tests/sdk/web/test_http2.py."""
    monkeypatch.setattr("leafcuttr_sdk.web.bodies._DISCARD_S", 60.0)

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(1000):
            yield b"x" * 10_000

    async with (
        running(tmp_path / "data", {"max.request.bytes": 20_000}) as proxy,
        httpx.AsyncClient(http1=False, http2=True, base_url=proxy.url, timeout=30) as client,
    ):
        answer = await client.post(
            "/topics/t", content=endless(), headers={"content-type": "application/json"}
        )
        assert answer.status_code == 413
        assert (await client.get("/topics")).status_code == 200


def _ends_of_longs() -> list[tuple[str, int]]:
    numbers = [each for each in settings() if each.type is Type.LONG]
    assert numbers
    return [
        (each.name, int(bound))
        for each in numbers
        for bound in (
            -(2**63) if each.minimum is None else each.minimum,
            2**63 - 1 if each.maximum is None else each.maximum,
        )
    ]


@pytest.mark.parametrize(("name", "value"), _ends_of_longs())
async def test_the_ends_of_every_setting_of_type_long(tmp_path: Path, name: str, value: int) -> None:
    async with running(tmp_path / "data", {name.removeprefix(f"{PREFIX}."): value}) as proxy:
        async with proxy.client() as client:
            answer = await client.post("/topics/t", json={"records": [{"value": "v"}]})
            assert answer.status_code == 200, answer.text
        assert await proxy.records("t") == [(None, b'"v"')]
