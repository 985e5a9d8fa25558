"""The admin endpoint as HTTP: what a peer may send, what it gets, and what it cannot stretch.

One module, though longer than most: a misbehaving peer is small, and all of them meet the same endpoint.
"""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from typing import Any

import hypothesis
import pytest
import trio
import trio.testing
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from leafcuttr.server.admin import http, listening
from leafcuttr.server.admin.http import HttpConnection
from leafcuttr.server.admin.router import Request, Response, Router, as_json, parse_target
from leafcuttr.state.broker import Broker
from support.waiting import free_port

Serve = Callable[..., Awaitable[Broker]]
ON = {"lc.metrics.enable": "true", "lc.metrics.port": "0"}

Answer = tuple[int, dict[str, str], bytes]


class Client:
    """One connection to a router, over the loopback, and what it gets."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self._pending = b""

    async def ask(self, text: str, *, head: bool = False) -> Answer:
        await self.stream.send_all(text.replace("\n", "\r\n").encode())
        return await self.answer(head=head)

    async def get(self, path: str) -> Answer:
        return await self.ask(f"GET {path} HTTP/1.1\nHost: x\n\n")

    async def answer(self, *, head: bool = False) -> Answer:
        """The next answer. Raises EOFError at the end of the stream."""
        while b"\r\n\r\n" not in self._pending:
            await self._more()
        text, _, self._pending = self._pending.partition(b"\r\n\r\n")
        first, *lines = text.decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = b"" if head else await self._body(headers)
        return int(first.split()[1]), headers, body

    async def _body(self, headers: dict[str, str]) -> bytes:
        if "content-length" in headers:
            return await self._take(int(headers["content-length"]))
        if headers.get("transfer-encoding") != "chunked":
            return await self.rest()
        body = b""
        while True:
            while b"\r\n" not in self._pending:
                await self._more()
            size, _, self._pending = self._pending.partition(b"\r\n")
            piece = await self._take(int(size, 16) + 2)
            body += piece[:-2]
            if int(size, 16) == 0:
                return body

    async def _take(self, count: int) -> bytes:
        while len(self._pending) < count:
            await self._more()
        taken, self._pending = self._pending[:count], self._pending[count:]
        return taken

    async def _more(self) -> None:
        data = await self.stream.receive_some(65536)
        if not data:
            raise EOFError
        self._pending += data

    async def rest(self) -> bytes:
        """All that comes until the peer closes."""
        try:
            while True:
                await self._more()
        except (EOFError, trio.BrokenResourceError):
            return self._pending


Connect = Callable[[], Awaitable[Client]]


@pytest.fixture
def router() -> Router:
    async def hello(request: Request) -> Response:
        return as_json({"path": request.path, "query": dict(request.query)})

    async def pieces() -> AsyncGenerator[bytes, None]:
        for number in range(3):
            yield b"%d" % number

    async def streamed(_: Request) -> Response:
        return Response(pieces(), "text/plain")

    async def broken(_: Request) -> Response:
        raise RuntimeError("no")

    found = Router()
    found.add("/hello", hello, "greets")
    found.add("/stream", streamed, "comes in pieces")
    found.add("/broken", broken, "fails")
    return found


@pytest.fixture
def connect(router: Router, nursery: trio.Nursery) -> Connect:
    async def open_connection() -> Client:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        server = HttpConnection(trio.SocketStream(trio.socket.from_stdlib_socket(ours)), router)
        nursery.start_soon(server.run)
        return Client(trio.SocketStream(trio.socket.from_stdlib_socket(theirs)))

    return open_connection


async def test_many_requests_on_one_connection(connect: Connect) -> None:
    client = await connect()
    for number in range(5):
        status, headers, body = await client.get(f"/hello?a={number}&a=x")
        assert status == 200
        assert headers["content-type"] == "application/json"
        assert json.loads(body) == {"path": "/hello", "query": {"a": [str(number), "x"]}}


async def test_pipelined_requests_are_answered_in_order(connect: Connect) -> None:
    client = await connect()
    await client.stream.send_all(
        b"".join(b"GET /hello?n=%d HTTP/1.1\r\nHost: x\r\n\r\n" % n for n in range(20))
    )
    for number in range(20):
        assert json.loads((await client.answer())[2])["query"] == {"n": [str(number)]}


async def test_a_body_that_comes_in_pieces(connect: Connect) -> None:
    client = await connect()
    assert (await client.get("/stream"))[2] == b"012"
    status, headers, _ = await client.ask("HEAD /stream HTTP/1.1\nHost: x\n\n", head=True)
    assert (status, headers["content-type"]) == (200, "text/plain")
    assert (await client.get("/hello"))[0] == 200  # nothing of a body was in between


async def test_http_1_0_gets_a_body_that_ends_with_the_connection(connect: Connect) -> None:
    client = await connect()
    status, headers, body = await client.ask("GET /stream HTTP/1.0\n\n")
    assert (status, body) == (200, b"012")
    assert "transfer-encoding" not in headers


async def test_head_has_the_length_and_no_body(connect: Connect) -> None:
    client = await connect()
    expected = (await client.get("/hello"))[1]["content-length"]
    status, headers, _ = await client.ask("HEAD /hello HTTP/1.1\nHost: x\n\n", head=True)
    assert (status, headers["content-length"]) == (200, expected)


@pytest.mark.parametrize(
    ("request_text", "status", "code"),
    [
        ("GET /nothing HTTP/1.1\nHost: x\n\n", 404, "not_found"),
        ("DELETE /hello HTTP/1.1\nHost: x\n\n", 405, "method_not_allowed"),
        ("POST /hello HTTP/1.1\nHost: x\nContent-Length: 3\n\nabc", 405, "method_not_allowed"),
        ("GET /hello HTTP/1.1\nHost: x\nContent-Length: 3\n\nabc", 413, "no_body"),
        ("GET /hello HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\n\n", 413, "no_body"),
        ("GET /hello HTTP/1.1\n\n", 400, "bad_request"),  # no Host
        ("GET http://[/hello HTTP/1.1\nHost: x\n\n", 400, "bad_request"),
        ("GET /hello HTTP/1.1\nHost: x\nContent-Length: x\n\n", 400, "bad_request"),
        ("\x16\x03\x01\x02\x00\x01\x00\x01\n\n", 400, "bad_request"),  # TLS
        ("GET /broken HTTP/1.1\nHost: x\n\n", 500, "internal_error"),
        (f"GET /{'x' * 64_000} HTTP/1.1\nHost: x\n\n", 431, "bad_request"),
        (f"GET / HTTP/1.1\nHost: x\nX: {'x' * 64_000}\n\n", 431, "bad_request"),
    ],
)
async def test_what_is_refused_gets_json(
    connect: Connect, request_text: str, status: int, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    found, headers, body = await (await connect()).ask(request_text)
    answer = json.loads(body)
    assert (found, headers["content-type"], answer["error"]) == (status, "application/json", code)
    assert answer["message"]
    if status == 405:
        assert headers["allow"] == "GET, HEAD"
    assert [record for record in caplog.records if record.levelno >= logging.ERROR and status != 500] == []


async def test_after_404_405_and_500_the_connection_goes_on(connect: Connect) -> None:
    client = await connect()
    for path in ("/nothing", "/broken"):
        await client.get(path)
    await client.ask("DELETE /hello HTTP/1.1\nHost: x\n\n")
    assert (await client.get("/hello/"))[0] == 200


async def test_an_unread_body_ends_the_connection(connect: Connect) -> None:
    client = await connect()
    _, headers, _ = await client.ask(f"POST /hello HTTP/1.1\nHost: x\nContent-Length: {1 << 40}\n\n")
    assert headers["connection"] == "close"
    with trio.fail_after(60):
        assert await client.rest() == b""


async def test_head_with_a_body_that_cannot_be_read_gets_no_body(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    client = await connect()
    await client.stream.send_all(
        b"HEAD /hello HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nnot a size\r\n"
    )
    head, _, body = (await client.rest()).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ") and body == b""
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_an_absolute_target(connect: Connect) -> None:
    status, _, body = await (await connect()).get("http://x:9404/hello?a=b")
    assert (status, json.loads(body)["path"]) == (200, "/hello")


def test_a_target_with_very_many_fields_is_refused() -> None:
    with pytest.raises(ValueError, match="fields"):
        parse_target("/x?" + "a=1&" * 2000)


async def test_a_head_that_does_not_come_is_cut(
    connect: Connect, autojump_clock: trio.testing.MockClock
) -> None:
    """Ten seconds for the whole of it, however its bytes trickle."""
    client = await connect()
    began = trio.current_time()
    for byte in b"GET /hello HTTP/1.1\r\nHost: x\r\n":
        await client.stream.send_all(bytes([byte]))
        await trio.sleep(1)
        if trio.current_time() - began > http.HEAD_S:
            break
    status, _, body = await client.answer()
    assert (status, json.loads(body)["error"]) == (408, "too_slow")
    assert await client.rest() == b""


async def test_silence_is_cut(connect: Connect, autojump_clock: trio.testing.MockClock) -> None:
    client = await connect()
    began = trio.current_time()
    assert await client.rest() == b""
    assert http.HEAD_S <= trio.current_time() - began < http.IDLE_S
    client = await connect()
    await client.get("/hello")
    began = trio.current_time()
    assert await client.rest() == b""
    assert trio.current_time() - began >= http.IDLE_S


async def test_who_does_not_read_is_cut(
    router: Router, connect: Connect, autojump_clock: trio.testing.MockClock
) -> None:
    closed = trio.Event()

    async def endless() -> AsyncGenerator[bytes, None]:
        try:
            while True:
                yield bytes(65536)
        finally:
            closed.set()

    async def handler(_: Request) -> Response:
        return Response(endless(), "text/plain")

    router.add("/endless", handler, "never ends")
    client = await connect()
    await client.stream.send_all(b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")
    began = trio.current_time()
    await closed.wait()
    assert http.SEND_S <= trio.current_time() - began < http.ANSWER_S
    client = await connect()
    await client.stream.send_all(b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")
    began, closed = trio.current_time(), trio.Event()
    with pytest.raises((EOFError, trio.BrokenResourceError)):
        while True:  # a reader who takes a little now and then has a minute for all of it
            await trio.sleep(5)
            if not await client.stream.receive_some(200_000):
                raise EOFError
    assert trio.current_time() - began >= http.ANSWER_S


_LINES = st.sampled_from(
    [
        b"GET /hello HTTP/1.1",
        b"HEAD /stream HTTP/1.0",
        b"POST /hello?x=%ff HTTP/1.1",
        b"Host: x",
        b"Content-Length: 5",
        b"Content-Length: -1",
        b"Transfer-Encoding: chunked",
        b"Expect: 100-continue",
        b"Connection: upgrade, close",
        b"Upgrade: h2c",
        b"",
        b"5\r\nabcde\r\n0\r\n",
    ]
)
_BYTES = st.one_of(
    st.binary(max_size=300),
    st.lists(_LINES, max_size=12).map(lambda lines: b"\r\n".join(lines) + b"\r\n\r\n"),
    st.tuples(st.lists(_LINES, max_size=6), st.binary(max_size=40)).map(
        lambda both: b"\r\n".join(both[0]) + both[1]
    ),
)


@given(sent=st.lists(_BYTES, min_size=1, max_size=4))
@hypothesis.settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_comes_is_answered_or_cut(
    sent: list[bytes], router: Router, caplog: pytest.LogCaptureFixture
) -> None:
    """In pieces, with the peer's end of the stream behind them: every answer is whole, and nothing fails in here."""
    caplog.clear()

    async def talk() -> bytes:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        server = HttpConnection(trio.SocketStream(trio.socket.from_stdlib_socket(ours)), router)
        client = Client(trio.SocketStream(trio.socket.from_stdlib_socket(theirs)))
        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(server.run)
                with suppress(trio.BrokenResourceError):
                    for piece in sent:
                        await client.stream.send_all(piece)
                    await client.stream.send_eof()
                return await client.rest()
        raise AssertionError

    answered = trio.run(talk)
    assert answered == b"" or answered.startswith(b"HTTP/1.1 ")
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


