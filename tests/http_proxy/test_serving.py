"""The proxy's connections are served as those of every plugin, by `Broker.serve`: its settings, its counted lines."""

from __future__ import annotations

import json
import logging
import socket
import ssl
import stat
import struct
from pathlib import Path

import httpx
import pytest
import trio
import trustme

from support.http_proxy import Running, running
from support.waiting import eventually, within

PREFIX = "lc.http.proxy"
GET = b"GET /topics HTTP/1.1\r\nHost: x\r\n\r\n"


async def connect(proxy: Running) -> trio.SocketStream:
    return await trio.open_tcp_stream("127.0.0.1", proxy.port)


async def receive_all(stream: trio.abc.ReceiveStream) -> bytes:
    got = b""
    with within(60, "the end of the connection"):
        while data := await stream.receive_some(65536):
            got += data
    return got


async def answered(stream: trio.abc.Stream) -> None:
    """A whole request."""
    await stream.send_all(GET)
    got = b""
    with within(60, "an answer"):
        while not got.endswith(b"\r\n\r\n[]"):
            more = await stream.receive_some(1000)
            assert more
            got += more
    assert got.startswith(b"HTTP/1.1 200 ")


async def ends_become(proxy: Running, expected: dict[str, int]) -> None:
    async def so() -> bool:
        return dict(proxy.core.plugged.served[PREFIX].ends) == expected

    await eventually(so, f"{expected}, not {dict(proxy.core.plugged.served[PREFIX].ends)}")


def lines(caplog: pytest.LogCaptureFixture, text: str = f"listener {PREFIX} of plugin http: ") -> list[str]:
    return [record.getMessage() for record in caplog.records if text in record.getMessage()]


async def reset(stream: trio.SocketStream) -> None:
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    await stream.aclose()


async def test_connections_above_the_budget_are_one_counted_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path / "data", {"max.connections": 1}) as proxy:
        async with await connect(proxy) as first:
            await answered(first)
            for _ in range(3):
                async with await connect(proxy) as more:
                    answer = await receive_all(more)
                    assert answer.startswith(b"HTTP/1.1 503 ")
                    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error_code"] == 503
            await ends_become(proxy, {"refused": 3})
            assert await proxy.counted("leafcuttr_http_connections") == 1
        (line,) = lines(caplog)
        assert f"a connection was refused: 1 are open ({PREFIX}.max.connections)" in line


async def test_resets_are_one_counted_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with running(tmp_path / "data") as proxy:
        for _ in range(2):
            stream = await connect(proxy)
            await answered(stream)
            await reset(stream)
        await ends_become(proxy, {"reset": 2})
        stream = await connect(proxy)
        await stream.send_all(GET * 1000)
        await reset(stream)  # while it answers
        await ends_become(proxy, {"reset": 3})
        (line,) = lines(caplog)
        assert "a connection broke (127.0.0.1:" in line


@pytest.mark.setting("lc.http.proxy.unix.path", "lc.http.proxy.unix.mode")
async def test_a_unix_socket(tmp_path: Path) -> None:
    path = tmp_path / "http.sock"
    async with running(tmp_path / "data", {"unix.path": str(path), "unix.mode": "0600"}) as proxy:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        transport = httpx.AsyncHTTPTransport(uds=str(path))
        async with httpx.AsyncClient(transport=transport, timeout=30) as client:
            answer = await client.post("http://local/topics/t", json={"records": [{"value": 1}]})
            assert answer.status_code == 200
        assert await proxy.records("t") == [(None, b"1")]


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


def keystore(authority: trustme.CA, folder: Path) -> str:
    file = folder / "server.pem"
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(file)
    return str(file)


@pytest.mark.setting("lc.http.proxy.handshake.timeout.ms")
async def test_a_half_open_handshake(tmp_path: Path, authority: trustme.CA) -> None:
    settings = {"ssl.keystore.location": keystore(authority, tmp_path), "handshake.timeout.ms": 50}
    async with running(tmp_path / "data", settings) as proxy, await connect(proxy) as stream:
        await stream.send_all(b"\x16\x03\x01\x02\x00\x01\x00")  # the beginning of a ClientHello
        assert await receive_all(stream) == b""
        await ends_become(proxy, {"handshake": 1})


async def test_faults_of_tls(tmp_path: Path, authority: trustme.CA, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    async with running(tmp_path / "data", {"ssl.keystore.location": keystore(authority, tmp_path)}) as proxy:
        stream = trio.SSLStream(await connect(proxy), trusting, server_hostname="127.0.0.1")
        await answered(stream)
        await stream.transport_stream.aclose()  # as browsers do: without a word of TLS
        async with await connect(proxy) as plain:
            await plain.send_all(GET)
            while await plain.receive_some(1000):
                pass
        await ends_become(proxy, {"tls": 1})
        (line,) = lines(caplog)
        assert "a TLS handshake failed: the client speaks no TLS" in line


@pytest.mark.long
@pytest.mark.setting("lc.http.proxy.send.timeout.ms")
async def test_a_client_that_takes_nothing(tmp_path: Path) -> None:
    async with running(tmp_path / "data", {"send.timeout.ms": 50}) as proxy:
        body = b'{"records":[' + b",".join([b"{}"] * 60_000) + b"]}"
        sock = trio.socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        await sock.connect(("127.0.0.1", proxy.port))
        async with trio.SocketStream(sock) as stream:
            head = b"POST /topics/t HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            await stream.send_all(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            await ends_become(proxy, {"slow": 1})


async def test_a_head_that_never_ends_is_idle(tmp_path: Path) -> None:
    """However often a byte of it comes."""
    async with running(tmp_path / "data", {"idle.timeout.ms": 100}) as proxy, await connect(proxy) as stream:
        await stream.send_all(GET[:-2])
        with within(60, "the end of the connection"), pytest.raises(trio.BrokenResourceError):
            while True:
                await stream.send_all(b"x")
                await trio.sleep(0.01)  # it is the time that counts, not the number
        await ends_become(proxy, {"idle": 1})


async def test_a_request_that_takes_long_is_not_idle(tmp_path: Path) -> None:
    async with (
        running(tmp_path / "data", {"idle.timeout.ms": 500}) as proxy,
        await connect(proxy) as stream,
    ):
        head = b"POST /topics/t HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        await stream.send_all(head + b"Content-Length: 16\r\n\r\n")
        for byte in b'{"records":[{}]}':
            await trio.sleep(0.04)  # longer than the idle time, altogether
            await stream.send_all(bytes([byte]))
        assert (await receive_all(stream)).startswith(b"HTTP/1.1 200 ")
        await ends_become(proxy, {"idle": 1})


async def test_connections_are_counted(tmp_path: Path) -> None:
    async with running(tmp_path / "data") as proxy:
        async with await connect(proxy) as stream:
            await answered(stream)
            labels = {"plugin": "http", "listener": PREFIX}
            assert await proxy.counted("leafcuttr_plugin_connections", **labels) == 1
            assert await proxy.counted("leafcuttr_plugin_connections_accepted_total", **labels) == 1

        async def closed() -> bool:
            name = "leafcuttr_plugin_connections_ended_total"
            return await proxy.counted(name, end="closed", **labels) == 1

        await eventually(closed, "its end")
        assert await proxy.counted("leafcuttr_plugin_connections", **labels) == 0
