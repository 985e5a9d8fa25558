"""The admin endpoint as HTTP: what a peer may send, what it gets, and what it cannot stretch.

One module, though longer than most: a misbehaving peer is small, and all of them meet the same endpoint.
"""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress

import hypothesis
import pytest
import trio
import trio.testing
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from leafcuttr.server.admin import http
from leafcuttr.server.admin.http import HttpConnection
from leafcuttr.server.admin.router import Request, Response, Router, as_json
from support.gates_slice import sampled
from support.http_client import Client

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

    async def subject(request: Request) -> Response:
        return as_json({"method": request.method, "route": request.route, **request.parameters})

    found = Router()
    found.add("/hello", hello, "greets")
    found.add("/stream", streamed, "comes in pieces")
    found.add("/broken", broken, "fails")
    found.add("/subjects/{subject}", subject, "one of them")
    found.add("/subjects/{subject}/versions/{version}", subject, "one of its versions")
    found.add("/subjects/all", hello, "all of them")
    found.add("/things/{subject}", subject, "one of them, which may go", ("GET", "DELETE"))
    found.add("/only/{subject}", subject, "one that may go", ("DELETE",))
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
    ("path", "route", "parameters"),
    [
        ("/subjects/orders", "/subjects/{subject}", {"subject": "orders"}),
        ("/subjects/orders/", "/subjects/{subject}", {"subject": "orders"}),
        ("/subjects/orders//", "/subjects/{subject}", {"subject": "orders"}),
        ("/subjects/a%2Fb%20c%25?x=1", "/subjects/{subject}", {"subject": "a/b c%"}),
        ("/subjects/caf%C3%A9", "/subjects/{subject}", {"subject": "café"}),
        ("/subjects/%7Bsubject%7D", "/subjects/{subject}", {"subject": "{subject}"}),
        (
            "/subjects/a%2Fversions%2F7/versions/3",
            "/subjects/{subject}/versions/{version}",
            {"subject": "a/versions/7", "version": "3"},
        ),
        ("http://x/subjects/a%2Fb", "/subjects/{subject}", {"subject": "a/b"}),
    ],
)
async def test_parameters_of_a_path(
    connect: Connect, path: str, route: str, parameters: dict[str, str]
) -> None:
    client = await connect()
    status, _, body = await client.get(path)
    assert (status, json.loads(body)) == (200, {"method": "GET", "route": route, **parameters})
    head = await client.ask(f"HEAD {path} HTTP/1.1\nHost: x\n\n", head=True)
    assert (head[0], int(head[1]["content-length"])) == (200, len(body) + 1)
    status, headers, _ = await client.ask(f"PUT {path} HTTP/1.1\nHost: x\n\n")
    assert (status, headers["allow"]) == (405, "GET, HEAD")
    # A literal part wins, though it was added last; an empty one is no value.
    assert json.loads((await client.get("/subjects/all"))[2])["path"] == "/subjects/all"
    for nothing in ("/subjects/", "/subjects//", "/subjects//versions/3", "/subjects/a/versions"):
        assert (await client.get(nothing))[0] == 404


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("/subjects/a%zz", 400, "the target cannot be read: '%zz' is no escape"),
        ("/subjects/a%", 400, "'%' is no escape"),
        ("/subjects/%ff", 400, "no UTF-8"),
        ("/subjects/a%00", 400, "its path has the control character '\\x00'"),
        ("/subjects/a%0d%0aX:%20y", 400, "its path has the control character '\\r'"),
        ("/subjects/a%C2%85b", 400, "its path has the control character '\\x85'"),
        ("/subjects/..", 404, "/subjects/.. is not here"),
        ("/subjects/%2e%2e", 404, "is not here"),
        ("/subjects/./versions/1", 404, "is not here"),
        ("/subjects/../../metrics", 404, "is not here"),
        (f"/subjects/{'x' * 4100}", 400, "its path has 4110 characters, and may have 4096"),
        (f"/{'/' * 4000}", 404, "is not here"),
        ("//subjects/orders", 404, "is not here"),
        ("*", 400, "does not begin with a slash"),
    ],
)
async def test_hostile_paths_get_one_line(connect: Connect, path: str, status: int, says: str) -> None:
    client = await connect()
    found, _, body = await client.get(path)
    assert found == status
    assert says in json.loads(body)["message"]
    assert body.count(b"\n") == 1 and len(json.loads(body)["message"].splitlines()) == 1
    assert (await client.get("/hello"))[0] == 200


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