# With a broker


async def ask(broker: Broker, path: str, *headers: str) -> Answer:
    assert broker.admin is not None
    stream = await trio.open_tcp_stream(broker.admin.host, broker.admin.port)
    async with stream:
        lines = "".join(f"{line}\n" for line in headers)
        return await Client(stream).ask(f"GET {path} HTTP/1.1\nHost: x\n{lines}\n")


@pytest.mark.setting("lc.metrics.enable")
async def test_off(serve: Serve) -> None:
    assert (await serve({"lc.metrics.enable": "false"})).admin is None


async def test_a_busy_port_is_a_warning(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        broker = await serve({**ON, "lc.metrics.port": str(port)})
        assert broker.admin is None
    (line,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert line.startswith("no metrics: ")
    assert f"lc.metrics.port={port}" in line
    assert "another program listens there" in line


@pytest.mark.setting("lc.metrics.host", "lc.metrics.port")
async def test_the_host_and_port_that_were_asked_for(serve: Serve) -> None:
    port = free_port()
    broker = await serve({**ON, "lc.metrics.port": str(port), "lc.metrics.host": "127.0.0.3"})
    assert broker.admin is not None and broker.admin.port == port
    assert not await listens("127.0.0.1", port)
    assert await listens("127.0.0.3", port)
    stream = await trio.open_tcp_stream("127.0.0.3", port)
    async with stream:
        assert (await Client(stream).get("/health/live"))[0] == 200


async def listens(host: str, port: int) -> bool:
    try:
        await (await trio.open_tcp_stream(host, port)).aclose()
    except OSError:
        return False
    return True


async def test_one_that_other_machines_reach_is_a_warning(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    broker = await serve({**ON, "lc.metrics.host": ""})
    assert broker.admin is not None
    (line,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert line == (
        f"every host that reaches this machine port {broker.admin.port} may read metrics and health "
        "without authentication (lc.metrics.host)"
    )


async def test_the_index_names_every_path(serve: Serve) -> None:
    broker = await serve(ON)
    status, _, body = await ask(broker, "/")
    paths = json.loads(body)["paths"]
    assert status == 200
    assert list(paths) == ["/", "/metrics", "/health", "/health/live", "/health/ready"]
    for path in paths:
        assert (await ask(broker, path))[0] == 200


async def test_a_newer_connection_takes_the_place_of_an_idle_one(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "MOST_CONNECTIONS", 3)
    broker = await serve(ON)
    assert broker.admin is not None
    clients = []
    for _ in range(4):
        client = Client(await trio.open_tcp_stream(broker.admin.host, broker.admin.port))
        assert (await client.get("/health/live"))[0] == 200
        clients.append(client)
    with trio.fail_after(60):
        assert await clients[0].rest() == b""
    for client in clients[1:]:
        assert (await client.get("/health/live"))[0] == 200
    for client in clients[1:]:  # all busy with a head that does not end
        await client.stream.send_all(b"GET /health/live HTTP/1.1\r\n")
    with trio.fail_after(60):
        while (refused := await _refused(broker)) is not True:
            assert refused is False
    for client in clients[1:]:
        assert (await client.ask("Host: x\n\n"))[0] == 200


async def _refused(broker: Broker) -> bool:
    """Whether a new connection is closed without an answer. The others may not have been read yet."""
    try:
        await ask(broker, "/health/live")
    except (EOFError, trio.BrokenResourceError):
        return True
    return False


async def test_the_admin_endpoint_outlives_the_listeners(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While requests in flight are answered at a stop, it says that the broker is not ready."""
    from support.peer import connect as connect_peer
    from support.peer import join_request, metadata_request

    monkeypatch.setattr("leafcuttr.server.run._GRACE_S", 60.0)
    stop, ended = trio.Event(), trio.Event()
    broker = await serve(ON, stop=stop, ended=ended)
    assert broker.admin is not None
    client = Client(await trio.open_tcp_stream(broker.admin.host, broker.admin.port))
    assert (await client.get("/health/ready"))[0] == 200
    peer = await connect_peer(broker)
    await peer.ask(metadata_request("t"), 12)
    asked: Any = join_request("g")
    await peer.send(asked, 3)  # waits for the group's initial delay, and so holds the stop up
    stop.set()
    with trio.fail_after(60):
        status = 200
        while status == 200:
            status, _, body = await client.get("/health/ready")
    assert status == 503
    assert json.loads(body) == {"status": "not ready", "failing": ["serving"]}
    await peer.stream.aclose()
    await ended.wait()


async def test_who_takes_a_long_answer_steadily_gets_all_of_it(
    connect: Connect, router: Router, autojump_clock: trio.testing.MockClock
) -> None:
    size = 4 << 20

    async def large(_: Request) -> Response:
        return Response(bytes(size), "text/plain")

    router.add("/large", large, "comes in one piece")
    client = await connect()
    await client.stream.send_all(b"GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    got, began = 0, trio.current_time()
    while data := await client.stream.receive_some(100_000):
        got += len(data)
        await trio.sleep(1)
    assert got > size
    assert trio.current_time() - began > 2 * http.SEND_S
