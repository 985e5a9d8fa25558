"""Clients that take their time over an answer, and clients that do not take it at all; over HTTP/1.1, HTTP/2 and TLS.
The buffers of kernels are part of it, so the time is real."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import h2.config
import h2.connection
import h2.events
import h2.settings
import pytest
import trio
import trustme

from support.http_proxy import Running, running
from support.waiting import eventually

RECORDS = 20_000
TIMEOUT_MS = 3000
SECONDS = 7.0
"""For an answer: several times what a piece of it may take."""
SMALL_WINDOW = 65_535

Stream = trio.SocketStream | trio.SSLStream[trio.SocketStream]


async def with_small_buffers(port: int, context: ssl.SSLContext | None = None) -> Stream:
    sock = trio.socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
    await sock.connect(("127.0.0.1", port))
    plain = trio.SocketStream(sock)
    return plain if context is None else trio.SSLStream(plain, context, server_hostname="127.0.0.1")


async def ask(proxy: Running, stream: Stream) -> int:
    """For an answer of more than a megabyte in one piece; its length."""
    body = b'{"records":[' + b",".join([b"{}"] * RECORDS) + b"]}"
    head = "POST /topics/t HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    head += f"Content-Length: {len(body)}\r\n\r\n"
    await stream.send_all(head.encode() + body)
    got = b""
    while b"\r\n\r\n" not in got:
        got += await stream.receive_some(1)
    fields = dict(line.split(b": ") for line in got.lower().split(b"\r\n")[1:-2])
    return int(fields[b"content-length"])


async def take(size: int, some: Callable[[], Awaitable[int]]) -> None:
    """Steadily, within SECONDS: as much as is due at each moment, so that a busy machine does not make it slower."""
    began, got = trio.current_time(), 0
    with trio.fail_after(60):
        while got < size:
            due = min((trio.current_time() - began) / SECONDS, 1.0) * size
            while got < due:
                count = await some()
                assert count, f"cut after {got} of {size} bytes"
                got += count
            await trio.sleep(0.02)  # a reader who takes time is what is tested
    assert trio.current_time() - began > 2 * TIMEOUT_MS / 1000


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("reads", [True, False])
async def test_an_answer_over_http_1_1(tmp_path: Path, authority: trustme.CA, tls: bool, reads: bool) -> None:
    settings: dict[str, str | int] = {"request.timeout.ms": TIMEOUT_MS, "idle.timeout.ms": 500}
    context = None
    if tls:
        keystore = tmp_path / "server.pem"
        authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(keystore)
        settings["ssl.keystore.location"] = str(keystore)
        context = ssl.create_default_context()
        authority.configure_trust(context)
    async with running(tmp_path / "data", settings) as proxy:
        stream = await with_small_buffers(proxy.port, context)
        size = await ask(proxy, stream)
        assert size > 1_000_000

        async def some() -> int:
            return len(await stream.receive_some(16 * 1024))

        if reads:
            await take(size, some)
        else:
            await until_no_connection(proxy)
            assert await all_of(stream) < size
        await trio.aclose_forcefully(stream)


async def until_no_connection(proxy: Running) -> None:
    async def none() -> bool:
        return not await proxy.counted("leafcuttr_http_connections")

    await eventually(none, "the end of the connection")


async def all_of(stream: Stream) -> int:
    got = 0
    try:
        while data := await stream.receive_some(65536):
            got += len(data)
    except trio.BrokenResourceError:
        pass
    return got


def windows(size: int) -> h2.settings.Settings:
    return h2.settings.Settings(
        client=True, initial_values={h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: size}
    )


class Http2:
    """A client that opens the window of its stream as it likes."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
        self.unanswered = 0

    async def post(self, window: int) -> None:
        http = self._h2
        http.local_settings = windows(window)
        http.initiate_connection()
        body = b'{"records":[' + b",".join([b"{}"] * RECORDS) + b"]}"
        fields = [(":method", "POST"), (":path", "/topics/t"), (":authority", "x"), (":scheme", "http")]
        http.send_headers(1, [*fields, ("content-type", "application/json")])
        while body:
            window = min(http.local_flow_control_window(1), http.max_outbound_frame_size, len(body))
            if window:
                http.send_data(1, body[:window], end_stream=window == len(body))
                body = body[window:]
            await self._stream.send_all(http.data_to_send())
            if not window:
                await self.events()

    async def events(self) -> list[h2.events.Event]:
        """Those that come next; none at the end of the connection."""
        data = await self._stream.receive_some(65536)
        found = self._h2.receive_data(data) if data else []
        await self._stream.send_all(self._h2.data_to_send())
        return found

    async def length(self) -> int:
        """Of the answer."""
        while True:
            for event in await self.events():
                if isinstance(event, h2.events.ResponseReceived):
                    fields = dict(event.headers)
                    return int(fields.get(b"content-length") or fields["content-length"])  # type: ignore[call-overload]
                if isinstance(event, h2.events.DataReceived):
                    self.unanswered += len(event.data)

    async def some(self) -> int:
        """Take what is there and open the window by as much."""
        if self.unanswered:
            count, self.unanswered = self.unanswered, 0
        else:
            count = 0
            while not count:
                events = await self.events()
                if not events:
                    return 0
                count = sum(len(each.data) for each in events if isinstance(each, h2.events.DataReceived))
        if count:
            self._h2.increment_flow_control_window(count)
            with_stream = 1 in self._h2.streams and not self._h2.streams[1].closed
            if with_stream:
                self._h2.increment_flow_control_window(count, stream_id=1)
            await self._stream.send_all(self._h2.data_to_send())
        return count


async def test_an_answer_over_http_2_that_is_taken_slowly(tmp_path: Path) -> None:
    async with running(
        tmp_path / "data", {"request.timeout.ms": TIMEOUT_MS, "idle.timeout.ms": 500}
    ) as proxy:
        stream = await with_small_buffers(proxy.port)
        client = Http2(stream)
        await client.post(SMALL_WINDOW)
        size = await client.length()
        assert size > 1_000_000
        await take(size, client.some)
        await trio.aclose_forcefully(stream)


async def test_an_answer_over_http_2_whose_window_stays_shut(tmp_path: Path) -> None:
    async with running(tmp_path / "data", {"request.timeout.ms": 300}) as proxy:
        stream = await with_small_buffers(proxy.port)
        client = Http2(stream)
        await client.post(0)
        with trio.fail_after(60):
            while await client.events():
                pass
        await until_no_connection(proxy)
        await trio.aclose_forcefully(stream)


async def test_an_event_stream_over_http_2_whose_window_stays_shut(tmp_path: Path) -> None:
    async with running(tmp_path / "data", {"request.timeout.ms": 300, "stream.heartbeat.ms": 100}) as proxy:
        await proxy.broker.topics.create("t")
        stream = await with_small_buffers(proxy.port)
        http = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
        http.local_settings = windows(0)
        http.initiate_connection()
        fields = [(":method", "GET"), (":path", "/topics/t/stream?from=earliest"), (":authority", "x")]
        http.send_headers(1, [*fields, (":scheme", "http")], end_stream=True)
        await stream.send_all(http.data_to_send())
        for _ in range(200):
            await proxy.broker.produce("t", b"x" * 1000)
        with trio.fail_after(60):
            while data := await stream.receive_some(65536):
                http.receive_data(data)
        await until_no_connection(proxy)
        assert await proxy.counted("leafcuttr_http_streams") == 0
        await trio.aclose_forcefully(stream)