async def test_a_route_for_delete(connect: Connect) -> None:
    client = await connect()
    for path in ("/things/a", "/only/a"):
        status, _, body = await client.ask(f"DELETE {path} HTTP/1.1\nHost: x\n\n")
        assert (status, json.loads(body)["method"]) == (200, "DELETE")
    assert (await client.get("/things/a"))[0] == 200
    status, headers, _ = await client.ask("POST /things/a HTTP/1.1\nHost: x\n\n")
    assert (status, headers["allow"]) == (405, "GET, HEAD, DELETE")
    status, headers, _ = await client.get("/only/a")
    assert (status, headers["allow"]) == (405, "DELETE")
    status, _, body = await client.ask("DELETE /things/a HTTP/1.1\nHost: x\nContent-Length: 1\n\nx")
    assert (status, json.loads(body)["error"]) == (413, "no_body")


async def test_a_web_page_changes_nothing(connect: Connect) -> None:
    """A browser says where a page is from that sends a request by another method than GET."""
    client = await connect()
    status, _, body = await client.ask("DELETE /things/a HTTP/1.1\nHost: x\nOrigin: null\n\n")
    assert (status, json.loads(body)["error"]) == (403, "not_local")
    assert (await client.ask("GET /things/a HTTP/1.1\nHost: x\nOrigin: http://x\n\n"))[0] == 200


class FromAfar:
    """A socket over loopback, whose other end says that it is another machine."""

    def __init__(self, sock: trio.socket.SocketType, address: str) -> None:
        self._sock, self._address = sock, address

    def getpeername(self) -> tuple[str, int]:
        return self._address, 40_000

    def __getattr__(self, name: str) -> object:
        return getattr(self._sock, name)


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("127.0.0.1", 200),
        ("127.8.9.1", 200),
        ("::1", 200),
        ("::ffff:127.0.0.1", 200),
        ("10.0.0.7", 403),
        ("::ffff:10.0.0.7", 403),
        ("fe80::1%eth0", 403),
        ("2001:db8::7", 403),
    ],
)
async def test_another_machine_changes_nothing(
    router: Router, nursery: trio.Nursery, address: str, status: int
) -> None:
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    theirs = await trio.open_tcp_stream("127.0.0.1", listener.socket.getsockname()[1])
    ours = await listener.accept()
    ours.socket = FromAfar(ours.socket, address)  # type: ignore[assignment]
    nursery.start_soon(HttpConnection(ours, router).run)
    client = Client(theirs)
    assert (await client.ask("DELETE /things/a HTTP/1.1\nHost: x\n\n"))[0] == status
    assert (await client.get("/things/a"))[0] == 200
    await listener.aclose()


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


async def test_a_connection_without_a_head_is_closed(
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


async def test_a_silent_connection_is_closed(
    connect: Connect, autojump_clock: trio.testing.MockClock
) -> None:
    client = await connect()
    began = trio.current_time()
    assert await client.rest() == b""
    assert http.HEAD_S <= trio.current_time() - began < http.IDLE_S
    client = await connect()
    await client.get("/hello")
    began = trio.current_time()
    assert await client.rest() == b""
    assert trio.current_time() - began >= http.IDLE_S


async def test_a_client_that_does_not_read_is_cut_off(
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
@hypothesis.settings(max_examples=sampled(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_are_answered_or_end_the_connection(
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


async def test_a_client_that_reads_a_long_answer_slowly_gets_all_of_it(
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
